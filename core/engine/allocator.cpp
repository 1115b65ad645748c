// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/allocator.h"

#if defined(__GLIBC__) || defined(__linux__)
#include <malloc.h>
#endif

namespace dblame
{

void tuneAllocator()
{
#if defined(__GLIBC__)
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 128 << 20);
#endif
}

} // namespace dblame
