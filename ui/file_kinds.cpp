// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/file_kinds.h"

#include <QCoreApplication>
#include <QDir>
#include <QFileInfo>

namespace dblame::ui
{

namespace
{

const QStringList &inputSuffixes()
{
    static const QStringList suffixes = {"pt", "npz", "npy", "safetensors"};
    return suffixes;
}

QString tr(const char *text)
{
    return QCoreApplication::translate("FileKinds", text);
}

// The pair in a folder; false when there is no reference and no candidate.
bool addFolder(const QDir &folder, SortedFiles &files)
{
    QString reference;
    for (const char *name : {"reference.pt2", "float.pt2"})
        if (reference.isEmpty() && folder.exists(name))
            reference = folder.filePath(name);
    if (reference.isEmpty() && !folder.exists("candidate.pt2"))
        return false;
    if (!reference.isEmpty())
        files.models << reference;
    if (folder.exists("candidate.pt2"))
        files.models << folder.filePath("candidate.pt2");
    // One kind only: inputs.pt and inputs.npz of a folder hold the same batches.
    for (const QString &suffix : inputSuffixes()) {
        if (folder.exists("inputs." + suffix)) {
            files.inputs << folder.filePath("inputs." + suffix);
            break;
        }
    }
    return true;
}

} // namespace

SortedFiles sortFiles(const QStringList &paths)
{
    SortedFiles files;
    for (const QString &path : paths) {
        const QFileInfo info(path);
        const QString suffix = info.suffix().toLower();
        if (info.isDir()) {
            if (!addFolder(QDir(path), files))
                files.unknown << path;
        } else if (suffix == QLatin1String("dblame")) {
            if (files.document.isEmpty())
                files.document = path;
        } else if (inputSuffixes().contains(suffix)) {
            files.inputs << path;
        } else {
            files.models << path;
        }
    }
    return files;
}

QString modelFilter()
{
    return tr("Exported programs (*.pt2);;All files (*)");
}

QString inputsFilter()
{
    return tr("Inputs (*.pt *.npz *.npy *.safetensors);;All files (*)");
}

QString documentFilter()
{
    return tr("dBlame documents (*.dblame);;All files (*)");
}

} // namespace dblame::ui
