// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/user_folders.h"

#include <cstdlib>
#include <filesystem>

namespace dblame
{

std::string calibrationCacheFolder()
{
    const auto variable = [](const char *name) {
        const char *value = std::getenv(name);
        return std::filesystem::path(value == nullptr ? "" : value);
    };
    std::filesystem::path base = variable("XDG_CACHE_HOME");
    if (!base.is_absolute()) { // relative ones are to be ignored, says the XDG base directory specification
        const std::filesystem::path home = variable("HOME");
        if (!home.is_absolute())
            return {};
        base = home / ".cache";
    }
    return (base / "dblame" / "calibration").string();
}

} // namespace dblame
