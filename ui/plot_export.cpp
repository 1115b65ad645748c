// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plot_export.h"

#include <QFileDialog>
#include <QFileInfo>
#include <QPageSize>
#include <QPdfWriter>
#include <QSaveFile>
#include <QSvgGenerator>

#include "ui/qcp.h"

namespace dblame::ui
{
namespace
{

constexpr int kDotsPerInch = 96; // one pixel of the plot is one dot of the page
constexpr double kPngScale = 2;

void paint(QCustomPlot &plot, QPaintDevice &device, QSize size, QSize viewport)
{
    QCPPainter painter;
    painter.begin(&device);
    painter.setMode(QCPPainter::pmVectorized);
    painter.setMode(QCPPainter::pmNoCaching);
    painter.fillRect(QRect(QPoint(), size), plot.property("exportBackground").value<QColor>());
    plot.toPainter(&painter, viewport.width(), viewport.height());
    painter.end();
}

void writeSvg(QCustomPlot &plot, QIODevice &file, QSize size)
{
    QSvgGenerator svg;
    svg.setOutputDevice(&file);
    svg.setSize(size);
    svg.setViewBox(QRect(QPoint(), size));
    svg.setResolution(kDotsPerInch);
    svg.setTitle(plot.accessibleName());
    svg.setDescription(plot.accessibleDescription());
    paint(plot, svg, size, size);
}

void writePdf(QCustomPlot &plot, QIODevice &file, QSize size)
{
    QPdfWriter pdf(&file);
    pdf.setResolution(kDotsPerInch);
    pdf.setPageMargins(QMarginsF());
    pdf.setPageSize(QPageSize(QSizeF(size) * 72.0 / kDotsPerInch, QPageSize::Point, QString(), QPageSize::ExactMatch));
    pdf.setTitle(plot.accessibleName());
    paint(plot, pdf, size, size);
}

} // namespace

QString choosePlotPath(QWidget *parent, const QString &title, const QString &proposal)
{
    QString chosen;
    QString path = QFileDialog::getSaveFileName(
        parent, title, proposal, QStringLiteral("PNG picture (*.png);;SVG drawing (*.svg);;PDF page (*.pdf)"), &chosen);
    if (!path.isEmpty() && QFileInfo(path).suffix().isEmpty())
        path += chosen.mid(chosen.lastIndexOf(QLatin1Char('.'))).chopped(1); // "PNG picture (*.png)"
    return path;
}

Result<void> exportPlot(QCustomPlot &plot, const QString &path, QSize size)
{
    const QString kind = QFileInfo(path).suffix().toLower();
    if (kind != QLatin1String("png") && kind != QLatin1String("svg") && kind != QLatin1String("pdf"))
        return fail(ErrorCode::Usage, path.toStdString(),
                    "the kind of picture is not known by this extension; use .png, .svg or .pdf");
    if (!size.isValid())
        size = plot.size();
    QSaveFile file(path);
    if (!file.open(QIODevice::WriteOnly))
        return fail(ErrorCode::Unreadable, path.toStdString(),
                    "cannot be written: " + file.errorString().toStdString());
    bool written = true;
    if (kind == QLatin1String("png"))
        written = plot.toPixmap(size.width(), size.height(), kPngScale).save(&file, "PNG");
    else if (kind == QLatin1String("svg"))
        writeSvg(plot, file, size);
    else
        writePdf(plot, file, size);
    if (!written || !file.commit())
        return fail(ErrorCode::Unreadable, path.toStdString(), "was not written: " + file.errorString().toStdString());
    return {};
}

} // namespace dblame::ui
