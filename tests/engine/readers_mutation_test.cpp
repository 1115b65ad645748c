// SPDX-License-Identifier: GPL-3.0-or-later
//
// Hundreds of damaged programs, the same ones each time: a model or an error, never a crash (run under the
// sanitizers as well).
#include <functional>
#include <random>

#include <gtest/gtest.h>

#include "readers_support.h"

namespace dblame::test
{
namespace
{

using nlohmann::json;

// Opens the bytes as a file and, if that works, uses what a caller would use.
bool survives(const TempFolder &folder, const std::string &content)
{
    const std::string path = folder.file("mutant.pt2");
    writeFile(path, content);
    const auto model = readModel(path, {}, {});
    if (!model) {
        EXPECT_FALSE(model.error().message.empty());
        EXPECT_NE(model.error().code, ErrorCode::Internal) << model.error().text();
        return false;
    }
    const Graph &graph = (*model)->graph();
    EXPECT_EQ((*model)->nodeFaults().size(), graph.nodes.size());
    for (const StoredTensor &stored : (*model)->storedTensors())
        EXPECT_LT(stored.bytes, content.size());
    for (const GraphInput &input : graph.inputs)
        if (input.value.valid())
            (void)(*model)->numbers(input.value);
    for (const Node &node : graph.nodes)
        for (const ValueId value : node.inputValues())
            EXPECT_LT(value.get(), graph.values.size());
    (void)readInputs({}, **model, **model, {});
    return true;
}

TEST(ReadersMutation, FlippedBytesAndCuts)
{
    const TempFolder folder;
    std::mt19937 random(20240229); // NOLINT: the same mutants each time
    for (const char *name : {"2.8.0/qdq.pt2", "2.13.0/grad.pt2"}) {
        const std::string good = readText(sample(name));
        int opened = 0;
        for (int i = 0; i < 80; ++i) {
            std::string bad = good;
            const int flips = 1 + static_cast<int>(random() % 4);
            for (int k = 0; k < flips; ++k)
                bad[random() % bad.size()] = static_cast<char>(random());
            opened += survives(folder, bad) ? 1 : 0;
        }
        EXPECT_LT(opened, 80); // CRC sees nearly all; padding may be flipped unseen
        for (int i = 0; i < 30; ++i)
            EXPECT_FALSE(survives(folder, good.substr(0, random() % good.size())));
        // Directory and end record: where lengths and offsets stand.
        const std::size_t tail = good.rfind("PK\x05\x06"), start = good.find("PK\x01\x02");
        for (int i = 0; i < 120; ++i) {
            std::string bad = good;
            bad[start + random() % (good.size() - start)] = static_cast<char>(random());
            bad[tail + random() % (good.size() - tail)] = static_cast<char>(random());
            (void)survives(folder, bad);
        }
    }
}

// Every container of a document, by pointer, so that one can be changed.
void collect(json &value, std::vector<json *> &all)
{
    all.push_back(&value);
    if (value.is_structured())
        for (auto &child : value)
            collect(child, all);
}

void mutate(json &document, std::mt19937 &random)
{
    std::vector<json *> all;
    collect(document, all);
    json &target = *all[random() % all.size()];
    switch (random() % 9) {
    case 0:
        target = nullptr;
        break;
    case 1:
        target = json::object();
        break;
    case 2:
        target = json::array();
        break;
    case 3:
        target = INT64_MIN;
        break;
    case 4:
        target = std::string("x");
        break;
    case 5:
        target = 1e300;
        break;
    case 6: // one thing in the place of another
        target = json(*all[random() % all.size()]);
        break;
    case 7:
        if (target.is_structured() && !target.empty()) {
            auto it = target.begin();
            std::advance(it, static_cast<std::ptrdiff_t>(random() % target.size()));
            target.erase(it);
        }
        break;
    default:
        if (target.is_array() && !target.empty())
            target.push_back(target[random() % target.size()]);
        else if (target.is_object())
            target["extra"] = json(*all[random() % all.size()]);
        break;
    }
}

void mutateMember(const char *file, const std::string &member, int count, unsigned seed)
{
    const TempFolder folder;
    std::mt19937 random(seed);
    std::string text;
    for (const ZipMember &found : membersOf(sample(file)))
        if (found.name.ends_with("/" + member))
            text = found.content;
    ASSERT_FALSE(text.empty());
    const json good = json::parse(text);
    int opened = 0;
    for (int i = 0; i < count; ++i) {
        json bad = good;
        const int changes = 1 + static_cast<int>(random() % 3);
        for (int k = 0; k < changes; ++k)
            mutate(bad, random);
        const std::string content = bad.dump();
        opened += survives(folder, withMember(sample(file), member, &content)) ? 1 : 0;
    }
    EXPECT_GT(opened, 0);
    EXPECT_LT(opened, count);
}

TEST(ReadersMutation, Programs)
{
    mutateMember("2.13.0/grad.pt2", "models/model.json", 150, 1);
    mutateMember("2.13.0/misc.pt2", "models/model.json", 150, 2);
    mutateMember("2.13.0/dynamic.pt2", "models/model.json", 100, 3);
    mutateMember("2.8.0/qdq.pt2", "models/model.json", 100, 4);
}

TEST(ReadersMutation, WeightTables)
{
    mutateMember("2.13.0/views.pt2", "data/weights/model_weights_config.json", 150, 5);
    mutateMember("2.13.0/buffers.pt2", "data/constants/model_constants_config.json", 100, 6);
}

TEST(ReadersMutation, Pickles)
{
    const TempFolder folder;
    std::mt19937 random(7);
    for (const char *name : {"weights/state_dict.pth", "weights/quantized_tensor.pt", "weights/untyped_v3.pt",
                             "weights/parameters.pth", "inputs/batches.pt"}) {
        std::string pickle;
        for (const ZipMember &member : membersOf(sample(name)))
            if (member.name.ends_with("/data.pkl"))
                pickle = member.content;
        const auto model = makeModel({{"a", {2, 3}}, {"b", {2, 3}}});
        for (int i = 0; i < 100; ++i) {
            std::string bad = pickle;
            const int flips = 1 + static_cast<int>(random() % 3);
            for (int k = 0; k < flips; ++k)
                bad[random() % bad.size()] = static_cast<char>(random());
            if (random() % 8 == 0)
                bad.resize(random() % bad.size());
            writeFile(folder.file("mutant.pt"), withMember(sample(name), "data.pkl", &bad));
            InputRequest request;
            request.files = {folder.file("mutant.pt")};
            const auto inputs = readInputs(request, *model, *model, {});
            if (!inputs) {
                EXPECT_NE(inputs.error().code, ErrorCode::Internal) << inputs.error().text();
            }
        }
    }
}

} // namespace
} // namespace dblame::test
