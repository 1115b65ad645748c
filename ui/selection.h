// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>

#include "core/ids.h"

namespace dblame::ui
{

// The one selection of the window: graph, table, plots and inspector all set it and follow it.
class Selection : public QObject
{
    Q_OBJECT
public:
    using QObject::QObject;
    [[nodiscard]] PairId current() const { return m_current; }
    void setCurrent(PairId row)
    {
        if (row == m_current)
            return;
        m_current = row;
        Q_EMIT currentChanged(row);
    }

Q_SIGNALS:
    void currentChanged(dblame::PairId row);

private:
    PairId m_current;
};

} // namespace dblame::ui
