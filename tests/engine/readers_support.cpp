// SPDX-License-Identifier: GPL-3.0-or-later
#include "readers_support.h"

#include <cstring>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <zlib.h>

#include "core/readers/sha256.h"
#include "core/readers/zip_archive.h"

namespace dblame::test
{

std::string sample(const std::string &name)
{
    return std::string(DBLAME_TEST_DATA) + "/formats/" + name;
}

std::string readText(const std::string &path)
{
    std::ifstream stream(path, std::ios::binary);
    EXPECT_TRUE(stream) << path;
    std::ostringstream content;
    content << stream.rdbuf();
    return content.str();
}

nlohmann::json readJson(const std::string &path)
{
    return nlohmann::json::parse(readText(path));
}

void writeFile(const std::string &path, std::string_view content)
{
    std::ofstream stream(path, std::ios::binary | std::ios::trunc);
    stream.write(content.data(), static_cast<std::streamsize>(content.size()));
    ASSERT_TRUE(stream) << path;
}

TempFolder::TempFolder()
{
    std::string pattern = (std::filesystem::temp_directory_path() / "dblame-readers-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr)
        throw std::runtime_error("no temporary folder");
    m_path = pattern;
}

TempFolder::~TempFolder()
{
    std::error_code ignored;
    std::filesystem::remove_all(m_path, ignored);
}

Bytes bytesOf(std::string content)
{
    auto owner = std::make_shared<const std::string>(std::move(content));
    return {owner, reinterpret_cast<const std::uint8_t *>(owner->data()), owner->size(), false};
}

namespace
{

template <class T>
void put(std::string &out, T value)
{
    out.append(reinterpret_cast<const char *>(&value), sizeof value);
}

std::string deflated(const std::string &content)
{
    z_stream stream{};
    EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    std::string out(deflateBound(&stream, content.size()), '\0');
    stream.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(content.data()));
    stream.avail_in = static_cast<uInt>(content.size());
    stream.next_out = reinterpret_cast<Bytef *>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
    out.resize(out.size() - stream.avail_out);
    deflateEnd(&stream);
    return out;
}

} // namespace

std::string makeZip(const std::vector<ZipMember> &members, bool zip64End)
{
    constexpr std::size_t kAlignment = 64, kLocalHeader = 30;
    std::string out, directory;
    for (const ZipMember &member : members) {
        const std::string body = member.deflate ? deflated(member.content) : member.content;
        const auto crc = static_cast<std::uint32_t>(
            crc32_z(0, reinterpret_cast<const Bytef *>(member.content.data()), member.content.size()));
        const auto offset = static_cast<std::uint64_t>(out.size());
        const auto method = static_cast<std::uint16_t>(member.deflate ? 8 : 0);
        const std::size_t data = out.size() + kLocalHeader + member.name.size() + 4;
        const std::size_t padding = (kAlignment - data % kAlignment) % kAlignment;
        put<std::uint32_t>(out, 0x04034b50);
        for (const int field : {20, 0x800, static_cast<int>(method), 0, 0})
            put(out, static_cast<std::uint16_t>(field));
        // Sizes stay 0 in the local header, as LibTorch's writer leaves them.
        for (int i = 0; i < 3; ++i)
            put<std::uint32_t>(out, 0);
        put(out, static_cast<std::uint16_t>(member.name.size()));
        put(out, static_cast<std::uint16_t>(padding + 4));
        out += member.name;
        put<std::uint16_t>(out, 0x4246);
        put(out, static_cast<std::uint16_t>(padding));
        out.append(padding, 'Z');
        out += body;

        std::string extra;
        if (member.zip64) {
            put<std::uint16_t>(extra, 1);
            put<std::uint16_t>(extra, 24);
            put<std::uint64_t>(extra, member.content.size());
            put<std::uint64_t>(extra, body.size());
            put<std::uint64_t>(extra, offset);
        }
        const auto narrow = [&](std::uint64_t v) { return member.zip64 ? 0xffffffffU : static_cast<std::uint32_t>(v); };
        put<std::uint32_t>(directory, 0x02014b50);
        for (const int field : {20, 20, 0x800, static_cast<int>(method), 0, 0})
            put(directory, static_cast<std::uint16_t>(field));
        put(directory, crc);
        put(directory, narrow(body.size()));
        put(directory, narrow(member.content.size()));
        put(directory, static_cast<std::uint16_t>(member.name.size()));
        put(directory, static_cast<std::uint16_t>(extra.size()));
        for (int i = 0; i < 3; ++i)
            put<std::uint16_t>(directory, 0);
        put<std::uint32_t>(directory, 0);
        put(directory, narrow(offset));
        directory += member.name + extra;
    }
    const auto start = static_cast<std::uint64_t>(out.size());
    out += directory;
    if (zip64End) {
        const auto record = static_cast<std::uint64_t>(out.size());
        put<std::uint32_t>(out, 0x06064b50);
        put<std::uint64_t>(out, 44);
        put<std::uint32_t>(out, 0);
        put<std::uint64_t>(out, 0);
        put<std::uint64_t>(out, members.size());
        put<std::uint64_t>(out, members.size());
        put<std::uint64_t>(out, directory.size());
        put<std::uint64_t>(out, start);
        put<std::uint32_t>(out, 0x07064b50);
        put<std::uint32_t>(out, 0);
        put<std::uint64_t>(out, record);
        put<std::uint32_t>(out, 1);
    }
    put<std::uint32_t>(out, 0x06054b50);
    put<std::uint32_t>(out, 0);
    for (int i = 0; i < 2; ++i)
        put(out, static_cast<std::uint16_t>(zip64End ? 0xffff : members.size()));
    put(out, zip64End ? 0xffffffffU : static_cast<std::uint32_t>(directory.size()));
    put(out, zip64End ? 0xffffffffU : static_cast<std::uint32_t>(start));
    put<std::uint16_t>(out, 0);
    return out;
}

std::vector<ZipMember> membersOf(const std::string &path)
{
    const ZipArchive archive(MappedFile::bytes(MappedFile::open(path)));
    std::vector<ZipMember> members;
    for (const auto &member : archive.members())
        members.push_back({member.name, std::string(archive.read(member).text())});
    return members;
}

std::string withMember(const std::string &path, const std::string &name, const std::string *content)
{
    std::vector<ZipMember> members;
    bool found = false;
    for (ZipMember &member : membersOf(path)) {
        const bool it = member.name.ends_with("/" + name);
        found = found || it;
        if (it && content == nullptr)
            continue;
        if (it)
            member.content = *content;
        members.push_back(std::move(member));
    }
    EXPECT_TRUE(found) << name;
    return makeZip(members);
}

std::string sha256(std::string_view bytes)
{
    Sha256 hash;
    hash.add(bytes.data(), bytes.size());
    return hash.hex();
}

std::string sha256(const at::Tensor &tensor)
{
    const at::Tensor plain = (tensor.is_quantized() ? tensor.dequantize() : tensor).contiguous();
    return sha256(std::string_view(static_cast<const char *>(plain.const_data_ptr()),
                                   static_cast<std::size_t>(plain.numel()) * plain.element_size()));
}

std::shared_ptr<const LoadedModel> mustRead(const std::string &path)
{
    auto model = readModel(path, {}, {});
    if (!model)
        throw std::runtime_error(model.error().text());
    return *model;
}

std::shared_ptr<LoadedModel> makeModel(const std::vector<MadeInput> &inputs)
{
    auto model = std::make_shared<LoadedModel>();
    Graph &graph = model->m_graph;
    for (const MadeInput &made : inputs) {
        Value value;
        value.name = made.name;
        if (!made.number) {
            TensorMeta meta;
            meta.dtype = made.dtype;
            for (const std::int64_t size : made.sizes)
                meta.sizes.push_back({size < 0 ? -size : size, size < 0 ? "s0" : ""});
            value.meta = meta;
        }
        GraphInput input;
        input.value = ValueId(graph.values.size());
        input.target = made.name;
        graph.values.push_back(std::move(value));
        graph.inputs.push_back(std::move(input));
    }
    graph.index();
    model->m_tensors.resize(graph.values.size());
    model->m_mapped.resize(graph.values.size());
    model->m_info.path = "made.pt2";
    return model;
}

void addNode(LoadedModel &model, const std::string &target)
{
    Node node;
    node.name = target;
    node.target = target;
    model.m_graph.nodes.push_back(std::move(node));
    model.m_nodeFaults.emplace_back();
    model.m_graph.index();
}

std::string largeProgram(std::size_t floats)
{
    std::string payload(floats * sizeof(float), '\0');
    for (std::size_t i = 0; i < floats; i += 1024) {
        const auto value = static_cast<float>(i);
        std::memcpy(payload.data() + i * sizeof(float), &value, sizeof value);
    }
    const nlohmann::json meta = {{"dtype", 7},
                                 {"sizes", {{{"as_int", floats}}}},
                                 {"strides", {{{"as_int", 1}}}},
                                 {"storage_offset", {{"as_int", 0}}},
                                 {"layout", 7}};
    const nlohmann::json weights = {
        {"config",
         {{"w", {{"path_name", "weight_0"}, {"is_param", true}, {"use_pickle", false}, {"tensor_meta", meta}}}}}};
    const nlohmann::json value = {{"as_tensor", {{"name", "p_w"}}}};
    const nlohmann::json model = {
        {"schema_version", {{"major", 8}, {"minor", 20}}},
        {"graph_module",
         {{"graph",
           {{"inputs", {value}},
            {"outputs", {value}},
            {"nodes", nlohmann::json::array()},
            {"tensor_values", {{"p_w", meta}}}}},
          {"signature",
           {{"input_specs", {{{"parameter", {{"arg", {{"name", "p_w"}}}, {"parameter_name", "w"}}}}}},
            {"output_specs", {{{"user_output", {{"arg", value}}}}}}}},
          {"module_call_graph", nlohmann::json::array()}}}};
    return makeZip({{"m/archive_format", "pt2"},
                    {"m/models/model.json", model.dump()},
                    {"m/data/weights/weight_0", std::move(payload)},
                    {"m/data/weights/model_weights_config.json", weights.dump()}});
}

} // namespace dblame::test
