// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/output_files.h"

#include <filesystem>

#include "core/atomic_file.h"
#include "core/pair_folder.h"

namespace dblame
{

namespace
{

namespace fs = std::filesystem;

// Files only: /dev/null may be named as often as one likes.
bool sameFile(const std::string &a, const std::string &b)
{
    std::error_code ec;
    if (fs::exists(a, ec) && fs::exists(b, ec))
        return fs::is_regular_file(a, ec) && fs::equivalent(a, b, ec);
    return writtenFile(a) == writtenFile(b);
}

// The files behind what a command line calls its inputs.
std::vector<std::string> filesOf(const std::vector<std::string> &inputs)
{
    std::vector<std::string> files;
    for (const std::string &path : inputs) {
        std::error_code ec;
        if (fs::is_directory(path, ec)) {
            if (const auto folder = readPairFolder(path)) {
                files.insert(files.end(), {folder->reference, folder->candidate, folder->labels});
                files.insert(files.end(), folder->inputs.begin(), folder->inputs.end());
                files.push_back((fs::path(path) / "observers.json").string());
            }
            continue;
        }
        const auto program = path.rfind('#');
        files.push_back(fs::exists(path, ec) ? path : path.substr(0, program));
    }
    std::erase(files, std::string());
    return files;
}

Result<void> checkOne(const char *option, const std::string &path, const std::vector<std::string> &inputs)
{
    std::error_code ec;
    const std::string where = std::string(option) + " " + path;
    if (fs::is_directory(path, ec))
        return fail(ErrorCode::Usage, where, "is a folder; give a file name");
    for (const std::string &input : inputs)
        if (sameFile(path, input))
            return fail(ErrorCode::Usage, where, "is read by this command and would be lost; give another name");
    const fs::path folder = fs::path(writtenFile(path)).parent_path();
    if (!fs::exists(folder, ec))
        return fail(ErrorCode::Unreadable, where, "there is no folder " + folder.string() + "; make it first");
    return {};
}

} // namespace

Result<void> checkOutputs(const OutputFiles &outputs, const std::vector<std::string> &inputs)
{
    const std::vector<std::string> read = filesOf(inputs);
    bool toStdout = false;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        const auto &[option, path] = outputs[i];
        if (path == "-") {
            if (toStdout)
                return fail(ErrorCode::Usage, "-", "only one report can go to stdout; give file names to the others");
            toStdout = true;
        }
        if (path.empty() || path == "-")
            continue;
        if (auto one = checkOne(option, path, read); !one)
            return one;
        for (std::size_t k = 0; k < i; ++k)
            if (!outputs[k].second.empty() && outputs[k].second != "-" && sameFile(path, outputs[k].second))
                return fail(ErrorCode::Usage, std::string(option) + " " + path,
                            std::string("is also what ") + outputs[k].first + " writes; give each its own file");
    }
    return {};
}

} // namespace dblame
