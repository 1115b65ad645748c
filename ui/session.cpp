// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/session.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include <QUndoCommand>
#include <QUndoStack>

namespace dblame::ui
{

namespace
{

// Histograms of 20,000 rows weigh more than the models. Beyond this many rows the runs before the latest keep their
// figures only; the engine recomputes a histogram when it is asked for.
constexpr std::size_t kRowsWithHistograms = 2000;

std::shared_ptr<const RunReport> withoutHistograms(const RunReport &report)
{
    auto light = std::make_shared<RunReport>(report);
    for (NodeReport &row : light->rows)
        row.histogram.reset();
    return light;
}

bool sameInputs(const InputsInfo &a, const InputsInfo &b)
{
    return a.source == b.source && a.sha256 == b.sha256 && a.samples == b.samples && a.batches == b.batches &&
           a.random == b.random;
}

bool samePairs(const Alignment &a, const Alignment &b)
{
    return std::equal(a.pairs.begin(), a.pairs.end(), b.pairs.begin(), b.pairs.end(),
                      [](const AlignedPair &p, const AlignedPair &q) {
                          return p.ref == q.ref && p.cand == q.cand && p.candCompared == q.candCompared;
                      });
}

} // namespace

std::optional<double> RunRecord::outputDb(Signal signal) const
{
    const auto &values = signal == Signal::Candidate ? report->outputSqnrDb : report->outputSnrDb;
    if (values.empty())
        return std::nullopt;
    // NaN is the worst of all and must not hide behind a comparison.
    for (const double value : values)
        if (std::isnan(value))
            return value;
    return *std::min_element(values.begin(), values.end());
}

class Session::EditCommand final : public QUndoCommand
{
public:
    EditCommand(Session &session, EditSet after, const QString &what)
        : QUndoCommand(what), m_session(session), m_before(session.m_edits), m_after(std::move(after))
    {
    }
    void undo() override { m_session.applyEdits(m_before); }
    void redo() override { m_session.applyEdits(m_after); }

private:
    Session &m_session;
    EditSet m_before, m_after;
};

class Session::HandCommand final : public QUndoCommand
{
public:
    HandCommand(Session &session, std::vector<HandPair> after, const QString &what)
        : QUndoCommand(what), m_session(session), m_before(session.m_hand), m_after(std::move(after))
    {
    }
    void undo() override { m_session.applyHand(m_before); }
    void redo() override { m_session.applyHand(m_after); }

private:
    Session &m_session;
    std::vector<HandPair> m_before, m_after;
};

Session::Session(QObject *parent)
    : QObject(parent), m_pair(std::make_shared<const OpenPair>()), m_undo(new QUndoStack(this))
{
    connect(m_undo, &QUndoStack::cleanChanged, this, &Session::modifiedChanged);
}

Session::~Session() = default;

void Session::setOpened(const OpenRequest &request, const Opened &opened, QStringList *lost)
{
    // Pairing by hand opens the same models anew; then positions of sites stay what they were.
    const bool sameSites = m_pair->candidate && m_pair->candidate == opened.pair->candidate && !m_expected;
    const bool sameFigures =
        sameSites && m_pair->reference == opened.pair->reference && sameInputs(m_pair->inputs, opened.pair->inputs);
    const bool unsaved = !m_undo->isClean();
    NamedEdits named;
    if (m_expected)
        named = *m_expected;
    else if (m_pair->candidate)
        named = nameEdits(m_edits, *m_pair);
    if (m_request.reference != request.reference || m_request.candidate != request.candidate ||
        m_request.recipe != request.recipe || m_request.inputs.files != request.inputs.files)
        m_filesChanged = true;
    m_request = request;
    m_pair = opened.pair;
    m_runnable = opened.runnable;
    m_plan.reset();
    if (!sameFigures)
        m_shown = m_overlaid = -1; // else the figures stay on show, mapped to the new alignment
    if (!sameSites) {
        if (m_pair->candidate) {
            m_edits = resolveEdits(named, *m_pair, lost);
            m_expected.reset();
        } else {
            m_edits = {};
            m_expected = named; // until a candidate comes
        }
        m_undo->clear(); // its steps speak of the other candidate's sites
        if (unsaved && !m_edits.empty())
            m_undo->resetClean(); // what was carried over is still in no document
    }
    Q_EMIT pairChanged();
    Q_EMIT editsChanged();
    Q_EMIT shownRunChanged();
    Q_EMIT modifiedChanged();
}

void Session::changeEdits(const EditSet &edits, const QString &what)
{
    if (!(edits == m_edits))
        m_undo->push(new EditCommand(*this, edits, what));
}

void Session::applyEdits(const EditSet &edits)
{
    m_edits = edits;
    m_plan.reset();
    Q_EMIT editsChanged();
    Q_EMIT modifiedChanged();
}

void Session::changeHand(const std::vector<HandPair> &hand, const QString &what)
{
    m_undo->push(new HandCommand(*this, hand, what));
}

void Session::applyHand(const std::vector<HandPair> &hand)
{
    m_hand = hand;
    Q_EMIT handChanged();
    Q_EMIT modifiedChanged();
}

bool Session::modified() const
{
    return m_filesChanged || !m_undo->isClean();
}

void Session::markSaved()
{
    m_filesChanged = false;
    m_undo->setClean();
    Q_EMIT modifiedChanged();
}

void Session::setPlan(const Plan &plan, const EditSet &edits)
{
    if (!(edits == m_edits))
        return;
    m_plan = plan;
    Q_EMIT planChanged();
}

bool Session::changePending() const
{
    return m_shown < 0 ? !m_edits.empty() : !(m_runs[static_cast<std::size_t>(m_shown)].edits == m_edits);
}

bool Session::runIsCurrent() const
{
    if (m_shown < 0 || changePending())
        return false;
    const OpenPair &then = *m_runs[static_cast<std::size_t>(m_shown)].pair;
    return then.reference == m_pair->reference && then.candidate == m_pair->candidate &&
           sameInputs(then.inputs, m_pair->inputs) && samePairs(then.alignment, m_pair->alignment);
}

void Session::addRun(std::shared_ptr<const RunReport> report, const EditSet &edits)
{
    if (!m_runs.empty() && m_runs.back().report->rows.size() > kRowsWithHistograms)
        m_runs.back().report = withoutHistograms(*m_runs.back().report);
    const int before = m_shown;
    RunRecord record;
    record.number = ++m_lastNumber;
    record.label = describeEdits(edits, *m_pair);
    if (m_pair->made) // runs of several recipes stand in one list
        record.label.prepend(QString::fromStdString(m_pair->made->recipe.title()) + QStringLiteral(" · "));
    record.edits = edits;
    record.pair = m_pair;
    record.report = std::move(report);
    m_runs.push_back(std::move(record));
    m_shown = static_cast<int>(m_runs.size()) - 1;
    m_overlaid = before; // a rerun is seen against the run before it
    Q_EMIT runsChanged();
    Q_EMIT shownRunChanged();
}

void Session::removeRuns()
{
    m_runs.clear();
    m_shown = m_overlaid = -1;
    Q_EMIT runsChanged();
    Q_EMIT shownRunChanged();
}

void Session::showRun(int shown, int overlaid)
{
    const int count = static_cast<int>(m_runs.size());
    if (shown >= count || overlaid >= count || (shown == m_shown && overlaid == m_overlaid))
        return;
    m_shown = shown;
    m_overlaid = overlaid == shown ? -1 : overlaid;
    Q_EMIT shownRunChanged();
}

std::shared_ptr<const RunReport> Session::reportFor(int run) const
{
    if (run < 0 || run >= static_cast<int>(m_runs.size()))
        return nullptr;
    const RunRecord &record = m_runs[static_cast<std::size_t>(run)];
    if (record.pair == m_pair || !m_pair->reference || !record.pair->reference)
        return record.report;
    // Made under another alignment (a pair by hand, another candidate): rows meet by the reference's value name.
    const Graph &then = record.pair->reference->graph();
    const Graph &now = m_pair->reference->graph();
    std::unordered_map<std::string, std::size_t> rowOf;
    for (std::size_t i = 0; i < record.report->rows.size(); ++i)
        if (const ValueId value = record.pair->alignment.pairs[i].ref; value.valid())
            rowOf.emplace(then.value(value).name, i);
    auto mapped = std::make_shared<RunReport>(*record.report);
    mapped->rows.assign(m_pair->alignment.pairs.size(), NodeReport());
    for (std::size_t i = 0; i < mapped->rows.size(); ++i) {
        const ValueId value = m_pair->alignment.pairs[i].ref;
        const auto found = value.valid() ? rowOf.find(now.value(value).name) : rowOf.end();
        if (found != rowOf.end())
            mapped->rows[i] = record.report->rows[found->second];
        mapped->rows[i].row = PairId(i);
        mapped->rows[i].sites.clear(); // site ids of the other candidate
    }
    findDrops(*mapped, m_pair->alignment, now, m_signal);
    return mapped;
}

void Session::setSignal(Signal signal)
{
    if (signal == m_signal)
        return;
    m_signal = signal;
    Q_EMIT signalChanged();
}

Document Session::toDocument() const
{
    Document document;
    document.reference = QString::fromStdString(m_request.reference);
    document.candidate = QString::fromStdString(m_request.candidate);
    if (m_request.recipe) {
        document.recipe = QString::fromStdString(recipeText(m_request.recipe->recipe));
        for (const std::string &file : m_request.recipe->calibration)
            document.calibration.push_back(QString::fromStdString(file));
    }
    for (const std::string &file : m_request.inputs.files)
        document.inputs.push_back(QString::fromStdString(file));
    document.random = m_request.inputs.random;
    document.edits = m_expected ? *m_expected : nameEdits(m_edits, *m_pair);
    document.hand = m_hand;
    document.signal = m_signal;
    return document;
}

} // namespace dblame::ui
