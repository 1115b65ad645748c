#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes peer_sequences.json beside this file: what torchao's HistogramObserver answers on random sequences of batches,
what torchao and coreai-opt make of tensors in half types, and coreai-opt's palettes of random weights. The numbers come from a generator that the C++ tests
repeat exactly (tests/engine/quantizer_support.cpp), so only seeds and hashes are stored. Needs torch, torchao and
coreai-opt; the tests do not.
"""
import json
import os
import warnings

import torch
from coreai_opt.config.spec import CompressionTargetTensor
from coreai_opt.palettization.kmeans.kmeans_fake_palettize import _KMeansFakePalettize
from coreai_opt.palettization.spec import PalettizationSpec
from coreai_opt.quantization.spec import QuantizationComponentFactory, QuantizationSpec
from torchao.quantization.pt2e.observer import HistogramObserver, MinMaxObserver, PerChannelMinMaxObserver

warnings.filterwarnings("ignore")
MASK = (1 << 64) - 1


def numbers(seed, n):
    """n float32 in [-1, 1): the upper 24 bits of splitmix64."""
    out = []
    state = seed
    for _ in range(n):
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        z ^= z >> 31
        out.append((z >> 40) / float(1 << 23) - 1.0)
    return torch.tensor(out, dtype=torch.float32)


def fnv(data):
    """64-bit FNV-1a."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & MASK
    return format(value, "016x")


def hashed(tensor):
    return fnv(tensor.contiguous().view(torch.uint8).numpy().tobytes())


def batch(case, b):
    """Batch b of a sequence: by kind a shape of values, scaled by powers of two and quarters (exact in float32)."""
    x = numbers(case["seed"] * 1000 + b, case["size"])
    kind = case["kind"]
    if kind == "cubes":
        x = x * x * x
    elif kind == "relu":
        x = torch.clamp(x, min=0)
    elif kind == "outliers":
        x = torch.where(x.abs() > 0.999, x * 64, x)
    elif kind == "constant first" and b == 0:
        x = torch.full_like(x, 0.75)
    elif kind == "coarse":
        x = torch.round(x * 8) / 8
    x = x * case["scales"][b] + case["shifts"][b]
    if kind == "infinite":
        x[3] = float("inf")
        x[5] = float("-inf")
    return x.to(getattr(torch, case["dtype"]))


def observe(case):
    qtype, low, high = {"int8": (torch.int8, -128, 127), "uint8": (torch.uint8, 0, 255),
                        "int16": (torch.int16, -32768, 32767)}[case["type"]]
    observer = HistogramObserver(dtype=qtype, quant_min=low, quant_max=high, eps=2.0 ** -12,
                                 qscheme=torch.per_tensor_symmetric if case["symmetric"] else torch.per_tensor_affine)
    for b in range(len(case["scales"])):
        observer(batch(case, b))
    scale, zero = observer.calculate_qparams()
    low, high = observer._non_linear_param_search()
    counts = observer.histogram.numpy().astype("<f4")
    case["min"] = float(observer.min_val)
    case["max"] = float(observer.max_val)
    case["searched_min"] = float(low)
    case["searched_max"] = float(high)
    case["scale"] = float(scale)
    case["zero_point"] = int(zero)
    case["histogram_sum"] = float(counts.astype("f8").sum())
    case["histogram_hash"] = fnv(counts.tobytes())
    return case


def torchao_half(case):
    """Min-max observer, then quantize and dequantize as a converted program does."""
    x = (numbers(case["seed"], 6 * 32) * 3).reshape(6, 32).to(getattr(torch, case["dtype"]))
    decomposed = torch.ops.quantized_decomposed
    if case["granularity"] == "channel":
        observer = PerChannelMinMaxObserver(ch_axis=0, dtype=torch.int8, quant_min=-127, quant_max=127, eps=2.0 ** -12,
                                            qscheme=torch.per_channel_symmetric)
        observer(x)
        scale, zero = observer.calculate_qparams()
        q = decomposed.quantize_per_channel(x, scale, zero, 0, -127, 127, torch.int8)
        y = decomposed.dequantize_per_channel(q, scale, zero, 0, -127, 127, torch.int8, out_dtype=x.dtype)
    elif case["granularity"] == "tensor":
        observer = MinMaxObserver(dtype=torch.int8, quant_min=-128, quant_max=127, eps=2.0 ** -12)
        observer(x)
        scale, zero = observer.calculate_qparams()
        arguments = (float(scale), int(zero), -128, 127, torch.int8)
        q = decomposed.quantize_per_tensor(x, *arguments)
        y = decomposed.dequantize_per_tensor(q, *arguments, out_dtype=x.dtype)
    else:
        scale, zero = decomposed.choose_qparams.tensor(x, -128, 127, 2.0 ** -12, torch.int8)
        q = decomposed.quantize_per_tensor.tensor(x, scale, zero, -128, 127, torch.int8)
        y = decomposed.dequantize_per_tensor.tensor(q, scale, zero, -128, 127, torch.int8, out_dtype=x.dtype)
    case["scale"] = [float(s) for s in scale.flatten()]
    case["zero_point"] = [int(z) for z in zero.flatten()]
    case["integers_hash"] = hashed(q)
    case["values_hash"] = hashed(y)
    return case


def coreai_half(case):
    spec = QuantizationSpec(dtype=getattr(torch, case["type"]), qscheme=case["qscheme"],
                            granularity={"type": "per_channel", "axis": 0} if case["granularity"] == "channel"
                            else {"type": "per_tensor"}, qparam_calculator_cls=case["calculator"])
    target = CompressionTargetTensor.WEIGHT if case["calculator"] == "static" else CompressionTargetTensor.ACTIVATION
    fake = QuantizationComponentFactory.create_fake_quantizer(spec=spec, quantization_target=target)
    for b in range(case["batches"]):
        x = (numbers(case["seed"] + b, 6 * 32) * (3 + b)).reshape(6, 32).to(getattr(torch, case["dtype"]))
        y = fake(x)
    scale, zero, _ = fake.qparams_calculator.get_qparams()
    case["scale"] = [float(s) for s in scale.flatten()]
    case["zero_point"] = [] if zero is None else [int(z) for z in zero.flatten()]
    case["values_hash"] = hashed(y)
    return case


def palette(case):
    values = numbers(case["seed"], int(torch.tensor(case["shape"]).prod()))
    weight = (values * values * values * case["size"]).reshape(case["shape"]).to(getattr(torch, case["dtype"]))
    granularity = {"type": "per_tensor"}
    if case["group"]:
        granularity = {"type": "per_grouped_channel", "axis": case["axis"], "group_size": case["group"]}
    table = None
    if case["table"]:
        table = QuantizationSpec(dtype=getattr(torch, case["table"]), qscheme=case["table_scheme"],
                                 granularity={"type": "per_tensor"})
    spec = PalettizationSpec(n_bits=case["bits"], granularity=granularity, lut_qspec=table,
                             enable_per_channel_scale=case["scaled"])
    convolution = torch.nn.functional.conv2d if len(case["shape"]) == 4 else torch.nn.functional.linear
    fake = _KMeansFakePalettize(**spec.__dict__, enable_fast_kmeans_mode=case["fast"], op_to_optimize=convolution)
    fake._initialize(weight)
    case["lut_shape"] = list(fake.lut.shape)
    case["lut_hash"] = hashed(fake.lut)
    case["indices_hash"] = hashed(fake.indices)
    case["values_hash"] = hashed(fake._palettize(fake.lut, fake.indices, weight))
    return case


def palette_cases():
    cases = []
    shapes = ([32, 48], [16, 8, 3, 3], [24, 64])
    for seed in range(200, 248):
        n = seed - 200
        cases.append(palette({
            "seed": seed, "shape": shapes[n % 3], "bits": (1, 2, 3, 4, 6, 8)[n % 6], "fast": n % 4 != 1,
            "group": (0, 4, 8, 2)[n % 4] if n % 5 else 0, "axis": n // 4 % 2, "scaled": n % 7 == 3,
            "dtype": {4: "float16", 5: "bfloat16"}.get(n % 8, "float32"), "size": (1.0, 0.05, 0.002)[n // 3 % 3],
            "table": {2: "int8", 6: "uint8", 9: "float8_e4m3fn"}.get(n % 11, ""),
            "table_scheme": "asymmetric" if n % 11 == 6 else "symmetric"}))
    return cases


def half_cases():
    cases = []
    for dtype in ("bfloat16", "float16"):
        for seed, granularity in enumerate(("tensor", "channel", "dynamic")):
            cases.append(torchao_half({"peer": "torchao", "seed": 70 + seed, "dtype": dtype, "granularity": granularity}))
    for dtype in ("bfloat16", "float16", "float32"):
        for seed, (qtype, qscheme) in enumerate((("int8", "symmetric"), ("int8", "asymmetric"), ("uint8", "symmetric"),
                                                 ("float8_e4m3fn", "symmetric"))):
            for granularity, calculator, batches in (("tensor", "moving_average", 4), ("tensor", "global_minmax", 3),
                                                     ("channel", "static", 1)):
                cases.append(coreai_half({
                    "peer": "coreai", "seed": 80 + 10 * seed, "dtype": dtype, "type": qtype, "qscheme": qscheme,
                    "granularity": granularity, "calculator": calculator, "batches": batches}))
    return cases


def main():
    cases = []
    kinds = ["flat", "cubes", "relu", "outliers", "constant first", "coarse", "infinite"]
    for seed in range(1, 64):
        kind = kinds[seed % len(kinds)]
        batches = 1 + seed % 5
        scales = [[1.0, 0.5, 2.0, 1.25, 0.75, 4.0, 0.125][(seed + 3 * b) % 7] for b in range(batches)]
        shifts = [[0.0, 0.25, -0.5, 0.0, 1.5][(seed * 2 + b) % 5] if kind != "relu" else 0.0 for b in range(batches)]
        cases.append(observe({
            "seed": seed, "kind": kind, "size": [64, 1000, 4096, 20000][seed % 4], "scales": scales, "shifts": shifts,
            "dtype": {5: "float16", 6: "bfloat16"}.get(seed % 13, "float32"),
            "type": {3: "uint8", 7: "int16"}.get(seed % 11, "int8"), "symmetric": seed % 9 == 4}))
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peer_sequences.json")
    with open(path, "w", encoding="utf-8") as out:
        json.dump({"torch": torch.__version__.split("+")[0], "histograms": cases, "half_types": half_cases(), "palettes": palette_cases()}, out, indent=0)
        out.write("\n")


if __name__ == "__main__":
    main()
