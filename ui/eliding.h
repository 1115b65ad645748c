// SPDX-License-Identifier: GPL-3.0-or-later
//
// A label and a button whose words give way where there is no room. text() stays whole: for the tool tip, assistive
// technology and the clipboard.
#pragma once

#include <QLabel>
#include <QPushButton>

namespace dblame::ui
{

// One line of plain text. Its tool tip, unless it has one of its own, is the whole text while some of it is cut.
class ElidingLabel : public QLabel
{
    Q_OBJECT
public:
    explicit ElidingLabel(QWidget *parent = nullptr, Qt::TextElideMode mode = Qt::ElideRight);
    [[nodiscard]] QSize minimumSizeHint() const override;
    [[nodiscard]] QSize sizeHint() const override;
    [[nodiscard]] QString shownText() const; // as it is painted

protected:
    bool event(QEvent *event) override;
    void paintEvent(QPaintEvent *event) override;

private:
    Qt::TextElideMode m_mode;
};

// "Reference float.pt2": the end of a file's name says as much as its beginning, so the middle goes.
class ElidingButton : public QPushButton
{
    Q_OBJECT
public:
    explicit ElidingButton(const QString &text, QWidget *parent = nullptr);
    // Never narrower than these words (its name, without the file).
    void setLeastText(const QString &text);
    [[nodiscard]] QSize minimumSizeHint() const override;
    [[nodiscard]] QString shownText() const;

protected:
    void paintEvent(QPaintEvent *event) override;

private:
    QString m_least;
};

} // namespace dblame::ui
