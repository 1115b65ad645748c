// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <vector>

#include <QWidget>

#include "core/node_report.h"

namespace dblame::ui
{

// What a tensor's channels say that its one number does not.
struct ChannelSummary {
    int count = 0;
    std::optional<ChannelMetrics> worst; // lowest dB; NaN channels are left out
    double worstDb = 0;                  // by the shown signal
    // The channel with the most signal, when the pooled number would be at least 3 dB lower without it: its energy
    // fills the sums, so that the worst channel cannot be seen in them.
    std::optional<int> hiddenBy;
    int below = 0;                  // channels under kLow
    double lowest = 0, highest = 0; // finite dB values; NaN when there is none

    static constexpr double kLow = 9;    // dB: less than this and the signal is mostly gone
    static constexpr double kHidden = 3; // dB
};
[[nodiscard]] ChannelSummary summarizeChannels(const std::vector<ChannelMetrics> &channels, Signal signal);

// "worst 11 · 17.2 dB, hidden by 3"
[[nodiscard]] QString worstChannelText(const ChannelSummary &summary);
// "15 of 16 below 9 dB"; empty when none is.
[[nodiscard]] QString lowChannelsText(const ChannelSummary &summary);

// One cell per channel, or per run of channels where there are more than pixels (the worst of the run gives the
// colour). Arrow keys move from cell to cell.
class ChannelStrip : public QWidget
{
    Q_OBJECT
public:
    explicit ChannelStrip(QWidget *parent = nullptr);

    void setChannels(std::vector<ChannelMetrics> channels, Signal signal);
    void setSorted(bool on); // worst first

    struct Cell {
        std::size_t first = 0, count = 1; // into the shown order
        std::size_t worst = 0;            // position in the shown order
    };
    [[nodiscard]] std::vector<Cell> cells() const; // for the present width
    [[nodiscard]] const std::vector<ChannelMetrics> &shown() const { return m_shown; }
    [[nodiscard]] QString cellText(const Cell &cell) const;
    [[nodiscard]] QSize sizeHint() const override;
    [[nodiscard]] QSize minimumSizeHint() const override;

Q_SIGNALS:
    void cellChanged(const QString &text); // under the mouse or the keyboard's cell; empty: none

protected:
    bool event(QEvent *event) override;
    void paintEvent(QPaintEvent *event) override;
    void mouseMoveEvent(QMouseEvent *event) override;
    void leaveEvent(QEvent *event) override;
    void keyPressEvent(QKeyEvent *event) override;

private:
    [[nodiscard]] double db(const ChannelMetrics &channel) const;
    [[nodiscard]] QRectF cellRect(std::size_t cell, std::size_t count) const;
    [[nodiscard]] int cellAt(QPointF position) const;
    void reorder();
    void setCurrent(int cell);
    void paintNumbers(QPainter &painter, const std::vector<Cell> &all) const;

    std::vector<ChannelMetrics> m_channels, m_shown;
    Signal m_signal = Signal::Reference;
    ChannelSummary m_summary;
    bool m_sorted = false;
    int m_current = -1;
};

} // namespace dblame::ui
