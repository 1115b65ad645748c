# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes coreai.json: what coreai-torch's own operators give, byte for byte.

    python make_coreai.py      (coreai-torch 0.4 and torch; on systems that its converter does not support, give the
                               unpacked wheel's folder: only the file with the operators is loaded)
"""
import importlib
import pathlib
import sys
import types

import torch

from golden import Golden

if len(sys.argv) > 1:  # the package without its __init__
    package = types.ModuleType("coreai_torch")
    package.__path__ = [str(pathlib.Path(sys.argv[1]) / "coreai_torch")]
    sys.modules["coreai_torch"] = package
importlib.import_module("coreai_torch._compression.custom_layers")

torch.manual_seed(22)
torch.set_num_threads(1)
ops = torch.ops.coreai
golden = Golden(__file__, {"torch": torch.__version__.split("+")[0], "coreai-torch": "0.4.3"})


def add(op, *args, **kwargs):
    golden.add(op.default, *args, **kwargs)


INT8, UINT8 = torch.int8, torch.uint8
ties = (torch.arange(-12, 12) + 0.5).reshape(4, 6) * 0.007
tensors = [torch.randn(4, 6) * 2, ties.float(), torch.randn(4, 6).half(), torch.randn(4, 6).bfloat16(),
           torch.tensor([[0.0, -0.0, float("inf"), float("-inf"), 1e30, 1.0]] * 4)]
for x in tensors:
    for axis, n in ((0, 4), (1, 6), (-1, 6), (0, 1)):
        s = (torch.rand(n) * 0.05 + 0.007).to(x.dtype)
        z8, zu = torch.randint(-20, 20, (n,), dtype=INT8), torch.randint(100, 140, (n,), dtype=UINT8)
        m = -torch.rand(n).to(x.dtype)
        add(ops.quantize, x, s, INT8, z8, None, axis)
        add(ops.quantize, x, s, UINT8, zu, None, axis)
        add(ops.quantize, x, s, INT8, None, m, axis)
        add(ops.quantize, x, s, INT8, None, None, axis)
        for float8 in (torch.float8_e4m3fn, torch.float8_e5m2):
            add(ops.quantize, x, s, float8, None, None, axis)
        if x.isfinite().all():
            q = ops.quantize(x, s, INT8, z8, None, axis)
            add(ops.dequantize, q, s, z8, None, axis)
            add(ops.dequantize, q, s, None, m, axis, INT8)
            add(ops.dequantize, q, s, None, None, axis)
            q = ops.quantize(x, s, torch.float8_e4m3fn, None, None, axis)
            add(ops.dequantize, q, s, None, None, axis)
            add(ops.dequantize, q, s, None, None, axis, None, torch.bfloat16)
x, s = tensors[0], torch.rand(4, 1) + 0.1
add(ops.quantize, x, s, INT8)
add(ops.quantize, x, torch.tensor(0.1), INT8)
add(ops.quantize, x, s, INT8, torch.zeros(4, dtype=INT8))
add(ops.quantize, x, s, INT8, torch.zeros(4, 1), torch.zeros(4, 1))
add(ops.quantize, x, torch.rand(3), INT8)
add(ops.quantize, x, torch.rand(4), torch.float8_e5m2, torch.zeros(4))
q = torch.randint(-8, 8, (4, 6), dtype=INT8)
for shape in ((1, 1), (4, 1), (1, 6), (2, 3), (4, 6)):
    for dtype in (torch.float32, torch.float16):
        s = (torch.rand(shape) + 0.1).to(dtype)
        add(ops.constexpr_blockwise_shift_scale, q, s, torch.randint(-8, 8, shape, dtype=INT8))
        add(ops.constexpr_blockwise_shift_scale, q, s, None, -torch.rand(shape).to(dtype), INT8)
        add(ops.constexpr_blockwise_shift_scale, q, s)
add(ops.constexpr_blockwise_shift_scale, q, torch.rand(3, 1))
add(ops.constexpr_blockwise_shift_scale, q, torch.rand(4))
add(ops.constexpr_blockwise_shift_scale, q, torch.rand(4, 1), None, torch.rand(4, 1))
e8 = torch.tensor([[0.5, 2.0], [1.0, 0.25], [4.0, 1.0], [0.125, 8.0]]).to(torch.float8_e8m0fnu)
fp4 = torch.arange(4 * 4, dtype=UINT8).reshape(4, 4) * 16 + torch.randint(0, 16, (4, 4), dtype=UINT8)
for out in (torch.float32, torch.float16, torch.bfloat16):
    add(ops.constexpr_blockwise_shift_scale, fp4, e8, output_dtype=out)
golden.cases[-3:] = [dict(c, args=c["args"][:2] + [None, None, None] + c["args"][2:]) for c in golden.cases[-3:]]
add(ops.constexpr_blockwise_shift_scale, fp4, e8)
f8 = (torch.randn(4, 4) * 3).to(torch.float8_e4m3fn)
add(ops.constexpr_blockwise_shift_scale, f8, e8, None, None, None, torch.float32)
add(ops.constexpr_blockwise_shift_scale, f8, torch.rand(2, 2))
for lut_shape, shape in (((1, 1, 16, 1), (4, 6)), ((2, 1, 4, 1), (4, 6)), ((1, 3, 2, 1), (4, 6)), ((2, 2, 16, 1), (4, 6)), ((1, 8, 1), (5,))):
    indices = torch.randint(0, lut_shape[-2], shape, dtype=UINT8)
    for dtype in (torch.float32, torch.float16, INT8, torch.float8_e4m3fn, torch.float64):
        add(ops.lut_to_dense, indices, (torch.randn(lut_shape) * 5).to(dtype), 0)
indices = torch.randint(0, 8, (4, 3), dtype=UINT8)
for axis in (0, 1, -1):
    add(ops.lut_to_dense, indices, torch.randn(1, 1, 8, 2), axis)
    add(ops.lut_to_dense, indices, torch.randn(2, 1, 8, 3), axis)
add(ops.lut_to_dense, indices.long(), torch.randn(1, 1, 8, 1), 0)
add(ops.lut_to_dense, indices.long() + 300, torch.randn(1, 1, 8, 1), 0)
add(ops.lut_to_dense, indices, torch.randn(1, 1, 7, 1), 0)
mask = torch.rand(3, 5) < 0.4
for dtype in (torch.float32, torch.float16, INT8, torch.float8_e5m2):
    add(ops.sparse_to_dense, (torch.randn(int(mask.sum())) * 9).to(dtype), mask)
add(ops.sparse_to_dense, torch.randn(int(mask.sum()) + 1), mask)
golden.write()
