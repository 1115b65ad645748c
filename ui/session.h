// SPDX-License-Identifier: GPL-3.0-or-later
//
// What is open and what was done with it: files, edits (with undo), hand-made pairs, plan, run history. No widgets,
// no threads: the window carries requests to the Runner and brings the answers back here.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <QObject>
#include <QString>
#include <QStringList>

#include "core/edits.h"
#include "ui/document.h"
#include "ui/engine_side.h"
#include "ui/open_pair.h"

class QUndoStack;

namespace dblame::ui
{

// One finished run. `report` belongs to `pair`'s alignment.
struct RunRecord {
    int number = 0; // 1 for the first
    QString label;  // what was changed
    EditSet edits;
    OpenPairPtr pair;
    std::shared_ptr<const RunReport> report;
    [[nodiscard]] std::optional<double> outputDb(Signal signal) const; // the worst of the outputs
};

class Session : public QObject
{
    Q_OBJECT
public:
    explicit Session(QObject *parent = nullptr);
    ~Session() override;

    // --- what is open
    [[nodiscard]] const OpenRequest &request() const { return m_request; }
    [[nodiscard]] const OpenPairPtr &pair() const { return m_pair; } // never null
    [[nodiscard]] bool runnable() const { return m_runnable; }
    // The answer to `request`. Edits made on another candidate are carried over by name; `lost` gets what it lacks.
    // The run that is shown stays only when models and inputs are the same (a pair was made by hand).
    void setOpened(const OpenRequest &request, const Opened &opened, QStringList *lost);

    // --- edits; each change is one step of undo
    [[nodiscard]] const EditSet &edits() const { return m_edits; }
    void changeEdits(const EditSet &edits, const QString &what);
    [[nodiscard]] const std::vector<HandPair> &hand() const { return m_hand; }
    void changeHand(const std::vector<HandPair> &hand, const QString &what);
    [[nodiscard]] QUndoStack *undoStack() const { return m_undo; }
    // Whether there is anything that a document would lose.
    [[nodiscard]] bool modified() const;
    void markSaved();

    // --- plan
    [[nodiscard]] const std::optional<Plan> &plan() const { return m_plan; }
    void setPlan(const Plan &plan, const EditSet &edits); // ignored when the edits moved on
    // The edits differ from those of the run that is shown.
    [[nodiscard]] bool changePending() const;
    // The run that is shown is what a run would give: this pair, these inputs, these edits.
    [[nodiscard]] bool runIsCurrent() const;

    // --- runs
    [[nodiscard]] const std::vector<RunRecord> &runs() const { return m_runs; }
    void addRun(std::shared_ptr<const RunReport> report, const EditSet &edits); // becomes the one that is shown
    void removeRuns();
    [[nodiscard]] int shownRun() const { return m_shown; }       // position in runs(), -1 none
    [[nodiscard]] int overlaidRun() const { return m_overlaid; } // -1 none
    void showRun(int shown, int overlaid);
    // A run's rows in the order of the pair that is open (rows without a counterpart stay pending).
    [[nodiscard]] std::shared_ptr<const RunReport> reportFor(int run) const;

    [[nodiscard]] Signal signal() const { return m_signal; }
    void setSignal(Signal signal);

    // --- document
    [[nodiscard]] Document toDocument() const;
    // Edits of a document wait here until its models are open.
    void expectEdits(const NamedEdits &edits) { m_expected = edits; }
    void expectHand(const std::vector<HandPair> &hand) { m_hand = hand; }

Q_SIGNALS:
    void pairChanged();
    void editsChanged();
    void handChanged(); // the pair has to be aligned anew
    void planChanged();
    void runsChanged();
    void shownRunChanged();
    void signalChanged();
    void modifiedChanged();

private:
    class EditCommand;
    class HandCommand;
    void applyEdits(const EditSet &edits);
    void applyHand(const std::vector<HandPair> &hand);

    OpenRequest m_request;
    OpenPairPtr m_pair;
    bool m_runnable = false;
    EditSet m_edits;
    std::optional<NamedEdits> m_expected;
    std::vector<HandPair> m_hand;
    std::optional<Plan> m_plan;
    std::vector<RunRecord> m_runs;
    int m_shown = -1, m_overlaid = -1, m_lastNumber = 0;
    Signal m_signal = Signal::Reference;
    bool m_filesChanged = false;
    QUndoStack *m_undo;
};

} // namespace dblame::ui
