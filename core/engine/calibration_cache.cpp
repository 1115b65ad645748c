// SPDX-License-Identifier: GPL-3.0-or-later
//
// Files are CBOR after a line with the SHA-256 of it: numbers come back to the bit, and damage is seen.
#include "core/engine/calibration_cache.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>
#include <vector>

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>
#include <nlohmann/json.hpp>

#include "core/atomic_file.h"

namespace dblame
{

namespace
{

using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr std::size_t kContextsInMemory = 8;
constexpr std::size_t kFiles = 64;
constexpr std::string_view kSuffix = ".calibration";
constexpr std::int64_t kMostElements = std::int64_t{1} << 24; // of one tensor of a file

Json toJson(const at::Tensor &tensor)
{
    if (!tensor.defined())
        return nullptr;
    const at::Tensor elements = tensor.contiguous();
    const auto *bytes = static_cast<const std::uint8_t *>(elements.const_data_ptr());
    return {{"type", static_cast<int>(elements.scalar_type())},
            {"sizes", elements.sizes().vec()},
            {"bytes", Json::binary({bytes, bytes + elements.nbytes()})}};
}

// Throws what does not fit; so do the other readers here.
at::Tensor tensorOf(const Json &json)
{
    if (json.is_null())
        return {};
    const auto type = static_cast<at::ScalarType>(json.at("type").get<int>());
    TORCH_CHECK(type == at::kFloat || type == at::kDouble || type == at::kLong || type == at::kInt, "type of a tensor");
    const auto sizes = json.at("sizes").get<std::vector<std::int64_t>>();
    std::int64_t elements = 1;
    for (const std::int64_t size : sizes) {
        TORCH_CHECK(size >= 0 && size <= kMostElements, "size of a tensor");
        elements *= size;
        TORCH_CHECK(elements <= kMostElements, "size of a tensor");
    }
    const auto &bytes = json.at("bytes").get_binary();
    at::Tensor tensor = at::empty(sizes, type);
    TORCH_CHECK(bytes.size() == tensor.nbytes(), "bytes of a tensor");
    std::copy(bytes.begin(), bytes.end(), static_cast<std::uint8_t *>(tensor.mutable_data_ptr()));
    return tensor;
}

Json toJson(const std::optional<double> &number)
{
    return number ? Json(*number) : Json(nullptr);
}

std::optional<double> numberOf(const Json &json)
{
    return json.is_null() ? std::nullopt : std::optional<double>(json.get<double>());
}

Json toJson(const KnownObserver &known)
{
    const Qparams &q = known.qparams;
    const ObserverRange &r = known.range;
    return {{"scale", toJson(q.scale)},
            {"zero_point", toJson(q.zeroPoint)},
            {"min_value", toJson(q.minValue)},
            {"low", toJson(q.low)},
            {"high", toJson(q.high)},
            {"quant_min", q.quantMin},
            {"quant_max", q.quantMax},
            {"notes", q.notes},
            {"batches", r.batches},
            {"elements", r.elements},
            {"seen", {r.lowest, r.highest}},
            {"grid", {r.low, r.high}},
            {"clipped", toJson(r.clipped)},
            {"unused", toJson(r.unused)}};
}

KnownObserver observerOf(const Json &json)
{
    KnownObserver known;
    Qparams &q = known.qparams;
    q.scale = tensorOf(json.at("scale"));
    q.zeroPoint = tensorOf(json.at("zero_point"));
    q.minValue = tensorOf(json.at("min_value"));
    q.low = tensorOf(json.at("low"));
    q.high = tensorOf(json.at("high"));
    q.quantMin = json.at("quant_min").get<std::int64_t>();
    q.quantMax = json.at("quant_max").get<std::int64_t>();
    q.notes = json.at("notes").get<std::vector<std::string>>();
    ObserverRange &r = known.range;
    r.batches = json.at("batches").get<std::int64_t>();
    r.elements = json.at("elements").get<std::int64_t>();
    r.lowest = json.at("seen").at(0).get<double>();
    r.highest = json.at("seen").at(1).get<double>();
    r.low = json.at("grid").at(0).get<double>();
    r.high = json.at("grid").at(1).get<double>();
    r.clipped = numberOf(json.at("clipped"));
    r.unused = numberOf(json.at("unused"));
    return known;
}

std::string hashOf(std::string_view bytes)
{
    Sha256 hash;
    hash.add(bytes.data(), bytes.size());
    return hash.hex();
}

fs::path fileOf(const ValueKey &context, const std::string &folder)
{
    return fs::path(folder) / (context + std::string(kSuffix));
}

void keepNewest(const fs::path &folder)
{
    std::error_code ec;
    std::vector<std::pair<fs::file_time_type, fs::path>> files;
    for (const auto &entry : fs::directory_iterator(folder, ec))
        if (entry.path().extension() == kSuffix)
            files.emplace_back(entry.last_write_time(ec), entry.path());
    if (files.size() <= kFiles)
        return;
    std::sort(files.begin(), files.end());
    for (std::size_t i = 0; i + kFiles < files.size(); ++i)
        fs::remove(files[i].second, ec);
}

} // namespace

void CalibrationCache::open(const ValueKey &context, const std::string &folder)
{
    if (m_contexts.contains(context))
        return;
    m_order.push_back(context);
    Context &made = m_contexts[context];
    if (m_order.size() > kContextsInMemory) {
        m_contexts.erase(m_order.front());
        m_order.pop_front();
    }
    std::error_code ec;
    if (folder.empty() || !fs::is_regular_file(fileOf(context, folder), ec))
        return;
    std::ifstream file(fileOf(context, folder), std::ios::binary);
    const std::string all{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    const auto line = all.find('\n');
    if (line == std::string::npos || hashOf(std::string_view(all).substr(line + 1)) != all.substr(0, line))
        return;
    try {
        const Json json = Json::from_cbor(all.begin() + static_cast<std::ptrdiff_t>(line) + 1, all.end());
        for (const auto &[key, observer] : json.at("observers").items())
            made.observers.emplace(key, observerOf(observer));
    } catch (const std::exception &) { // not ours, for the hash is right: as if it were not there
        made.observers.clear();
    }
}

const KnownObserver *CalibrationCache::observer(const ValueKey &context, const ValueKey &key) const
{
    const auto of = m_contexts.find(context);
    if (of == m_contexts.end())
        return nullptr;
    const auto known = of->second.observers.find(key);
    return known == of->second.observers.end() ? nullptr : &known->second;
}

void CalibrationCache::put(const ValueKey &context, const ValueKey &key, KnownObserver known)
{
    Context &of = m_contexts[context];
    of.changed = true;
    of.observers.insert_or_assign(key, std::move(known));
}

void CalibrationCache::save(const ValueKey &context, const std::string &folder)
{
    const auto of = m_contexts.find(context);
    if (folder.empty() || of == m_contexts.end() || !of->second.changed)
        return;
    Json observers = Json::object();
    for (const auto &[key, known] : of->second.observers)
        observers[key] = toJson(known);
    const std::vector<std::uint8_t> bytes = Json::to_cbor(Json{{"observers", std::move(observers)}});
    std::string all(bytes.begin(), bytes.end());
    all.insert(0, hashOf(all) + "\n");
    std::error_code ec;
    fs::create_directories(folder, ec);
    if (ec || !writeFileAtomically(fileOf(context, folder), all))
        return;
    of->second.changed = false;
    keepNewest(folder);
}

std::optional<KnownWeight> CalibrationCache::weight(const ValueKey &key) const
{
    const auto held = m_weights.find(key);
    if (held == m_weights.end())
        return std::nullopt;
    auto tensor = held->second.quantized.lock();
    if (!tensor)
        return std::nullopt;
    KnownWeight known = held->second.rest;
    known.quantized = at::Tensor(std::move(tensor));
    return known;
}

void CalibrationCache::putWeight(const ValueKey &key, const KnownWeight &known)
{
    std::erase_if(m_weights, [](const auto &held) { return held.second.quantized.expired(); });
    HeldWeight held{decltype(HeldWeight::quantized)(known.quantized.getIntrusivePtr()), known};
    held.rest.quantized.reset();
    m_weights.insert_or_assign(key, std::move(held));
}

} // namespace dblame
