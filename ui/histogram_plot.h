// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>

#include <QWidget>

#include "core/error.h"
#include "core/node_report.h"
#include "ui/histogram_bins.h"

class QCPGraph;
class QCPItemText;
class QCustomPlot;
class QLabel;

namespace dblame::ui
{

// The value histograms of both models over each other, or the error's. Heights are densities (count per unit), so
// bins of unequal width look right; linear or logarithmic.
class HistogramPlot : public QWidget
{
    Q_OBJECT
public:
    enum class Show { Values, Error };

    explicit HistogramPlot(QWidget *parent = nullptr);

    void setHistogram(const std::optional<Histogram> &histogram);
    void setMessage(const QString &text); // why there is no histogram
    void setShow(Show show);
    void setLogarithmic(bool on);
    [[nodiscard]] const DensityBins &bins() const { return m_bins; }
    [[nodiscard]] bool logarithmic() const { return m_logarithmic; }
    [[nodiscard]] QCustomPlot &plot() { return *m_plot; }
    [[nodiscard]] Result<void> exportTo(const QString &path);

Q_SIGNALS:
    void exported(const QString &path);
    void exportFailed(const dblame::Error &error);

protected:
    void changeEvent(QEvent *event) override;
    void contextMenuEvent(QContextMenuEvent *event) override;
    bool eventFilter(QObject *watched, QEvent *event) override;

private:
    void draw();
    void restyle();
    void fill(QCPGraph *graph, const std::vector<double> &densities, double floor);
    void askExport();
    [[nodiscard]] QString binText(double x) const;

    QCustomPlot *m_plot;
    QCPGraph *m_reference, *m_candidate;
    QCPItemText *m_referenceWord, *m_candidateWord, *m_messageText;
    QLabel *m_low, *m_high, *m_note;
    std::optional<Histogram> m_histogram;
    DensityBins m_bins;
    QString m_message;
    Show m_show = Show::Values;
    bool m_logarithmic = false;
};

} // namespace dblame::ui
