// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/document.h"

#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QSaveFile>

namespace dblame::ui
{

namespace
{

constexpr int kVersion = 1;

constexpr Granularity kGranularities[] = {Granularity::PerTensor, Granularity::PerChannel, Granularity::PerBlock,
                                          Granularity::PerToken};

QJsonObject fileToJson(const QString &path, const QDir &folder)
{
    return {{"path", folder.relativeFilePath(path)}, {"absolute", path}};
}

bool fileExists(const QString &path)
{
    return QFileInfo::exists(path) || QFileInfo::exists(path.left(path.lastIndexOf(QLatin1Char('#'))));
}

QString fileFromJson(const QJsonValue &value, const QDir &folder)
{
    const QJsonObject object = value.toObject();
    const QString relative = object.value("path").toString();
    const QString absolute = object.value("absolute").toString();
    if (!relative.isEmpty()) {
        const QString here = QDir::cleanPath(folder.absoluteFilePath(relative));
        if (fileExists(here) || absolute.isEmpty())
            return here;
    }
    return absolute;
}

QJsonObject changeToJson(const std::string &site, const SpecChange &change)
{
    QJsonObject object{{"site", QString::fromStdString(site)},
                       {"bits", change.bits},
                       {"granularity", QString::fromLatin1(granularityName(change.granularity))}};
    if (change.granularity == Granularity::PerBlock)
        object["block"] = static_cast<qint64>(change.blockSize);
    if (change.symmetric)
        object["symmetric"] = *change.symmetric;
    if (change.type) {
        const std::string_view type = elementTypeName(*change.type);
        object["type"] = QString::fromLatin1(type.data(), static_cast<qsizetype>(type.size()));
    }
    if (change.low)
        object["low"] = *change.low;
    if (change.high)
        object["high"] = *change.high;
    return object;
}

SpecChange changeFromJson(const QJsonObject &object)
{
    SpecChange change;
    change.bits = qBound(2, object.value("bits").toInt(change.bits), 16);
    const QString granularity = object.value("granularity").toString();
    for (const Granularity g : kGranularities)
        if (granularity == QLatin1String(granularityName(g)))
            change.granularity = g;
    change.blockSize = std::max<qint64>(1, object.value("block").toInteger(change.blockSize));
    if (object.contains("symmetric"))
        change.symmetric = object.value("symmetric").toBool();
    change.type = elementTypeFromName(object.value("type").toString().toStdString());
    if (object.value("low").isDouble())
        change.low = object.value("low").toDouble();
    if (object.value("high").isDouble())
        change.high = object.value("high").toDouble();
    return change;
}

QJsonObject editsToJson(const NamedEdits &edits)
{
    QJsonArray off;
    for (const std::string &site : edits.off)
        off.append(QString::fromStdString(site));
    QJsonArray bypassed;
    for (const auto &[site, reader] : edits.bypassed)
        bypassed.append(
            QJsonObject{{"site", QString::fromStdString(site)}, {"reader", QString::fromStdString(reader)}});
    QJsonArray changed;
    for (const auto &[site, change] : edits.respecified)
        changed.append(changeToJson(site, change));
    return {{"off", off}, {"bypassed", bypassed}, {"changed", changed}};
}

NamedEdits editsFromJson(const QJsonObject &object)
{
    NamedEdits edits;
    for (const auto &site : object.value("off").toArray())
        edits.off.push_back(site.toString().toStdString());
    for (const auto &edge : object.value("bypassed").toArray())
        edits.bypassed.emplace_back(edge.toObject().value("site").toString().toStdString(),
                                    edge.toObject().value("reader").toString().toStdString());
    for (const auto &change : object.value("changed").toArray())
        edits.respecified.insert_or_assign(change.toObject().value("site").toString().toStdString(),
                                           changeFromJson(change.toObject()));
    return edits;
}

QJsonObject toJson(const Document &document, const QDir &folder)
{
    QJsonObject root{{"dblame", kVersion}};
    if (!document.reference.isEmpty())
        root["reference"] = fileToJson(document.reference, folder);
    if (!document.candidate.isEmpty())
        root["candidate"] = fileToJson(document.candidate, folder);
    if (!document.recipe.isEmpty()) {
        QJsonArray calibration;
        for (const QString &path : document.calibration)
            calibration.append(fileToJson(path, folder));
        root["recipe"] = document.recipe;
        root["calibration"] = calibration;
    }
    QJsonArray inputs;
    for (const QString &path : document.inputs)
        inputs.append(fileToJson(path, folder));
    root["inputs"] = inputs;
    if (document.random)
        root["random"] = static_cast<qint64>(*document.random);
    root["edits"] = editsToJson(document.edits);
    QJsonArray pairs;
    for (const HandPair &pair : document.hand)
        pairs.append(QJsonObject{{"reference", QString::fromStdString(pair.ref)},
                                 {"candidate", QString::fromStdString(pair.cand)}});
    root["pairs"] = pairs;
    root["signal"] = document.signal == Signal::Candidate ? "candidate" : "reference";
    root["window"] = QJsonObject{{"geometry", QString::fromLatin1(document.geometry.toBase64())},
                                 {"docks", QString::fromLatin1(document.docks.toBase64())},
                                 {"graph", QString::fromLatin1(document.graph.toBase64())},
                                 {"theme", document.theme}};
    return root;
}

Document fromJson(const QJsonObject &root, const QDir &folder)
{
    Document document;
    document.reference = fileFromJson(root.value("reference"), folder);
    document.candidate = fileFromJson(root.value("candidate"), folder);
    for (const auto &path : root.value("inputs").toArray())
        document.inputs.push_back(fileFromJson(path, folder));
    document.recipe = root.value("recipe").toString();
    for (const auto &path : root.value("calibration").toArray())
        document.calibration.push_back(fileFromJson(path, folder));
    if (root.contains("random"))
        document.random = static_cast<std::uint64_t>(root.value("random").toInteger());
    document.edits = editsFromJson(root.value("edits").toObject());
    for (const auto &pair : root.value("pairs").toArray())
        document.hand.push_back({pair.toObject().value("reference").toString().toStdString(),
                                 pair.toObject().value("candidate").toString().toStdString()});
    if (root.value("signal").toString() == "candidate")
        document.signal = Signal::Candidate;
    const QJsonObject window = root.value("window").toObject();
    document.geometry = QByteArray::fromBase64(window.value("geometry").toString().toLatin1());
    document.docks = QByteArray::fromBase64(window.value("docks").toString().toLatin1());
    document.graph = QByteArray::fromBase64(window.value("graph").toString().toLatin1());
    document.theme = window.value("theme").toString();
    return document;
}

} // namespace

Result<Document> readDocument(const QString &path)
{
    QFile file(path);
    if (!file.open(QIODevice::ReadOnly))
        return fail(ErrorCode::Unreadable, path.toStdString(),
                    "the document cannot be read: " + file.errorString().toStdString());
    QJsonParseError error;
    const QJsonDocument json = QJsonDocument::fromJson(file.readAll(), &error);
    if (!json.isObject() || !json.object().contains("dblame"))
        return fail(ErrorCode::Unreadable, path.toStdString(),
                    "this is not a dBlame document; open the models themselves", error.errorString().toStdString());
    if (json.object().value("dblame").toInt() > kVersion)
        return fail(ErrorCode::Unreadable, path.toStdString(),
                    "the document was saved by a newer dBlame; open it with that one");
    return fromJson(json.object(), QFileInfo(path).absoluteDir());
}

Result<void> writeDocument(const QString &path, const Document &document)
{
    QSaveFile file(path);
    const QByteArray text = QJsonDocument(toJson(document, QFileInfo(path).absoluteDir())).toJson();
    if (!file.open(QIODevice::WriteOnly) || file.write(text) != text.size() || !file.commit())
        return fail(ErrorCode::Unreadable, path.toStdString(),
                    "the document was not saved: " + file.errorString().toStdString() +
                        "; save it under another name or in another folder");
    return {};
}

} // namespace dblame::ui
