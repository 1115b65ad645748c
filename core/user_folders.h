// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

namespace dblame
{

// Where calibrations are kept: "dblame/calibration" in $XDG_CACHE_HOME, else in ~/.cache. Empty without a home.
[[nodiscard]] std::string calibrationCacheFolder();

} // namespace dblame
