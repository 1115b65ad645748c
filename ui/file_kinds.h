// SPDX-License-Identifier: GPL-3.0-or-later
//
// What files that were dropped, chosen or named on the command line are.
#pragma once

#include <QString>
#include <QStringList>

namespace dblame::ui
{

struct SortedFiles {
    QString document;   // the first .dblame
    QStringList models; // in the order given; a pair folder gives its reference, then its candidate
    QStringList inputs;
    QStringList unknown; // folders that hold no pair
};

// Inputs by extension (.pt, .npy, .npz, .safetensors), documents likewise, folders by what is in them (reference.pt2
// or float.pt2, candidate.pt2, inputs.*); anything else is a model, and the reader says what it thinks of it.
[[nodiscard]] SortedFiles sortFiles(const QStringList &paths);

// Name filters of the file dialogs.
[[nodiscard]] QString modelFilter();
[[nodiscard]] QString inputsFilter();
[[nodiscard]] QString documentFilter();

} // namespace dblame::ui
