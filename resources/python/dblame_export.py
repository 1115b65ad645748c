# SPDX-License-Identifier: GPL-3.0-or-later
"""Takes a pair of models out of Python into a folder that dBlame opens.

    from dblame_export import save_pair, show
    save_pair(float_model, quantized_model, loader, "pair")   # then: dblame compare pair
    show(float_model, quantized_model, loader)                # the same, and opens the window

One file, to be copied beside your own code; it needs torch (2.6 or newer), and torchao or coreai-opt only where your
model does. The folder holds `reference.pt2`, `candidate.pt2`, `inputs.pt`, `labels.pt` where there are labels, and
`observers.json`: the ranges, scales, zero points and histograms of observers, which do not survive an export, and one
line for everything else that was lost on the way.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import io
import json
import logging
import math
import os
import re
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from collections.abc import Callable

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

__all__ = ["ExportError", "Pair", "save_pair", "show"]

FORMAT_VERSION = 1

_Model = Any  # torch.nn.Module, torch.fx.GraphModule or torch.export.ExportedProgram


class ExportError(RuntimeError):
    """A model or a batch cannot be taken out of Python; the message says why and what to do instead."""


@dataclass
class Pair:
    """What was written, and what was lost on the way (one line each, also in observers.json)."""

    folder: Path
    reference: Path
    candidate: Path
    inputs: Path
    observers: Path
    labels: Path | None = None
    lost: list[str] = field(default_factory=list)


def save_pair(
    reference: _Model,
    candidate: _Model,
    batches: Iterable[Any] | torch.Tensor | Mapping[str, Any],
    folder: str | os.PathLike[str],
    labels: Any = None,
    prepared: torch.nn.Module | None = None,
    *,
    dynamic_shapes: Any = None,
    limit: int | None = None,
) -> Pair:
    """Writes the pair, its inputs and its observers into `folder`, and says what was lost.

    reference, candidate: `nn.Module`, `GraphModule` (prepared, calibrated, converted, QAT) or `ExportedProgram`. They
        are left as they were, and exported in evaluation mode. A candidate that still has observers which cannot be
        exported is converted in a copy.
    batches: a DataLoader, a list or an iterator; each batch is a tensor (the only input), a tuple or list (the inputs
        in order) or a dict (the inputs by name). One tensor or one dict is one batch. Where a batch has one element
        more than the model takes, that element is its labels; names that the model does not take are left out.
    labels: one tensor for all samples, or one per batch; True: the last element of each batch; False: there are none,
        and all elements are inputs; None: those found in the batches, if any. Integers, one per sample, that would go
        to an argument which the model can do without are taken as labels, and a line says so.
    prepared: the calibrated model that `candidate` was converted from: its observers are written.
    dynamic_shapes: as in `torch.export.export`; without it the files take the sizes of the first batch, and dBlame
        splits or joins batches to that size.
    limit: no more batches than this (a DataLoader may be long: all batches are written into one file).
    """
    lost = _Lost()
    out = Path(folder)
    reference, candidate, prepared = _unwrap(reference), _unwrap(candidate), _unwrap(prepared)
    for model in (reference, candidate, prepared):
        _refuse_foreign(model)

    names = _InputNames.of(reference, candidate)
    taken, found_labels = _take_batches(batches, names, limit, labels, lost)
    first = taken[0]

    observed = prepared if prepared is not None else candidate
    observers = _observers(observed, lost) if isinstance(observed, torch.nn.Module) else []

    try:
        programs = {
            "reference": _export(reference, "reference", first, dynamic_shapes, lost),
            "candidate": _export(candidate, "candidate", first, dynamic_shapes, lost),
        }
    except ExportError as error:
        optional = names.optional_for_last(first) if labels is None else None
        if optional is None:
            raise
        raise ExportError(
            f"{error}; the last element of each batch was given as '{optional}': if it is labels, pass labels=True"
        ) from error
    values = [_flat_inputs(programs["reference"], batch) for batch in taken]
    taken_by = [sum(_is_given(program, name) for name in _program_names(program)) for program in programs.values()]
    if taken_by[0] != taken_by[1]:
        raise ExportError(
            f"candidate takes {taken_by[1]} inputs, reference {taken_by[0]}: give two models with the same inputs"
        )

    out.mkdir(parents=True, exist_ok=True)
    pair = Pair(out, out / "reference.pt2", out / "candidate.pt2", out / "inputs.pt", out / "observers.json")
    for side, program in programs.items():
        _save_program(program, getattr(pair, side), side)
    _replace(pair.inputs, lambda path: torch.save(values, path))
    label_list = _label_list(None if isinstance(labels, bool) else labels, found_labels, taken)
    if label_list is None:
        (out / "labels.pt").unlink(missing_ok=True)  # of an earlier pair in the same folder
    else:
        pair.labels = out / "labels.pt"
        _replace(pair.labels, lambda path: torch.save(label_list, path))
    pair.lost = lost.lines
    document = {"version": FORMAT_VERSION, "torch": torch.__version__, "observers": observers, "lost": lost.lines}
    _replace(
        pair.observers,
        lambda path: path.write_text(json.dumps(document, indent=1, allow_nan=False) + "\n", encoding="utf-8"),
    )
    samples = sum(_batch_size(batch) for batch in taken)
    print(f"dblame: {out}: {len(taken)} batches ({samples} samples), {len(observers)} observers")
    return pair


def show(
    reference: _Model,
    candidate: _Model,
    batches: Iterable[Any] | torch.Tensor | Mapping[str, Any],
    folder: str | os.PathLike[str] | None = None,
    labels: Any = None,
    prepared: torch.nn.Module | None = None,
    *,
    dynamic_shapes: Any = None,
    limit: int | None = None,
    wait: bool = False,
) -> Pair:
    """`save_pair`, then opens the pair in dBlame's window, running.

    folder: where to write; None: a new temporary folder. wait: return only when the window was closed.
    The program is looked for in the environment variable DBLAME_GUI, on PATH, and in the build folder beside this file.
    """
    program = _find_gui()
    target = folder if folder is not None else tempfile.mkdtemp(prefix="dblame-")
    pair = save_pair(
        reference, candidate, batches, target, labels, prepared, dynamic_shapes=dynamic_shapes, limit=limit
    )
    process = subprocess.Popen([program, str(pair.folder), "--run"], start_new_session=not wait)
    if wait:
        process.wait()
    return pair


class _Lost:
    """Collects the lines about what was lost; prints each once."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(self, line: str) -> None:
        line = " ".join(line.split())
        if line not in self.lines:
            self.lines.append(line)
            print(f"dblame: {line}")


# ---------------------------------------------------------------------------------------------------------- models


def _unwrap(model: _Model) -> _Model:
    """Takes off torch.compile and data-parallel wrappers, which export does not see through."""
    while isinstance(model, torch.nn.Module):
        if hasattr(model, "_orig_mod"):
            model = model._orig_mod
        elif isinstance(model, (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel)):
            model = model.module
        else:
            break
    return model


def _refuse_foreign(model: _Model) -> None:
    if model is None or isinstance(model, torch.export.ExportedProgram):
        return
    if isinstance(model, torch.jit.ScriptModule):
        raise ExportError("a TorchScript model cannot be exported: give the nn.Module it was scripted or traced from")
    if not isinstance(model, torch.nn.Module):
        raise ExportError(f"{type(model).__name__} is neither an nn.Module nor an ExportedProgram")


def _device_of(model: _Model) -> torch.device:
    tensors = (
        model.state_dict.values()
        if isinstance(model, torch.export.ExportedProgram)
        else (t for group in (model.parameters(), model.buffers()) for t in group)
    )
    for tensor in tensors:
        if isinstance(tensor, torch.Tensor) and tensor.device.type != "meta":
            return tensor.device
    return torch.device("cpu")


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """No warnings and no log: a failed export prints its whole graph, and failing is expected where observers are."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    silence = io.StringIO()
    try:
        with contextlib.redirect_stdout(silence), contextlib.redirect_stderr(silence), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


@contextlib.contextmanager
def _in_eval_mode(model: torch.nn.Module) -> Iterator[None]:
    """Evaluation mode while exporting; each module gets its own mode back. (An exported GraphModule refuses eval(): its
    mode is in its graph, see _evaluated.)"""
    modes = {module: module.training for module in model.modules()}
    try:
        for module in modes:
            module.training = False
        yield
    finally:
        for module, mode in modes.items():
            module.training = mode


def _evaluated(model: torch.nn.Module, side: str, lost: _Lost) -> torch.nn.Module:
    """A GraphModule that was exported in training mode has dropout and batch norm in that mode as arguments of its
    nodes: returns a copy moved to evaluation mode."""
    if not isinstance(model, torch.fx.GraphModule) or not any(_trains(node) for node in model.graph.nodes):
        return model
    move = None
    for name in ("torchao.quantization.pt2e", "torch.ao.quantization"):
        with contextlib.suppress(Exception):
            move = __import__(name, fromlist=["move_exported_model_to_eval"]).move_exported_model_to_eval
            break
    if move is None:
        lost.add(f"{side}: exported in training mode, and no torchao here to move it to evaluation mode: left as it is")
        return model
    moved = copy.deepcopy(model)
    try:
        moved = move(moved) or moved
    except Exception as error:
        lost.add(f"{side}: exported in training mode, not movable to evaluation ({_first_line(error)}): left as it is")
        return model
    if any(_trains(node) for node in moved.graph.nodes):
        lost.add(f"{side}: some nodes stay in training mode: their values depend on the batch")
    return moved


def _trains(node: torch.fx.Node) -> bool:
    """dropout with train=True, batch_norm with training=True"""
    name = str(node.target)
    if node.op != "call_function" or "aten." not in name:
        return False
    if "dropout" in name:
        return len(node.args) > 2 and node.args[2] is True
    return "batch_norm.default" in name and len(node.args) > 5 and node.args[5] is True


def _export(model: _Model, side: str, batch: _Batch, dynamic_shapes: Any, lost: _Lost) -> torch.export.ExportedProgram:
    """An ExportedProgram on the CPU that can be saved, of whatever was given."""
    if isinstance(model, torch.export.ExportedProgram):
        return _on_cpu(model)
    model = _evaluated(model, side, lost)
    observers = [path for path, _ in _observer_modules(model)]
    if observers and side == "reference":
        # A reference is to be float: observers only watch, but fake-quants would make it a second quantized model.
        active = any(_is_fake_quant(module) for _, module in _observer_modules(model))
        model = _without_observers(model)
        if active:
            lost.add(
                f"reference: its {len(observers)} observers and fake-quants were taken out: it is to be the float model"
            )
    if _subclass_parameters(model):
        model = _without_subclasses(model, side, batch, lost)
    if side == "candidate" and any("Placeholder" in type(module).__name__ for _, module in _observer_modules(model)):
        # Such an observer only marks where a dynamic quantizer goes: exported, it leaves nothing behind.
        replaced, how = _converted_pt2e(model)
        if replaced is not None:
            lost.add(f"{side}: prepared for dynamic quantization, which an export drops: {how}")
            model, observers = replaced, []
    program, error = _try_export(model, batch, dynamic_shapes)
    if program is not None:
        return _on_cpu(program)
    if observers and side == "candidate":
        kinds = ", ".join(sorted({type(module).__name__ for _, module in _observer_modules(model)}))
        for attempt in (_converted_pt2e, _converted_fx, _frozen):
            replaced, how = attempt(model)
            if replaced is None:
                continue
            program, _ = _try_export(replaced, batch, dynamic_shapes)
            if program is not None:
                lost.add(f"{side}: a model with {kinds} cannot be exported: {how}")
                return _on_cpu(program)
    raise ExportError(f"{side}: torch.export.export: {_first_line(error)}; {_way_out(model, error)}") from error


def _try_export(
    model: torch.nn.Module, batch: _Batch, dynamic_shapes: Any
) -> tuple[torch.export.ExportedProgram | None, Exception | None]:
    device = _device_of(model)
    args, kwargs = pytree.tree_map(lambda v: v.to(device) if isinstance(v, torch.Tensor) else v, _bound(model, batch))
    try:
        with torch.no_grad(), _in_eval_mode(model), _quiet():
            return torch.export.export(model, args, kwargs or None, dynamic_shapes=dynamic_shapes, strict=False), None
    except Exception as error:  # whatever export raises: the caller tries another form or reports it
        return None, error


def _way_out(model: torch.nn.Module, error: Exception | None) -> str:
    kinds = {type(module).__name__ for module in model.modules()}
    if any("Palettize" in kind for kind in kinds):
        return "finalize the palettized model first: palettizer.finalize(model, backend=ExportBackend.Torch)"
    text = f"{type(error).__name__} {error}"
    if "data-dependent" in text or "DataDependent" in text:
        return "the model branches on its values; export it yourself with torch.cond there, or give the converted model"
    if "is_quantized" in text or "quantized nyi" in text or "PackedParams" in text:
        return "packed quantized modules do not export: give the pt2e-converted model, or the one before convert"
    return "export the model yourself with torch.export.export and give the ExportedProgram"


def _on_cpu(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """dBlame compares on the CPU: its bits are the reference."""
    if _device_of(program).type == "cpu":
        return program
    from torch.export.passes import move_to_device_pass

    return move_to_device_pass(copy.deepcopy(program), "cpu")


def _save_program(program: torch.export.ExportedProgram, path: Path, side: str) -> None:
    try:
        with _quiet():
            _replace(path, lambda partial: torch.export.save(program, partial))
    except Exception as error:
        raise ExportError(
            f"{side}: torch.export.save: {_first_line(error)}; a model with real quantized tensors cannot be saved: "
            "finalize it for the Torch backend, or give the prepared one"
        ) from error


# ------------------------------------------------------------------------------------------------ unexportable forms


def _converted_pt2e(model: torch.nn.Module) -> tuple[torch.nn.Module | None, str]:
    """convert_pt2e of a copy, if the model was prepared by prepare_pt2e and its observers have seen data."""
    if not isinstance(model, torch.fx.GraphModule) or not _calibrated(model) or _calls_layers(model):
        return None, ""
    for name in ("torchao.quantization.pt2e.quantize_pt2e", "torch.ao.quantization.quantize_pt2e"):
        try:
            convert = __import__(name, fromlist=["convert_pt2e"]).convert_pt2e
            with _quiet():
                return convert(_annotated_copy(model)), f"a copy was converted with {name.split('.')[0]}'s convert_pt2e"
        except Exception:
            continue
    return None, ""


def _calls_layers(model: torch.fx.GraphModule) -> bool:
    """Whether the graph calls modules such as Conv2d: prepare_fx leaves them whole, an export has only operators."""
    layers = (torch.nn.modules.conv._ConvNd, torch.nn.Linear, torch.nn.Embedding)
    return any(
        n.op == "call_module" and isinstance(model.get_submodule(str(n.target)), layers) for n in model.graph.nodes
    )


def _annotated_copy(model: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """A deep copy whose annotations name the copy's own nodes: deepcopy leaves those of the original in them, and then
    convert_pt2e finds no partner for a dynamic quantizer."""
    copied = copy.deepcopy(model)
    nodes = {node.name: node for node in copied.graph.nodes}
    for node in nodes.values():
        annotation = copy.copy(node.meta.get("quantization_annotation"))
        if getattr(annotation, "input_qspec_map", None):
            annotation.input_qspec_map = {nodes.get(n.name, n): spec for n, spec in annotation.input_qspec_map.items()}
            node.meta["quantization_annotation"] = annotation
    return copied


def _converted_fx(model: torch.nn.Module) -> tuple[torch.nn.Module | None, str]:
    """The decomposed reference form of a model from torch.ao's prepare_fx: the only one of its forms that exports."""
    if not isinstance(model, torch.fx.GraphModule) or not _calibrated(model):
        return None, ""
    try:
        from torch.ao.quantization.quantize_fx import _convert_to_reference_decomposed_fx

        with _quiet():
            converted = _convert_to_reference_decomposed_fx(copy.deepcopy(model))
        return converted, "a copy was converted with torch.ao's decomposed reference form"
    except Exception:
        return None, ""


def _frozen(model: torch.nn.Module) -> tuple[torch.nn.Module | None, str]:
    """A copy in which fake-quants are plain fake_quantize operators with their present scale, and observers, which only
    watch, are gone."""
    frozen = 0

    def replacement(module: torch.nn.Module) -> torch.nn.Module | None:
        nonlocal frozen
        if not _is_fake_quant(module) or not _flag(getattr(module, "fake_quant_enabled", 1)):
            return None
        scale, zero_point = getattr(module, "scale", None), getattr(module, "zero_point", None)
        if not isinstance(scale, torch.Tensor) or not isinstance(zero_point, torch.Tensor):
            return None
        frozen += 1
        return _FrozenFakeQuantize(
            scale, zero_point, module.quant_min, module.quant_max, getattr(module, "ch_axis", -1)
        )

    copied = _without_observers(model, replacement)
    if frozen:
        return (
            copied,
            f"its {frozen} fake-quants were frozen at their present scales, observers that only watch taken out",
        )
    why = "are not calibrated" if not _calibrated(model) else "cannot be converted here (is torchao installed?)"
    return copied, f"its observers {why} and were taken out: what is compared is not quantized"


class _FrozenFakeQuantize(torch.nn.Module):
    """The fake_quantize operator with fixed scale and zero point: what FakeQuantize computes, without its observer."""

    def __init__(
        self, scale: torch.Tensor, zero_point: torch.Tensor, quant_min: int, quant_max: int, axis: int
    ) -> None:
        super().__init__()
        self.register_buffer("scale", scale.detach().clone().reshape(-1).float())
        self.register_buffer("zero_point", zero_point.detach().clone().reshape(-1).to(torch.int32))
        self.quant_min, self.quant_max, self.axis = int(quant_min), int(quant_max), int(axis)
        self.one = (float(self.scale[0]), int(self.zero_point[0])) if self.scale.numel() == 1 else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.one is not None:
            return torch.fake_quantize_per_tensor_affine(x, *self.one, self.quant_min, self.quant_max)
        return torch.fake_quantize_per_channel_affine(
            x, self.scale, self.zero_point, self.axis, self.quant_min, self.quant_max
        )


def _without_observers(
    model: torch.nn.Module, replacement: Callable[[torch.nn.Module], torch.nn.Module | None] = lambda _: None
) -> torch.nn.Module:
    """A copy with every observer and fake-quant replaced; without a replacement, bypassed."""
    copied = copy.deepcopy(model)
    for path, module in _observer_modules(copied):
        parent = copied.get_submodule(path.rpartition(".")[0])
        new = replacement(module)
        parent._modules[path.rpartition(".")[2]] = new if new is not None else torch.nn.Identity()
    for graph_module in (m for m in copied.modules() if isinstance(m, torch.fx.GraphModule)):
        for node in list(graph_module.graph.nodes):
            watches = node.op == "call_module" and node.args and isinstance(node.args[0], torch.fx.Node)
            if watches and isinstance(graph_module.get_submodule(str(node.target)), torch.nn.Identity):
                node.replace_all_uses_with(node.args[0])
                graph_module.graph.erase_node(node)
        graph_module.recompile()
    return copied


# ------------------------------------------------------------------------------------------------ tensor subclasses


def _subclass_parameters(model: torch.nn.Module) -> list[tuple[str, str]]:
    """(module path, parameter name) of each weight that is a tensor subclass, as torchao's quantize_ makes them"""
    return [
        (path, name)
        for path, module in model.named_modules()
        for name, tensor in (*module._parameters.items(), *module._buffers.items())
        if is_traceable_wrapper_subclass(tensor)
    ]


def _without_subclasses(model: torch.nn.Module, side: str, batch: _Batch, lost: _Lost) -> torch.nn.Module:
    """A copy whose weights are plain tensors: int8 values with dequantize_per_channel where the weight is int8 by rows,
    floats otherwise. Saved as they are, such weights are pickled Python objects, which only Python can open."""
    copied = copy.deepcopy(model)
    as_int8, as_float, dynamic = [], [], []
    for path, name in _subclass_parameters(copied):
        module = copied.get_submodule(path)
        tensor = module._parameters.get(name, module._buffers.get(name))
        title = f"{path}.{name}" if path else name
        activation = _activation_quantizer(tensor)
        inner = getattr(tensor, "original_weight_tensor", tensor)
        dequantize = _Dequantize.of(inner)
        if dequantize is not None:
            as_int8.append(title)
        else:
            as_float.append(title)
            try:
                dense = inner.full_tensor() if hasattr(inner, "full_tensor") else inner.dequantize()
            except Exception as error:
                raise ExportError(
                    f"{side}: {title} is a {type(inner).__name__} that gives no dense tensor ({_first_line(error)}); "
                    "give the pt2e-converted model instead"
                ) from error
            dequantize = _Dense(dense.detach())
        _compute_attribute(module, name, dequantize, activation)
        if activation is not None:
            dynamic.append(path)
        elif _quantizes_activation(tensor):
            lost.add(
                f"{side}: {path}: quantization of its activations ({_activation_name(tensor)}) left out: no plain form"
            )
    if as_float:
        lost.add(f"{side}: {_names(as_float)}: now plain float weights (values kept, scales and blocks lost)")
    if as_int8:
        lost.add(f"{side}: {_names(as_int8)}: tensor subclasses, now int8 weights with dequantize_per_channel")
    if dynamic:
        lost.add(
            f"{side}: {_names(dynamic)}: dynamic quantization of activations, now plain operators (computed, no sites)"
        )
    _say_if_changed(model, copied, side, batch, lost)
    return copied


def _compute_attribute(
    module: torch.nn.Module, name: str, weight: torch.nn.Module, activation: torch.nn.Module | None
) -> None:
    """Makes module.<name> the value of `weight()` and passes the input through `activation`. The class keeps its name,
    so that the exported metadata names it as before."""
    module._parameters.pop(name, None)
    module._buffers.pop(name, None)
    module.add_module(f"{name}_dequantize", weight)
    base = type(module)
    body: dict[str, Any] = {
        "__module__": base.__module__,
        "__qualname__": base.__qualname__,
        name: property(lambda self: getattr(self, f"{name}_dequantize")()),
    }
    if activation is not None:
        module.add_module("input_rounding", activation)
        body["forward"] = lambda self, x, *args, **kwargs: base.forward(
            self, self.input_rounding(x), *args, **kwargs
        )
    module.__class__ = type(base.__name__, (base,), body)


class _Dequantize(torch.nn.Module):
    """int8 values, one scale and zero point per row; the form of torchao's converted models."""

    def __init__(self, values: torch.Tensor, scale: torch.Tensor, zero_point: torch.Tensor, bits: int) -> None:
        super().__init__()
        self.register_buffer("values", values.detach().clone())
        self.register_buffer("scale", scale.detach().clone().reshape(-1))
        self.register_buffer("zero_point", zero_point.detach().clone().reshape(-1).to(torch.int64))
        self.quant_min, self.quant_max = -(1 << (bits - 1)), (1 << (bits - 1)) - 1

    @staticmethod
    def of(tensor: Any) -> _Dequantize | None:
        values, scale, zero_point = (getattr(tensor, name, None) for name in ("qdata", "scale", "zero_point"))
        block = tuple(getattr(tensor, "block_size", ()) or ())
        if (
            not all(isinstance(part, torch.Tensor) for part in (values, scale))
            or values.dtype != torch.int8
            or values.dim() != 2
        ):
            return None
        if (
            block != (1, values.shape[1])
            or scale.numel() != values.shape[0]
            or scale.dtype != torch.float32
            or tensor.dtype != torch.float32
        ):
            return None
        try:
            from torch.ao.quantization.fx import _decomposed  # noqa: F401 - registers quantized_decomposed
        except ImportError:
            return None
        bits = re.fullmatch(r"torch\.int(\d)", str(getattr(tensor, "target_dtype", "")))
        zeros = zero_point if isinstance(zero_point, torch.Tensor) else torch.zeros_like(scale)
        return _Dequantize(values, scale, zeros, int(bits[1]) if bits else 8)

    def forward(self) -> torch.Tensor:
        return torch.ops.quantized_decomposed.dequantize_per_channel(
            self.values, self.scale, self.zero_point, 0, self.quant_min, self.quant_max, torch.int8
        )


class _Dense(torch.nn.Module):
    """A weight that is a plain tensor after all."""

    def __init__(self, values: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("values", values.clone())

    def forward(self) -> torch.Tensor:
        return self.values


class _PerTokenRounding(torch.nn.Module):
    """8 bits per row of the input with ranges taken from the row itself, as torchao's dynamic int8 linears do, in plain
    operators: scale = max|x| / (levels / 2) (symmetric) or (max - min) / levels (affine), at least eps of float32."""

    def __init__(self, symmetric: bool, reduced: bool = False) -> None:
        super().__init__()
        self.symmetric = symmetric
        self.quant_min, self.quant_max = (-64, 63) if reduced else (-128, 127)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        low = x.amin(-1, keepdim=True).clamp(max=0.0)
        high = x.amax(-1, keepdim=True).clamp(min=0.0)
        levels = float(self.quant_max - self.quant_min)
        eps = torch.finfo(torch.float32).eps
        if self.symmetric:
            scale = (torch.maximum(-low, high) / (levels / 2)).clamp(min=eps)
            return torch.clamp(torch.round(x * (1.0 / scale)), self.quant_min, self.quant_max) * scale
        scale = ((high - low) / levels).clamp(min=eps)
        zero_point = torch.clamp(self.quant_min - torch.round(low / scale), self.quant_min, self.quant_max)
        quantized = torch.clamp(torch.round(x * (1.0 / scale)) + zero_point, self.quant_min, self.quant_max)
        return (quantized - zero_point) * scale


def _activation_name(tensor: Any) -> str:
    for name in ("act_quant_kwargs", "activation_quantization", "input_quant_func"):
        value = getattr(tensor, name, None)
        if value is not None:
            return value if isinstance(value, str) else type(value).__name__
    return ""


def _quantizes_activation(tensor: Any) -> bool:
    return bool(_activation_name(tensor))


def _activation_quantizer(tensor: Any) -> torch.nn.Module | None:
    if getattr(tensor, "activation_quantization", None) == "int8_asym_per_token":
        return _PerTokenRounding(symmetric=False)
    kwargs = getattr(tensor, "act_quant_kwargs", None)
    if type(kwargs).__name__ == "QuantizeTensorToInt8Kwargs" and "PerRow" in repr(getattr(kwargs, "granularity", "")):
        symmetric = getattr(getattr(kwargs, "mapping_type", None), "name", "") == "SYMMETRIC"
        return _PerTokenRounding(symmetric, bool(getattr(kwargs, "reduce_range", False)))
    return None


def _say_if_changed(model: torch.nn.Module, copied: torch.nn.Module, side: str, batch: _Batch, lost: _Lost) -> None:
    """One forward of both: the plain form must give what the subclasses gave, to float noise."""
    device = _device_of(copied)
    args, kwargs = pytree.tree_map(lambda v: v.to(device) if isinstance(v, torch.Tensor) else v, _bound(model, batch))
    try:
        with torch.no_grad(), _in_eval_mode(model), _in_eval_mode(copied):
            before, after = pytree.tree_leaves(model(*args, **kwargs)), pytree.tree_leaves(copied(*args, **kwargs))
    except Exception as error:
        lost.add(f"{side}: the plain weights could not be checked by a run ({_first_line(error)})")
        return
    for old, new in zip(before, after, strict=True):
        if not isinstance(old, torch.Tensor) or not old.is_floating_point():
            continue
        noise = float((old.double() - new.double()).square().sum())
        signal = float(old.double().square().sum())
        decibels = 10 * math.log10(signal / noise) if noise > 0 and signal > 0 else math.inf
        if decibels < 60:
            lost.add(f"{side}: after that its output differs from the Python model's: {decibels:.1f} dB")


# --------------------------------------------------------------------------------------------------------- observers


def _is_coreai(module: torch.nn.Module) -> bool:
    return hasattr(module, "qparams_calculator") and hasattr(module, "is_disabled")


def _is_fake_quant(module: torch.nn.Module) -> bool:
    return _is_coreai(module) or (hasattr(module, "fake_quant_enabled") and hasattr(module, "observer_enabled"))


def _is_observer(module: torch.nn.Module) -> bool:
    return _is_fake_quant(module) or (hasattr(module, "calculate_qparams") and hasattr(module, "dtype"))


def _observer_modules(model: torch.nn.Module) -> list[tuple[str, torch.nn.Module]]:
    """Observers and fake-quants by path; what is inside one is its own affair. Known by what they offer, not by class:
    torch.ao, torchao and coreai-opt each have their own."""
    found: list[tuple[str, torch.nn.Module]] = []

    def walk(module: torch.nn.Module, path: str) -> None:
        for name, child in module._modules.items():
            if child is None:
                continue
            child_path = f"{path}.{name}" if path else name
            if _is_observer(child):
                found.append((child_path, child))
            else:
                walk(child, child_path)

    walk(model, "")
    return found


def _inner(module: torch.nn.Module) -> torch.nn.Module:
    """The observer inside a fake-quant"""
    if _is_coreai(module):
        return module.qparams_calculator
    return getattr(module, "activation_post_process", module)


def _tensor(module: torch.nn.Module, *names: str) -> torch.Tensor | None:
    for name in names:
        value = getattr(module, name, None)
        if isinstance(value, torch.Tensor) and value.numel() > 0:
            return value.detach()
    return None


def _range(module: torch.nn.Module) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    inner = _inner(module)
    return _tensor(inner, "min_val", "running_min", "minval"), _tensor(inner, "max_val", "running_max", "maxval")


def _calibrated(model: torch.nn.Module) -> bool:
    """At least one observer of the model has seen a finite range."""
    for _, module in _observer_modules(model):
        low, high = _range(module)
        if (
            low is not None
            and high is not None
            and bool(torch.isfinite(low).all())
            and bool(torch.isfinite(high).all())
        ):
            return True
    return False


def _flag(value: Any) -> bool:
    return bool(value.reshape(-1)[0]) if isinstance(value, torch.Tensor) else bool(value)


def _qparams(module: torch.nn.Module) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    """scale and zero point: those in force for a fake-quant, those that the range gives for an observer"""
    inner = _inner(module)
    if _is_fake_quant(module):
        holder = inner if _is_coreai(module) else module
        scale, zero_point = _tensor(holder, "scale"), _tensor(holder, "zero_point")
        if scale is not None:
            return scale, zero_point
    try:
        with _quiet():
            result = inner.calculate_qparams()
        return result[0].detach(), result[1].detach()
    except Exception:  # a PlaceholderObserver has none: its quantizer is dynamic
        return None, None


def _numbers(tensor: torch.Tensor | None) -> list[float | int | str]:
    """JSON has no infinities: dBlame spells them as words."""
    if tensor is None:
        return []
    out: list[float | int | str] = []
    for value in tensor.reshape(-1).tolist():
        if isinstance(value, float) and not math.isfinite(value):
            out.append("nan" if math.isnan(value) else "inf" if value > 0 else "-inf")
        else:
            out.append(value)
    return out


def _describe(module: torch.nn.Module) -> dict[str, Any]:
    inner = _inner(module)
    low, high = _range(module)
    seen = low is not None and high is not None and bool(torch.isfinite(low).all()) and bool(torch.isfinite(high).all())
    scale, zero_point = _qparams(module) if seen or _is_fake_quant(module) else (None, None)
    histogram = _tensor(inner, "histogram") if seen else None
    dtype = getattr(module, "target_dtype", None) or getattr(module, "dtype", None) or getattr(inner, "dtype", None)
    axis = getattr(module, "ch_axis", getattr(getattr(module, "granularity", None), "axis", None))
    return {
        "kind": type(module).__name__,
        "min": _numbers(low) if seen else [],
        "max": _numbers(high) if seen else [],
        "scale": _numbers(scale),
        "zero_point": [int(v) for v in zero_point.reshape(-1).tolist()] if zero_point is not None else [],
        "histogram": _numbers(histogram) if histogram is not None else None,
        "histogram_range": [float(low.min()), float(high.max())]
        if histogram is not None and low is not None and high is not None
        else None,
        "dtype": str(dtype).removeprefix("torch.") if dtype is not None else None,
        "quant_min": getattr(module, "quant_min", getattr(inner, "quant_min", None)),
        "quant_max": getattr(module, "quant_max", getattr(inner, "quant_max", None)),
        "axis": int(axis) if isinstance(axis, int) and scale is not None and scale.numel() > 1 else None,
        "fake_quant": _is_fake_quant(module),
    }


def _observers(model: torch.nn.Module, lost: _Lost) -> list[dict[str, Any]]:
    """One record for each place that an observer watches: the module it belongs to, its role there, and what it saw.
    One instance that serves several places is repeated under the same name."""
    modules = _observer_modules(model)
    records: list[dict[str, Any]] = []
    placed: set[str] = set()
    if isinstance(model, torch.fx.GraphModule):
        by_path = dict(modules)
        for node in model.graph.nodes:
            if (
                node.op == "call_module"
                and str(node.target) in by_path
                and node.args
                and isinstance(node.args[0], torch.fx.Node)
            ):
                placed.add(str(node.target))
                description = _describe(by_path[str(node.target)])
                for path, role in _places(node):
                    records.append(
                        {
                            "module": path,
                            "role": role,
                            "name": str(node.target),
                            "node": node.args[0].name,
                            **description,
                        }
                    )
    for path, module in modules:
        if path not in placed:
            owner, role = _place_by_name(path)
            records.append({"module": owner, "role": role, "name": path, "node": None, **_describe(module)})
    silent = {record["name"] for record in records if not record["min"] and not record["scale"]}
    if silent:
        lost.add(f"{len(silent)} of {len({r['name'] for r in records})} observers saw no data or are dynamic: no range")
    return records


def _places(node: torch.fx.Node) -> list[tuple[str, str]]:
    """Module path and role of what an observer node watches: a weight belongs to the operator that reads it, a model
    input to its readers, everything else is the output of the module that made it."""
    source = node.args[0]
    while source.op == "call_module" and "activation_post_process" in str(source.target) and source.args:
        source = source.args[0]
    readers = [user for user in node.users if user.op in ("call_function", "call_module")]
    weight_readers = [user for user in readers if _reads_as_weight(user, node)]
    if weight_readers:
        return _unique((_module_path(user), "weight") for user in weight_readers)
    if source.op == "get_attr":
        return [(str(source.target).rpartition(".")[0], "weight")]
    if source.op == "placeholder":
        return _unique((_module_path(user), "input") for user in readers) or [("", "input")]
    return [(_module_path(source), "output")]


def _unique(places: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return list(dict.fromkeys(places))


def _reads_as_weight(user: torch.fx.Node, node: torch.fx.Node) -> bool:
    return (
        re.search(r"conv|linear|addmm|embedding", str(user.target)) is not None
        and len(user.args) > 1
        and (user.args[0] is node if "embedding" in str(user.target) else user.args[1] is node)
    )


def _module_path(node: torch.fx.Node) -> str:
    """Path of the module whose code made the node, as the user wrote it ('stem.conv'); '' is the top module."""
    if node.op == "call_module":
        return str(node.target)
    stack = node.meta.get("nn_module_stack") or {}
    if not stack:
        return ""
    last = list(stack.values())[-1]
    path = str(last[0] if isinstance(last, (tuple, list)) else last)
    path = re.sub(r"^(L\['self'\]|L__self__)\.?", "", path)
    path = re.sub(r"\._modules\['([^']*)'\]", r".\1", path)
    return re.sub(r"\[['\"]?([^'\"\]]*)['\"]?\]", r".\1", path).strip(".")


def _place_by_name(path: str) -> tuple[str, str]:
    """Eager models have no graph to ask: the name of the submodule says where it sits."""
    parent, _, name = path.rpartition(".")
    match = re.match(r"(.*?)\.?parametrizations\.(\w+)(\.|$)", path)
    if match:
        return match.group(1), "weight"
    if "weight" in name:
        return parent, "weight"
    if re.search(r"(^|_)input(_|$)|quant_in", name):
        return parent, "input"
    return parent, "output"


# ------------------------------------------------------------------------------------------------------------ inputs


@dataclass
class _Batch:
    """One call of the model: inputs in order, inputs by name."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@dataclass
class _InputNames:
    """What a model's forward takes. count: inputs in order at most, None if any number; names: None if any name;
    optional: names of the inputs in order, None in place of those that must be given."""

    count: int | None
    names: tuple[str, ...] | None
    optional: tuple[str | None, ...] = ()

    @staticmethod
    def of(*models: _Model) -> _InputNames:
        for model in models:
            if isinstance(model, torch.export.ExportedProgram):
                names = _program_names(model)
                return _InputNames(len(names), names)
            parameters = list(inspect.signature(model.forward).parameters.values())
            if any(p.kind is p.VAR_POSITIONAL for p in parameters):
                continue
            names = tuple(p.name for p in parameters if p.kind is not p.VAR_KEYWORD)
            ordered = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
            return _InputNames(
                len(ordered),
                None if any(p.kind is p.VAR_KEYWORD for p in parameters) else names,
                tuple(None if p.default is p.empty else p.name for p in ordered),
            )
        return _InputNames(None, None)

    def optional_for_last(self, batch: _Batch) -> str | None:
        """The argument that the last of several elements goes to, where the model can do without it."""
        last = len(batch.args) - 1
        return self.optional[last] if 1 <= last < len(self.optional) and not batch.kwargs else None


def _take_batches(
    batches: Any, names: _InputNames, limit: int | None, given_labels: Any, lost: _Lost
) -> tuple[list[_Batch], list[Any]]:
    """All batches on the CPU, and the labels found in them (none, or one for each)."""
    if isinstance(batches, (torch.Tensor, Mapping)):
        batches = [batches]
    if isinstance(batches, tuple) and any(isinstance(item, torch.Tensor) for item in batches):
        raise ExportError("batches: a tuple of tensors is one batch or several; write [batch], or a list of batches")
    taken: list[_Batch] = []
    labels: list[Any] = []
    for number, item in enumerate(batches):
        if limit is not None and number >= limit:
            lost.add(f"inputs: only the first {limit} batches were taken, as asked")
            break
        batch, label = _split_labels(_as_batch(item, number), names, number, given_labels, lost)
        copied = pytree.tree_map(lambda v: _plain(v) if isinstance(v, torch.Tensor) else v, (batch.args, batch.kwargs))
        taken.append(_Batch(*copied))
        if label is not None:
            labels.append(_plain(torch.as_tensor(label)))
    if not taken:
        raise ExportError("batches: none; an iterator that was used before is empty")
    return taken, labels if len(labels) == len(taken) else []


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    """On the CPU, owning exactly its storage: a view would be saved with all that it is a view of."""
    return tensor.detach().to("cpu").clone(memory_format=torch.contiguous_format)


def _as_batch(item: Any, number: int) -> _Batch:
    if isinstance(item, torch.Tensor):
        return _Batch((item,), {})
    if isinstance(item, Mapping):
        return _Batch((), {str(name): _tensor_like(value) for name, value in item.items()})
    if isinstance(item, Sequence) and not isinstance(item, (str, bytes)):
        return _Batch(tuple(_tensor_like(value) for value in item), {})
    if hasattr(item, "__array__"):
        return _Batch((torch.as_tensor(item),), {})
    raise ExportError(
        f"batches[{number}] is a {type(item).__name__}; give a tensor, a tuple of inputs or a dict of inputs by name"
    )


def _tensor_like(value: Any) -> Any:
    return torch.as_tensor(value) if not isinstance(value, torch.Tensor) and hasattr(value, "__array__") else value


def _are_class_labels(value: Any, batch: _Batch) -> bool:
    """Integers, one per sample."""
    return (
        isinstance(value, torch.Tensor)
        and value.dtype in (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
        and value.dim() == 1
        and value.shape[0] == _batch_size(batch)
    )


def _split_labels(
    batch: _Batch, names: _InputNames, number: int, given_labels: Any, lost: _Lost
) -> tuple[_Batch, Any]:
    """Takes off what the model does not take: labels, mostly."""
    label: Any = None
    kwargs = dict(batch.kwargs)
    for name in [n for n in kwargs if names.names is not None and n not in names.names]:
        value = kwargs.pop(name)
        if name in ("label", "labels", "target", "targets", "y"):
            label = value
        else:
            lost.add(f"inputs: '{name}' is no input of the model and was left out")
    if not kwargs and batch.kwargs:
        raise ExportError(
            f"batches[{number}]: none of {sorted(batch.kwargs)} is an input ({', '.join(names.names or ())})"
        )
    args = batch.args
    optional = names.optional_for_last(batch)
    if given_labels is True and not batch.kwargs:
        if len(args) < 2:
            raise ExportError(f"batches[{number}] has no element after its inputs: leave labels=True out")
        args, label = args[:-1], args[-1]
    elif given_labels is None and optional is not None and _are_class_labels(args[-1], batch):
        lost.add(
            f"inputs: the last element of each batch ({args[-1].dtype}, one per sample) was taken as labels and not "
            f"given as '{optional}'; pass labels=False to give it to the model"
        )
        args, label = args[:-1], args[-1]
    elif names.count is not None and len(args) > names.count:
        if len(args) > names.count + 1:
            raise ExportError(f"batches[{number}] has {len(args)} elements, the model takes {names.count}")
        args, label = args[:-1], args[-1]
    return _Batch(args, kwargs), label


def _batch_size(batch: _Batch) -> int:
    for leaf in pytree.tree_leaves((batch.args, batch.kwargs)):
        if isinstance(leaf, torch.Tensor) and leaf.dim() > 0:
            return int(leaf.shape[0])
    return 1


def _bound(model: torch.nn.Module, batch: _Batch) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The call with as many inputs in order as the names allow, so that both models get one order."""
    if not batch.kwargs:
        return batch.args, {}
    try:
        bound = inspect.signature(model.forward).bind(*batch.args, **batch.kwargs)
    except TypeError as error:
        raise ExportError(f"the batch does not fit the model: {error}") from error
    return bound.args, dict(bound.kwargs)


def _is_given(program: torch.export.ExportedProgram, name: str) -> bool:
    """Whether an input is given at run time; values baked into the graph are not."""
    return any(
        spec.arg.name == name and type(spec.arg).__name__ != "ConstantArgument"
        for spec in program.graph_signature.input_specs
    )


def _program_names(program: torch.export.ExportedProgram) -> tuple[str, ...]:
    """Names of a program's user inputs in signature order, baked ones too"""
    return tuple(str(spec.arg.name) for spec in program.graph_signature.input_specs if spec.kind.name == "USER_INPUT")


def _flat_inputs(program: torch.export.ExportedProgram, batch: _Batch) -> list[torch.Tensor]:
    """The values of one batch in the program's signature order, as tensors."""
    names = _program_names(program)
    args_spec, kwargs_spec = _children(program.call_spec.in_spec)
    keywords = list(kwargs_spec.context or [])
    args, kwargs = batch.args, dict(batch.kwargs)
    missing = len(_children(args_spec)) - len(args)
    if missing > 0:  # named by the user, in order in the program
        order = [name for name in (*_argument_names(program), *names) if name in kwargs]
        args = (*args, *(kwargs.pop(name) for name in dict.fromkeys(order[:missing])))
    if any(name not in kwargs for name in keywords) and len(args) > len(_children(args_spec)):
        extra = args[len(_children(args_spec)) :]
        args = args[: len(_children(args_spec))]
        kwargs.update(zip([name for name in keywords if name not in kwargs], extra, strict=False))
    absent = [name for name in keywords if name not in kwargs]
    if absent:
        raise ExportError(f"the batch lacks the input {absent[0]!r} of the reference")
    leaves = pytree.tree_leaves((args, {name: kwargs[name] for name in keywords}))
    if len(leaves) != len(names):
        raise ExportError(f"a batch has {len(leaves)} values, the reference takes {len(names)} ({', '.join(names)})")
    return [
        leaf if isinstance(leaf, torch.Tensor) else torch.tensor(leaf)
        for leaf, name in zip(leaves, names, strict=True)
        if _is_given(program, name)
    ]


def _argument_names(program: torch.export.ExportedProgram) -> list[str]:
    """Names of forward's arguments, where an argument is a container and so has no placeholder of its own name"""
    signature = program.module_call_graph[0].signature if program.module_call_graph else None
    return [str(name) for name in getattr(signature, "forward_arg_names", None) or []]


def _children(spec: Any) -> list[Any]:
    """Children of a TreeSpec: a method in new versions of torch, a list in old ones"""
    return list(spec.children()) if hasattr(spec, "children") else list(spec.children_specs)


def _label_list(labels: Any, found: list[Any], batches: list[_Batch]) -> list[torch.Tensor] | None:
    """One tensor of labels for each batch"""
    if labels is None:
        return found or None
    sizes = [_batch_size(batch) for batch in batches]
    if isinstance(labels, torch.Tensor) or hasattr(labels, "__array__"):
        tensor = _plain(torch.as_tensor(labels))
        if tensor.shape[0] != sum(sizes):
            raise ExportError(f"labels: {tensor.shape[0]} for {sum(sizes)} samples")
        return [_plain(part) for part in tensor.split(sizes)]
    listed = [_plain(torch.as_tensor(item)) for item in labels]
    if len(listed) == sum(sizes) and all(item.dim() == 0 for item in listed):
        return [_plain(part) for part in torch.stack(listed).split(sizes)]
    if [item.shape[0] if item.dim() else 1 for item in listed] != sizes:
        raise ExportError(
            f"labels: give one tensor for all {sum(sizes)} samples, or one for each of the {len(sizes)} batches"
        )
    return listed


# ------------------------------------------------------------------------------------------------------------- files


def _replace(path: Path, write: Callable[[Path], Any]) -> None:
    """Writes beside the file and renames: an interrupted run leaves the old one whole."""
    partial = path.with_name(f".partial-{os.getpid()}-{path.name}")
    try:
        write(partial)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def _find_gui() -> str:
    name = "dblame-gui"
    here = Path(__file__).resolve().parent
    candidates = [os.environ.get("DBLAME_GUI"), shutil.which(name)]
    candidates += (
        [str(here.parents[1] / "build" / preset / name) for preset in ("release", "dev")]
        if len(here.parents) > 1
        else []
    )
    for candidate in candidates:
        if candidate and os.access(candidate, os.X_OK):
            return candidate
    raise ExportError(
        f"{name} not found: build dBlame (packaging/demo.sh) and put it on PATH, or name it in DBLAME_GUI"
    )


def _first_line(error: BaseException | None) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}".strip()


def _names(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
