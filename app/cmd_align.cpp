// SPDX-License-Identifier: GPL-3.0-or-later
//
// dblame align REF CAND: which value answers to which, by what rule, and what found no partner; without running.
#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/output_files.h"
#include "app/pair_options.h"
#include "core/report_writer.h"
#include "core/text_table.h"

namespace dblame
{

namespace
{

using Json = nlohmann::ordered_json;

struct AlignOptions {
    PairArguments pair;
    std::string json, csv;
};

struct Ledger {
    const Model &reference, &candidate;
    const Alignment &alignment;

    [[nodiscard]] std::string ref(const AlignedPair &pair) const
    {
        return reference.graph().value(namedReference(pair)).name;
    }
    [[nodiscard]] std::string cand(const AlignedPair &pair) const
    {
        const ValueId value = pair.candCompared.valid() ? pair.candCompared : pair.cand;
        return value.valid() ? candidate.graph().value(value).name : std::string();
    }
    [[nodiscard]] std::string module(const AlignedPair &pair) const
    {
        const Node *node = reference.graph().producer(pair.ref);
        return node != nullptr ? node->modulePath() : std::string();
    }
    [[nodiscard]] std::string op(const AlignedPair &pair) const
    {
        const Node *node = reference.graph().producer(pair.ref);
        return node != nullptr ? node->target : std::string();
    }
    [[nodiscard]] static std::string folded(const AlignedPair &pair)
    {
        std::string text;
        for (const auto &name : pair.folded)
            text += (text.empty() ? "" : " ") + name;
        return text;
    }
    [[nodiscard]] static const char *side(const Unmatched &u)
    {
        return u.side == Side::Reference ? "reference" : "candidate";
    }
    [[nodiscard]] std::size_t unmatchedOn(Side side) const
    {
        return static_cast<std::size_t>(std::count_if(alignment.unmatched.begin(), alignment.unmatched.end(),
                                                      [side](const auto &u) { return u.side == side; }));
    }
};

std::string ledgerTable(const Ledger &ledger)
{
    TextTable pairs({">#", "reference", "candidate", "kind", "by", "module", "why"});
    std::map<std::string, int> byRung;
    for (std::size_t i = 0; i < ledger.alignment.pairs.size(); ++i) {
        const AlignedPair &pair = ledger.alignment.pairs[i];
        ++byRung[rungName(pair.rung)];
        std::string why = pair.reason;
        if (!pair.folded.empty())
            why += "; compared after " + Ledger::folded(pair);
        if (!pair.rewritten.empty())
            why += "; " + pair.rewritten;
        pairs.add({std::to_string(i), ledger.ref(pair), ledger.cand(pair), rowKindName(pair.kind), rungName(pair.rung),
                   ledger.module(pair), why});
    }
    std::string out = pairs.text();
    if (!ledger.alignment.unmatched.empty()) {
        TextTable unmatched({"without a partner", "value", "module", "reason"});
        for (const auto &u : ledger.alignment.unmatched)
            unmatched.add({Ledger::side(u), u.name, u.module, u.reason});
        out += "\n" + unmatched.text();
    }
    out += "\n" + std::to_string(ledger.alignment.pairs.size()) + " pairs";
    const char *separator = " (";
    for (const auto &[rung, count] : byRung) {
        out += separator + std::to_string(count) + " by " + rung;
        separator = ", ";
    }
    out += byRung.empty() ? "" : ")";
    out += "; without a partner: " + std::to_string(ledger.unmatchedOn(Side::Reference)) + " of the reference, " +
           std::to_string(ledger.unmatchedOn(Side::Candidate)) +
           " of the candidate; shapes differ: " + std::to_string(ledger.alignment.shapeMismatches) + "\n";
    for (const auto &note : ledger.alignment.notes)
        out += "note: " + note + "\n";
    return out;
}

std::string ledgerJson(const Ledger &ledger)
{
    const auto model = [](const ModelInfo &info) {
        return Json{{"path", info.path}, {"sha256", info.sha256}, {"format", info.format}, {"producer", info.producer}};
    };
    Json json;
    json["dblame"] = dblameVersion();
    json["reference"] = model(ledger.reference.info());
    json["candidate"] = model(ledger.candidate.info());
    json["pairs"] = Json::array();
    for (std::size_t i = 0; i < ledger.alignment.pairs.size(); ++i) {
        const AlignedPair &pair = ledger.alignment.pairs[i];
        Json row{{"index", i},
                 {"ref", ledger.ref(pair)},
                 {"cand", ledger.cand(pair)},
                 {"kind", rowKindName(pair.kind)},
                 {"rung", rungName(pair.rung)},
                 {"reason", pair.reason},
                 {"module", ledger.module(pair)},
                 {"op", ledger.op(pair)}};
        if (!pair.folded.empty())
            row["folded"] = pair.folded;
        if (!pair.rewritten.empty())
            row["rewritten"] = pair.rewritten;
        json["pairs"].push_back(std::move(row));
    }
    json["unmatched"] = Json::array();
    for (const auto &u : ledger.alignment.unmatched)
        json["unmatched"].push_back(
            {{"side", Ledger::side(u)}, {"node", u.name}, {"module", u.module}, {"reason", u.reason}});
    json["folds"] = Json::array();
    for (const auto &fold : ledger.alignment.folds)
        json["folds"].push_back({{"conv", ledger.reference.graph().node(fold.conv).name}, {"norm", fold.name}});
    json["shape_mismatches"] = ledger.alignment.shapeMismatches;
    json["notes"] = ledger.alignment.notes;
    return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string ledgerCsv(const Ledger &ledger)
{
    std::string out = "state,ref,cand,kind,rung,module,op,folded,reason\r\n";
    const auto line = [&out](const std::vector<std::string> &cells) {
        for (std::size_t i = 0; i < cells.size(); ++i)
            out += (i == 0 ? "" : ",") + csvField(cells[i]);
        out += "\r\n";
    };
    for (const auto &pair : ledger.alignment.pairs)
        line({"paired", ledger.ref(pair), ledger.cand(pair), rowKindName(pair.kind), rungName(pair.rung),
              ledger.module(pair), ledger.op(pair), Ledger::folded(pair), pair.reason});
    for (const auto &u : ledger.alignment.unmatched) {
        const bool reference = u.side == Side::Reference;
        line({"unmatched", reference ? u.name : "", reference ? "" : u.name, "", "", u.module, "", "", u.reason});
    }
    return out;
}

int runAlign(const AlignOptions &options, std::stop_token stop)
{
    if (const auto checked = checkOutputs({{"--json", options.json}, {"--csv", options.csv}}, options.pair.models);
        !checked)
        return failed(checked.error());
    ProgressBar bar;
    const auto pair = openPair(options.pair, bar, stop);
    bar.clear();
    if (!pair)
        return failed(pair.error());
    const SiteTable sites = recognizeSites(*pair->candidate);
    const Alignment alignment = align(*pair->reference, *pair->candidate, sites);
    const Ledger ledger{*pair->reference, *pair->candidate, alignment};
    const std::pair<const std::string *, std::string (*)(const Ledger &)> targets[] = {{&options.json, ledgerJson},
                                                                                       {&options.csv, ledgerCsv}};
    for (const auto &[path, write] : targets)
        if (!path->empty())
            if (const auto written = deliver(*path, write(ledger)); !written)
                return failed(written.error());
    if (options.json.empty() && options.csv.empty())
        if (const auto written = deliver("-", ledgerTable(ledger)); !written)
            return failed(written.error());
    if (alignment.pairs.empty())
        return failed({ErrorCode::Incomparable,
                       pair->candidate->info().path,
                       "no value could be paired with the reference " + pair->reference->info().path +
                           "; check that both files hold the same model",
                       {}});
    return kDone;
}

} // namespace

void addAlign(CLI::App &program, Command &chosen)
{
    auto *command = program.add_subcommand(
        "align", "Show which values pair, by what rule, and what found no partner; runs nothing");
    const auto options = std::make_shared<AlignOptions>();
    options->pair.addTo(*command);
    command->add_option("--json", options->json, "Write the ledger as JSON; - is stdout")->type_name("FILE");
    command->add_option("--csv", options->csv, "Write the ledger as CSV; - is stdout")->type_name("FILE");
    command->callback(
        [options, &chosen] { chosen = [options](std::stop_token stop) { return runAlign(*options, stop); }; });
}

} // namespace dblame
