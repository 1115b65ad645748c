// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/edits.h"

namespace dblame
{

std::string SpecChange::text() const
{
    std::string text = "int" + std::to_string(bits);
    if (symmetric)
        text += *symmetric ? " symmetric" : " affine";
    text += ' ';
    text += granularityName(granularity);
    if (granularity == Granularity::PerBlock)
        text += " of " + std::to_string(blockSize);
    return text;
}

} // namespace dblame
