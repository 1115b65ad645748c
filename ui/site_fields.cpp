// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/site_fields.h"

#include <algorithm>
#include <cmath>

#include <QStringList>

#include "ui/panel_text.h"
#include "ui/row_words.h"

namespace dblame::ui
{
namespace
{

QString text(const std::string &s)
{
    return QString::fromStdString(s);
}

void add(std::vector<Field> &fields, const QString &name, const QString &value)
{
    if (!value.isEmpty())
        fields.push_back({name, value});
}

// The operator's name as people know it: the module path, else the node's name.
QString ownerName(const Graph &graph, NodeId node)
{
    if (!node.valid())
        return QStringLiteral("the graph input");
    const Node &owner = graph.node(node);
    return text(owner.modulePath().empty() ? owner.name : owner.modulePath());
}

QString titleOf(const Graph &graph, const QuantSite &site, bool ownedHere)
{
    switch (site.role) {
    case SiteRole::Output:
        return QStringLiteral("output");
    case SiteRole::Weight:
        return QStringLiteral("weight");
    case SiteRole::Input:
        break;
    }
    const QString argument = QStringLiteral("argument %1").arg(site.inputIndex);
    if (ownedHere)
        return QStringLiteral("input, %1").arg(argument);
    return QStringLiteral("input of %1, %2").arg(ownerName(graph, site.owner), argument);
}

QString scaleText(const std::vector<double> &scale)
{
    if (scale.empty())
        return {};
    if (scale.size() == 1)
        return figure(scale.front());
    const auto [low, high] = std::minmax_element(scale.begin(), scale.end());
    return QStringLiteral("%1 to %2, the first %3").arg(figure(*low), figure(*high), figure(scale.front()));
}

QString zeroPointText(const std::vector<std::int64_t> &zeroPoint)
{
    if (zeroPoint.empty())
        return {};
    const auto [low, high] = std::minmax_element(zeroPoint.begin(), zeroPoint.end());
    const auto number = [](std::int64_t z) { return decibels(static_cast<double>(z), 0); };
    return *low == *high ? number(*low) : QStringLiteral("%1 to %2").arg(number(*low), number(*high));
}

// The values a grid can hold: (q - zero point) * scale over q in [quantMin, quantMax].
QString gridRange(const QuantSpec &spec, const std::vector<double> &scale, const std::vector<std::int64_t> &zeroPoint)
{
    if (scale.empty() || spec.tableSize > 0 || isFloatingPoint(spec.storage))
        return {};
    double low = INFINITY, high = -INFINITY, narrowest = INFINITY, widest = 0;
    for (std::size_t i = 0; i < scale.size(); ++i) {
        const auto zero = static_cast<double>(zeroPoint.empty() ? 0 : zeroPoint[std::min(i, zeroPoint.size() - 1)]);
        const double from = (static_cast<double>(spec.quantMin) - zero) * scale[i];
        const double to = (static_cast<double>(spec.quantMax) - zero) * scale[i];
        low = std::min(low, from);
        high = std::max(high, to);
        narrowest = std::min(narrowest, to - from);
        widest = std::max(widest, to - from);
    }
    if (scale.size() == 1)
        return rangeText(low, high);
    return QStringLiteral("%1, widths %2 to %3").arg(rangeText(low, high), figure(narrowest), figure(widest));
}

// Which codes there are: a uniform grid's ends, or how long a lookup table is; float types have theirs by name.
QString gridText(const QuantSpec &spec)
{
    if (spec.tableSize > 0)
        return QStringLiteral("table of %1 values").arg(spec.tableSize);
    if (isFloatingPoint(spec.storage))
        return {};
    const auto number = [](std::int64_t code) { return decibels(static_cast<double>(code), 0); };
    return QStringLiteral("%1 to %2 in %3")
        .arg(number(spec.quantMin), number(spec.quantMax), text(std::string(dtypeName(spec.storage))));
}

QString useText(const SiteReport &state)
{
    QStringList words;
    if (state.clipped)
        words << QStringLiteral("clipped %1").arg(shareText(*state.clipped));
    if (state.unusedRange)
        words << QStringLiteral("unused %1").arg(shareText(*state.unusedRange));
    return words.join(QStringLiteral(", "));
}

QString stateOf(const QuantSite &site, const SiteReport *state)
{
    if (state != nullptr && !state->on)
        return state->change.empty() ? QStringLiteral("off") : QStringLiteral("off: ") + text(state->change);
    if (state != nullptr && !state->change.empty())
        return QStringLiteral("changed: ") + text(state->change);
    if (site.watchesOnly)
        return QStringLiteral("watches only, does not change the value");
    return site.enabled ? QString() : QStringLiteral("switched off in the file");
}

// Another grid than the file's ran: the file's ends and codes say nothing.
bool isRespecified(const SiteReport *state)
{
    return state != nullptr && state->on && !state->change.empty() && !state->change.starts_with("float");
}

QString sharedText(const SiteTable &sites, SiteId self)
{
    const QuantSite &site = sites.site(self);
    if (site.instance.empty())
        return {};
    QStringList others;
    for (std::size_t i = 0; i < sites.sites.size(); ++i)
        if (SiteId(i) != self && sites.sites[i].instance == site.instance)
            others << text(sites.sites[i].id);
    return others.isEmpty()
               ? text(site.instance)
               : QStringLiteral("%1, shared with %2").arg(text(site.instance), others.join(QStringLiteral(", ")));
}

QString groupText(const SiteTable &sites, SiteId self)
{
    const QuantSite &site = sites.site(self);
    if (site.group < 0)
        return {};
    QStringList others;
    for (std::size_t i = 0; i < sites.sites.size(); ++i)
        if (SiteId(i) != self && sites.sites[i].group == site.group)
            others << text(sites.sites[i].id);
    return others.isEmpty() ? QString() : QStringLiteral("same grid as ") + others.join(QStringLiteral(", "));
}

SiteSection section(const OpenPair &pair, SiteId id, const SiteReport *state, NodeId owner)
{
    const QuantSite &site = pair.sites.site(id);
    SiteSection out;
    out.site = id;
    out.title = titleOf(pair.candidate->graph(), site, site.owner == owner && owner.valid());
    const bool respecified = isRespecified(state);
    const bool measured = respecified || (state != nullptr && !state->scale.empty());
    out.scale = measured ? state->scale : site.scale;
    out.zeroPoint = measured ? state->zeroPoint : site.zeroPoint;

    QString spec = text(site.spec.text());
    if (site.spec.granularity == Granularity::PerChannel && out.scale.size() > 1 && !respecified)
        spec += QStringLiteral(" (%1)").arg(out.scale.size());
    const QString zeroPoint = zeroPointText(out.zeroPoint);
    if (respecified)
        spec += QStringLiteral(" in the file");
    else if (!zeroPoint.isEmpty() && !(site.spec.symmetric && zeroPoint == QLatin1String("0")))
        spec += QStringLiteral(" · zp %1").arg(zeroPoint);
    add(out.fields, out.title, spec);
    add(out.fields, QStringLiteral("state"), stateOf(site, state));
    QString scale = scaleText(out.scale);
    if (scale.isEmpty() && (site.spec.dynamic || (respecified && site.role != SiteRole::Weight)))
        scale = QStringLiteral("chosen from each tensor");
    else if (site.spec.dynamic)
        scale += QStringLiteral(" (last batch)");
    add(out.fields, QStringLiteral("scale"), scale);
    if (respecified)
        add(out.fields, QStringLiteral("zero point"), zeroPoint);
    else
        add(out.fields, QStringLiteral("range"), gridRange(site.spec, out.scale, out.zeroPoint));
    if (state != nullptr)
        add(out.fields, QStringLiteral("use"), useText(*state));
    add(out.fields, QStringLiteral("form"), QString::fromUtf8(siteFormName(site.form)));
    if (!respecified)
        add(out.fields, QStringLiteral("grid"), gridText(site.spec));
    add(out.fields, QStringLiteral("instance"), sharedText(pair.sites, id));
    add(out.fields, QStringLiteral("group"), groupText(pair.sites, id));
    add(out.fields, QStringLiteral("site"), text(site.id));
    return out;
}

// Position among rows of the same sort: weights and inputs are counted apart from activations.
QString positionText(const OpenPair &pair, PairId row)
{
    const auto sortOf = [](RowKind kind) { return isActivation(kind) ? RowKind::Activation : kind; };
    const RowKind sort = sortOf(pair.alignment.pairs[row.get()].kind);
    int position = 0, count = 0;
    for (std::size_t i = 0; i < pair.alignment.pairs.size(); ++i) {
        if (sortOf(pair.alignment.pairs[i].kind) != sort)
            continue;
        ++count;
        if (i <= row.get())
            ++position;
    }
    const QString word = sort == RowKind::Activation ? QStringLiteral("node") : QString::fromUtf8(rowKindName(sort));
    return QStringLiteral("%1 %2 of %3").arg(word).arg(position).arg(count);
}

void addValueFields(std::vector<Field> &fields, const NodeReport &report)
{
    const Metrics &m = report.metrics;
    if (hasDb(report) || report.status == RowStatus::Mismatch) {
        add(fields, QStringLiteral("reference"), rangeText(m.refMin, m.refMax));
        add(fields, QStringLiteral("candidate"), rangeText(m.candMin, m.candMax));
        QString bad = QStringLiteral("none");
        if (m.nan > 0 || m.inf > 0)
            bad = QStringLiteral("%1 NaN, %2 infinite")
                      .arg(countText(static_cast<double>(m.nan)), countText(static_cast<double>(m.inf)));
        add(fields, QStringLiteral("NaN, inf"), bad);
        QString elements = countText(static_cast<double>(m.count));
        if (report.batches > 1)
            elements += QStringLiteral(" in %1 batches").arg(report.batches);
        add(fields, QStringLiteral("elements"), elements);
        add(fields, QStringLiteral("mean |e|"), figure(m.mae));
    }
    if (report.ms > 0)
        add(fields, QStringLiteral("time"), QStringLiteral("%1 ms, both operators, last batch").arg(figure(report.ms)));
    if (report.carriedOver)
        add(fields, QStringLiteral("run"), QStringLiteral("as before: not downstream of the change"));
}

} // namespace

std::vector<SiteSection> siteSections(const OpenPair &pair, PairId row, const NodeReport &report)
{
    std::vector<SiteSection> sections;
    if (pair.candidate == nullptr || !row.valid())
        return sections;
    const AlignedPair &aligned = pair.alignment.pairs[row.get()];
    const Node *producer = aligned.cand.valid() ? pair.candidate->graph().producer(aligned.cand) : nullptr;
    const NodeId owner = producer != nullptr ? pair.candidate->graph().value(aligned.cand).producer : NodeId();
    const auto addSite = [&](SiteId id) {
        const auto same = [id](const auto &other) { return other.site == id; };
        if (!id.valid() || id.get() >= pair.sites.sites.size() || std::any_of(sections.begin(), sections.end(), same))
            return;
        const auto state = std::find_if(report.sites.begin(), report.sites.end(), same);
        sections.push_back(section(pair, id, state == report.sites.end() ? nullptr : &*state, owner));
    };
    addSite(aligned.site);
    for (const SiteReport &state : report.sites)
        addSite(state.site);
    for (const SiteId id : aligned.inputSites)
        addSite(id);
    if (owner.valid() && isActivation(aligned.kind))
        for (std::size_t i = 0; i < pair.sites.sites.size(); ++i)
            if (pair.sites.sites[i].owner == owner && pair.sites.sites[i].role != SiteRole::Output)
                addSite(SiteId(i));
    return sections;
}

std::vector<Field> rowFields(const OpenPair &pair, PairId row, const NodeReport &report)
{
    std::vector<Field> fields;
    const AlignedPair &aligned = pair.alignment.pairs[row.get()];
    QString paired = QString::fromUtf8(rungName(aligned.rung));
    if (pair.candidate != nullptr && aligned.cand.valid())
        paired += QStringLiteral(" → ") + text(pair.candidate->graph().value(aligned.cand).name);
    if (!aligned.reason.empty())
        paired += QStringLiteral("; ") + text(aligned.reason);
    add(fields, QStringLiteral("paired by"), paired);
    QStringList folded;
    for (const std::string &name : aligned.folded)
        folded << text(name);
    add(fields, QStringLiteral("folded"), folded.join(QStringLiteral(", ")));
    add(fields, QStringLiteral("shape"), sizesText(report.shape));
    add(fields, QStringLiteral("type"), text(report.dtype));
    addValueFields(fields, report);
    return fields;
}

QString rowSubtitle(const OpenPair &pair, PairId row)
{
    const AlignedPair &aligned = pair.alignment.pairs[row.get()];
    const Graph &graph = pair.reference->graph();
    QStringList parts;
    const Node *node = aligned.ref.valid() ? graph.producer(aligned.ref) : nullptr;
    if (node != nullptr) {
        parts << text(node->opType());
    } else if (const GraphInput *input = aligned.ref.valid() ? graph.input(aligned.ref) : nullptr) {
        parts << text(input->target.empty() ? graph.value(aligned.ref).name : input->target);
    }
    parts << positionText(pair, row);
    if (node != nullptr && !node->source.empty())
        parts << text(node->source);
    return parts.join(QStringLiteral(" · "));
}

} // namespace dblame::ui
