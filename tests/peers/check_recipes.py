# SPDX-License-Identifier: GPL-3.0-or-later
"""Recipes of dBlame fed to the real libraries: what they make of the exported text against what dBlame makes.

    check_recipes.py --dblame build/dev/dblame

torchao: recipe.json through RecipeQuantizer. coreai-opt: YAML through QuantizerConfig.from_yaml. For each recipe the
output SNR of the library's own model against the float one must equal dBlame's to 0.01 dB. Ends with 77 and the names
of what is missing where a library is not installed.
"""
import argparse
import importlib.util
import json
import math
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "resources", "python"))

MISSING = [name for name in ("torch", "torchao", "coreai_opt") if importlib.util.find_spec(name) is None]
if MISSING:
    print("SKIPPED check_recipes: not installed: " + ", ".join(MISSING))
    sys.exit(77)

import torch  # noqa: E402
import torch.nn as nn  # noqa: E402


class Net(nn.Module):
    """conv-relu, a residual block, pooling, two linears."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(1, 8, 3, padding=1)
        self.relu = nn.ReLU()
        self.block = nn.Conv2d(8, 8, 3, padding=1)
        self.act = nn.ReLU()
        self.pool = nn.AdaptiveAvgPool2d(2)
        self.fc1 = nn.Linear(32, 16)
        self.fc2 = nn.Linear(16, 10)

    def forward(self, x):
        x = self.relu(self.stem(x))
        x = self.act(self.block(x) + x) + 0.5
        x = torch.flatten(self.pool(x), 1)
        return self.fc2(torch.tanh(self.fc1(x)))


def snr(reference, candidate):
    r, c = reference.double(), candidate.double()
    noise = ((r - c) ** 2).sum().item()
    return math.inf if noise == 0 else 10 * math.log10((r**2).sum().item() / noise)


TORCHAO = [
    ("xnnpack-static", []),
    ("xnnpack-static:per-tensor", []),
    ("xnnpack-dynamic", []),
    ("x86-static", []),
    ("xnnpack-static", ["module:fc1=none"]),
    ("xnnpack-static", ["module:block=none"]),
    ("xnnpack-static", ["module:relu=none"]),
    ("xnnpack-static", ["module:act=out=float"]),
    ("xnnpack-static", ["module:fc1=in=float"]),
    ("x86-static", ["module:fc1=none"]),
    ("xnnpack-static", ["module:stem=weight=int4:sym:channel"]),
    ("xnnpack-static", ["module:fc2=weight=int8:sym:tensor", "module:stem=none"]),
]
COREAI = [
    ("coreai-w8a8", []),
    ("coreai-w8", []),
    ("coreai-w4", []),
    ("coreai-w8a8", ["module:fc1=none"]),
    ("coreai-w8a8", ["module:block=weight=int4:sym:channel"]),
]


class Bench:
    def __init__(self, dblame, folder):
        self.dblame, self.folder = dblame, folder
        torch.manual_seed(0)
        torch.set_num_threads(2)
        self.net = Net().eval()
        self.example = (torch.randn(16, 1, 12, 12),)
        self.calibration = [torch.randn(16, 1, 12, 12) for _ in range(4)]
        self.inputs = torch.randn(16, 1, 12, 12)
        torch.export.save(torch.export.export(self.net, self.example), self.path("float.pt2"))
        torch.save([[b] for b in self.calibration], self.path("calib.pt"))
        torch.save(self.inputs, self.path("inputs.pt"))
        with torch.no_grad():
            self.reference = self.net(self.inputs)

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, *arguments):
        done = subprocess.run([self.dblame, *arguments], capture_output=True, text=True)
        if done.returncode != 0:
            raise AssertionError(f"{' '.join(arguments)}: status {done.returncode}: {done.stderr}")
        return done.stdout

    def ours(self, preset, changes):
        more = ["--set", *changes] if changes else []
        text = self.run(
            "compare", self.path("float.pt2"), "--inputs", self.path("inputs.pt"), "--calibration", self.path("calib.pt"),
            "--threads", "2", "--preset", preset, *more, "--json", "-",
        )
        return float(json.loads(text)["output_snr_db"][0])

    def export(self, preset, changes, form):
        more = ["--set", *changes] if changes else []
        path = self.path("recipe." + form)
        self.run("recipe", "export", "--preset", preset, *more, "--format", form, "--model", self.path("float.pt2"), "-o", path)
        return path

    def torchao(self, preset, changes):
        from dblame_recipe import RecipeQuantizer, inner_quantizer
        from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

        recipe = self.export(preset, changes, "torchao")
        graph = torch.export.export(self.net, self.example).module()
        prepared = prepare_pt2e(graph, RecipeQuantizer(inner_quantizer(recipe), recipe, quiet=True))
        with torch.no_grad():
            for batch in self.calibration:
                prepared(batch)
            return snr(self.reference, convert_pt2e(prepared)(self.inputs))

    def coreai(self, preset, changes):
        from coreai_opt.quantization import Quantizer, QuantizerConfig

        config = QuantizerConfig.from_yaml(self.export(preset, changes, "coreai-opt"))
        quantizer = Quantizer(self.net, config)
        prepared = quantizer.prepare(self.example)
        with torch.no_grad():
            with quantizer.calibration_mode():
                for batch in self.calibration:
                    prepared(batch)
            prepared.eval()
            return snr(self.reference, prepared(self.inputs))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dblame", required=True)
    arguments = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(arguments.dblame, folder)
        for name, recipes, theirs in (("torchao", TORCHAO, bench.torchao), ("coreai-opt", COREAI, bench.coreai)):
            for preset, changes in recipes:
                title = " ".join([name, preset, *changes])
                try:
                    ours, peer = bench.ours(preset, changes), theirs(preset, changes)
                except Exception as error:  # one failure must not hide the others
                    print(f"FAILED {title}: {type(error).__name__}: {str(error)[:600]}")
                    wrong += 1
                    continue
                same = ours == peer or abs(ours - peer) < 0.01
                wrong += not same
                print(f"{'ok' if same else 'WRONG'} {title}: dBlame {ours:.4f} dB, library {peer:.4f} dB")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
