// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/recent_entry.h"

#include <QStringList>
#include <QUrl>

namespace dblame::ui
{

namespace
{

// No path begins so: paths are absolute.
constexpr QLatin1String kRecipe("recipe:"), kCalibration("calibration:");

QString shortName(const QString &path)
{
    return path.section(QLatin1Char('/'), -2);
}

} // namespace

QString recentEntry(const OpenRequest &request)
{
    QStringList lines{QString::fromStdString(request.reference), QString::fromStdString(request.candidate)};
    for (const std::string &file : request.inputs.files)
        lines << QString::fromStdString(file);
    if (request.recipe) {
        const QString text = QString::fromStdString(recipeText(request.recipe->recipe));
        lines << kRecipe + QString::fromLatin1(QUrl::toPercentEncoding(text)); // its line breaks are not ours
        for (const std::string &file : request.recipe->calibration)
            lines << kCalibration + QString::fromStdString(file);
    }
    return lines.join(QLatin1Char('\n'));
}

Result<RecentEntry> readRecentEntry(const QString &text)
{
    RecentEntry entry;
    const QStringList lines = text.split(QLatin1Char('\n'));
    if (lines.size() == 1) {
        entry.document = lines.front();
        entry.title = shortName(entry.document);
        return entry;
    }
    entry.request.reference = lines[0].toStdString();
    entry.request.candidate = lines[1].toStdString();
    QStringList names;
    for (const QString &file : lines.mid(0, 2))
        if (!file.isEmpty())
            names << shortName(file);
    for (const QString &line : lines.mid(2)) {
        if (line.startsWith(kRecipe)) {
            const QByteArray encoded = line.mid(kRecipe.size()).toLatin1();
            auto recipe = parseRecipe(QUrl::fromPercentEncoding(encoded).toStdString(), "the recent recipe");
            if (!recipe)
                return tl::unexpected(recipe.error());
            names << QString::fromStdString(recipe->title());
            entry.request.recipe = RecipeRequest{std::move(*recipe), {}};
        } else if (line.startsWith(kCalibration) && entry.request.recipe) {
            entry.request.recipe->calibration.push_back(line.mid(kCalibration.size()).toStdString());
        } else {
            entry.request.inputs.files.push_back(line.toStdString());
        }
    }
    entry.title = names.join(QStringLiteral(" ↔ "));
    return entry;
}

} // namespace dblame::ui
