// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/readers/mapping_faults.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <string>

#include <sys/mman.h>
#include <unistd.h>

#include "core/readers/read_error.h"

namespace dblame
{

namespace
{

// Read by the handler at any moment, between any two instructions of the functions below: atomics alone.
struct Place {
    std::atomic<bool> taken{false};
    std::atomic<std::uintptr_t> begin{0}; // 0: not filled in (yet)
    std::atomic<std::uintptr_t> end{0};   // of its last page
    std::atomic<bool> damaged{false};
};
static_assert(std::atomic<std::uintptr_t>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

constexpr std::size_t kPlaces = 512;
std::array<Place, kPlaces> g_places;
std::atomic<std::uintptr_t> g_pageSize{4096};
struct sigaction g_before; // written once, before the handler can run

// Zero pages from the fault to the end: what lies behind a page that is gone is gone too, and one fault serves all.
// mmap() is a bare system call here, and safe in a handler.
bool fillWithZeros(std::uintptr_t fault)
{
    for (Place &place : g_places) {
        const std::uintptr_t begin = place.begin.load(std::memory_order_acquire);
        if (begin == 0 || fault < begin || fault >= place.end.load(std::memory_order_relaxed))
            continue;
        place.damaged.store(true, std::memory_order_release);
        const std::uintptr_t page = fault & ~(g_pageSize.load(std::memory_order_relaxed) - 1);
        void *filled = ::mmap(reinterpret_cast<void *>(page), place.end.load(std::memory_order_relaxed) - page,
                              PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS, -1, 0);
        return filled != MAP_FAILED;
    }
    return false;
}

extern "C" void onBusError(int signal, siginfo_t *info, void *context)
{
    const int error = errno;
    // Sent by a process rather than raised by an access: there is no address.
    const bool access = info->si_code > 0;
    const bool filled = access && fillWithZeros(reinterpret_cast<std::uintptr_t>(info->si_addr));
    errno = error;
    if (filled)
        return;
    if ((g_before.sa_flags & SA_SIGINFO) != 0) {
        g_before.sa_sigaction(signal, info, context);
        return;
    }
    if (g_before.sa_handler == SIG_IGN && !access)
        return;
    if (g_before.sa_handler != SIG_DFL && g_before.sa_handler != SIG_IGN) {
        g_before.sa_handler(signal);
        return;
    }
    // The default: the signal is blocked now and arrives once this returns.
    struct sigaction normal {
    };
    normal.sa_handler = SIG_DFL;
    ::sigaction(SIGBUS, &normal, nullptr);
    ::raise(SIGBUS);
}

void installOnce()
{
    [[maybe_unused]] static const bool kInstalled = [] { // once, whatever threads ask
        g_pageSize = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
        struct sigaction action {
        };
        action.sa_sigaction = onBusError;
        sigemptyset(&action.sa_mask);
        action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
        ::sigaction(SIGBUS, nullptr, &g_before);
        ::sigaction(SIGBUS, &action, nullptr);
        return true;
    }();
}

std::size_t takePlace()
{
    for (std::size_t i = 0; i < kPlaces; ++i)
        if (bool expected = false; g_places[i].taken.compare_exchange_strong(expected, true))
            return i;
    throw ReadError("more than " + std::to_string(kPlaces) + " files are open; close some of them");
}

} // namespace

GuardedMapping::GuardedMapping(void *data, std::size_t size) : m_place(takePlace())
{
    installOnce();
    Place &place = g_places[m_place];
    const std::uintptr_t pageSize = g_pageSize;
    const auto begin = reinterpret_cast<std::uintptr_t>(data);
    place.damaged = false;
    place.end = (begin + size + pageSize - 1) & ~(pageSize - 1);
    place.begin.store(begin, std::memory_order_release);
}

GuardedMapping::~GuardedMapping()
{
    g_places[m_place].begin = 0;
    g_places[m_place].taken = false;
}

bool GuardedMapping::damaged() const
{
    return g_places[m_place].damaged.load(std::memory_order_acquire);
}

} // namespace dblame
