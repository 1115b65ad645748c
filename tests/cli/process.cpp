// SPDX-License-Identifier: GPL-3.0-or-later
#include "process.h"

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <stdexcept>

#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace dblame
{

namespace
{

std::string content(int file)
{
    std::string text(static_cast<std::size_t>(lseek(file, 0, SEEK_END)), '\0');
    lseek(file, 0, SEEK_SET);
    std::size_t done = 0;
    while (done < text.size()) {
        const auto count = read(file, text.data() + done, text.size() - done);
        if (count <= 0)
            break;
        done += static_cast<std::size_t>(count);
    }
    return text;
}

std::vector<char *> pointers(const std::vector<std::string> &texts)
{
    std::vector<char *> result;
    for (const auto &text : texts)
        result.push_back(const_cast<char *>(text.c_str()));
    result.push_back(nullptr);
    return result;
}

} // namespace

Process::Process(const std::vector<std::string> &command, const std::vector<std::string> &environment)
    : m_out(memfd_create("out", MFD_CLOEXEC)), m_err(memfd_create("err", MFD_CLOEXEC))
{
    std::vector<std::string> variables(environment);
    for (char **e = environ; *e != nullptr; ++e)
        variables.emplace_back(*e);
    const auto argv = pointers(command);
    const auto envp = pointers(variables);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, m_out, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, m_err, STDERR_FILENO);
    const int failure = posix_spawn(&m_pid, argv[0], &actions, nullptr, argv.data(), envp.data());
    posix_spawn_file_actions_destroy(&actions);
    if (failure != 0)
        throw std::runtime_error("cannot start " + command.front());
}

Process::~Process()
{
    if (m_pid > 0) {
        kill(m_pid, SIGKILL);
        waitpid(m_pid, nullptr, 0);
    }
    close(m_out);
    close(m_err);
}

bool Process::waitUntilItCatches(int signal) const
{
    for (;;) {
        std::ifstream status("/proc/" + std::to_string(m_pid) + "/status");
        std::string line;
        while (std::getline(status, line)) {
            if (line.rfind("State:\tZ", 0) == 0)
                return false;
            if (line.rfind("SigCgt:", 0) == 0 &&
                (std::stoull(line.substr(8), nullptr, 16) >> static_cast<unsigned>(signal - 1) & 1U) != 0)
                return true;
        }
        sched_yield();
    }
}

Finished Process::wait()
{
    int status = 0;
    waitpid(m_pid, &status, 0);
    m_pid = -1;
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), content(m_out), content(m_err)};
}

Finished run(const std::vector<std::string> &command, const std::vector<std::string> &environment)
{
    return Process(command, environment).wait();
}

} // namespace dblame
