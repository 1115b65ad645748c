// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

namespace dblame
{

// Keeps freed activations in the process instead of handing them back to the kernel after every operator: a fifth to
// a third of the time of a forward on convolutional nets. Tensors of 64 KiB and more get blocks of their own, apart
// from the heap, and freed blocks are kept for the next tensor of that size, up to 256 MiB. (On the heap the small
// things that a comparison keeps for each row would split the freed blocks, and memory would grow with depth.)
// Call once, before the first tensor; affects the whole process. Without effect under sanitizers, which need to see
// each allocation.
void tuneAllocator();

// Bytes of freed blocks that are kept for reuse at the moment.
[[nodiscard]] std::uint64_t keptBytes();

} // namespace dblame
