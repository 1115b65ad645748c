// SPDX-License-Identifier: GPL-3.0-or-later
//
// What becomes of a mapped file that another process shortens: the kernel answers an access behind the new end with
// SIGBUS, which ends the process. A registered mapping gets zero pages there instead and is marked as damaged, so that
// whoever reads on sees wrong numbers for a moment, and then an error that names the file.
#pragma once

#include <atomic>
#include <cstddef>

namespace dblame
{

// One mapping in the process-wide table that the signal handler searches. The handler goes in with the first mapping
// and stays; a SIGBUS that no registered mapping explains goes to whoever had the signal before. Any thread.
class GuardedMapping
{
public:
    // [data, data + size) is mapped and stays so for the life of this object. Throws ReadError when the table is full.
    GuardedMapping(void *data, std::size_t size);
    ~GuardedMapping();
    GuardedMapping(const GuardedMapping &) = delete;
    GuardedMapping &operator=(const GuardedMapping &) = delete;

    // Pages of it were gone when something read them.
    [[nodiscard]] bool damaged() const;

private:
    std::size_t m_place;
};

} // namespace dblame
