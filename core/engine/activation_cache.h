// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <ATen/core/ivalue.h>

#include "core/ids.h"

namespace dblame
{

// Activations of finished runs, kept within a budget so that a rerun can start at the edit. Values are shared,
// not copied: only values whose storage nothing writes later may be put in (Program::hot).
class ActivationCache
{
public:
    void reset(std::uint64_t budget)
    {
        m_budget = budget;
        m_bytes = 0;
        m_values.clear();
        m_storages.clear();
    }

    // Keeps a value if the budget allows; a value that is there already is replaced.
    void put(ValueId id, const c10::IValue &value)
    {
        if (value.isTensor() && value.toTensor().has_storage()) {
            const auto *storage = value.toTensor().storage().unsafeGetStorageImpl();
            if (!m_storages.contains(storage)) {
                const std::uint64_t bytes = value.toTensor().storage().nbytes();
                if (m_bytes + bytes > m_budget) {
                    m_values.erase(id); // what was there belongs to the run before
                    return;
                }
                m_bytes += bytes;
                m_storages.insert(storage);
            }
        }
        m_values[id] = value;
    }

    void drop(ValueId id) { m_values.erase(id); }
    [[nodiscard]] bool contains(ValueId id) const { return m_values.contains(id); }
    [[nodiscard]] const c10::IValue *find(ValueId id) const
    {
        const auto it = m_values.find(id);
        return it == m_values.end() ? nullptr : &it->second;
    }
    [[nodiscard]] std::uint64_t bytes() const { return m_bytes; }

private:
    std::uint64_t m_budget = 0;
    std::uint64_t m_bytes = 0; // of all storages ever put in since reset(): an upper bound of what is held
    std::unordered_map<ValueId, c10::IValue> m_values;
    std::unordered_set<const void *> m_storages;
};

// Both sides' caches of every batch.
struct BatchCache {
    ActivationCache reference, candidate;
};
using RunCache = std::vector<BatchCache>;

} // namespace dblame
