// SPDX-License-Identifier: GPL-3.0-or-later
//
// What a pickle may name and "call": the whole list of objects that are ever built.
#pragma once

#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/readers/pickle.h"

namespace dblame
{

class PickleObjects
{
public:
    // Containers are made in `containers`, which outlives the values.
    PickleObjects(const StorageSource &source, std::deque<std::vector<PickleValue>> &containers)
        : m_source(source), m_containers(containers)
    {
    }

    // "module.name"; throws NeedsCode for all but the known ones.
    [[nodiscard]] static PickleValue global(std::string name);
    [[nodiscard]] PickleValue container(PickleValue::Kind kind, std::vector<PickleValue> items);
    // Of a persistent id: ("storage", type, key, location, number of elements).
    [[nodiscard]] PickleValue storage(const PickleValue &id);
    // The result of a known global applied to arguments; throws NeedsCode for what would run code.
    [[nodiscard]] PickleValue reduce(const std::string &function, const std::vector<PickleValue> &arguments);

private:
    [[nodiscard]] PickleValue orderedDict(const std::vector<PickleValue> &arguments);
    [[nodiscard]] PickleValue tensor(bool typeGiven, const std::vector<PickleValue> &arguments) const;
    [[nodiscard]] PickleValue quantizedTensor(const std::vector<PickleValue> &arguments) const;
    [[nodiscard]] const Payload &payload(const PickleValue &storage) const
    {
        return m_storages[static_cast<std::size_t>(storage.integer)];
    }

    const StorageSource &m_source;
    std::deque<std::vector<PickleValue>> &m_containers;
    std::vector<Payload> m_storages;
    std::unordered_map<std::string, std::size_t> m_storageIndex;
};

} // namespace dblame
