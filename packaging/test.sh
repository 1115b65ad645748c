#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Sets up, builds the development preset and runs all tests. Arguments go to ctest (for instance: -R Alignment).
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

"$dblame_root/packaging/setup.sh"
configure_and_build dev
cd "$dblame_root"
ctest=$(dirname "$(find_cmake)")/ctest
exec "$ctest" --preset dev -j 2 "$@"
