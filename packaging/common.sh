# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck shell=bash
# Shared by the scripts of this folder and by .ci/run; to be sourced after `set -euo pipefail`.

dblame_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() { printf 'dblame: %s\n' "$*" >&2; }

die() {
    say "$*"
    exit 1
}

# cmake_at_least_3_24 PROGRAM
cmake_at_least_3_24() {
    local version major minor
    version=$("$1" --version 2>/dev/null | sed -n '1s/^cmake version //p') || return 1
    major=${version%%.*}
    minor=${version#*.}
    minor=${minor%%.*}
    [[ $major =~ ^[0-9]+$ && $minor =~ ^[0-9]+$ ]] || return 1
    ((major > 3 || (major == 3 && minor >= 24)))
}

# Prints a cmake that is new enough: the one on PATH, or the distribution's where an older one hides it.
find_cmake() {
    local program
    for program in cmake /usr/bin/cmake; do
        if cmake_at_least_3_24 "$program"; then
            command -v "$program"
            return 0
        fi
    done
    return 1
}

# How many compilers may run at once: a file with torch's headers takes about 1.5 GB.
build_jobs() {
    local cores available limit used jobs
    cores=$(nproc 2>/dev/null || echo 1)
    available=$(awk '/^MemAvailable:/ { print int($2 / 1024) }' /proc/meminfo 2>/dev/null || true)
    available=${available:-2048}
    if limit=$(cat /sys/fs/cgroup/memory.max 2>/dev/null) && [[ $limit =~ ^[0-9]+$ ]]; then
        used=$(cat /sys/fs/cgroup/memory.current 2>/dev/null || echo 0)
        limit=$(((limit - used) / 1048576))
        if ((limit < available)); then available=$limit; fi
    fi
    jobs=$((available / 1500))
    if ((jobs > cores)); then jobs=$cores; fi
    if ((jobs < 1)); then jobs=1; fi
    echo "$jobs"
}

# configure_and_build PRESET [ARGUMENT OF CONFIGURE...]: the presets are found from the source folder only.
configure_and_build() {
    local preset=$1 cmake libtorch
    shift
    cmake=$(find_cmake) || die "cmake 3.24 or newer not found; run packaging/setup.sh"
    libtorch=$(cat "$dblame_root/build/libtorch.path")
    (
        cd "$dblame_root" || exit
        "$cmake" --preset "$preset" "-DDBLAME_LIBTORCH=$libtorch" "$@"
        "$cmake" --build --preset "$preset" -j "$(build_jobs)"
    )
}
