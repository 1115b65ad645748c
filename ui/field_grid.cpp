// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/field_grid.h"

#include <QEvent>
#include <QFontMetrics>
#include <QGridLayout>
#include <QLabel>

namespace dblame::ui
{
namespace
{
constexpr int kNameWidth = 76;
}

FieldGrid::FieldGrid(QWidget *parent) : QWidget(parent), m_layout(new QGridLayout(this))
{
    m_layout->setContentsMargins(0, 0, 0, 0);
    m_layout->setHorizontalSpacing(4);
    m_layout->setVerticalSpacing(4);
    m_layout->setColumnMinimumWidth(0, kNameWidth);
    m_layout->setColumnStretch(1, 1);
}

void FieldGrid::setFields(const std::vector<Field> &fields)
{
    if (fields == m_fields)
        return;
    m_fields = fields;
    while (m_names.size() < fields.size()) {
        const int row = static_cast<int>(m_names.size());
        auto *name = new QLabel(this);
        name->setProperty("role", "mute");
        name->setAlignment(Qt::AlignTop | Qt::AlignLeft);
        name->setContentsMargins(0, 1, 0, 0);
        auto *value = new QLabel(this);
        value->setTextFormat(Qt::PlainText);
        value->setWordWrap(true);
        value->setTextInteractionFlags(Qt::TextSelectableByMouse);
        value->setMinimumWidth(0);
        value->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
        value->installEventFilter(this);
        m_layout->addWidget(name, row, 0);
        m_layout->addWidget(value, row, 1);
        m_names.push_back(name);
        m_values.push_back(value);
    }
    for (std::size_t i = 0; i < m_names.size(); ++i) {
        const bool used = i < fields.size();
        m_names[i]->setVisible(used);
        m_values[i]->setVisible(used);
        if (!used)
            continue;
        m_names[i]->setText(fields[i].name);
        fit(i);
        m_values[i]->setAccessibleName(fields[i].name + QStringLiteral(": ") + fields[i].value);
    }
}

// Text wraps between words; a word wider than the column (an instance, a path) would be cut in mid-letter.
void FieldGrid::fit(std::size_t i)
{
    QLabel *label = m_values[i];
    const QFontMetrics metrics(label->font());
    const int room = label->width();
    QStringList words = m_fields[i].value.split(QLatin1Char(' '));
    bool cut = false;
    for (QString &word : words)
        if (room > 0 && metrics.horizontalAdvance(word) > room) {
            word = metrics.elidedText(word, Qt::ElideMiddle, room);
            cut = true;
        }
    const QString shown = words.join(QLatin1Char(' '));
    if (label->text() != shown)
        label->setText(shown);
    label->setToolTip(cut ? m_fields[i].value : QString());
}

bool FieldGrid::eventFilter(QObject *watched, QEvent *event)
{
    if (event->type() == QEvent::Resize)
        for (std::size_t i = 0; i < m_fields.size(); ++i)
            if (m_values[i] == watched)
                fit(i);
    return QWidget::eventFilter(watched, event);
}

} // namespace dblame::ui
