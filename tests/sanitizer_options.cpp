// SPDX-License-Identifier: GPL-3.0-or-later
// Options of the address sanitizer for every test program; read by its runtime before main.
// LibTorch is not instrumented and never frees its registries (operators, dispatch keys, thread pools), which are
// reached through uninstrumented globals: leaks are looked for in our frames only.
extern "C" const char *__asan_default_options() // NOLINT(bugprone-reserved-identifier)
{
    return "detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1";
}

extern "C" const char *__lsan_default_suppressions() // NOLINT(bugprone-reserved-identifier)
{
    return "leak:libtorch_cpu\nleak:libc10\nleak:libgomp\nleak:libtorch_python\n";
}

extern "C" const char *__ubsan_default_options() // NOLINT(bugprone-reserved-identifier)
{
    return "print_stacktrace=1:halt_on_error=1";
}
