// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cmath>

#include "core/number_text.h"
#include "core/report_html.h"
#include "core/report_words.h"

namespace dblame::html
{

namespace
{

// User units of the drawing, and its plot area.
constexpr double kWidth = 1000, kHeight = 340;
constexpr double kLeft = 52, kRight = 16, kTop = 34, kBottom = 30;
constexpr double kPlotWidth = kWidth - kLeft - kRight, kPlotHeight = kHeight - kTop - kBottom;
constexpr int kMaxTicks = 7;

struct Point {
    const ReportRow *row;
    double db;
};

std::vector<Point> points(const Report &report)
{
    std::vector<Point> result;
    for (const auto &row : report.rows) {
        const auto db = shownDb(report, row);
        if (db && (row.kind == "activation" || row.kind == "output"))
            result.push_back({&row, *db});
    }
    return result;
}

// 1, 2 or 5 times a power of ten, so that at most kMaxTicks lines fit.
double tickStep(double span)
{
    const double raw = std::max(span, 1e-9) / kMaxTicks;
    const double power = std::pow(10.0, std::floor(std::log10(raw)));
    for (const double factor : {1.0, 2.0, 5.0})
        if (factor * power >= raw)
            return factor * power;
    return 10.0 * power;
}

class Plot
{
public:
    explicit Plot(const Report &report) : m_report(report), m_points(points(report))
    {
        double low = 0, high = 0;
        bool any = false;
        for (const auto &p : m_points) {
            if (!std::isfinite(p.db))
                continue;
            low = any ? std::min(low, p.db) : p.db;
            high = any ? std::max(high, p.db) : p.db;
            any = true;
        }
        if (high - low < 1.0) { // one value, or nearly: room around it
            low -= 0.5;
            high += 0.5;
        }
        m_step = tickStep(high - low);
        m_low = std::floor(low / m_step) * m_step;
        m_high = std::ceil(high / m_step) * m_step;
    }

    [[nodiscard]] std::string svg() const
    {
        if (m_points.empty())
            return "<p class=\"mute\">No activation could be compared; the table says why.</p>\n";
        std::string out = "<svg viewBox=\"0 0 " + text(kWidth) + " " + text(kHeight) + "\" role=\"img\" aria-label=\"" +
                          escaped(words::drop(m_report)) + "\">\n";
        return out + grid() + curve() + marks() + largestDrop() + "</svg>\n";
    }

private:
    static std::string text(double number) { return fixedText(number, 1); }
    [[nodiscard]] double x(std::size_t i) const
    {
        const auto count = static_cast<double>(m_points.size());
        return kLeft + kPlotWidth * (count < 2 ? 0.5 : static_cast<double>(i) / (count - 1));
    }
    [[nodiscard]] double y(double db) const
    {
        if (std::isnan(db) || db == -INFINITY)
            return kTop + kPlotHeight + 8;
        if (std::isinf(db))
            return kTop - 8;
        return kTop + kPlotHeight * (m_high - db) / (m_high - m_low);
    }

    [[nodiscard]] std::string grid() const
    {
        std::string out;
        const int decimals = m_step < 0.1 ? 2 : m_step < 1 ? 1 : 0;
        const auto lines = static_cast<int>(std::lround((m_high - m_low) / m_step));
        for (int i = 0; i <= lines; ++i) {
            const double db = m_low + i * m_step;
            out += "<line class=\"grid\" x1=\"" + text(kLeft) + "\" x2=\"" + text(kWidth - kRight) + "\" y1=\"" +
                   text(y(db)) + "\" y2=\"" + text(y(db)) + "\"/><text x=\"" + text(kLeft - 6) + "\" y=\"" +
                   text(y(db) + 4) + "\" text-anchor=\"end\">" + fixedText(db, decimals) + "</text>\n";
        }
        out += "<text x=\"4\" y=\"" + text(kTop - 20) + "\">dB</text>";
        out += "<text x=\"" + text(kLeft) + "\" y=\"" + text(kHeight - 6) + "\">" + escaped(m_points.front().row->ref) +
               "</text>";
        if (m_points.size() > 1)
            out += "<text x=\"" + text(kWidth - kRight) + "\" y=\"" + text(kHeight - 6) + "\" text-anchor=\"end\">" +
                   escaped(m_points.back().row->ref) + "</text>";
        return out + "\n";
    }

    [[nodiscard]] std::string curve() const
    {
        std::string out;
        std::string run;
        const auto flush = [&] {
            if (!run.empty())
                out += "<polyline class=\"curve\" points=\"" + run + "\"/>\n";
            run.clear();
        };
        for (std::size_t i = 0; i < m_points.size(); ++i) {
            if (!std::isfinite(m_points[i].db))
                flush();
            else
                run += (run.empty() ? "" : " ") + text(x(i)) + "," + text(y(m_points[i].db));
        }
        flush();
        return out;
    }

    [[nodiscard]] std::string marks() const
    {
        std::string out;
        for (std::size_t i = 0; i < m_points.size(); ++i) {
            const auto &p = m_points[i];
            const std::string at = " cx=\"" + text(x(i)) + "\" cy=\"" + text(y(p.db)) + "\"";
            out += "<circle class=\"" + std::string(std::isfinite(p.db) ? "point" : "edge") + "\"" + at +
                   " r=\"3\"><title>" +
                   escaped(p.row->ref + (p.row->module.empty() ? "" : " (" + p.row->module + ")") + ": " +
                           words::shown(m_report, *p.row) + (std::isfinite(p.db) ? " dB" : "")) +
                   "</title></circle>\n";
        }
        return out;
    }

    [[nodiscard]] std::string largestDrop() const
    {
        if (!m_report.largestDrop)
            return {};
        for (std::size_t i = 0; i < m_points.size(); ++i) {
            const auto &p = m_points[i];
            if (p.row->index != m_report.largestDrop->row || !std::isfinite(p.db))
                continue;
            const bool right = x(i) > kLeft + kPlotWidth / 2;
            const std::string label = "−" + fixedText(m_report.largestDrop->db, 1) + " dB at " +
                                      (p.row->module.empty() ? p.row->ref : p.row->module);
            return "<circle class=\"ring\" cx=\"" + text(x(i)) + "\" cy=\"" + text(y(p.db)) +
                   "\" r=\"9\"/><text class=\"note\" x=\"" + text(x(i) + (right ? -14 : 14)) + "\" y=\"" +
                   text(y(p.db) + 4) + "\"" + (right ? " text-anchor=\"end\"" : "") + ">" + escaped(label) +
                   "</text>\n";
        }
        return {};
    }

    const Report &m_report;
    std::vector<Point> m_points;
    double m_low = 0, m_high = 1, m_step = 1;
};

} // namespace

std::string escaped(std::string_view text)
{
    std::string out;
    out.reserve(text.size());
    for (const char c : text) {
        switch (c) {
        case '&':
            out += "&amp;";
            break;
        case '<':
            out += "&lt;";
            break;
        case '>':
            out += "&gt;";
            break;
        case '"':
            out += "&quot;";
            break;
        case '\'':
            out += "&#39;";
            break;
        default:
            if (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' && c != '\r')
                out += "\xEF\xBF\xBD";
            else
                out += c;
        }
    }
    return out;
}

std::string plot(const Report &report)
{
    return Plot(report).svg();
}

} // namespace dblame::html
