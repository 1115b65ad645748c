// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/recipe_dialog.h"

#include <algorithm>

#include <QCheckBox>
#include <QComboBox>
#include <QFileDialog>
#include <QFileInfo>
#include <QGridLayout>
#include <QGroupBox>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPushButton>
#include <QRadioButton>
#include <QSignalBlocker>

#include "core/log.h"
#include "ui/file_kinds.h"
#include "ui/recipe_file.h"

namespace dblame::ui
{

namespace
{

constexpr int kListHeight = 68, kPreviewHeight = 130, kWidth = 640; // pixels

template <class Widget>
Widget *named(Widget *widget, const char *name, const QString &accessible)
{
    widget->setObjectName(QString::fromLatin1(name));
    widget->setAccessibleName(accessible);
    return widget;
}

QLabel *wrapped(const char *name, const char *role)
{
    auto *label = new QLabel;
    label->setObjectName(QString::fromLatin1(name));
    label->setProperty("role", role);
    label->setTextFormat(Qt::PlainText);
    label->setWordWrap(true);
    label->setTextInteractionFlags(Qt::TextSelectableByMouse);
    return label;
}

} // namespace

RecipeDialog::RecipeDialog(QWidget *parent)
    : QDialog(parent), m_byPreset(named(new QRadioButton(tr("&Preset")), "by-preset", tr("Quantize as a preset does"))),
      m_byFile(named(new QRadioButton(tr("Recipe &file")), "by-file", tr("Quantize as a recipe file says"))),
      m_preset(named(new QComboBox, "preset", tr("Preset"))),
      m_corrected(named(new QCheckBox(tr("Without the peer's known &defects")), "corrected",
                        tr("Without the peer's known defects"))),
      m_file(named(new QLineEdit, "recipe-file", tr("Recipe file"))),
      m_override(named(new QLineEdit, "override", tr("Override, SELECTOR=SPEC"))),
      m_calibrationList(named(new QListWidget, "calibration", tr("Calibration files"))),
      m_overrideList(named(new QListWidget, "overrides", tr("Overrides"))),
      m_previewList(named(new QListWidget, "preview", tr("What would change"))),
      m_fileNote(wrapped("file-note", "accent")), m_calibrationNote(wrapped("calibration-note", "mute")),
      m_previewSummary(wrapped("preview-summary", "mute")), m_overrideProblem(wrapped("override-problem", "accent")),
      m_problem(wrapped("problem", "accent")),
      m_run(named(new QCheckBox(tr("&Run when it is made")), "run", tr("Run when the candidate is made")))
{
    setWindowTitle(tr("Quantize the reference"));
    setMinimumWidth(kWidth);
    m_run->setChecked(true);
    auto *layout = new QVBoxLayout(this);
    layout->setSpacing(10);
    layout->addLayout(buildRecipe());
    layout->addWidget(buildCalibration());
    layout->addWidget(buildOverrides());
    layout->addWidget(buildPreview());
    layout->addWidget(m_problem);
    layout->addLayout(buildButtons());
    m_preset->setFocus();
    checkOverride();
    check();
}

QLayout *RecipeDialog::buildRecipe()
{
    for (const std::string &name : presetNames())
        m_preset->addItem(QString::fromStdString(name));
    m_preset->setEditable(true); // presets have parameters: coreai-w4-block64
    m_preset->setInsertPolicy(QComboBox::NoInsert);
    m_preset->lineEdit()->setAccessibleName(tr("Preset"));
    m_file->setReadOnly(true);
    m_file->setPlaceholderText(tr("YAML as coreai-opt reads it, or as dBlame writes it"));
    m_byPreset->setChecked(true);
    auto *choose = named(new QPushButton(tr("&Choose…")), "choose-file", tr("Choose a recipe file"));
    connect(choose, &QPushButton::clicked, this, &RecipeDialog::chooseFile);
    connect(m_preset, &QComboBox::currentTextChanged, this, [this] {
        m_byPreset->setChecked(true);
        check();
    });
    connect(m_byPreset, &QRadioButton::toggled, this, &RecipeDialog::check);
    connect(m_corrected, &QCheckBox::toggled, this, &RecipeDialog::check);
    auto *grid = new QGridLayout;
    grid->setColumnStretch(1, 1);
    grid->addWidget(m_byPreset, 0, 0);
    grid->addWidget(m_preset, 0, 1);
    grid->addWidget(m_corrected, 0, 2);
    grid->addWidget(m_byFile, 1, 0);
    grid->addWidget(m_file, 1, 1);
    grid->addWidget(choose, 1, 2, Qt::AlignLeft);
    grid->addWidget(m_fileNote, 2, 1, 1, 2);
    return grid;
}

QWidget *RecipeDialog::buildCalibration()
{
    auto *box = new QGroupBox(tr("Calibration"));
    m_calibrationList->setFixedHeight(kListHeight);
    m_calibrationList->setSelectionMode(QAbstractItemView::ExtendedSelection);
    m_calibrationList->setTextElideMode(Qt::ElideMiddle);
    auto *add = named(new QPushButton(tr("&Add…")), "add-calibration", tr("Add calibration files"));
    auto *remove = named(new QPushButton(tr("Re&move")), "remove-calibration", tr("Remove calibration files"));
    connect(add, &QPushButton::clicked, this, [this] {
        addCalibration(QFileDialog::getOpenFileNames(this, tr("Calibration files"), m_folder, inputsFilter()));
    });
    connect(remove, &QPushButton::clicked, this, [this] { removeSelected(m_calibrationList); });
    auto *grid = new QGridLayout(box);
    grid->setColumnStretch(0, 1);
    grid->addWidget(m_calibrationList, 0, 0, 2, 1);
    grid->addWidget(add, 0, 1);
    grid->addWidget(remove, 1, 1);
    grid->addWidget(m_calibrationNote, 2, 0, 1, 2);
    return box;
}

QWidget *RecipeDialog::buildOverrides()
{
    auto *box = new QGroupBox(tr("Overrides"));
    m_overrideList->setFixedHeight(kListHeight);
    m_overrideList->setSelectionMode(QAbstractItemView::ExtendedSelection);
    m_override->setPlaceholderText(tr("SELECTOR=SPEC, as module:fc=weight=int4:sym:channel or optype:aten.add=float"));
    m_addOverride = named(new QPushButton(tr("A&dd")), "add-override", tr("Add the override"));
    m_addOverride->setAutoDefault(false);
    auto *remove = named(new QPushButton(tr("Remo&ve")), "remove-override", tr("Remove overrides"));
    connect(m_override, &QLineEdit::textChanged, this, &RecipeDialog::checkOverride);
    connect(m_addOverride, &QPushButton::clicked, this, &RecipeDialog::addOverride);
    connect(remove, &QPushButton::clicked, this, [this] { removeSelected(m_overrideList); });
    auto *grid = new QGridLayout(box);
    grid->setColumnStretch(0, 1);
    grid->addWidget(m_override, 0, 0);
    grid->addWidget(m_addOverride, 0, 1);
    grid->addWidget(m_overrideProblem, 1, 0, 1, 2);
    grid->addWidget(m_overrideList, 2, 0);
    grid->addWidget(remove, 2, 1, Qt::AlignTop);
    return box;
}

QWidget *RecipeDialog::buildPreview()
{
    auto *box = new QGroupBox(tr("What would change"));
    m_previewList->setFixedHeight(kPreviewHeight);
    m_previewList->setTextElideMode(Qt::ElideMiddle);
    m_previewList->hide();
    auto *layout = new QVBoxLayout(box);
    layout->addWidget(m_previewSummary);
    layout->addWidget(m_previewList);
    return box;
}

QLayout *RecipeDialog::buildButtons()
{
    m_ok = named(new QPushButton(tr("&Quantize")), "ok", tr("Quantize"));
    m_ok->setProperty("role", "primary");
    m_ok->setDefault(true);
    auto *cancel = named(new QPushButton(tr("Cancel")), "cancel", tr("Cancel"));
    connect(m_ok, &QPushButton::clicked, this, &RecipeDialog::submit);
    connect(cancel, &QPushButton::clicked, this, &QDialog::reject);
    auto *buttons = new QHBoxLayout;
    buttons->addWidget(m_run);
    buttons->addStretch();
    buttons->addWidget(m_ok);
    buttons->addWidget(cancel);
    return buttons;
}

void RecipeDialog::setRequest(const RecipeRequest &request)
{
    m_calibration = request.calibration;
    m_overrides = request.recipe.overrides;
    Recipe base = request.recipe;
    base.overrides.clear();
    const std::string name = base.preset + (base.corrected ? ":corrected" : "");
    const auto preset = base.preset.empty() ? fail(ErrorCode::Usage, {}, "no preset") : presetRecipe(name);
    if (preset && *preset == base) {
        m_preset->setCurrentText(QString::fromStdString(base.preset));
        m_corrected->setChecked(base.corrected);
        m_byPreset->setChecked(true);
    } else {
        m_fileNotes.clear();
        m_file->setText(tr("as it is now: %1").arg(QString::fromStdString(base.title())));
        m_fileRecipe.emplace(std::move(base));
        m_byFile->setChecked(true);
    }
    m_previewed.reset(); // nobody listened yet
    check();
}

void RecipeDialog::setRecipeFile(const QString &path)
{
    m_fileNotes.clear();
    m_fileRecipe.emplace(readRecipeFile(path, &m_fileNotes));
    for (const std::string &note : m_fileNotes)
        logLine(LogLevel::Warning, path.toStdString() + ": " + note);
    m_file->setText(path);
    m_byFile->setChecked(true);
    check();
}

void RecipeDialog::chooseFile()
{
    const QString path =
        QFileDialog::getOpenFileName(this, tr("Recipe file"), m_folder, tr("Recipes (*.yaml *.yml);;All files (*)"));
    if (!path.isEmpty())
        setRecipeFile(path);
}

void RecipeDialog::addCalibration(const QStringList &paths)
{
    for (const QString &path : paths)
        m_calibration.push_back(path.toStdString());
    check();
}

void RecipeDialog::addOverride()
{
    auto change = parseOverride(m_override->text().trimmed().toStdString());
    if (!change)
        return;
    m_overrides.push_back(std::move(*change));
    m_override->clear();
    m_override->setFocus();
    check();
}

void RecipeDialog::removeSelected(QListWidget *list)
{
    std::vector<int> rows;
    for (const QListWidgetItem *item : list->selectedItems())
        rows.push_back(list->row(item));
    std::sort(rows.rbegin(), rows.rend());
    for (const int row : rows) {
        if (list == m_calibrationList)
            m_calibration.erase(m_calibration.begin() + row);
        else
            m_overrides.erase(m_overrides.begin() + row);
    }
    check();
}

Result<Recipe> RecipeDialog::recipe() const
{
    if (m_byPreset->isChecked())
        return presetRecipe(
            (m_preset->currentText().trimmed() + (m_corrected->isChecked() ? QStringLiteral(":corrected") : QString()))
                .toStdString());
    if (!m_fileRecipe)
        return fail(ErrorCode::Usage, {}, "choose a recipe file");
    return *m_fileRecipe;
}

std::optional<RecipeRequest> RecipeDialog::request() const
{
    auto chosen = recipe();
    if (!chosen || !m_override->text().trimmed().isEmpty())
        return std::nullopt;
    // A file's own overrides come first; those of the list are what is added to it here.
    chosen->overrides.insert(chosen->overrides.end(), m_overrides.begin(), m_overrides.end());
    return RecipeRequest{std::move(*chosen), m_calibration};
}

QString RecipeDialog::problem() const
{
    if (const auto chosen = recipe(); !chosen)
        return QString::fromStdString(chosen.error().text());
    if (!m_override->text().trimmed().isEmpty() && m_overrideProblem->text().isEmpty())
        return tr("The override is not in the list yet: add it, or clear its line");
    return {};
}

void RecipeDialog::checkOverride()
{
    const QString text = m_override->text().trimmed();
    QString wrong;
    if (!text.isEmpty())
        if (const auto change = parseOverride(text.toStdString()); !change)
            wrong = QString::fromStdString(change.error().text());
    m_overrideProblem->setText(wrong);
    m_overrideProblem->setVisible(!wrong.isEmpty());
    // Enter in the line adds what stands there; only an empty line lets it quantize.
    const bool whole = !text.isEmpty() && wrong.isEmpty();
    m_addOverride->setEnabled(whole);
    m_addOverride->setDefault(!text.isEmpty());
    m_ok->setDefault(text.isEmpty());
    check();
}

void RecipeDialog::check()
{
    m_corrected->setEnabled(m_byPreset->isChecked());
    m_corrected->setToolTip(m_byPreset->isChecked() ? QString() : tr("A recipe file says this itself"));
    const auto fill = [](QListWidget *list, const QStringList &texts) {
        QStringList now;
        for (int i = 0; i < list->count(); ++i)
            now << list->item(i)->text();
        if (now == texts)
            return;
        list->clear();
        list->addItems(texts);
    };
    QStringList calibration;
    for (const std::string &path : m_calibration)
        calibration << QString::fromStdString(path);
    fill(m_calibrationList, calibration);
    QStringList overrides;
    for (const RecipeOverride &change : m_overrides)
        overrides << QString::fromStdString(change.text());
    fill(m_overrideList, overrides);
    m_calibrationNote->setText(m_calibration.empty()
                                   ? tr("No files: the observers see the inputs of the comparison themselves. The "
                                        "figures are then better than other data would give.")
                                   : tr("The observers see these files; the comparison runs on its own inputs."));
    QStringList notes;
    for (const std::string &note : m_fileNotes)
        notes << QString::fromStdString(note);
    m_fileNote->setText(notes.join(QLatin1Char('\n')));
    m_fileNote->setVisible(!notes.isEmpty() && m_byFile->isChecked());
    const QString wrong = problem();
    m_problem->setText(wrong);
    m_problem->setVisible(!wrong.isEmpty());
    m_ok->setEnabled(request().has_value());
    askForPreview();
}

void RecipeDialog::askForPreview()
{
    const auto wanted = request();
    if (!wanted) {
        m_previewed.reset();
        m_previewSummary->clear();
        m_previewList->clear();
        m_previewList->hide();
        return;
    }
    if (m_previewed && *m_previewed == wanted->recipe)
        return;
    m_previewed = wanted->recipe;
    m_previewSummary->setText(tr("…"));
    Q_EMIT previewWanted(*m_previewed);
}

void RecipeDialog::setPreview(const RecipePreview &preview)
{
    if (!m_previewed)
        return; // something is wrong meanwhile
    m_previewList->clear();
    if (!preview.diff) {
        m_previewList->hide();
        m_previewSummary->setText(tr("%1 sites would be quantized").arg(preview.sites));
        return;
    }
    const auto count = [&](SiteChange kind) {
        return std::count_if(preview.diff->changes.begin(), preview.diff->changes.end(),
                             [kind](const PlacementChange &change) { return change.kind == kind; });
    };
    m_previewSummary->setText(preview.diff->empty()
                                  ? tr("No site changes against the present recipe; %1 stay").arg(preview.diff->same)
                                  : tr("Against the present recipe %1 sites appear, %2 vanish, %3 change, %4 stay")
                                        .arg(count(SiteChange::Appears))
                                        .arg(count(SiteChange::Vanishes))
                                        .arg(count(SiteChange::Changes))
                                        .arg(preview.diff->same));
    for (const PlacementChange &change : preview.diff->changes)
        m_previewList->addItem(QStringLiteral("%1 %2: %3")
                                   .arg(QString::fromStdString(change.id),
                                        QString::fromLatin1(siteChangeName(change.kind)),
                                        QString::fromStdString(change.text)));
    for (const std::string &note : preview.diff->notes)
        m_previewList->addItem(QString::fromStdString(note));
    m_previewList->setVisible(m_previewList->count() > 0);
}

void RecipeDialog::setPreviewFailed(const Error &error)
{
    m_previewList->clear();
    m_previewList->hide();
    m_previewSummary->setText(QString::fromStdString(error.text()));
}

void RecipeDialog::submit()
{
    const auto wanted = request();
    if (!wanted)
        return;
    accept();
    Q_EMIT quantizeWanted(*wanted, m_run->isChecked());
}

} // namespace dblame::ui
