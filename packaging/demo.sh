#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The main job on the model pair of resources/demo: a trained digits net and its int8 version. With a display, the window
# opens with the pair loaded and running; without one, or with DBLAME_HEADLESS=1, the same comparison runs on the command
# line and writes its reports and a picture of the window into build/demo.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

"$dblame_root/packaging/setup.sh"
configure_and_build release >&2

bin="$dblame_root/build/release"
demo="$dblame_root/resources/demo"
out="$dblame_root/build/demo"
pair=("$demo/float.pt2" "$demo/int8.pt2" --inputs "$demo/inputs.pt")

if [[ ${DBLAME_HEADLESS:-0} != 1 && -n ${DISPLAY:-}${WAYLAND_DISPLAY:-} ]]; then
    status=0
    "$bin/dblame-gui" "${pair[@]}" --run || status=$?
    # Qt aborts (128 + SIGABRT) when the display cannot be reached.
    if [[ $status != 134 ]]; then exit "$status"; fi
    say "the display cannot be used; going on without it"
fi

mkdir -p "$out"
"$bin/dblame" compare "${pair[@]}"
"$bin/dblame" compare "${pair[@]}" --channels --histograms \
    --json "$out/report.json" --csv "$out/report.csv" --html "$out/report.html"
QT_QPA_PLATFORM=offscreen "$bin/dblame-gui" "${pair[@]}" --run --screenshot "$out/window.png"
say "reports and a picture of the window:"
printf '%s\n' "$out/report.json" "$out/report.csv" "$out/report.html" "$out/window.png"
