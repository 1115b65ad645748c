// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

#include <QString>
#include <QWidget>

class QGridLayout;
class QLabel;

namespace dblame::ui
{

struct Field {
    QString name, value;
    friend bool operator==(const Field &, const Field &) = default;
};

// Names and selectable values in two columns. Labels are kept from one setFields to the next, so that a running
// comparison neither flickers nor takes away what is selected. A word that is wider than the column loses its middle;
// the tool tip has it whole.
class FieldGrid : public QWidget
{
    Q_OBJECT
public:
    explicit FieldGrid(QWidget *parent = nullptr);
    void setFields(const std::vector<Field> &fields);
    [[nodiscard]] const std::vector<Field> &fields() const { return m_fields; }

protected:
    bool eventFilter(QObject *watched, QEvent *event) override;

private:
    void fit(std::size_t field);

    QGridLayout *m_layout;
    std::vector<QLabel *> m_names, m_values;
    std::vector<Field> m_fields;
};

} // namespace dblame::ui
