# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks resources/python/dblame_export.py against the real quantizers, and the pairs that it writes against dBlame.

    python check_peers.py [--dblame PROGRAM] [--keep FOLDER] [CASE...]

Run with a Python that has torch, and torchao 0.18 and coreai-opt 0.4 where they are to be checked: a case whose library
is not installed is skipped by name. Each case saves a pair, loads the candidate back and compares its output with that
of the Python model, and where the program is there, lets `dblame compare` open the folder and compares the output SNR
with the one computed here. Exit status: 0, 1 if a case failed, 77 if all were skipped.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import io
import json
import logging
import math
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "resources" / "python"))
import dblame_export as companion  # noqa: E402

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)
torch.set_num_threads(2)


# ---------------------------------------------------------------------------------------------------------- models


class ConvBnRelu(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.relu(self.bn(self.conv(x)))


class Net(nn.Module):
    """Two conv blocks with a residual sum, pooling and a linear layer; batch norms with statistics of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = ConvBnRelu(1, 8)
        self.block = ConvBnRelu(8, 8)
        self.pool = nn.MaxPool2d(2)
        self.fc = nn.Linear(8 * 16, 10)
        with torch.no_grad():
            for module in self.modules():
                if isinstance(module, nn.BatchNorm2d):
                    module.running_mean.normal_(0, 0.1)
                    module.running_var.uniform_(0.5, 1.5)
                    module.weight.uniform_(0.5, 1.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        return self.fc(self.pool(x + self.block(x)).flatten(1))


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.act, self.fc2 = nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc2(self.act(self.fc1(x)))


class Encoder(nn.Module):
    """Inputs by name, as language models take them."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(50, 32)
        self.layer = nn.TransformerEncoderLayer(32, 2, 64, dropout=0.0, batch_first=True, norm_first=True)
        self.head = nn.Linear(32, 4)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        x = self.embed(input_ids) * attention_mask.unsqueeze(-1)
        return self.head(self.layer(x).mean(1))


def net() -> nn.Module:
    torch.manual_seed(1)
    return Net().eval()


def images(count: int = 64) -> torch.Tensor:
    return torch.rand(count, 1, 8, 8, generator=torch.Generator().manual_seed(2))


def features(count: int = 32) -> torch.Tensor:
    return torch.randn(count, 64, generator=torch.Generator().manual_seed(3))


# ------------------------------------------------------------------------------------------------------------ cases


@dataclass
class Case:
    """One pair. expected: the model whose output the saved candidate must give, to tolerance_db."""

    reference: Any
    candidate: Any
    batches: Any
    expected: nn.Module
    example: Any
    prepared: Any = None
    labels: bool = False
    tolerance_db: float = math.inf
    observers: int = 0
    histograms: int = 0
    lost: list[str] = field(default_factory=list)  # substrings, one per line that must be there


def xnnpack(qat: bool = False, dynamic: bool = False) -> Any:
    from torchao.testing.pt2e._xnnpack_quantizer import XNNPACKQuantizer, get_symmetric_quantization_config

    quantizer = XNNPACKQuantizer()
    quantizer.set_global(get_symmetric_quantization_config(is_per_channel=True, is_qat=qat, is_dynamic=dynamic))
    return quantizer


def calibrated(quantizer: Any) -> nn.Module:
    from torchao.quantization.pt2e.quantize_pt2e import prepare_pt2e

    x = images()
    prepared = prepare_pt2e(torch.export.export(net(), (x[:32],)).module(), quantizer)
    with torch.no_grad():
        prepared(x[:32])
        prepared(x[32:])
    return prepared


def converted(prepared: nn.Module) -> nn.Module:
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e

    return convert_pt2e(copy.deepcopy(prepared))


def float_pair() -> Case:
    rounded = net()
    with torch.no_grad():
        rounded.block.conv.weight.copy_((rounded.block.conv.weight * 64).round() / 64)
    x = images(32)
    return Case(net(), rounded, [x], rounded, x)


def torchao_converted_with_loader() -> Case:
    x = images()
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, torch.arange(64) % 10), batch_size=32)
    prepared = calibrated(xnnpack())
    model = converted(prepared)
    return Case(net(), model, loader, model, x[:32], prepared=prepared, labels=True, observers=10, histograms=7)


def torchao_calibrated_histogram() -> Case:
    prepared, x = calibrated(xnnpack()), images(32)
    lost = ["HistogramObserver, PerChannelMinMaxObserver cannot be exported: a copy was converted with torchao"]
    return Case(net(), prepared, [x], converted(prepared), x, observers=10, histograms=7, lost=lost)


def torchao_uncalibrated_reference() -> Case:
    prepared, x = calibrated(xnnpack()), images(32)
    from torchao.quantization.pt2e.quantize_pt2e import prepare_pt2e

    reference = prepare_pt2e(torch.export.export(net(), (x,)).module(), xnnpack())
    model = converted(prepared)
    return Case(reference, model, [x], model, x)


def torchao_dynamic() -> Case:
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e

    model, x = convert_pt2e(calibrated(xnnpack(dynamic=True))), images(32)
    return Case(net(), model, [x], model, x)


def torchao_dynamic_prepared() -> Case:
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e

    prepared, x = calibrated(xnnpack(dynamic=True)), images(32)
    expected = convert_pt2e(calibrated(xnnpack(dynamic=True)))
    lost = [
        "prepared for dynamic quantization, which an export drops: a copy was converted",
        "observers saw no data or",
    ]
    return Case(net(), prepared, [x], expected, x, observers=2, lost=lost)


def evaluated(prepared: nn.Module) -> nn.Module:
    """prepare_qat_pt2e puts its batch norms in training mode, whatever the export was in."""
    from torchao.quantization.pt2e import move_exported_model_to_eval

    copied = copy.deepcopy(prepared)
    return move_exported_model_to_eval(copied) or copied


def torchao_qat_prepared() -> Case:
    from torchao.quantization.pt2e.quantize_pt2e import prepare_qat_pt2e

    x = images(32)
    prepared = prepare_qat_pt2e(torch.export.export(net(), (x,)).module(), xnnpack(qat=True))
    with torch.no_grad():
        prepared(x)
    return Case(net(), prepared, [x], evaluated(prepared), x, observers=10)


def torchao_qat_trained() -> Case:
    from torchao.quantization.pt2e.quantize_pt2e import prepare_qat_pt2e

    x = images(32)
    prepared = prepare_qat_pt2e(torch.export.export(net().train(), (x,)).module(), xnnpack(qat=True))
    for _ in range(3):
        prepared(x)
    return Case(net(), prepared, [x], evaluated(prepared), x, observers=10)


def torchao_weights(config: str, lost: list[str], tolerance_db: float, **arguments: Any) -> Callable[[], Case]:
    def make() -> Case:
        import torchao.quantization as quantization

        torch.manual_seed(4)
        model, x = Mlp().eval(), features()
        reference = copy.deepcopy(model)
        quantization.quantize_(model, getattr(quantization, config)(**arguments))
        return Case(reference, model, [x], model, x, tolerance_db=tolerance_db, lost=lost)

    return make


def coreai_prepared() -> Case:
    from coreai_opt.quantization import Quantizer

    x = images(32)
    quantizer = Quantizer(net())
    prepared = quantizer.prepare((x,))
    with quantizer.calibration_mode(), torch.no_grad():
        prepared(x)
    prepared.eval()
    return Case(net(), prepared, [x], prepared, x, observers=10)


def coreai_palettized() -> Case:
    from coreai_opt.common import ExportBackend
    from coreai_opt.palettization import KMeansPalettizer, KMeansPalettizerConfig

    torch.manual_seed(4)
    model, x = Mlp().eval(), features()
    palettizer = KMeansPalettizer(copy.deepcopy(model), KMeansPalettizerConfig())
    prepared = palettizer.prepare((x,))
    final = palettizer.finalize(prepared, backend=ExportBackend.Torch)
    return Case(model, final, [x], final, x)


def inputs_by_name() -> Case:
    torch.manual_seed(5)
    reference = Encoder().eval()
    candidate = copy.deepcopy(reference)
    with torch.no_grad():
        candidate.layer.linear1.weight.copy_((candidate.layer.linear1.weight * 32).round() / 32)
    ids = torch.randint(0, 50, (2, 6, 12), generator=torch.Generator().manual_seed(6))
    batches = [{"attention_mask": torch.ones(6, 12), "input_ids": batch, "labels": torch.zeros(6)} for batch in ids]
    example = {"input_ids": ids[0], "attention_mask": torch.ones(6, 12)}
    return Case(reference, candidate, batches, candidate, example, labels=True, tolerance_db=110)


def torch_fx_prepared() -> Case:
    from torch.ao.quantization import get_default_qconfig_mapping
    from torch.ao.quantization.quantize_fx import _convert_to_reference_decomposed_fx, prepare_fx

    x = images(32)
    prepared = prepare_fx(net(), get_default_qconfig_mapping("x86"), (x,))
    with torch.no_grad():
        prepared(x)
    expected = _convert_to_reference_decomposed_fx(copy.deepcopy(prepared))
    return Case(
        net(), prepared, [x], expected, x, observers=7, histograms=7, lost=["a copy was converted with torch.ao"]
    )


INT8 = "tensor subclasses, now int8 weights with dequantize_per_channel"
DYNAMIC = "dynamic quantization of activations, now plain operators"
CASES: dict[str, tuple[str, Callable[[], Case]]] = {
    "float_pair": ("torch", float_pair),
    "inputs_by_name": ("torch", inputs_by_name),
    "torch_fx_prepared": ("torch", torch_fx_prepared),
    "torchao_converted_with_loader": ("torchao", torchao_converted_with_loader),
    "torchao_calibrated_histogram": ("torchao", torchao_calibrated_histogram),
    "torchao_uncalibrated_reference": ("torchao", torchao_uncalibrated_reference),
    "torchao_dynamic": ("torchao", torchao_dynamic),
    "torchao_dynamic_prepared": ("torchao", torchao_dynamic_prepared),
    "torchao_qat_prepared": ("torchao", torchao_qat_prepared),
    "torchao_qat_trained": ("torchao", torchao_qat_trained),
    "torchao_int8_weights": ("torchao", torchao_weights("Int8WeightOnlyConfig", [INT8], 110)),
    "torchao_int8_dynamic": ("torchao", torchao_weights("Int8DynamicActivationInt8WeightConfig", [INT8, DYNAMIC], 110)),
    "torchao_int4_weights": ("torchao", torchao_weights("IntxWeightOnlyConfig", [INT8], 110, weight_dtype=torch.int4)),
    "coreai_prepared": ("coreai_opt", coreai_prepared),
    "coreai_palettized": ("coreai_opt", coreai_palettized),
}


# ----------------------------------------------------------------------------------------------------------- checks


class Failed(Exception):
    pass


def snr_db(reference: torch.Tensor, other: torch.Tensor) -> float:
    reference, other = reference.detach().double(), other.detach().double()
    noise, signal = float((reference - other).square().sum()), float(reference.square().sum())
    if noise == 0:
        return math.inf
    return 10 * math.log10(signal / noise) if signal > 0 else -math.inf


def parts(value: Any) -> list[torch.Tensor]:
    """Copies of a tensor, or of the plain tensors inside a subclass"""
    if hasattr(value, "__tensor_flatten__"):
        inner = [getattr(value, name) for name in value.__tensor_flatten__()[0]]
        return [part for one in inner for part in parts(one)]
    return [value.detach().clone()] if isinstance(value, torch.Tensor) else []


def output(model: nn.Module, example: Any) -> torch.Tensor:
    with torch.no_grad():
        if isinstance(example, dict):
            return pytree.tree_leaves(model(**example))[0]
        return pytree.tree_leaves(model(*example) if isinstance(example, tuple) else model(example))[0]


def check(case: Case, folder: Path, dblame: Path | None) -> str:
    state = {name: parts(value) for name, value in case.candidate.state_dict().items()}
    with contextlib.redirect_stdout(io.StringIO()):
        pair = companion.save_pair(case.reference, case.candidate, case.batches, folder, prepared=case.prepared)
    for name, value in case.candidate.state_dict().items():
        if not all(map(torch.equal, parts(value), state[name])):
            raise Failed(f"the candidate's {name} was changed by saving it")

    loaded = torch.export.load(pair.candidate).module()
    same = snr_db(output(case.expected, case.example), output(loaded, tuple(torch.load(pair.inputs)[0])))
    if same < case.tolerance_db:
        raise Failed(f"the saved candidate gives another output: {same:.1f} dB")
    document = json.loads(pair.observers.read_text())
    instances = {o["name"] for o in document["observers"]}
    histograms = {o["name"] for o in document["observers"] if o["histogram"]}
    if (len(instances), len(histograms)) != (case.observers, case.histograms):
        raise Failed(
            f"{len(instances)} observers, {len(histograms)} histograms; {case.observers}, {case.histograms} expected"
        )
    for text in case.lost:
        if not any(text in line for line in pair.lost):
            raise Failed(f"nothing lost mentions '{text}': {pair.lost}")
    if not case.lost and any("candidate" in line for line in pair.lost):
        raise Failed(f"lost without need: {pair.lost}")
    if case.labels != (pair.labels is not None):
        raise Failed("labels were lost" if case.labels else "labels out of nowhere")
    said = f"saved candidate {same:.1f} dB, {len(instances)} observers"
    return said + (f", {compare(pair, case, dblame)}" if dblame else "")


def compare(pair: companion.Pair, case: Case, dblame: Path) -> str:
    """What the program makes of the folder: rows, and the output SNR over all batches, which must be Python's."""
    report_file = pair.folder / "report.json"
    command = [str(dblame), "compare", str(pair.folder), "--threads", "2", "--json", str(report_file)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if result.returncode != 0:
        raise Failed(f"dblame compare: exit {result.returncode}: {result.stderr.strip()[-400:]}")
    report = json.loads(report_file.read_text())
    compared = [row for row in report["rows"] if row["status"] in ("ok", "exact")]
    if not compared:
        raise Failed("dblame compare: no row was compared")
    reference, candidate = (torch.export.load(path).module() for path in (pair.reference, pair.candidate))
    batches = [tuple(batch) for batch in torch.load(pair.inputs)]
    with torch.no_grad():
        outputs = [[pytree.tree_leaves(model(*batch))[0] for batch in batches] for model in (reference, candidate)]
    here = snr_db(torch.cat(outputs[0]), torch.cat(outputs[1]))
    there = float(report["output_snr_db"][0])
    if not (math.isclose(here, there, abs_tol=0.01) or here > 110 and there > 110):
        raise Failed(f"output SNR {there:.3f} dB, {here:.3f} dB in Python")
    sites = sum("site" in row and row["site"] is not None for row in report["rows"])
    rows = f"{len(compared)} of {len(report['rows'])} rows, {sites} with a site"
    return f"{rows}, output {there:.2f} dB ({here:.2f} in Python)"


def missing(library: str) -> str:
    """Why a library cannot be imported; empty if it can."""
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            __import__({"coreai_opt": "coreai_opt.quantization"}.get(library, library))
    except Exception as error:
        return f"{library} cannot be imported ({type(error).__name__}: {error})"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"some of: {', '.join(CASES)}")
    parser.add_argument("--dblame", type=Path, help="the program; default: the newest of build/*/dblame")
    parser.add_argument("--keep", type=Path, help="keep the pairs in this folder")
    arguments = parser.parse_args()
    built = sorted((ROOT / "build").glob("*/dblame"), key=lambda path: path.stat().st_mtime)
    dblame = arguments.dblame or (built[-1] if built else None)
    print(f"dblame: {dblame or 'not built: files are checked in Python only'}")

    reasons = {library: missing(library) for library in {library for library, _ in CASES.values()}}
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    with tempfile.TemporaryDirectory() as temporary:
        for name in arguments.cases or CASES:
            library, make = CASES[name]
            if reasons[library]:
                counts["skipped"] += 1
                print(f"SKIPPED {name}: {reasons[library]}")
                continue
            try:
                said = check(make(), (arguments.keep or Path(temporary)) / name, dblame)
                counts["passed"] += 1
                print(f"passed  {name}: {said}")
            except (Failed, companion.ExportError, subprocess.TimeoutExpired) as error:
                counts["failed"] += 1
                print(f"FAILED  {name}: {error}")
    for library in sorted(library for library, reason in reasons.items() if reason):
        print(f"not installed: {library}")
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    if counts["failed"]:
        return 1
    return 0 if counts["passed"] else 77


if __name__ == "__main__":
    sys.exit(main())
