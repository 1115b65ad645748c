// SPDX-License-Identifier: GPL-3.0-or-later
//
// Opens libdblame_engine at run time: a process linked to LibTorch spends 0.2 s and 107 MB before main().
#include "core/engine.h"

#include <atomic>
#include <system_error>

#include <dlfcn.h>

namespace dblame
{

namespace
{

constexpr const char *kLibrary = "libdblame_engine.so";
constexpr const char *kEntry = "dblame_engine_instance"; // extern "C" dblame::Engine *dblame_engine_instance()

// Where libdblame_core.so lies: what $ORIGIN means in a run path, also in a build folder that has none.
std::filesystem::path ownFolder()
{
    Dl_info info{};
    if (dladdr(reinterpret_cast<const void *>(&loadEngine), &info) == 0 || info.dli_fname == nullptr)
        return {};
    std::error_code ec;
    const auto path = std::filesystem::canonical(info.dli_fname, ec);
    return ec ? std::filesystem::path() : path.parent_path();
}

// The library's path, or its bare name when the dynamic linker has to look for it.
std::string libraryPath(const std::filesystem::path &folder)
{
    if (!folder.empty())
        return (folder / kLibrary).string();
    std::error_code ec;
    if (const auto beside = ownFolder() / kLibrary; std::filesystem::exists(beside, ec))
        return beside.string();
    return kLibrary;
}

} // namespace

Result<Engine *> loadEngine(const std::filesystem::path &folder)
{
    static std::atomic<Engine *> loaded{nullptr};
    if (Engine *engine = loaded.load())
        return engine;
    const std::string path = libraryPath(folder);
    // Never closed: LibTorch registers operators and thread pools that do not survive a dlclose.
    void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        const char *why = dlerror();
        return fail(ErrorCode::Internal, path,
                    std::string("the engine cannot be loaded (") + (why != nullptr ? why : "no reason given") +
                        "); build it beside dBlame, or set LD_LIBRARY_PATH to LibTorch's lib folder if that was moved");
    }
    using Entry = Engine *(*)();
    const auto entry = reinterpret_cast<Entry>(dlsym(library, kEntry));
    if (entry == nullptr)
        return fail(ErrorCode::Internal, path, "this is not dBlame's engine; reinstall dBlame", kEntry);
    Engine *engine = entry();
    if (engine == nullptr)
        return fail(ErrorCode::Internal, path, "the engine did not start; its reason is in the log");
    loaded.store(engine);
    return engine;
}

} // namespace dblame
