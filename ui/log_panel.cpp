// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/log_panel.h"

#include <QCheckBox>
#include <QClipboard>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QTextCharFormat>
#include <QTime>

#include "ui/theme.h"

namespace dblame::ui
{

namespace
{

constexpr int kKeptLines = 20000;

} // namespace

LogPanel::LogPanel(QWidget *parent)
    : QWidget(parent), m_text(new QPlainTextEdit), m_details(new QCheckBox(tr("Details")))
{
    m_text->setReadOnly(true);
    m_text->setAccessibleName(tr("Log"));
    m_text->setMaximumBlockCount(kKeptLines);
    m_text->setLineWrapMode(QPlainTextEdit::NoWrap);
    m_text->setFrameShape(QFrame::NoFrame);
    m_text->setPlaceholderText(tr("What dBlame has to say while it reads and runs will stand here."));
    m_details->setToolTip(tr("Also causes and backtraces"));
    connect(m_details, &QCheckBox::toggled, this, [](bool on) { setLogLevel(on ? LogLevel::Debug : LogLevel::Info); });
    auto *copy = new QPushButton(tr("Copy all"));
    connect(copy, &QPushButton::clicked, this, [this] { QGuiApplication::clipboard()->setText(text()); });
    auto *clear = new QPushButton(tr("Clear"));
    connect(clear, &QPushButton::clicked, m_text, &QPlainTextEdit::clear);
    auto *bar = new QHBoxLayout;
    bar->setContentsMargins(14, 6, 14, 6);
    bar->addWidget(m_details);
    bar->addStretch();
    bar->addWidget(copy);
    bar->addWidget(clear);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addWidget(m_text, 1);
    layout->addLayout(bar);
    // Called on the engine thread, too: the event queue carries the line over. setLogSink() returns only when no
    // call is under way, so nothing is posted to a panel that is gone.
    setLogSink([this](LogLevel level, const std::string &line) {
        QMetaObject::invokeMethod(
            this, [this, level, text = QString::fromStdString(line)] { append(level, text); }, Qt::QueuedConnection);
    });
}

LogPanel::~LogPanel()
{
    setLogSink({});
}

QString LogPanel::text() const
{
    return m_text->toPlainText();
}

void LogPanel::append(LogLevel level, const QString &text)
{
    QTextCharFormat format; // ordinary lines keep the palette's colour, also after the theme has changed
    if (level != LogLevel::Info)
        format.setForeground(level == LogLevel::Debug ? Theme::current().mute : Theme::current().orange);
    m_text->setCurrentCharFormat(format);
    const QString word =
        level == LogLevel::Info ? QString() : QString::fromLatin1(logLevelName(level)) + QStringLiteral(": ");
    m_text->appendPlainText(QTime::currentTime().toString(QStringLiteral("HH:mm:ss  ")) + word + text);
}

} // namespace dblame::ui
