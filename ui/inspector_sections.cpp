// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/inspector_sections.h"

#include <algorithm>

#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QPushButton>
#include <QTableWidget>
#include <QToolButton>
#include <QVBoxLayout>

#include "ui/panel_text.h"
#include "ui/row_words.h"

namespace dblame::ui
{
namespace
{
constexpr int kTableHeight = 168;
constexpr int kLinkCharacters = 38;
} // namespace

InspectorSection::InspectorSection(const QString &title, QWidget *parent)
    : QWidget(parent), m_title(new QLabel(this)), m_head(new QHBoxLayout), m_layout(new QVBoxLayout(this))
{
    m_title->setProperty("role", "title");
    m_layout->setContentsMargins(0, 0, 0, 0);
    m_layout->setSpacing(4);
    m_head->setSpacing(2);
    m_head->addWidget(m_title);
    m_head->addStretch(1);
    m_layout->addLayout(m_head);
    setTitle(title);
}

void InspectorSection::setTitle(const QString &title)
{
    m_title->setText(title);
    setAccessibleName(title);
}

void InspectorSection::addControl(QWidget *control)
{
    m_head->addWidget(control);
}

void InspectorSection::addBody(QWidget *body)
{
    m_layout->addWidget(body);
}

LinkList::LinkList(QWidget *parent) : QWidget(parent), m_layout(new QVBoxLayout(this)), m_none(new QLabel(this))
{
    m_layout->setContentsMargins(0, 0, 0, 0);
    m_layout->setSpacing(0);
    m_none->setProperty("role", "mute");
    m_layout->addWidget(m_none);
}

void LinkList::setLinks(const std::vector<Link> &links, const QString &whenNone)
{
    m_none->setText(whenNone);
    m_none->setVisible(links.empty());
    if (links == m_links)
        return;
    m_links = links;
    while (m_buttons.size() < links.size()) {
        auto *button = new QPushButton(this);
        button->setProperty("role", "flat");
        button->setStyleSheet(QStringLiteral("text-align: left; padding: 1px 0; min-height: 16px;"));
        button->setCursor(Qt::PointingHandCursor);
        const std::size_t index = m_buttons.size();
        connect(button, &QPushButton::clicked, this, [this, index] {
            if (index < m_links.size())
                Q_EMIT activated(m_links[index].row);
        });
        m_layout->addWidget(button, 0, Qt::AlignLeft);
        m_buttons.push_back(button);
    }
    for (std::size_t i = 0; i < m_buttons.size(); ++i) {
        m_buttons[i]->setVisible(i < links.size());
        if (i >= links.size())
            continue;
        const QString &full = links[i].text;
        m_buttons[i]->setText(elideLeft(full, kLinkCharacters));
        m_buttons[i]->setToolTip(tr("Jump to %1").arg(full));
        m_buttons[i]->setAccessibleName(m_buttons[i]->toolTip());
    }
}

SiteView::SiteView(QWidget *parent) : QWidget(parent), m_grid(new FieldGrid(this)), m_tableButton(new QToolButton(this))
{
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 4);
    layout->setSpacing(4);
    layout->addWidget(m_grid);
    m_tableButton->setCheckable(true);
    m_tableButton->setFocusPolicy(Qt::StrongFocus);
    m_tableButton->setProperty("role", "chip");
    layout->addWidget(m_tableButton, 0, Qt::AlignLeft);
    m_tableButton->hide();
    connect(m_tableButton, &QToolButton::toggled, this, &SiteView::showTable);
}

void SiteView::setSection(const SiteSection &section)
{
    const bool other = section.site != m_section.site;
    const bool changed = other || section.scale != m_section.scale || section.zeroPoint != m_section.zeroPoint;
    m_section = section;
    m_grid->setFields(section.fields);
    m_tableButton->setVisible(section.scale.size() > 1);
    m_tableButton->setText(tr("Table of %1 scales").arg(section.scale.size()));
    m_tableButton->setAccessibleName(tr("Scales of the %1 site").arg(section.title));
    if (other || section.scale.size() <= 1)
        m_tableButton->setChecked(false);
    if (changed && m_tableButton->isChecked())
        fillTable();
}

void SiteView::showTable(bool on)
{
    if (on && m_table == nullptr) {
        m_table = new QTableWidget(this);
        m_table->setColumnCount(3);
        m_table->setHorizontalHeaderLabels({tr("channel"), tr("scale"), tr("zero point")});
        m_table->verticalHeader()->hide();
        m_table->verticalHeader()->setDefaultSectionSize(22);
        m_table->horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);
        m_table->setEditTriggers(QAbstractItemView::NoEditTriggers);
        m_table->setFixedHeight(kTableHeight);
        m_table->setShowGrid(false);
        layout()->addWidget(m_table);
    }
    if (m_table == nullptr)
        return;
    m_table->setVisible(on);
    if (on)
        fillTable();
}

void SiteView::fillTable()
{
    m_table->setAccessibleName(tr("Scales by channel"));
    m_table->setRowCount(static_cast<int>(m_section.scale.size()));
    for (std::size_t i = 0; i < m_section.scale.size(); ++i) {
        const int row = static_cast<int>(i);
        const std::int64_t zero =
            m_section.zeroPoint.empty() ? 0 : m_section.zeroPoint[std::min(i, m_section.zeroPoint.size() - 1)];
        const QString words[] = {QString::number(i), figure(m_section.scale[i]),
                                 decibels(static_cast<double>(zero), 0)};
        for (int column = 0; column < 3; ++column)
            m_table->setItem(row, column, new QTableWidgetItem(words[column]));
    }
}

} // namespace dblame::ui
