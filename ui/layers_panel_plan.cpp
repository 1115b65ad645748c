// SPDX-License-Identifier: GPL-3.0-or-later
//
// The lower half of the Layers dock: the spec of the selected site and the plan.
#include "ui/layers_panel.h"

#include <QEvent>
#include <QLabel>
#include <QListWidget>
#include <QPushButton>
#include <QTreeView>

#include "ui/eliding.h"
#include "ui/layers_model.h"
#include "ui/spec_editor.h"
#include "ui/theme.h"

namespace dblame::ui
{

SiteId LayersPanel::specSite() const
{
    const LayerItem *item = m_model->item(m_view->currentIndex());
    if (item == nullptr)
        return {};
    if (item->kind == LayerItem::Site)
        return item->hasFloat ? item->site : SiteId();
    // A layer stands for its first site that can change: the weight, else the output.
    for (const int child : item->children) {
        const LayerItem &site = m_model->tree().items[static_cast<std::size_t>(child)];
        if (site.kind == LayerItem::Site && site.hasFloat)
            return site.site;
    }
    return {};
}

void LayersPanel::showSpec()
{
    const SiteId id = m_pair ? specSite() : SiteId();
    m_spec->setVisible(id.valid());
    m_skip->setEnabled(m_view->currentIndex().isValid());
    m_only->setEnabled(m_view->currentIndex().isValid());
    if (!id.valid())
        return;
    const QuantSite &site = m_pair->sites.site(id);
    const auto change = m_edits.respecified.find(id);
    const bool changed = change != m_edits.respecified.end();
    const QString where = site.form == SiteForm::Planned ? tr("%1, by the recipe %2") : tr("%1, in the file %2");
    m_specName->setText(where.arg(QString::fromStdString(site.id), QString::fromStdString(site.spec.text())));
    m_specName->setToolTip(m_specName->text());
    m_editor->setSite(site, changed ? std::optional(change->second) : std::nullopt);
    m_asOpened->setEnabled(changed);
}

void LayersPanel::takeSpec()
{
    const SiteId id = specSite();
    if (!id.valid())
        return;
    const QuantSite &site = m_pair->sites.site(id);
    const std::optional<SpecChange> change = m_editor->change();
    const auto shown = m_edits.respecified.find(id);
    if (change == (shown == m_edits.respecified.end() ? std::nullopt : std::optional(shown->second)))
        return; // a field was left as it was
    EditSet edits = m_edits;
    if (change)
        edits.respecified.insert_or_assign(id, *change);
    else
        edits.respecified.erase(id);
    edits.off.erase(id); // another spec says that it is quantized
    Q_EMIT editsWanted(edits, tr("%1 to %2")
                                  .arg(QString::fromStdString(site.id),
                                       change ? QString::fromStdString(change->text()) : tr("its own")));
}

void LayersPanel::forgetSpec()
{
    EditSet edits = m_edits;
    if (const SiteId id = specSite(); id.valid() && edits.respecified.erase(id) > 0)
        Q_EMIT editsWanted(edits, tr("%1 as opened").arg(QString::fromStdString(m_pair->sites.site(id).id)));
}

void LayersPanel::setPlan(const std::optional<Plan> &plan)
{
    m_plan = plan;
    fillPlan();
}

void LayersPanel::changeEvent(QEvent *event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::PaletteChange && m_planList != nullptr)
        fillPlan(); // its lines carry the theme's colours
}

void LayersPanel::fillPlan()
{
    const Theme &theme = Theme::current();
    m_planList->clear();
    const bool pending = !(m_edits == m_ran);
    m_run->setEnabled(m_runnable && pending);
    m_planCount->clear();
    m_reruns->clear();
    if (!m_plan) {
        auto *hint = new QListWidgetItem(m_edits.empty() ? tr("Uncheck a layer to make it float, then run the change.")
                                                         : tr("Working out what changes…"));
        if (!m_edits.empty() && !m_runnable)
            hint->setText(tr("The plan needs a reference, a candidate and inputs."));
        hint->setForeground(theme.mute);
        m_planList->addItem(hint);
        return;
    }
    int sites = 0;
    for (const PlannedChange &change : m_plan->changes) {
        const bool real = change.kind != ChangeKind::Refused && change.kind != ChangeKind::NoEffect;
        sites += real ? 1 : 0;
        const QString id = QString::fromStdString(change.id);
        const QString text = QString::fromStdString(change.text);
        QString line = QStringLiteral("− %1: %2").arg(id, text);
        if (change.kind == ChangeKind::Respecified)
            line = QStringLiteral("± %1: %2").arg(id, text);
        else if (change.kind == ChangeKind::Refused)
            line = tr("refused: %1: %2").arg(id, text);
        else if (change.kind == ChangeKind::NoEffect)
            line = tr("no effect: %1: %2").arg(id, text);
        auto *entry = new QListWidgetItem(line);
        entry->setForeground(change.kind == ChangeKind::Refused ? theme.orange : real ? theme.text : theme.mute);
        m_planList->addItem(entry);
    }
    for (const std::string &note : m_plan->notes) {
        auto *entry = new QListWidgetItem(QString::fromStdString(note));
        entry->setForeground(theme.mute);
        m_planList->addItem(entry);
    }
    if (m_plan->changes.empty() && m_plan->notes.empty()) {
        auto *entry = new QListWidgetItem(pending ? tr("Back to the candidate as it was opened.")
                                                  : tr("Uncheck a layer to make it float, then run the change."));
        entry->setForeground(theme.mute);
        m_planList->addItem(entry);
    }
    m_planCount->setText(sites == 0 ? QString() : sites == 1 ? tr("1 site changes") : tr("%1 sites change").arg(sites));
    if (m_runnable && m_plan->nodesTotal > 0)
        m_reruns->setText(pending ? tr("reruns %1 of %2 nodes").arg(m_plan->nodesToRerun).arg(m_plan->nodesTotal)
                                  : tr("the run shown has it"));
}

QString LayersPanel::planText() const
{
    QStringList lines;
    for (int i = 0; i < m_planList->count(); ++i)
        lines << m_planList->item(i)->text();
    return lines.join(QLatin1Char('\n'));
}

} // namespace dblame::ui
