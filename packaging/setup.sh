#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Installs what dBlame is built from, and finds LibTorch. Can be run again at any time; does nothing where all is there.
#
#   packaging/setup.sh [--lint]     --lint: also the tools that .ci/run uses
#
# Packages come from apt (Debian 12 and 13, Ubuntu 24.04). LibTorch comes from, in this order:
#   1. DBLAME_LIBTORCH: a folder with include/ and lib/ (the folder of a torch Python package is one)
#   2. a torch >= 2.6 that python3 already imports, if it has its headers
#   3. build/venv-torch-*: a private venv that this script makes (DBLAME_PIP_ARGS: more arguments for pip, for instance
#      an index of CPU wheels). The user's own Python is never changed.
# An earlier choice is kept while it is there and DBLAME_LIBTORCH does not say otherwise; delete build/libtorch.path to choose anew.
# build/libtorch.path then holds the folder, build/libtorch.python the interpreter that imports it (empty if none does).
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

torch_version=2.13.0
venv="$dblame_root/build/venv-torch-$torch_version"
path_file="$dblame_root/build/libtorch.path"
python_file="$dblame_root/build/libtorch.python"

# One line per need; alternatives in order of preference where distributions disagree on the name.
packages=(
    g++ cmake ninja-build qt6-base-dev "qt6-svg-dev libqt6svg6-dev" libqcustomplot-dev libspdlog-dev nlohmann-json3-dev
    libcli11-dev libexpected-dev libgtest-dev libgmock-dev libyaml-cpp-dev zlib1g-dev libssl-dev fonts-dejavu-core
)
lint_packages=(git clang-format clang-tidy shellcheck)

# ---------------------------------------------------------------------------------------------- system packages

installed() { [[ $(dpkg-query -W -f='${db:Status-Abbrev}' "$1" 2>/dev/null) == ii* ]]; }

# Prints the needs of which no alternative is installed, one a line.
missing_packages() {
    local need name
    for need in "$@"; do
        for name in $need; do
            if installed "$name"; then continue 2; fi
        done
        printf '%s\n' "$need"
    done
}

has_candidate() {
    local policy
    policy=$(LC_ALL=C apt-cache policy "$1" 2>/dev/null) # no pipe into grep -q: it would break the pipe, and fail
    [[ $policy =~ Candidate:\ [^\(] ]]
}

as_root() {
    if [[ $(id -u) == 0 ]]; then
        env DEBIAN_FRONTEND=noninteractive "$@"
    elif command -v sudo >/dev/null; then
        sudo env DEBIAN_FRONTEND=noninteractive "$@"
    else
        die "not root, and no sudo here: run as root: $*"
    fi
}

apt_install() {
    local missing=() names=() need name
    mapfile -t missing < <(missing_packages "$@")
    if ((${#missing[@]} == 0)); then return 0; fi
    say "installing ${missing[*]}"
    as_root apt-get -qq update || say "apt-get update failed; going on with the package lists at hand"
    for need in "${missing[@]}"; do
        for name in $need; do
            if has_candidate "$name"; then
                names+=("$name")
                continue 2
            fi
        done
        die "no package for '$need' in apt's sources (on Ubuntu: is 'universe' enabled?)"
    done
    as_root apt-get -qq install -y --no-install-recommends "${names[@]}" >&2 ||
        die "apt-get could not install ${names[*]}; see above"
}

# Compiles an #include, for systems whose packages we do not know: compiles HEADER [FOLDER...]
compiles() {
    local header=$1 folder flags=()
    shift
    for folder in "$@"; do flags+=(-isystem "$folder"); done
    echo "#include <$header>" | "${CXX:-g++}" -std=c++20 -fPIC -fsyntax-only "${flags[@]}" -x c++ - 2>/dev/null
}

# Prints the folder of Qt's headers, wherever the distribution has it.
qt_headers() {
    local folder
    for folder in "$(qmake6 -query QT_INSTALL_HEADERS 2>/dev/null || qmake-qt6 -query QT_INSTALL_HEADERS 2>/dev/null)" \
        /usr/include/qt6 /usr/include/*-linux-gnu/qt6 /usr/local/include/qt6; do
        if [[ -d $folder/QtWidgets ]]; then
            printf '%s\n' "$folder"
            return 0
        fi
    done
    printf '/usr/include/qt6\n'
}

check_without_apt() {
    local missing=() qt
    command -v "${CXX:-g++}" >/dev/null || 
        missing+=("a C++20 compiler (g++ 12 or newer); without one, the libraries were not looked for")
    find_cmake >/dev/null || missing+=("cmake 3.24 or newer")
    command -v ninja >/dev/null || command -v ninja-build >/dev/null || missing+=("ninja")
    if command -v "${CXX:-g++}" >/dev/null; then
        qt=$(qt_headers)
        compiles QWidget "$qt" "$qt/QtWidgets" "$qt/QtGui" "$qt/QtCore" || missing+=("Qt 6 (base, 6.4 or newer)")
        compiles QSvgGenerator "$qt" "$qt/QtSvg" "$qt/QtGui" "$qt/QtCore" || missing+=("Qt 6 SVG")
        compiles qcustomplot.h "$qt" "$qt/QtWidgets" "$qt/QtGui" "$qt/QtCore" "$qt/QtPrintSupport" ||
            missing+=("QCustomPlot 2.1 (built for Qt 6)")
        compiles spdlog/version.h || missing+=("spdlog")
        compiles nlohmann/json.hpp || missing+=("nlohmann-json")
        compiles CLI/CLI.hpp || missing+=("CLI11")
        compiles tl/expected.hpp || missing+=("tl-expected")
        compiles yaml-cpp/yaml.h || missing+=("yaml-cpp")
        compiles gmock/gmock.h || missing+=("GoogleTest with GoogleMock")
        compiles zlib.h || missing+=("zlib")
        compiles openssl/evp.h || missing+=("OpenSSL")
    fi
    if ((${#missing[@]})); then
        say "this system has no apt; please install:"
        printf '  %s\n' "${missing[@]}" >&2
        exit 1
    fi
}

install_packages() {
    if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
        check_without_apt
        return 0
    fi
    apt_install "$@"
    find_cmake >/dev/null || die "cmake 3.24 or newer is needed, $(cmake --version | head -n 1) found"
}

# ----------------------------------------------------------------------------------------------------- LibTorch

is_libtorch() { [[ -f $1/include/ATen/ATen.h && -f $1/lib/libtorch_cpu.so && -f $1/lib/libc10.so ]]; }

# torch_of PYTHON MINIMUM: prints the folder of that interpreter's torch if it can be linked to, else says why on stderr
# and fails. Looking for the package is quick; importing it, which takes seconds, happens only if there is one.
torch_of() {
    timeout 300 "$1" -c '
import importlib.util, os, sys
if importlib.util.find_spec("torch") is None:
    sys.exit(1)
try:
    import torch
except Exception as error:
    sys.exit(f"dblame: python3 has a torch that does not import ({error}); not using it")
folder = os.path.dirname(os.path.abspath(torch.__file__))
version = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
if version < tuple(int(part) for part in sys.argv[1].split(".")):
    sys.exit(f"dblame: torch {torch.__version__} of python3 is older than {sys.argv[1]}; not using it")
if not torch.compiled_with_cxx11_abi():
    sys.exit("dblame: torch of python3 has the old C++ ABI; not using it")
if not os.path.exists(os.path.join(folder, "include", "ATen", "ATen.h")):
    sys.exit("dblame: torch of python3 comes without its headers; not using it")
print(folder)
' "$2" 2> >(grep '^dblame: ' >&2 || true)
}

write_result() {
    printf '%s\n' "$1" >"$path_file.new"
    printf '%s\n' "$2" >"$python_file.new"
    mv "$python_file.new" "$python_file"
    mv "$path_file.new" "$path_file"
}

# LibTorch without a venv of ours; fails if one has to be made.
existing_libtorch() {
    local folder
    if [[ -n ${DBLAME_LIBTORCH:-} ]]; then
        is_libtorch "$DBLAME_LIBTORCH" ||
            die "DBLAME_LIBTORCH=$DBLAME_LIBTORCH: no include/ATen/ATen.h or lib/libtorch_cpu.so there"
        folder=$(cd "$DBLAME_LIBTORCH" && pwd)
        write_result "$folder" "$(python_beside "$folder")"
        return 0
    fi
    if [[ -s $path_file && -f $python_file ]] && is_libtorch "$(cat "$path_file")"; then return 0; fi
    if command -v python3 >/dev/null && folder=$(torch_of python3 2.6) && is_libtorch "$folder"; then
        say "using torch of $(command -v python3)"
        write_result "$folder" "$(python3 -c 'import sys; print(sys.executable)')"
        return 0
    fi
    if is_libtorch "$(venv_torch "$venv")"; then
        write_result "$(venv_torch "$venv")" "$venv/bin/python"
        return 0
    fi
    return 1
}

# python_beside FOLDER: the interpreter of the environment that holds ENV/lib/python3.N/site-packages/torch, if it is one.
python_beside() {
    if [[ $1 == */lib/python3*/site-packages/torch && -x ${1%/lib/python3*}/bin/python3 ]]; then
        printf '%s\n' "${1%/lib/python3*}/bin/python3"
    fi
}

# venv_torch VENV: the folder of torch in it
venv_torch() {
    local folder
    for folder in "$1"/lib/python3*/site-packages/torch; do
        if [[ -d $folder ]]; then printf '%s\n' "$folder"; fi
    done
}

# Prints an interpreter of 3.10 to 3.14 that can make a venv with pip in it.
find_python() {
    local program
    for program in python3 python3.13 python3.12 python3.11 python3.14 python3.10 /usr/bin/python3; do
        if command -v "$program" >/dev/null &&
            "$program" -c 'import sys; sys.exit(not ((3, 10) <= sys.version_info[:2] <= (3, 14) and sys.maxsize > 2**32))' 2>/dev/null &&
            "$program" -c 'import ensurepip, venv' 2>/dev/null; then
            command -v "$program"
            return 0
        fi
    done
    return 1
}

make_venv() {
    local python partial
    python=$(find_python) || die "no Python of 3.10 to 3.14 with venv and ensurepip on PATH; install one (python3-venv), or give DBLAME_LIBTORCH"
    say "torch $torch_version into $venv (with $python; a while, once)"
    # Made under another name: an interrupted run leaves no half venv under the real one.
    rm -rf "$venv" "$venv".partial.*
    partial="$venv.partial.$$"
    "$python" -m venv "$partial"
    # shellcheck disable=SC2086 # several arguments in one variable, as pip's own users write them
    "$partial/bin/python" -m pip install --quiet --no-input --disable-pip-version-check ${DBLAME_PIP_ARGS:-} "torch==$torch_version" >&2 ||
        die "pip could not install torch==$torch_version (see above); give pip more arguments in DBLAME_PIP_ARGS, or a LibTorch in DBLAME_LIBTORCH"
    is_libtorch "$(venv_torch "$partial")" || die "torch==$torch_version came without headers or libtorch_cpu.so"
    mv "$partial" "$venv"
    write_result "$(venv_torch "$venv")" "$venv/bin/python"
}

main() {
    local needs=("${packages[@]}")
    case ${1:-} in
    '') ;;
    --lint) needs+=("${lint_packages[@]}") ;;
    *) die "usage: packaging/setup.sh [--lint]" ;;
    esac
    mkdir -p "$dblame_root/build"
    # Two runs at once would install into one another's folder.
    if command -v flock >/dev/null; then
        exec 9>"$dblame_root/build/.setup.lock"
        flock 9
    fi
    if existing_libtorch; then
        install_packages "${needs[@]}"
    else
        find_python >/dev/null || needs+=(python3-venv)
        install_packages "${needs[@]}"
        make_venv
    fi
    say "LibTorch: $(cat "$path_file")"
}

main "$@"
