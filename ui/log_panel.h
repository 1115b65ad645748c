// SPDX-License-Identifier: GPL-3.0-or-later
//
// The Log dock: every line that dBlame logs, from any thread.
#pragma once

#include <QWidget>

#include "core/log.h"

class QCheckBox;
class QPlainTextEdit;

namespace dblame::ui
{

class LogPanel : public QWidget
{
    Q_OBJECT
public:
    // Receives the program's log from now on, until it is destroyed.
    explicit LogPanel(QWidget *parent = nullptr);
    ~LogPanel() override;
    [[nodiscard]] QString text() const;

private:
    void append(LogLevel level, const QString &text);

    QPlainTextEdit *m_text;
    QCheckBox *m_details;
};

} // namespace dblame::ui
