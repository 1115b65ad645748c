// SPDX-License-Identifier: GPL-3.0-or-later
//
// What plot and inspector spell beyond row_words: units, losses, shares, ranges.
#pragma once

#include <QString>

namespace dblame::ui
{

// "31.30 dB"; "exact" for +inf, "−inf" and "n/a" (NaN) without a unit.
[[nodiscard]] QString dbUnitText(double db, int decimals);
// A loss as it is shown: a positive drop of 5.4 is "−5.4", a gain of 2 is "+2.0".
[[nodiscard]] QString lossText(double dropDb, int decimals);
// "1,203,456"
[[nodiscard]] QString countText(double count);
// 0..1 as "0.4 %"; a share that is small but not zero never reads "0 %".
[[nodiscard]] QString shareText(double share);
// "[−1.2, 3.4]"
[[nodiscard]] QString rangeText(double low, double high);
// Keeps the end of a module path, which tells layers apart: "…block.3.attn.q".
[[nodiscard]] QString elideLeft(const QString &text, int characters);

} // namespace dblame::ui
