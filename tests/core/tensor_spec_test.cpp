// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tensor_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dblame
{
namespace
{

using testing::ElementsAre;
using testing::HasSubstr;

TensorSpec parsed(std::string_view text, const TensorSpec &base = {})
{
    const auto spec = parseTensorSpec(text, base);
    EXPECT_TRUE(spec) << (spec ? "" : spec.error().text());
    return spec.value_or(TensorSpec{});
}

std::string refusal(std::string_view text)
{
    const auto spec = parseTensorSpec(text, {});
    EXPECT_FALSE(spec);
    if (spec)
        return {};
    EXPECT_EQ(spec.error().code, ErrorCode::Usage);
    return spec.error().message;
}

TEST(TensorSpec, NamesAndPeersSpellings)
{
    for (int i = 0; i <= static_cast<int>(ElementType::Float16); ++i) {
        const auto type = static_cast<ElementType>(i);
        EXPECT_EQ(elementTypeFromName(elementTypeName(type)), type);
    }
    EXPECT_EQ(elementTypeFromName("float8_e4m3fn"), ElementType::Float8E4M3);
    EXPECT_EQ(elementTypeFromName("float8_e4m3"), ElementType::Float8E4M3);
    EXPECT_EQ(elementTypeFromName("float4_e2m1fn_x2"), ElementType::Float4E2M1);
    EXPECT_EQ(elementTypeFromName("bfloat16"), ElementType::BFloat16);
    EXPECT_EQ(elementTypeFromName("torch.int8"), std::nullopt);
}

TEST(TensorSpec, RangesBitsAndStorage)
{
    const auto range = [](ElementType type, Scheme scheme) {
        const IntegerRange r = integerRange(type, scheme);
        return std::pair{r.low, r.high};
    };
    EXPECT_EQ(range(ElementType::Int8, Scheme::Symmetric), std::pair(-128L, 127L));
    EXPECT_EQ(range(ElementType::Int8, Scheme::SymmetricWithClipping), std::pair(-127L, 127L));
    EXPECT_EQ(range(ElementType::Int2, Scheme::SymmetricWithClipping), std::pair(-1L, 1L));
    EXPECT_EQ(range(ElementType::UInt4, Scheme::SymmetricWithClipping), std::pair(0L, 15L));
    EXPECT_EQ(range(ElementType::UInt16, Scheme::Affine), std::pair(0L, 65535L));
    EXPECT_EQ(range(ElementType::Int32, Scheme::Affine), std::pair(-2147483648L, 2147483647L));
    EXPECT_EQ(range(ElementType::Float8E4M3, Scheme::Symmetric), std::pair(0L, 0L));
    EXPECT_EQ(bitsOf(ElementType::UInt6), 6);
    EXPECT_EQ(storageOf(ElementType::Int4), DType::Int8);
    EXPECT_EQ(storageOf(ElementType::UInt6), DType::UInt8);
    EXPECT_EQ(storageOf(ElementType::Float8E5M2), DType::Float8E5M2);
    EXPECT_EQ(storageOf(ElementType::Float4E2M1), DType::UInt8);
    EXPECT_TRUE(isInteger(ElementType::UInt16));
    EXPECT_FALSE(isSigned(ElementType::UInt16));
    EXPECT_TRUE(isSigned(ElementType::BFloat16));
}

TEST(TensorSpec, ReadsWhatTheCommandLineTakes)
{
    TensorSpec spec = parsed("int8:sym:channel");
    EXPECT_EQ(spec.type, ElementType::Int8);
    EXPECT_EQ(spec.scheme, Scheme::Symmetric);
    EXPECT_EQ(spec.granularity, Granularity::PerChannel);
    EXPECT_EQ(spec.axis, std::nullopt);
    spec = parsed("uint4:affine:block32");
    EXPECT_EQ(spec.quantMin, 0);
    EXPECT_EQ(spec.quantMax, 15);
    EXPECT_EQ(spec.granularity, Granularity::PerBlock);
    EXPECT_THAT(spec.blockSizes, ElementsAre(32));
    spec = parsed("int4:symclip:block2x16x*");
    EXPECT_EQ(spec.quantMin, -7);
    EXPECT_THAT(spec.blockSizes, ElementsAre(2, 16, -1));
    spec = parsed("int8:affine:channel@-1");
    EXPECT_EQ(spec.axis, -1);
    EXPECT_EQ(parsed("int8:affine:token").granularity, Granularity::PerToken);
    EXPECT_EQ(parsed("f8e4m3:sym").scheme, Scheme::Symmetric);
    EXPECT_EQ(parsed("f8e4m3").scheme, Scheme::Symmetric);
    EXPECT_TRUE(parsed("f4e2m1:sym:block32").powerOfTwoScale);
    EXPECT_EQ(parsed("bf16").type, ElementType::BFloat16);
}

TEST(TensorSpec, TheBaseSuppliesTheRest)
{
    TensorSpec base;
    base.scheme = Scheme::Symmetric;
    base.quantMin = -127;
    base.granularity = Granularity::PerChannel;
    base.axis = 1;
    base.observer = ObserverKind::LastBatch;
    base.eps = 0.25;
    base.arithmetic = Arithmetic::Division;
    TensorSpec spec = parsed("int8", base);
    EXPECT_EQ(spec, base);
    // Fewer bits keep the base's habit of leaving out the lowest integer; another scheme does not.
    spec = parsed("int4:sym", base);
    EXPECT_EQ(spec.quantMin, -7);
    EXPECT_EQ(spec.quantMax, 7);
    EXPECT_EQ(spec.axis, 1);
    EXPECT_EQ(spec.observer, ObserverKind::LastBatch);
    EXPECT_EQ(spec.eps, 0.25);
    EXPECT_EQ(parsed("int8:affine", base).quantMin, -128);
    EXPECT_EQ(parsed("int8:sym:tensor", base).axis, std::nullopt);
    EXPECT_EQ(parsed("uint8:sym", base).quantMax, 255);
    base.palette = PaletteSpec{};
    EXPECT_EQ(parsed("int8", base).palette, std::nullopt);
}

TEST(TensorSpec, AnObserverMayFollow)
{
    EXPECT_EQ(parsed("int8:affine:tensor:minmax").observer, ObserverKind::MinMax);
    EXPECT_EQ(parsed("int8:affine:tensor:average").observer, ObserverKind::MovingAverage);
    EXPECT_EQ(parsed("int8:affine:tensor:last").observer, ObserverKind::LastBatch);
    EXPECT_EQ(parsed("int8:affine:tensor:histogram").observer, ObserverKind::Histogram);
    for (const char *text : {"int8:affine:tensor:mse", "uint8:sym:tensor:percentile99.9"})
        EXPECT_EQ(specText(parsed(text)), text);
    EXPECT_EQ(parsed("int8:affine:tensor:percentile99.9").percentile, 99.9);
    for (const char *wrong :
         {"median", "percentile", "percentile50", "percentile101", "percentile99x", "percentilenan"})
        EXPECT_THAT(refusal(std::string("int8:affine:tensor:") + wrong), HasSubstr("percentile99.9")) << wrong;
    EXPECT_THAT(refusal("int8:affine:tensor:mse:more"), HasSubstr("OBSERVER"));
}

TEST(TensorSpec, TextIsTheInverse)
{
    for (const auto text :
         {"int8:sym:channel", "int8:symclip:channel@0", "uint4:affine:block32@1", "int4:sym:block2x16",
          "int4:sym:block-", "int16:affine:tensor", "int8:sym:token", "f8e5m2:sym:channel@-1", "f4e2m1:sym:block32",
          "bf16", "f16", "uint3:affine:tensor", "int4:sym:block4x*x3"}) {
        const auto spec = parseTensorSpec(text, {});
        if (std::string_view(text) == "int4:sym:block-") {
            EXPECT_FALSE(spec);
            continue;
        }
        ASSERT_TRUE(spec) << text;
        EXPECT_EQ(specText(*spec), text);
        EXPECT_EQ(parsed(specText(*spec), *spec), *spec) << text;
    }
}

TEST(TensorSpec, RefusalsSayWhatIsKnown)
{
    EXPECT_THAT(refusal("int9:sym"), HasSubstr("\"int9\" is no element type; known: int2"));
    EXPECT_THAT(refusal("int8:symm"), HasSubstr("known: sym, symclip, affine"));
    EXPECT_THAT(refusal("int8:sym:row"), HasSubstr("\"row\" is no granularity"));
    EXPECT_THAT(refusal("int8:sym:block0"), HasSubstr("no granularity"));
    EXPECT_THAT(refusal("int8:sym:tensor@1"), HasSubstr("no granularity"));
    EXPECT_THAT(refusal("int8:sym:block2x4@1"), HasSubstr("no granularity"));
    EXPECT_THAT(refusal("f8e4m3:affine"), HasSubstr("symmetric only"));
    EXPECT_THAT(refusal("bf16:sym"), HasSubstr("is a cast"));
    EXPECT_THAT(refusal("int8:sym:channel:x"), HasSubstr("\"x\" is no observer"));
    EXPECT_THAT(refusal(""), HasSubstr("no element type"));
}

TEST(TensorSpec, Words)
{
    TensorSpec spec = parsed("int8:sym:channel");
    EXPECT_EQ(spec.text(), "int8 symmetric per channel, min-max");
    spec.quantMin = -127;
    EXPECT_EQ(spec.text(), "int8 [-127, 127] symmetric per channel, min-max");
    spec = parsed("int4:sym:block32");
    spec.observer = ObserverKind::LastBatch;
    EXPECT_EQ(spec.text(), "int4 symmetric per block of 32, last batch");
    spec.observer = ObserverKind::Percentile;
    spec.percentile = 99.5;
    EXPECT_EQ(spec.text(), "int4 symmetric per block of 32, percentile 99.5");
    EXPECT_EQ(parsed("bf16").text(), "bf16");
    spec.palette = PaletteSpec{.bits = 4, .groupSize = 2, .tableType = ElementType::Int8};
    EXPECT_EQ(spec.text(), "4-bit palette, one table per 2 channels of axis 0, table in int8");
}

} // namespace
} // namespace dblame
