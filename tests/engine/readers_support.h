// SPDX-License-Identifier: GPL-3.0-or-later
//
// What the reader tests share: samples, a zip writer that can be told to lie, small models made on the spot.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <nlohmann/json.hpp>

#include "core/readers/loaded_model.h"
#include "core/readers/mapped_file.h"
#include "core/readers/readers.h"

namespace dblame::test
{

[[nodiscard]] std::string sample(const std::string &name); // below tests/data/formats
[[nodiscard]] std::string readText(const std::string &path);
[[nodiscard]] nlohmann::json readJson(const std::string &path);
void writeFile(const std::string &path, std::string_view content);

// A folder of its own for each test; removed at the end.
class TempFolder
{
public:
    TempFolder();
    ~TempFolder();
    TempFolder(const TempFolder &) = delete;
    TempFolder &operator=(const TempFolder &) = delete;
    [[nodiscard]] std::string file(const std::string &name) const { return (m_path / name).string(); }
    [[nodiscard]] std::string path() const { return m_path.string(); }

private:
    std::filesystem::path m_path;
};

[[nodiscard]] Bytes bytesOf(std::string content);

struct ZipMember {
    std::string name, content;
    bool deflate = false;
    bool zip64 = false; // sizes and offset in an extra field
};
// A stored or deflated archive; payloads aligned to 64 bytes.
[[nodiscard]] std::string makeZip(const std::vector<ZipMember> &members, bool zip64End = false);
// The members of an archive that our own reader can open.
[[nodiscard]] std::vector<ZipMember> membersOf(const std::string &path);
// The same archive with one member replaced, or without it when `content` is null.
[[nodiscard]] std::string withMember(const std::string &path, const std::string &name, const std::string *content);

// A .pt2 file that returns its one parameter `w` of so many floats; every 1024th has the value of its index. From 16
// MiB on the parameter stays in the file's mapping.
[[nodiscard]] std::string largeProgram(std::size_t floats);

[[nodiscard]] std::string sha256(std::string_view bytes);
[[nodiscard]] std::string sha256(const at::Tensor &tensor); // of the contiguous elements

[[nodiscard]] std::shared_ptr<const LoadedModel> mustRead(const std::string &path);

// One user input of a model without nodes. Negative sizes are the symbol s0 with that hint.
struct MadeInput {
    std::string name;
    std::vector<std::int64_t> sizes;
    DType dtype = DType::Float32;
    bool number = false;
};
[[nodiscard]] std::shared_ptr<LoadedModel> makeModel(const std::vector<MadeInput> &inputs);
void addNode(LoadedModel &model, const std::string &target);

} // namespace dblame::test
