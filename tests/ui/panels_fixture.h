// SPDX-License-Identifier: GPL-3.0-or-later
//
// A digits-like net with its int8 candidate as plain values: graphs written as text, an alignment made by hand, and
// figures that are known. What plot and inspector show is compared with them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/node_report.h"
#include "ui/open_pair.h"

namespace dblame::ui::test
{

// Rows of the pair, in order: two weights, the input, ten activations of which the last is the output.
enum Row : std::size_t {
    StemWeight,
    HeadWeight,
    Input,
    StemConv,
    StemRelu,
    Pool1,
    BlockConv,
    BlockRelu,
    Add,
    Pool2,
    HeadConv,
    HeadRelu,
    Fc,
    RowCount
};

inline PairId rowId(Row row)
{
    return PairId(static_cast<std::size_t>(row));
}

// SNR of each row from StemConv on; the largest drop by order is 5.39 dB at StemRelu.
inline constexpr double kDb[] = {46.11, 40.72, 39.94, 37.67, 36.74, 34.73, 36.21, 31.30, 32.84, 33.88};

[[nodiscard]] OpenPairPtr makePair();
// A row with figures. HeadConv has 16 channels (11 is worst with 17.2 dB, 3 the loudest), a histogram and sites.
[[nodiscard]] NodeReport makeReport(Row row);
[[nodiscard]] std::vector<NodeReport> makeReports(Row first = StemWeight, Row last = Fc);
[[nodiscard]] RunReport makeRun(); // all rows, with the drops that findDrops finds
// `rows` activations in a chain, for measurements.
[[nodiscard]] OpenPairPtr makeLongPair(std::size_t rows);

} // namespace dblame::ui::test
