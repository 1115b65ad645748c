// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/banner.h"

#include <QFrame>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QVBoxLayout>

namespace dblame::ui
{

BannerArea::BannerArea(QWidget *parent) : QWidget(parent), m_layout(new QVBoxLayout(this))
{
    m_layout->setContentsMargins(0, 0, 0, 0);
    m_layout->setSpacing(4);
}

void BannerArea::show(const QString &key, Kind kind, const QString &text, const std::vector<WayOut> &waysOut)
{
    const bool wasEmpty = empty();
    if (const auto old = m_banners.find(key); old != m_banners.end()) {
        old->second->hide();
        old->second->deleteLater();
    }
    auto *frame = new QFrame;
    frame->setProperty("role", "tile");
    frame->setAccessibleName(kind == Problem ? tr("Problem: %1").arg(text) : tr("Warning: %1").arg(text));
    auto *layout = new QHBoxLayout(frame);
    layout->setContentsMargins(10, 5, 6, 5);
    layout->setSpacing(8);
    // The word says what the colour says.
    auto *word = new QLabel(kind == Problem ? tr("Problem") : tr("Warning"));
    word->setProperty("role", "accent");
    auto *label = new QLabel(text);
    label->setObjectName(QStringLiteral("text"));
    label->setTextFormat(Qt::PlainText); // paths and node names are not mark-up
    label->setWordWrap(true);
    label->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    layout->addWidget(word);
    layout->addWidget(label, 1);
    const auto addButton = [&](const QString &name, const std::function<void()> &act) {
        auto *button = new QPushButton(name);
        connect(button, &QPushButton::clicked, this, [this, key, act] {
            remove(key);
            if (act)
                act();
        });
        layout->addWidget(button);
    };
    for (const WayOut &way : waysOut)
        addButton(way.text, way.act);
    if (kind == Problem)
        addButton(tr("Dismiss"), {});
    m_layout->addWidget(frame);
    m_banners[key] = frame;
    if (wasEmpty)
        Q_EMIT emptyChanged(false);
}

void BannerArea::remove(const QString &key)
{
    const auto found = m_banners.find(key);
    if (found == m_banners.end())
        return;
    found->second->hide();
    found->second->deleteLater();
    m_banners.erase(found);
    if (empty())
        Q_EMIT emptyChanged(true);
}

QWidget *BannerArea::banner(const QString &key) const
{
    const auto found = m_banners.find(key);
    return found == m_banners.end() ? nullptr : found->second;
}

QString BannerArea::text(const QString &key) const
{
    const QWidget *frame = banner(key);
    return frame == nullptr ? QString() : frame->findChild<QLabel *>(QStringLiteral("text"))->text();
}

} // namespace dblame::ui
