// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/report_diff.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "core/number_text.h"
#include "core/report_words.h"
#include "core/text_table.h"

namespace dblame
{

namespace
{

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Rows by key, in order. Several rows of one module: the last one stands for it.
struct Keyed {
    std::vector<std::string> order;
    std::unordered_map<std::string, const ReportRow *> rows;
};

Keyed keyed(const Report &report, DiffKey by)
{
    Keyed result;
    for (const auto &row : report.rows) {
        const bool activation = row.kind == "activation" || row.kind == "output";
        if (by == DiffKey::Module && (!activation || row.module.empty()))
            continue;
        std::string key = by == DiffKey::Module ? row.module : row.ref;
        const auto [found, added] = result.rows.insert_or_assign(std::move(key), &row);
        if (added)
            result.order.push_back(found->first);
    }
    return result;
}

std::optional<double> change(const std::optional<double> &a, const std::optional<double> &b)
{
    const bool hasA = a && !std::isnan(*a);
    const bool hasB = b && !std::isnan(*b);
    if (!hasA && !hasB)
        return std::nullopt;
    if (hasA != hasB)
        return hasB ? kInfinity : -kInfinity;
    return *a == *b ? 0.0 : *b - *a; // also for two equal infinities
}

DiffRow diffRow(const std::string &key, const Report &reportA, const ReportRow *a, const Report &reportB,
                const ReportRow *b)
{
    const ReportRow &named = b != nullptr ? *b : *a;
    DiffRow row;
    row.key = key;
    row.node = named.ref;
    row.module = named.module;
    row.op = named.op;
    row.kind = named.kind;
    if (a != nullptr) {
        row.a = shownDb(reportA, *a);
        row.aWord = words::shown(reportA, *a);
    }
    if (b != nullptr) {
        row.b = shownDb(reportB, *b);
        row.bWord = words::shown(reportB, *b);
    }
    if (a != nullptr && b != nullptr)
        row.change = change(row.a, row.b);
    return row;
}

void compareSettings(const Report &a, const Report &b, std::vector<std::string> &warnings)
{
    const auto differ = [&warnings](const char *what, const std::string &x, const std::string &y, const char *meaning) {
        if (x != y)
            warnings.push_back(std::string(what) + " differ (" + x + " and " + y + ")" + meaning);
    };
    differ("thread counts", std::to_string(a.threads), std::to_string(b.threads),
           ": results depend on it, by as much as 25 dB in deep quantized models; compare runs with one --threads");
    differ("CPU capabilities", a.cpu, b.cpu, ": kernels differ, and so may results");
    differ("LibTorch versions", a.libtorch, b.libtorch, ": kernels differ, and so may results");
    if (a.inputs.sha256 != b.inputs.sha256 || a.inputs.samples != b.inputs.samples)
        warnings.push_back("inputs differ (" + words::inputs(a) + " and " + words::inputs(b) +
                           "): the change is not that of the model alone");
    if (a.reference.sha256 != b.reference.sha256)
        warnings.push_back("references differ (" + a.reference.path + " and " + b.reference.path + ")");
    if (a.signal != b.signal)
        warnings.push_back("signal conventions differ; both are shown with the " + a.signal + " as signal");
}

// By change; where that is equally infinite (exact before, or no figure after), the lower figure after it first.
void sortRegressionsFirst(std::vector<DiffRow> &rows)
{
    const auto change = [](const DiffRow &row) { return row.change.value_or(0.0); };
    const auto after = [](const DiffRow &row) { return row.b && !std::isnan(*row.b) ? *row.b : -kInfinity; };
    std::stable_sort(rows.begin(), rows.end(), [&](const DiffRow &x, const DiffRow &y) {
        if (change(x) != change(y))
            return change(x) < change(y);
        return std::isinf(change(x)) && after(x) < after(y);
    });
}

} // namespace

ReportDiff diffReports(const Report &a, const Report &other, DiffKey key)
{
    ReportDiff diff;
    diff.signal = a.signal;
    compareSettings(a, other, diff.warnings);
    Report b = other;
    b.signal = a.signal;
    const Keyed inA = keyed(a, key);
    const Keyed inB = keyed(b, key);
    for (const auto &name : inA.order) {
        const auto found = inB.rows.find(name);
        if (found == inB.rows.end())
            diff.removed.push_back(diffRow(name, a, inA.rows.at(name), b, nullptr));
        else
            diff.rows.push_back(diffRow(name, a, inA.rows.at(name), b, found->second));
    }
    for (const auto &name : inB.order)
        if (!inA.rows.contains(name))
            diff.added.push_back(diffRow(name, a, nullptr, b, inB.rows.at(name)));
    sortRegressionsFirst(diff.rows);
    for (const auto &row : diff.rows)
        diff.worst = std::max(diff.worst, -row.change.value_or(0.0));
    const bool candidate = a.signal == "candidate";
    const auto &outA = candidate ? a.outputSqnrDb : a.outputSnrDb;
    const auto &outB = candidate ? b.outputSqnrDb : b.outputSnrDb;
    if (outA.size() == outB.size())
        for (std::size_t i = 0; i < outA.size(); ++i)
            diff.outputChange.push_back(change(outA[i], outB[i]).value_or(0.0));
    return diff;
}

std::string diffTable(const ReportDiff &diff)
{
    const auto signedText = [](double db) { return (db > 0 ? "+" : "") + fixedText(db, 2); };
    TextTable table({">change dB", ">A", ">B", "node", "module", "operator"});
    std::size_t unchanged = 0;
    for (const auto &row : diff.rows) {
        if (row.change && *row.change == 0.0) {
            ++unchanged;
            continue;
        }
        if (!row.change && row.aWord == row.bWord) {
            ++unchanged;
            continue;
        }
        table.add({row.change ? signedText(*row.change) : "", row.aWord, row.bWord, row.node, row.module, row.op});
    }
    for (const auto &row : diff.removed)
        table.add({"removed", row.aWord, "", row.node, row.module, row.op});
    for (const auto &row : diff.added)
        table.add({"added", "", row.bWord, row.node, row.module, row.op});
    std::string out = table.text();
    out += "\n" + std::to_string(unchanged) + " rows unchanged, " + std::to_string(diff.removed.size()) + " removed, " +
           std::to_string(diff.added.size()) + " added\n";
    for (std::size_t i = 0; i < diff.outputChange.size(); ++i)
        out += "output" + (diff.outputChange.size() > 1 ? " " + std::to_string(i) : std::string()) + ": " +
               signedText(diff.outputChange[i]) + " dB\n";
    return out;
}

} // namespace dblame
