// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace dblame
{

// SHA-256 over bytes given in pieces.
class Sha256
{
public:
    Sha256();
    ~Sha256();
    Sha256(const Sha256 &) = delete;
    Sha256 &operator=(const Sha256 &) = delete;

    void add(const void *data, std::size_t size);
    // Lower-case hex; once, at the end.
    [[nodiscard]] std::string hex();

private:
    struct State;
    std::unique_ptr<State> m_state;
};

} // namespace dblame
