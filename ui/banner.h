// SPDX-License-Identifier: GPL-3.0-or-later
//
// Messages that stand in the window instead of popping up: what happened, and the ways out as buttons. One message
// per key; a new one of the same key replaces the old.
#pragma once

#include <functional>
#include <map>
#include <utility>
#include <vector>

#include <QString>
#include <QWidget>

class QVBoxLayout;

namespace dblame::ui
{

class BannerArea : public QWidget
{
    Q_OBJECT
public:
    struct WayOut {
        QString text;
        std::function<void()> act; // the banner goes when it is pressed
    };
    enum Kind { Problem, Warning }; // a warning stands as long as its cause and has no "Dismiss"

    explicit BannerArea(QWidget *parent = nullptr);

    void show(const QString &key, Kind kind, const QString &text, const std::vector<WayOut> &waysOut = {});
    void remove(const QString &key);
    [[nodiscard]] bool empty() const { return m_banners.empty(); }
    [[nodiscard]] QString text(const QString &key) const; // "" when there is none
    [[nodiscard]] QWidget *banner(const QString &key) const;

Q_SIGNALS:
    void emptyChanged(bool empty);

private:
    QVBoxLayout *m_layout;
    std::map<QString, QWidget *> m_banners;
};

} // namespace dblame::ui
