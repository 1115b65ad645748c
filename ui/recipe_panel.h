// SPDX-License-Identifier: GPL-3.0-or-later
//
// The Recipe dock: the facts of the candidate that a recipe made, and per activation site what its observer saw against
// the grid and against what the comparison ran on.
#pragma once

#include <memory>

#include <QWidget>

#include "core/output_parts.h"
#include "ui/open_pair.h"
#include "ui/recipe_rows.h"

class QComboBox;
class QFrame;
class QLabel;
class QPushButton;
class QStackedLayout;
class QStackedWidget;
class QStandardItemModel;
class QTableView;

namespace dblame::ui
{

class RecipeWeights;
class Selection;

class RecipePanel : public QWidget
{
    Q_OBJECT
public:
    enum FactColumn { What, Where, Value, FactColumns };
    enum Column { Site, Drift, Clipped, Unused, Seen, Evaluation, Grid, Batches, ColumnCount };

    explicit RecipePanel(QWidget *parent = nullptr);

    void setPair(OpenPairPtr pair);
    void setReport(std::shared_ptr<const RunReport> report); // of the pair's alignment; null: not run
    void setSelection(Selection *selection);                 // a site's row is selected with it

    // Whether what weights and activations cost at the outputs can be measured, is being measured, and came out.
    void setRunnable(bool runnable);
    void setMeasuring(bool measuring);
    void setLayerChanges(bool any);          // there are some that the recipe could take in
    void setParts(const OutputParts &parts); // of the pair; shown again whenever the same pair is

    [[nodiscard]] QComboBox *pages() const { return m_which; }
    [[nodiscard]] QPushButton *measureButton() const { return m_measure; }
    [[nodiscard]] QPushButton *takeButton() const { return m_take; }
    [[nodiscard]] RecipeWeights *weights() const { return m_weights; }
    [[nodiscard]] QTableView *facts() const { return m_facts; }
    [[nodiscard]] QTableView *calibration() const { return m_calibration; }
    [[nodiscard]] QPushButton *exportButton() const { return m_export; }
    [[nodiscard]] QString warning() const; // the banner's words; "" without one
    [[nodiscard]] QString summary() const;

Q_SIGNALS:
    void recipeWanted(); // "Quantize the reference…"
    void exportWanted();
    void takeEditsWanted(); // the changes to layers become overrides of the recipe
    void measureWanted();
    void stopMeasuringWanted();

private:
    [[nodiscard]] QWidget *buildHead();
    void showFacts();
    void showCalibration();
    void showMeasuring();
    [[nodiscard]] const OutputParts *parts() const; // of the pair; null: not measured

    OpenPairPtr m_pair;
    std::shared_ptr<const RunReport> m_report;
    Selection *m_selection = nullptr;
    std::vector<CalibrationRow> m_rows;
    // Measured before. Another candidate, or other inputs, are another measurement.
    struct Measured {
        std::weak_ptr<const MadeCandidate> made;
        std::string inputs; // their hash
        OutputParts parts;
    };
    std::vector<Measured> m_measured;
    bool m_runnable = false, m_measuring = false;

    QStandardItemModel *m_factModel, *m_calibrationModel;
    QTableView *m_facts, *m_calibration;
    QLabel *m_title, *m_summary, *m_warning;
    QFrame *m_banner;
    RecipeWeights *m_weights;
    QPushButton *m_measure, *m_take, *m_change, *m_export;
    QComboBox *m_which; // calibration, facts or weights
    QStackedWidget *m_tables;
    QStackedLayout *m_stack;
};

} // namespace dblame::ui
