// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

namespace dblame
{

// Keeps freed activations in the process instead of handing them back to the kernel after every operator
// (glibc only; nothing elsewhere): mmap threshold 32 MiB, trim threshold 128 MiB. A fifth to a third of the
// time of a forward on convolutional nets. Call once, before the first forward; affects the whole process.
void tuneAllocator();

} // namespace dblame
