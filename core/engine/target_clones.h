// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Loops that the compiler vectorises for the machine they run on, without -march. The bits are the same in every
// clone where the file is compiled with -ffp-contract=off. Sanitizers cannot instrument the resolvers.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) &&               \
    !defined(__SANITIZE_THREAD__)
#define DBLAME_TARGET_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define DBLAME_TARGET_CLONES
#endif
