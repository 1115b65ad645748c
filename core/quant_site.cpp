// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/quant_site.h"

#include <bit>

namespace dblame
{

const char *siteFormName(SiteForm form)
{
    switch (form) {
    case SiteForm::QdqPair:
        return "quantize → dequantize";
    case SiteForm::DynamicQdq:
        return "dynamic quantize → dequantize";
    case SiteForm::DequantizedWeight:
        return "integer weight, dequantized";
    case SiteForm::FakeQuantizeOp:
        return "fake-quantize operator";
    case SiteForm::FusedObserver:
        return "fused observer and fake-quantize";
    case SiteForm::DecomposedFakeQuant:
        return "decomposed fake-quantize";
    case SiteForm::FoldedWeight:
        return "weight folded to floats of few values";
    case SiteForm::WatchingObserver:
        return "observer that only watches";
    case SiteForm::Planned:
        return "planned by the recipe";
    }
    return "";
}

const char *siteRoleName(SiteRole role)
{
    switch (role) {
    case SiteRole::Weight:
        return "weight";
    case SiteRole::Input:
        return "input";
    case SiteRole::Output:
        return "output";
    }
    return "";
}

const char *granularityName(Granularity granularity)
{
    switch (granularity) {
    case Granularity::PerTensor:
        return "per tensor";
    case Granularity::PerChannel:
        return "per channel";
    case Granularity::PerBlock:
        return "per block";
    case Granularity::PerToken:
        return "per token";
    }
    return "";
}

int QuantSpec::effectiveBits() const
{
    if (quantMax <= quantMin) // a floating type has no integers; f4e2m1 is held as codes in a byte
        switch (storage) {
        case DType::Float8E4M3FN:
        case DType::Float8E5M2:
            return 8;
        case DType::BFloat16:
        case DType::Float16:
            return 16;
        case DType::UInt8:
            return 4;
        default:
            return 0;
        }
    // Steps between the extremes: 255 for int8, 254 for [-127, 127]; both need 8 bits.
    return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(quantMax - quantMin)));
}

std::string QuantSpec::text() const
{
    std::string text;
    if (tableSize > 0) {
        text = std::to_string(effectiveBits()) + "-bit table";
    } else if (isFloatingPoint(storage)) {
        text = dtypeName(storage);
    } else {
        text = (quantMin >= 0 ? "uint" : "int") + std::to_string(effectiveBits());
        text += symmetric ? " symmetric" : " affine";
    }
    text += ' ';
    text += granularityName(granularity);
    if (granularity == Granularity::PerBlock && blockSize > 0)
        text += " of " + std::to_string(blockSize);
    if (dynamic)
        text += ", dynamic";
    return text;
}

namespace
{

SiteId lookUp(const std::vector<std::int32_t> &table, std::size_t position)
{
    return position < table.size() && table[position] >= 0 ? SiteId(static_cast<std::size_t>(table[position]))
                                                           : SiteId{};
}

} // namespace

SiteId SiteTable::siteOfNode(NodeId node) const
{
    return node.valid() ? lookUp(ofNode, node.get()) : SiteId{};
}

SiteId SiteTable::siteOfResult(ValueId value) const
{
    return value.valid() ? lookUp(ofResult, value.get()) : SiteId{};
}

SiteId SiteTable::outputSiteOf(ValueId value) const
{
    return value.valid() ? lookUp(outputOf, value.get()) : SiteId{};
}

SiteId SiteTable::byId(const std::string &id) const
{
    for (std::size_t i = 0; i < sites.size(); ++i)
        if (sites[i].id == id)
            return SiteId(i);
    return {};
}

} // namespace dblame
