#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Records where coreai-opt 0.4 puts its fake-quantizers: coreai_cases.json, read by placement_coreai_test.

Needs torch 2.13, torchao 0.18 and coreai-opt 0.4: `python make_coreai_cases.py coreai_cases.json`. The rows "skips"
and "conformance" of an existing file are kept; they came with the description of the quantizers.
"""

import copy
import io
import json
import logging
import os
import sys
import warnings

import torch
import torch.nn as nn
import torch.nn.functional as F

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)

from coreai_opt.quantization import Quantizer, QuantizerConfig  # noqa: E402
from coreai_opt.quantization.spec.fake_quantize import FakeQuantizeImplBase  # noqa: E402


# --- graph text (core/graph_text.h) ------------------------------------------------------------------------------


def quote(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def meta(value):
    if not isinstance(value, torch.Tensor):
        return ""
    dims = [str(s) if isinstance(s, int) else f"{s}={s.node.hint}" for s in value.shape]
    return f": {str(value.dtype).replace('torch.', '')}[{', '.join(dims)}]"


def argument(a):
    if isinstance(a, torch.fx.Node):
        return "%" + a.name
    if a is None or isinstance(a, (bool, int)):
        return str(a)
    if isinstance(a, float):
        text = repr(a)
        return text if any(c in text for c in ".en") else text + ".0"
    if isinstance(a, str):
        return quote(a)
    if isinstance(a, (list, tuple)):
        return "[" + ", ".join(argument(x) for x in a) + "]"
    return str(a)


def frames(node):
    text = ""
    for key, (path, kind) in (node.meta.get("nn_module_stack") or {}).items():
        kind = kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}"
        path = path.removeprefix("L['self'].").removeprefix("L['self']")
        text += f" @{quote(path)}:{quote(kind.replace('__main__.', 'models.'))}"
        if "@" in key:
            text += f":{quote('L__self__' + path + '@' + key.split('@')[1])}"
    return text


def graph_text(program):
    from torch.export.graph_signature import InputKind, OutputKind

    kinds = {
        InputKind.USER_INPUT: "user",
        InputKind.PARAMETER: "parameter",
        InputKind.BUFFER: "buffer",
        InputKind.CONSTANT_TENSOR: "tensor_constant",
    }
    nodes = {n.name: n for n in program.graph.nodes}
    lines = ["graph {"]
    for spec in program.graph_signature.input_specs:
        node = nodes[spec.arg.name]
        target = quote(spec.target or node.name)
        lines.append(f"  input {kinds[spec.kind]} %{node.name}{meta(node.meta['val'])} {target}")
    for node in program.graph.nodes:
        if node.op != "call_function" or node.target.__name__ == "getitem":
            continue
        names = [a.name for a in node.target._schema.arguments]
        given = [f"{n}={argument(a)}" for n, a in zip(names, node.args)]
        given += [f"{n}={argument(a)}" for n, a in node.kwargs.items()]
        line = f"  %{node.name}{meta(node.meta['val'])} = {node.target}({', '.join(given)}){frames(node)}"
        if "torch_fn" in node.meta:
            line += f" torch_fn={quote(';'.join(node.meta['torch_fn']))}"
        lines.append(line)
    results = [f"%{s.arg.name}" for s in program.graph_signature.output_specs if s.kind == OutputKind.USER_OUTPUT]
    return "\n".join(lines + ["  return " + ", ".join(results), "}"]) + "\n"


# --- what the peer placed ----------------------------------------------------------------------------------------

CALCULATORS = {
    "StaticQParamsCalculator": "static",
    "MovingAverageQParamsCalculator": "moving_average",
    "GlobalMinMaxQParamsCalculator": "global_minmax",
    "DynamicQParamsCalculator": "dynamic",
}


def granularity(g):
    kind = type(g).__name__
    if kind == "PerTensorGranularity":
        return "tensor"
    if kind == "PerChannelGranularity":
        return f"channel@{g.axis}"
    if isinstance(g.block_size, int):
        return f"block{g.block_size}@{g.axis}"
    return "block" + "x".join("*" if b == -1 else str(b) for b in g.block_size)


def spec_text(fq):
    calculator = fq.qparams_calculator
    low, high = getattr(calculator, "float_range", (None, None))
    bound = lambda v: "-" if v is None else repr(float(v))  # noqa: E731
    scheme = calculator.qscheme if hasattr(calculator, "qscheme") else fq.qscheme
    text = (
        f"{str(fq.dtype).replace('torch.', '')} {scheme} {granularity(fq.granularity)} "
        f"{CALCULATORS[type(calculator).__name__]} {bound(low)}..{bound(high)}"
    )
    if "minval" in str(getattr(fq, "qformulation", "zp")).lower():
        text += " minval"
    if getattr(fq, "scale_dtype", None) is not None or getattr(calculator, "scale_dtype", None) is not None:
        text += " e8m0"
    return text


def scaled_weight(node):
    """The parameter behind W * sf of a convolution that was rewritten with its batch norm."""
    for a in node.all_input_nodes:
        if a.op == "get_attr" and a.target.endswith("weight") and a.meta["val"].dim() > 1:
            return a
    for a in node.all_input_nodes:
        found = scaled_weight(a)
        if found is not None:
            return found
    return None


def graph_sites(prepared, renamed):
    """`renamed`: the peer rewrote operators, so that readers' names say nothing."""
    modules = dict(prepared.named_modules(remove_duplicate=False))
    calls = {
        n
        for n in prepared.graph.nodes
        if n.op == "call_module" and isinstance(modules.get(str(n.target)), FakeQuantizeImplBase)
    }
    norms = {
        n.name: f"batch_norm{'_' + str(i) if i else ''}"
        for i, n in enumerate(
            n for n in prepared.graph.nodes if n.op == "call_function" and "batch_norm" in str(n.target)
        )
    }
    instances, sites = {}, []
    for node in prepared.graph.nodes:
        if node not in calls:
            continue
        fq = modules[str(node.target)]
        tensor, after = node.args[0], 0
        while tensor in calls:
            tensor, after = tensor.args[0], after + 1
        readers = [] if renamed else [u.name for u in node.users if u not in calls]
        name = tensor.target if tensor.op == "get_attr" else norms.get(tensor.name, tensor.name)
        if str(tensor.target) == "aten.mul.Tensor" and "torch_fn" not in tensor.meta:
            name, readers = scaled_weight(tensor).target, []
        if str(tensor.target).startswith("aten.zeros_like"):
            continue  # stands for the bias of a rewritten convolution
        sites.append(
            dict(
                tensor=str(name),
                after=after,
                readers=readers,
                instance=instances.setdefault(id(fq), len(instances)),
                spec=spec_text(fq),
            )
        )
    return sites


def record(model, inputs, text):
    config = QuantizerConfig.from_yaml(io.StringIO(text))
    try:
        prepared = Quantizer(copy.deepcopy(model), config).prepare(inputs)
    except Exception as error:  # noqa: BLE001
        return dict(error=f"{type(error).__name__}: {str(error).splitlines()[0][:160]}")
    if config.execution_mode.value == "eager":
        found = [
            dict(observer=n, spec=spec_text(m))
            for n, m in prepared.named_modules()
            if isinstance(m, FakeQuantizeImplBase)
        ]
        return dict(observers=sorted(found, key=lambda o: o["observer"]))
    renamed = any(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in model.modules())
    return dict(sites=graph_sites(prepared, renamed))


# --- models ------------------------------------------------------------------------------------------------------


class CRL(nn.Module):
    def __init__(s):
        super().__init__()
        s.conv = nn.Conv2d(2, 4, 3, padding=1)
        s.relu = nn.ReLU()
        s.fc = nn.Linear(64, 3)

    def forward(s, x):
        return s.fc(torch.flatten(s.relu(s.conv(x)), 1))


class RES(nn.Module):
    def __init__(s):
        super().__init__()
        s.c1 = nn.Conv2d(2, 2, 3, padding=1)
        s.c2 = nn.Conv2d(2, 2, 3, padding=1)
        s.r1 = nn.ReLU()
        s.r2 = nn.ReLU()

    def forward(s, x):
        return s.r2(s.c2(s.r1(s.c1(x))) + x)


class Blk(nn.Module):
    def __init__(s):
        super().__init__()
        s.c1 = nn.Conv2d(2, 2, 3, padding=1)
        s.act = nn.ReLU()

    def forward(s, x):
        return s.act(s.c1(x))


class NEST(nn.Module):
    def __init__(s):
        super().__init__()
        s.blk = Blk()
        s.tail = nn.Sequential(nn.Conv2d(2, 2, 1), nn.Sigmoid())
        s.fc = nn.Linear(32, 3)

    def forward(s, x):
        return s.fc(s.tail(s.blk(x)).flatten(1))


class OPS(nn.Module):
    """every family: transposed conv, bn, add/mul/sub/matmul, cat, pools, views, activations with bounds"""

    def __init__(s):
        super().__init__()
        s.ct = nn.ConvTranspose2d(2, 4, 2, stride=2)
        s.conv = nn.Conv2d(4, 4, 3, padding="same")
        s.act = nn.Hardtanh(-1.0, 1.0)
        s.mp = nn.MaxPool2d(2)
        s.gap = nn.AdaptiveAvgPool2d(1)
        s.fc = nn.Linear(8, 6)
        s.tanh = nn.Tanh()
        s.sm = nn.Softmax(-1)
        s.silu = nn.SiLU()

    def forward(s, x):
        a = s.act(s.ct(x))
        b = s.silu(s.conv(a))
        c = torch.cat([a, b], 1)
        c = s.mp(c)
        d = s.gap(c).flatten(1)
        e = s.fc(d)
        f = s.tanh(e) * e
        g = (f - e).view(-1, 2, 3).transpose(1, 2)
        h = torch.matmul(g, g.transpose(1, 2))
        return s.sm(h * 0.5) + h.unsqueeze(0).squeeze(0)


class CATRELU(nn.Module):
    def __init__(s):
        super().__init__()
        s.c1 = nn.Conv2d(2, 2, 1)
        s.c2 = nn.Conv2d(4, 2, 1)

    def forward(s, x, y):
        return s.c2(torch.cat([F.relu(s.c1(x)), y], 1))


class TIED(nn.Module):
    def __init__(s):
        super().__init__()
        s.a = nn.Linear(4, 4)
        s.b = nn.Linear(4, 4)
        s.b.weight = s.a.weight
        s.emb = nn.Embedding(5, 4)

    def forward(s, i):
        x = s.emb(i)
        return s.b(F.relu(s.a(x))) + x + x


class BN(nn.Module):
    def __init__(s):
        super().__init__()
        s.c1 = nn.Conv2d(2, 4, 3, bias=False)
        s.bn1 = nn.BatchNorm2d(4, eps=1e-3)
        s.c2 = nn.Conv2d(4, 4, 1)
        s.bn2 = nn.BatchNorm2d(4)
        s.fc = nn.Linear(4, 3)

    def forward(s, x):
        y = F.relu(s.bn1(s.c1(x)))
        y = s.bn2(s.c2(y))
        return s.fc(y.mean([2, 3]))


class BLOCKS(nn.Module):
    def __init__(s):
        super().__init__()
        s.c = nn.Conv2d(4, 8, 3)
        s.g = nn.Conv2d(3, 8, 1)
        s.t = nn.ConvTranspose2d(8, 4, 1)
        s.fc = nn.Linear(64, 3)

    def forward(s, x, y):
        return s.fc(F.relu(s.t(s.c(x) + s.g(y))).flatten(1))


class TWICE(nn.Module):
    def __init__(s):
        super().__init__()
        s.fc1 = nn.Linear(4, 4)
        s.fc2 = nn.Linear(4, 4)
        s.act = nn.ReLU()

    def forward(s, x):
        y = s.act(s.fc1(x))
        y = s.fc1(y)
        return s.fc2(y) * 2.0 + torch.add(y, x)


r = torch.randn
MODELS = {
    "crl": (CRL(), (r(1, 2, 4, 4),)),
    "res": (RES(), (r(1, 2, 4, 4),)),
    "nest": (NEST(), (r(1, 2, 4, 4),)),
    "ops": (OPS(), (r(2, 2, 4, 4),)),
    "catrelu": (CATRELU(), (r(1, 2, 4, 4), r(1, 2, 4, 4))),
    "tied": (TIED(), (torch.tensor([[0, 1, 2]]),)),
    "bn": (BN(), (r(2, 2, 6, 6),)),
    "blocks": (BLOCKS(), (r(1, 4, 6, 6), r(1, 3, 4, 4))),
    "twice": (TWICE(), (r(2, 4),)),
}
for m, _ in MODELS.values():
    m.eval()


# --- configurations ----------------------------------------------------------------------------------------------

D = "quantization_config: {}"


def nm(*pairs):
    return "quantization_config: {module_name_configs: {%s}}" % ", ".join(f'"{k}": {v}' for k, v in pairs)


def ty(*pairs):
    return "quantization_config: {module_type_configs: {%s}}" % ", ".join(f"{k}: {v}" for k, v in pairs)


def ot(*pairs):
    return "quantization_config: {global_config: {op_type_config: {%s}}}" % ", ".join(f"{k}: {v}" for k, v in pairs)


def on(*pairs):
    return "quantization_config: {global_config: {op_name_config: {%s}}}" % ", ".join(f'"{k}": {v}' for k, v in pairs)


def g(s):
    return "quantization_config: {global_config: {%s}}" % s


def eager(s):
    return s.replace("quantization_config: {", "quantization_config: {execution_mode: eager, ").replace(", }", "}")


W4 = "quantization_config: {global_config: {op_input_spec: null, op_output_spec: null, op_state_spec: {weight: {dtype: int4, granularity: {type: per_channel}}}}}"


def WB(b, ax="null"):
    return (
        "quantization_config: {global_config: {op_input_spec: null, op_output_spec: null, op_state_spec: {weight: {dtype: int4, granularity: {type: per_block, axis: %s, block_size: %s}}}}}"
        % (ax, b)
    )


CASES = []


def case(model, name, text):
    CASES.append((model, name, text))


for m in MODELS:
    case(m, "default", D)
    case(m, "w4", W4)
    case(m, "w4 block2", WB(2))
    case(m, "w4 block4", WB(4))
    case(m, "eager", eager(D))
    case(m, "global null", "quantization_config: {global_config: null}")
for k in ("conv", "relu", "fc", "bl", "CONV", ".*", "con.", "conv|fc"):
    case("crl", "name %s=None" % k, nm((k, "null")))
for k in ("c1", "c2", "r1", "r2", "c."):
    case("res", "name %s=None" % k, nm((k, "null")))
case("crl", "type Conv2d=None", ty(("torch.nn.modules.conv.Conv2d", "null")))
case("crl", "type ReLU=None", ty(("torch.nn.modules.activation.ReLU", "null")))
case("crl", "type torch.nn.Linear=None", ty(("torch.nn.Linear", "null")))
case(
    "crl",
    "only Linear",
    "quantization_config: {global_config: null, module_type_configs: {torch.nn.modules.linear.Linear: {}}}",
)
for k in ("conv2d", "relu", "linear", "flatten"):
    case("crl", "op_type %s=None" % k, ot((k, "null")))
for k in ("conv2d", "relu", "linear", "conv.*", "conv"):
    case("crl", "op_name %s=None" % k, on((k, "null")))
case("res", "op_type add=None", ot(("add", "null")))
case("res", "op_type relu=None", ot(("relu", "null")))
case("crl", "out null", g("op_output_spec: null"))
case("crl", "in null", g("op_input_spec: null"))
case("crl", "state null", g("op_state_spec: null"))
case("crl", "fc in null", nm(("fc", "{op_input_spec: null}")))
case("crl", "conv out null", nm(("conv", "{op_output_spec: null}")))
case("crl", "conv module_output null", nm(("conv", '{module_output_spec: {"*": null}}')))
case("crl", "relu module_output null", nm(("relu", '{module_output_spec: {"*": null}}')))
case("crl", "fc module_input int4", nm(("fc", "{module_input_spec: {0: {dtype: int4}}}")))
case("crl", "fc module_state int4", nm(("fc", "{module_state_spec: {weight: {dtype: int4}}}")))
case("crl", "root", nm(("", "null")))
case("nest", "root then blk", nm(("", "null"), ("blk", "{}")))
case("nest", "blk", nm(("blk", "null")))
case("nest", "blk.c1", nm(("blk\\\\.c1", "null")))
case("nest", "wild then one", nm(("blk.*", "null"), ("blk.c1", "{op_state_spec: {weight: {dtype: int4}}}")))
case("nest", "one then wild", nm(("blk.c1", "{op_state_spec: {weight: {dtype: int4}}}"), ("blk.*", "null")))
case("nest", "tail.0", nm(("tail.0", "null")))
case("nest", "type Sequential", ty(("torch.nn.modules.container.Sequential", "null")))
case(
    "nest",
    "name over type",
    'quantization_config: {module_type_configs: {torch.nn.modules.conv.Conv2d: null}, module_name_configs: {"tail": {op_state_spec: {weight: {dtype: int2}}}}}',
)
case("nest", "input 0 int4", g("op_input_spec: {0: {dtype: int4}}"))
case("nest", "bias too", g('op_state_spec: {"*": {dtype: int8, granularity: {type: per_channel, axis: 0}}}'))
case("crl", "input 1 is a parameter", g("op_input_spec: {1: {dtype: int4}}"))
case("crl", "named input", g("op_input_spec: {x: {dtype: int4}}"))
case("crl", "output 1", g("op_output_spec: {1: {dtype: int4}}"))
case(
    "nest",
    "conflict names",
    nm(
        ("blk", '{op_output_spec: {"*": {dtype: int4}}}'),
        ("tail", '{op_input_spec: {"*": {dtype: uint8, qscheme: asymmetric}}}'),
    ),
)
case(
    "nest",
    "conflict names turned",
    nm(
        ("tail", '{op_input_spec: {"*": {dtype: uint8, qscheme: asymmetric}}}'),
        ("blk", '{op_output_spec: {"*": {dtype: int4}}}'),
    ),
)
case(
    "nest",
    "conflict levels",
    'quantization_config: {module_type_configs: {torch.nn.modules.conv.Conv2d: {op_output_spec: {"*": {dtype: int4}}}}, module_name_configs: {"tail": {op_input_spec: {"*": {dtype: uint8}}}}}',
)
case("nest", "in unlike out", g('op_input_spec: {"*": {dtype: int4}}, op_output_spec: {"*": {dtype: uint4}}'))
case(
    "ops",
    "in unlike out",
    g(
        'op_input_spec: {"*": {dtype: int4, qparam_calculator_cls: dynamic}}, op_output_spec: {"*": {dtype: uint4, qscheme: asymmetric, float_range: [-8, 8]}}'
    ),
)
case("ops", "float8", g('op_input_spec: {"*": {dtype: float8_e4m3fn}}, op_output_spec: {"*": {dtype: float8_e4m3fn}}'))
case(
    "ops",
    "e8m0",
    g(
        'op_input_spec: {"*": {dtype: int8, scale_dtype: float8_e8m0fnu}}, op_output_spec: {"*": {dtype: int8, scale_dtype: float8_e8m0fnu}}'
    ),
)
case(
    "ops",
    "channel acts",
    g(
        'op_input_spec: {"*": {granularity: {type: per_channel, axis: 1}}}, op_output_spec: {"*": {granularity: {type: per_channel, axis: 1}}}'
    ),
)
case(
    "ops",
    "channel acts axis -1",
    g(
        'op_input_spec: {"*": {granularity: {type: per_channel, axis: -1}}}, op_output_spec: {"*": {granularity: {type: per_channel, axis: -1}}}'
    ),
)
case(
    "catrelu",
    "channel acts",
    g(
        'op_input_spec: {"*": {granularity: {type: per_channel, axis: 1}}}, op_output_spec: {"*": {granularity: {type: per_channel, axis: 1}}}'
    ),
)
case(
    "catrelu",
    "channel acts 0",
    g(
        'op_input_spec: {"*": {granularity: {type: per_channel, axis: 0}}}, op_output_spec: {"*": {granularity: {type: per_channel, axis: 0}}}'
    ),
)
case("catrelu", "axis missing", g('op_input_spec: {"*": {granularity: {type: per_channel}}}'))
case("catrelu", "c1 null", nm(("c1", "null")))
case("catrelu", "c2 null", nm(("c2", "null")))
case(
    "ops",
    "op names",
    on(("conv.*", "{op_state_spec: null}"), ("cat", "null"), ("mul_1", "{op_output_spec: {0: {dtype: int4}}}")),
)
case(
    "ops",
    "op types",
    ot(
        ("matmul", "null"), ("add", '{op_input_spec: {1: {dtype: int4}, "*": null}}'), ("mul", "{op_output_spec: null}")
    ),
)
case("ops", "fixed range", g("op_output_spec: {0: {dtype: int8, float_range: [-4.0, 4.0]}}"))
case("tied", "a null", nm(("a", "null")))
case("tied", "b null", nm(("b", "null")))
case("tied", "a int4", nm(("a", "{op_state_spec: {weight: {dtype: int4, granularity: {type: per_channel, axis: 0}}}}")))
case("tied", "emb null", nm(("emb", "null")))
case(
    "tied",
    "both",
    nm(
        ("a", "{op_state_spec: {weight: {dtype: int4, granularity: {type: per_channel, axis: 0}}}}"),
        ("b", "{op_state_spec: {weight: {dtype: int2, granularity: {type: per_channel, axis: 0}}}}"),
    ),
)
case("tied", "emb state null", nm(("emb", "{op_state_spec: null}")))
case("bn", "c1 null", nm(("c1", "null")))
case("bn", "bn1 null", nm(("bn1", "null")))
case("bn", "bn type null", ty(("torch.nn.modules.batchnorm.BatchNorm2d", "null")))
case("bn", "all states", g('op_state_spec: {"*": {dtype: int8}}'))
case("blocks", "block tuple", WB("[1, 4, -1, -1]"))
case("blocks", "block axis 0", WB(4, 0))
case("blocks", "block axis 7", WB(4, 7))
case(
    "blocks",
    "act blocks",
    g('op_input_spec: {"*": {granularity: {type: per_block, axis: 1, block_size: 2}}}, op_output_spec: null'),
)
case("twice", "eager fc1 null", eager(nm(("fc1", "null"))))
case("twice", "eager op name", eager(nm(("fc1", '{op_name_config: {"fc1.linear": null}}'))))
case("twice", "eager op type add", eager(ot(("add", "null"))))
case("ops", "eager op types", eager(ot(("matmul", "null"), ("conv2d", "{op_input_spec: null}"))))
case("crl", "eager module in", eager(nm(("fc", "{module_input_spec: {0: {dtype: int4}}}"))))
case("crl", "eager module out", eager(nm(("relu", "{module_output_spec: {0: {dtype: int4}}}"))))
case("crl", "eager module state", eager(nm(("fc", "{module_state_spec: {weight: {dtype: int4}}}"))))
case("crl", "eager input 0", eager(g("op_input_spec: {0: {dtype: int4}}")))
case(
    "tied",
    "eager both",
    eager(
        nm(
            ("a", "{op_state_spec: {weight: {dtype: int4, granularity: {type: per_channel, axis: 0}}}}"),
            ("b", "{op_state_spec: {weight: {dtype: int2, granularity: {type: per_channel, axis: 0}}}}"),
        )
    ),
)
case(
    "crl",
    "qparams variants",
    g(
        'op_input_spec: {"*": {dtype: uint8, qscheme: asymmetric, qformulation: minval, qparam_calculator_cls: global_minmax}}, op_output_spec: {"*": {dtype: int8, qscheme: symmetric_with_clipping, qparam_calculator_cls: static}}'
    ),
)


def main(path):
    kept = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            kept = {k: v for k, v in json.load(file).items() if k in ("skips", "conformance")}
    graphs = {name: graph_text(torch.export.export(m, x, strict=False)) for name, (m, x) in MODELS.items()}
    cases = [dict(graph=m, name=name, config=text, **record(*MODELS[m], text)) for m, name, text in CASES]
    parts = ['"graphs": {\n' + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in graphs.items()) + "\n}"]
    for key, rows in dict(cases=cases, **kept).items():
        parts.append(f"{json.dumps(key)}: [\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]")
    with open(path, "w", encoding="utf-8") as file:
        file.write("{\n" + ",\n".join(parts) + "\n}\n")


if __name__ == "__main__":
    main(sys.argv[1])
