// SPDX-License-Identifier: GPL-3.0-or-later
//
// "Quantize the reference": which recipe, calibrated on what, with what overrides. Everything is checked as it is
// typed; nothing is quantized here. Does not block: open() it and listen.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <QDialog>

#include "ui/engine_side.h"

class QCheckBox;
class QComboBox;
class QLabel;
class QLayout;
class QLineEdit;
class QListWidget;
class QPushButton;
class QRadioButton;

namespace dblame::ui
{

class RecipeDialog : public QDialog
{
    Q_OBJECT
public:
    explicit RecipeDialog(QWidget *parent = nullptr);

    // What it starts from. A recipe that is no preset with overrides stands as it is, in the file's place.
    void setRequest(const RecipeRequest &request);
    void setFolder(const QString &folder) { m_folder = folder; } // where the choosers start
    void setRecipeFile(const QString &path);                     // what is wrong with it is said in the dialog
    void addCalibration(const QStringList &paths);
    // Nothing while something is wrong; problem() says what.
    [[nodiscard]] std::optional<RecipeRequest> request() const;
    [[nodiscard]] QString problem() const;
    // The answers to previewWanted().
    void setPreview(const RecipePreview &preview);
    void setPreviewFailed(const Error &error);

Q_SIGNALS:
    void quantizeWanted(const dblame::ui::RecipeRequest &request, bool run);
    void previewWanted(const dblame::Recipe &recipe); // another recipe than the last one that was asked for

private:
    [[nodiscard]] QLayout *buildRecipe();
    [[nodiscard]] QWidget *buildCalibration();
    [[nodiscard]] QWidget *buildOverrides();
    [[nodiscard]] QWidget *buildPreview();
    [[nodiscard]] QLayout *buildButtons();
    [[nodiscard]] Result<Recipe> recipe() const;
    void chooseFile();
    void addOverride();
    void removeSelected(QListWidget *list);
    void check(); // shows what is wrong, lets OK be pressed or not
    void checkOverride();
    void submit();
    void askForPreview();

    QString m_folder;
    std::optional<Result<Recipe>> m_fileRecipe;
    std::vector<std::string> m_fileNotes; // what the file says and the peer drops silently
    std::vector<std::string> m_calibration;
    std::vector<RecipeOverride> m_overrides;
    std::optional<Recipe> m_previewed; // the last one that was asked for

    QRadioButton *m_byPreset, *m_byFile;
    QComboBox *m_preset;
    QCheckBox *m_corrected;
    QLineEdit *m_file, *m_override;
    QListWidget *m_calibrationList, *m_overrideList, *m_previewList;
    QLabel *m_fileNote, *m_calibrationNote, *m_previewSummary, *m_overrideProblem, *m_problem;
    QPushButton *m_addOverride = nullptr, *m_ok = nullptr;
    QCheckBox *m_run;
};

} // namespace dblame::ui
