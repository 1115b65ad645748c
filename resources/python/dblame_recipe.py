# SPDX-License-Identifier: GPL-3.0-or-later
"""A recipe of dBlame for a PT2E quantizer of torchao.

    from torchao.quantization.pt2e.quantize_pt2e import prepare_pt2e, convert_pt2e
    from dblame_recipe import RecipeQuantizer, inner_quantizer

    quantizer = RecipeQuantizer(inner_quantizer("recipe.json"), "recipe.json")
    prepared = prepare_pt2e(exported.module(), quantizer)

`dblame recipe export --format torchao` writes recipe.json. RecipeQuantizer lets any inner quantizer annotate, then takes
away or replaces specs by module path, operator, ordinal and role. Layers that the recipe leaves out "as the quantizer
would" are hidden from the inner quantizer, so that patterns that contain them are not found. An entry that matches
nothing raises RecipeError; everything that was changed is printed. Needs torch and torchao.
"""
import json
import re
import sys

from torchao.quantization.pt2e import (
    FixedQParamsObserver,
    FusedMovingAvgObsFakeQuantize,
    HistogramObserver,
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    PerChannelMinMaxObserver,
    PlaceholderObserver,
)
from torchao.quantization.pt2e.quantizer import (
    QuantizationAnnotation,
    QuantizationSpec,
    Quantizer,
    SharedQuantizationSpec,
)

import torch

_KEY = "quantization_annotation"
_OBSERVERS = {
    c.__name__: c
    for c in (
        FixedQParamsObserver,
        HistogramObserver,
        MinMaxObserver,
        MovingAverageMinMaxObserver,
        MovingAveragePerChannelMinMaxObserver,
        PerChannelMinMaxObserver,
        PlaceholderObserver,
    )
}


class RecipeError(ValueError):
    """An entry of the recipe that matches nothing, or that this quantizer cannot carry out."""


def _load(recipe):
    if isinstance(recipe, dict):
        return recipe
    with open(recipe, encoding="utf-8") as file:
        data = json.load(file)
    if data.get("dblame_recipe") != 1:
        raise RecipeError(f"{recipe}: not a recipe of this version; write it with dblame recipe export --format torchao")
    return data


def inner_quantizer(recipe):
    """The quantizer that the recipe names, with its switches."""
    data = _load(recipe)
    name, options = data["quantizer"], data.get("options", {})
    if name == "XNNPACKQuantizer":
        from torchao.testing.pt2e._xnnpack_quantizer import XNNPACKQuantizer, get_symmetric_quantization_config

        return XNNPACKQuantizer().set_global(get_symmetric_quantization_config(**options))
    if name == "X86InductorQuantizer":
        from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86

        switches = {k: v for k, v in options.items() if k in ("is_qat", "is_dynamic", "reduce_range")}
        return x86.X86InductorQuantizer().set_global(x86.get_default_x86_inductor_quantization_config(**switches))
    raise RecipeError(f"no quantizer {name}; give RecipeQuantizer an inner quantizer of your own")


def _module(node):
    """Innermost module path of a node, '' at the top."""
    stack = node.meta.get("nn_module_stack") or {}
    path = list(stack.values())[-1][0] if stack else ""
    path = re.sub(r"^L\['self'\]\.?", "", path)
    return path.split("@")[0]


def _types(node):
    kinds = []
    for _, kind in (node.meta.get("nn_module_stack") or {}).values():
        kinds.append(kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}")
    return kinds


def _op(node):
    return str(node.target)


def _calls(graph):
    return [n for n in graph.nodes if n.op == "call_function"]


def _covers(pattern, path):
    """A pattern matches a module in full and covers what is inside it."""
    parts = path.split(".") if path else []
    return any(re.fullmatch(pattern, ".".join(parts[:i])) for i in range(len(parts) + 1))


def _by_match(nodes, match):
    found = nodes
    if "module" in match:
        found = [n for n in found if _covers(match["module"], _module(n))]
    if "type" in match:
        found = [n for n in found if any(t == match["type"] or t.split(".")[-1] == match["type"] for t in _types(n))]
    if "node" in match:
        found = [n for n in found if re.fullmatch(match["node"], n.name)]
    if "op_type" in match:
        found = [n for n in found if _op(n).rsplit(".", 1)[0] == match["op_type"] or _op(n) == match["op_type"]]
    return found


def _by_operator(nodes, wanted):
    """By module path, operator and ordinal; the node's name decides only where it agrees with the first two."""
    same = [n for n in nodes if _op(n) == wanted["op"] and _module(n) == wanted["module"].split("@")[0]]
    named = [n for n in same if n.name == wanted.get("node")]
    if named:
        return named[:1]
    return same[wanted["ordinal"] : wanted["ordinal"] + 1]


def _spec(entry):
    wanted = entry["spec"]
    arguments = {"eps": wanted["eps"]} if wanted.get("eps") is not None else {}
    name = wanted["observer"]
    dtype = getattr(torch, wanted["dtype"].split(".")[-1])
    qscheme = getattr(torch, wanted["qscheme"].split(".")[-1])
    low_high = wanted.get("range")
    if name == "FixedQParamsObserver":
        if low_high is None:
            raise RecipeError(f"{entry['select']}: a fixed range without numbers")
        low, high = min(low_high[0], 0.0), max(low_high[1], 0.0)
        lo, hi = wanted["quant_min"], wanted["quant_max"]
        if "symmetric" in wanted["qscheme"]:
            scale, zero = max(-low, high) / ((hi - lo) / 2), 0
        else:
            scale = (high - low) / (hi - lo)
            zero = min(max(lo - round(low / scale), lo), hi)
        arguments = {"scale": scale, "zero_point": zero}
    if name not in _OBSERVERS:
        raise RecipeError(f"{entry['select']}: torchao has no observer {name}")
    observer = _OBSERVERS[name]
    if wanted.get("fake_quantize"):
        constructor = FusedMovingAvgObsFakeQuantize.with_args(observer=observer, **arguments)
    else:
        constructor = observer.with_args(**arguments)
    return QuantizationSpec(
        dtype=dtype,
        observer_or_fake_quant_ctr=constructor,
        quant_min=wanted["quant_min"],
        quant_max=wanted["quant_max"],
        qscheme=qscheme,
        ch_axis=wanted["ch_axis"],
        is_dynamic=wanted["is_dynamic"],
    )


def _is_parameter(node):
    return isinstance(node, torch.fx.Node) and node.op == "get_attr"


class RecipeQuantizer(Quantizer):
    """`inner` annotates; the recipe has the last word. `changes` lists what was done, one line each."""

    def __init__(self, inner, recipe, quiet=False):
        super().__init__()
        self.inner = inner
        self.recipe = _load(recipe)
        self.quiet = quiet
        self.changes = []

    def transform_for_annotation(self, model):
        return self.inner.transform_for_annotation(model)

    def validate(self, model):
        self.inner.validate(model)

    def annotate(self, model):
        self.changes = []
        nodes = _calls(model.graph)
        found = [(entry, self._nodes(entry, nodes)) for entry in self.recipe["entries"]]
        hidden = []
        for entry, matched in found:
            if entry["spec"] is None and entry["meaning"] == "as_quantizer" and entry["role"] == "all":
                hidden += [n for n in matched if _KEY not in n.meta]
        # The inner quantizers pass over patterns with a node that is annotated already.
        for node in hidden:
            node.meta[_KEY] = QuantizationAnnotation(_annotated=True)
        self.inner.annotate(model)
        for node in hidden:
            node.meta.pop(_KEY, None)
        # What only passes values on (relu, pooling, view) still takes its producer's spec, as it does in a quantizer that
        # was told to leave the layer out.
        propagate = getattr(sys.modules[type(self.inner).__module__], "propagate_annotation", None)
        if hidden and propagate is not None:
            propagate(model)
        for node in hidden:
            self._say(f"{node.name} ({_module(node)}): left out")
        for entry, matched in found:
            if not (entry["spec"] is None and entry["meaning"] == "as_quantizer" and entry["role"] == "all"):
                self._apply(entry, matched, model)
        if not self.quiet:
            for line in self.changes:
                print("recipe: " + line)
        return model

    def _say(self, text):
        self.changes.append(text)

    def _nodes(self, entry, nodes):
        if entry.get("operators"):
            matched = []
            for wanted in entry["operators"]:
                one = _by_operator(nodes, wanted)
                if not one:
                    raise RecipeError(
                        f"{entry['select']}: no {wanted['op']} number {wanted['ordinal']} in module "
                        f"'{wanted['module']}' of this graph; export the recipe again with this model"
                    )
                matched += one
            return matched
        matched = _by_match(nodes, entry["match"])
        if not matched:
            paths = sorted({_module(n) for n in nodes if _module(n)})
            raise RecipeError(f"{entry['select']}: matches nothing; the modules are {', '.join(paths[:12])}")
        return matched

    def _apply(self, entry, matched, model):
        role = entry["role"]
        spec = _spec(entry) if entry["spec"] is not None else None
        changed = 0
        for node in matched:
            annotation = node.meta.get(_KEY)
            if annotation is None:
                annotation = node.meta[_KEY] = QuantizationAnnotation()
            tensors = list(dict.fromkeys(a for a in node.all_input_nodes))
            for at, tensor in enumerate(tensors):
                weight = _is_parameter(tensor)
                if role == "weight" and not (weight and at == 1):
                    continue
                if role.startswith("in") or role == "act":
                    if weight or (role.startswith("in[") and int(role[3:-1]) != at):
                        continue
                if role == "out" or (role == "all" and weight and at != 1):
                    continue
                changed += self._edge(annotation, tensor, node, spec)
            if role in ("all", "out", "act"):
                changed += self._output(annotation, node, spec, model)
                if spec is None and entry["meaning"] == "float_here":
                    changed += self._readers(node)
            if annotation.input_qspec_map or annotation.output_qspec is not None:
                annotation._annotated = True
        if changed == 0:
            raise RecipeError(
                f"{entry['select']} ({role}): the quantizer asks for nothing there, so there is nothing to change"
            )

    def _edge(self, annotation, tensor, node, spec):
        before = annotation.input_qspec_map.get(tensor)
        if before is None and spec is None:
            return 0
        annotation.input_qspec_map[tensor] = spec
        self._say(f"{node.name} ({_module(node)}), input {tensor.name}: " + ("float" if spec is None else "changed"))
        return 1

    def _readers(self, node):
        """A result that is to stay float is not quantized for those who read it either."""
        changed = 0
        for reader in node.users:
            annotation = reader.meta.get(_KEY)
            if annotation is not None and annotation.input_qspec_map.get(node) is not None:
                changed += self._edge(annotation, node, reader, None)
        return changed

    def _output(self, annotation, node, spec, model):
        before = annotation.output_qspec
        if before is None and spec is None:
            return 0
        annotation.output_qspec = spec
        self._say(f"{node.name} ({_module(node)}), output: " + ("float" if spec is None else "changed"))
        if spec is None and before is not None:
            self._settle(node, before, model)
        return 1

    def _settle(self, node, before, model):
        """Others that shared the spec of an output that is gone: what only passed it on (relu, pooling, view) goes with
        it, the rest get the spec itself, the first of them as its owner."""
        owner = None
        for other in _calls(model.graph):
            annotation = other.meta.get(_KEY)
            if annotation is None:
                continue
            shared = [t for t, spec in annotation.input_qspec_map.items() if _shares(spec, node)]
            if shared and _shares(annotation.output_qspec, node):
                other.meta.pop(_KEY)
                self._say(f"{other.name} ({_module(other)}): float, as the value it passes on")
                self._settle(other, before, model)
                continue
            for tensor in shared:
                annotation.input_qspec_map[tensor] = owner or before
                owner = owner or SharedQuantizationSpec((tensor, other))
            if _shares(annotation.output_qspec, node):
                annotation.output_qspec = owner or before
                owner = owner or SharedQuantizationSpec(other)


def _shares(spec, node):
    return isinstance(spec, SharedQuantizationSpec) and spec.edge_or_node is node
