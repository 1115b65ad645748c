// SPDX-License-Identifier: GPL-3.0-or-later
//
// The fields of one site's spec: element type, scheme, granularity, block size, range. Two rows, for a narrow dock.
#pragma once

#include <optional>

#include <QWidget>

#include "core/edits.h"
#include "core/quant_site.h"

class QComboBox;
class QLabel;
class QLineEdit;
class QSpinBox;

namespace dblame::ui
{

class SpecEditor : public QWidget
{
    Q_OBJECT
public:
    explicit SpecEditor(QWidget *parent = nullptr);

    // Shows the site as `change` leaves it; none: as the file has it.
    void setSite(const QuantSite &site, const std::optional<SpecChange> &change);
    // What the fields ask for; nothing: the site as the file has it.
    [[nodiscard]] std::optional<SpecChange> change() const;
    // Integers of the site's own kind in that many bits, all else as it is shown.
    void setBits(int bits);

    [[nodiscard]] QComboBox *type() const { return m_type; }
    [[nodiscard]] QComboBox *scheme() const { return m_scheme; }
    [[nodiscard]] QComboBox *granularity() const { return m_granularity; }
    [[nodiscard]] QSpinBox *blockSize() const { return m_block; }
    [[nodiscard]] QLineEdit *low() const { return m_low; }
    [[nodiscard]] QLineEdit *high() const { return m_high; }

Q_SIGNALS:
    void edited(); // by the user

private:
    void fillTypes(const std::optional<SpecChange> &change);
    void fillGranularities(Granularity now);
    void showFitting(); // only the fields that the type and the granularity have
    void take();        // a field was changed
    [[nodiscard]] std::optional<double> bound(const QLineEdit *field) const;

    QComboBox *m_type, *m_scheme, *m_granularity;
    QSpinBox *m_block;
    QLineEdit *m_low, *m_high;
    QLabel *m_to;
    QuantSite m_site;
};

} // namespace dblame::ui
