// SPDX-License-Identifier: GPL-3.0-or-later
//
// Building blocks of the inspector: a titled section, a list of rows to jump to, one quantizer.
#pragma once

#include <vector>

#include <QWidget>

#include "core/ids.h"
#include "ui/site_fields.h"

class QHBoxLayout;
class QLabel;
class QPushButton;
class QTableWidget;
class QToolButton;
class QVBoxLayout;

namespace dblame::ui
{

// A title with room for controls at its right, and a body.
class InspectorSection : public QWidget
{
    Q_OBJECT
public:
    InspectorSection(const QString &title, QWidget *parent);
    void setTitle(const QString &title);
    void addControl(QWidget *control);
    void addBody(QWidget *body);

private:
    QLabel *m_title;
    QHBoxLayout *m_head;
    QVBoxLayout *m_layout;
};

// Rows to jump to, one button each; made anew only when they change.
class LinkList : public QWidget
{
    Q_OBJECT
public:
    explicit LinkList(QWidget *parent);
    struct Link {
        PairId row;
        QString text;
        friend bool operator==(const Link &, const Link &) = default;
    };
    void setLinks(const std::vector<Link> &links, const QString &whenNone);
    [[nodiscard]] const std::vector<Link> &links() const { return m_links; }
    [[nodiscard]] const std::vector<QPushButton *> &buttons() const { return m_buttons; }

Q_SIGNALS:
    void activated(dblame::PairId row);

private:
    QVBoxLayout *m_layout;
    QLabel *m_none;
    std::vector<QPushButton *> m_buttons;
    std::vector<Link> m_links;
};

// One quantizer: its fields and, for more than one scale, a table that is filled when it is asked for.
class SiteView : public QWidget
{
    Q_OBJECT
public:
    explicit SiteView(QWidget *parent);
    void setSection(const SiteSection &section);
    [[nodiscard]] const std::vector<Field> &fields() const { return m_grid->fields(); }
    [[nodiscard]] QToolButton *tableButton() const { return m_tableButton; }
    [[nodiscard]] QTableWidget *table() const { return m_table; } // nullptr until it was asked for

private:
    void showTable(bool on);
    void fillTable();

    FieldGrid *m_grid;
    QToolButton *m_tableButton;
    QTableWidget *m_table = nullptr;
    SiteSection m_section;
};

} // namespace dblame::ui
