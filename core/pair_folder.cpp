// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/pair_folder.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <system_error>

#include <nlohmann/json.hpp>

namespace dblame
{

namespace
{

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int kVersion = 1;

// Numbers, and the words that stand for those JSON lacks.
double number(const Json &value)
{
    if (value.is_number())
        return value.get<double>();
    const std::string word = value.is_string() ? value.get<std::string>() : std::string();
    if (word == "nan")
        return std::numeric_limits<double>::quiet_NaN();
    if (word == "inf")
        return std::numeric_limits<double>::infinity();
    if (word == "-inf")
        return -std::numeric_limits<double>::infinity();
    throw std::runtime_error("a number is expected, found " + value.dump());
}

const Json *present(const Json &record, const char *key)
{
    const auto it = record.find(key);
    return it == record.end() || it->is_null() ? nullptr : &*it;
}

std::string text(const Json &record, const char *key)
{
    const Json *value = present(record, key);
    if (value == nullptr)
        return {};
    if (!value->is_string())
        throw std::runtime_error(std::string(key) + " must be text");
    return value->get<std::string>();
}

std::optional<std::int64_t> integer(const Json &record, const char *key)
{
    const Json *value = present(record, key);
    if (value == nullptr)
        return std::nullopt;
    if (!value->is_number_integer())
        throw std::runtime_error(std::string(key) + " must be an integer");
    return value->get<std::int64_t>();
}

std::vector<double> numbers(const Json &record, const char *key)
{
    std::vector<double> result;
    const Json *value = present(record, key);
    if (value == nullptr)
        return result;
    if (!value->is_array())
        throw std::runtime_error(std::string(key) + " must be a list");
    std::transform(value->begin(), value->end(), std::back_inserter(result), number);
    return result;
}

ObserverRecord readRecord(const Json &json)
{
    if (!json.is_object())
        throw std::runtime_error("must be an object");
    ObserverRecord record;
    record.module = text(json, "module");
    record.role = text(json, "role");
    if (record.role != "weight" && record.role != "input" && record.role != "output")
        throw std::runtime_error("role must be weight, input or output, found '" + record.role + "'");
    record.name = text(json, "name");
    record.node = text(json, "node");
    record.kind = text(json, "kind");
    record.min = numbers(json, "min");
    record.max = numbers(json, "max");
    if (record.min.size() != record.max.size())
        throw std::runtime_error("min and max differ in length");
    record.scale = numbers(json, "scale");
    if (const Json *points = present(json, "zero_point"))
        for (const Json &point : *points) {
            if (!point.is_number_integer())
                throw std::runtime_error("zero_point must be integers");
            record.zeroPoint.push_back(point.get<std::int64_t>());
        }
    record.histogram = numbers(json, "histogram");
    const std::vector<double> range = numbers(json, "histogram_range");
    if (range.size() == 2)
        record.histogramRange = {range[0], range[1]};
    else if (!range.empty() || !record.histogram.empty())
        throw std::runtime_error("histogram_range must be [lowest, highest]");
    record.dtype = dtypeFromName(text(json, "dtype"));
    record.quantMin = integer(json, "quant_min");
    record.quantMax = integer(json, "quant_max");
    if (const auto axis = integer(json, "axis"))
        record.axis = static_cast<int>(*axis);
    if (const Json *fake = present(json, "fake_quant"))
        record.fakeQuant = fake->is_boolean() && fake->get<bool>();
    return record;
}

void readObservers(const std::string &path, PairFolder &folder)
{
    constexpr std::uintmax_t kMaxBytes = std::uintmax_t{256} << 20U;
    if (fs::file_size(path) > kMaxBytes)
        throw std::runtime_error("larger than 256 MiB");
    std::ifstream stream(path, std::ios::binary);
    if (!stream)
        throw std::runtime_error("cannot be opened");
    const Json document = Json::parse(stream);
    const auto version = document.is_object() ? integer(document, "version") : std::nullopt;
    if (!version)
        throw std::runtime_error("version is missing");
    if (*version > kVersion)
        throw std::runtime_error("version " + std::to_string(*version) + " is newer than this program knows (" +
                                 std::to_string(kVersion) + ")");
    if (const Json *list = present(document, "observers")) {
        if (!list->is_array())
            throw std::runtime_error("observers must be a list");
        for (std::size_t i = 0; i < list->size(); ++i) {
            try {
                folder.observers.push_back(readRecord((*list)[i]));
            } catch (const std::exception &error) {
                throw std::runtime_error("observer " + std::to_string(i) + ": " + error.what());
            }
        }
    }
    if (const Json *lost = present(document, "lost"); lost != nullptr && lost->is_array())
        for (const Json &line : *lost)
            if (line.is_string())
                folder.notes.push_back(line.get<std::string>());
}

// The first of these names that is there; empty when none is.
std::string firstFile(const fs::path &folder, std::initializer_list<const char *> names)
{
    for (const char *name : names)
        if (fs::is_regular_file(folder / name))
            return (folder / name).string();
    return {};
}

PairFolder read(const fs::path &path)
{
    PairFolder folder;
    folder.reference = firstFile(path, {"reference.pt2"});
    folder.candidate = firstFile(path, {"candidate.pt2"});
    if (std::string inputs = firstFile(path, {"inputs.pt", "inputs.npz", "inputs.safetensors"}); !inputs.empty())
        folder.inputs.push_back(std::move(inputs));
    folder.labels = firstFile(path, {"labels.pt", "labels.npy", "labels.npz"});
    if (const std::string observers = firstFile(path, {"observers.json"}); !observers.empty())
        readObservers(observers, folder);
    return folder;
}

} // namespace

Result<PairFolder> readPairFolder(const std::string &path)
{
    std::error_code failed;
    if (!fs::is_directory(path, failed))
        return fail(ErrorCode::Unreadable, path, "is no folder; give a folder that dblame_export.py wrote");
    try {
        PairFolder folder = read(path);
        for (const auto &[file, name] :
             {std::pair(&folder.reference, "reference.pt2"), std::pair(&folder.candidate, "candidate.pt2")})
            if (file->empty())
                return fail(ErrorCode::Unreadable, path,
                            std::string(name) + " is missing; give a folder that dblame_export.py wrote");
        return folder;
    } catch (const Json::exception &error) {
        return fail(ErrorCode::Unreadable, (fs::path(path) / "observers.json").string(), "not valid JSON",
                    error.what());
    } catch (const fs::filesystem_error &error) {
        return fail(ErrorCode::Unreadable, path, std::string("cannot be read: ") + error.code().message());
    } catch (const std::exception &error) {
        return fail(ErrorCode::Unreadable, (fs::path(path) / "observers.json").string(), error.what());
    }
}

} // namespace dblame
