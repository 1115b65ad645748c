# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes quantized_decomposed.json: what torch's own Python operators give, byte for byte.

    python make_quantized_decomposed.py      (torch 2.6 or newer; nothing else)
"""
import torch
import torch.ao.quantization.fx._decomposed  # registers quantized_decomposed

from golden import Golden

torch.manual_seed(20)
torch.set_num_threads(1)
ops = torch.ops.quantized_decomposed
golden = Golden(__file__, {"torch": torch.__version__.split("+")[0]})
add = golden.add

NAN, INF = float("nan"), float("inf")
INT8, UINT8, INT16, UINT16, INT32 = torch.int8, torch.uint8, torch.int16, torch.uint16, torch.int32
F8, F8E5 = torch.float8_e4m3fn, torch.float8_e5m2
RANGES = [(INT8, -128, 127, 3), (INT8, -127, 127, 0), (UINT8, 0, 255, 121), (UINT8, 0, 15, 7), (INT16, -32768, 32767, -5),
          (UINT16, 0, 65535, 32768), (INT32, -(2**31), 2**31 - 1, 1), (F8, -448, 448, 0), (F8E5, -57344, 57344, 2)]
edge = torch.tensor([0.0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, 0.05, 0.15, 0.25, 0.35, 12.75, 1.3, 100.0, -100.0, 1e30, -1e30, 1e-40, NAN, INF, -INF])


def layouts(t):
    yield t
    if t.dim() >= 2:
        yield t.transpose(0, 1)
        yield t[:, ::2]
    if t.dim() == 4:
        yield t.contiguous(memory_format=torch.channels_last)


def per_tensor():
    for dtype, lo, hi, z in RANGES:
        finite = torch.where(edge.isfinite() & (edge.abs() < 1e9), edge, torch.zeros(())) if dtype in (INT32, F8, F8E5) else edge
        for scale in (0.1, 0.007, 1.0, 2.0**-12):
            add(ops.quantize_per_tensor.default, finite, scale, z, lo, hi, dtype)
        for half in (torch.float16, torch.bfloat16):
            add(ops.quantize_per_tensor.default, finite.clamp(-6e4, 6e4).to(half), 0.05, z, lo, hi, dtype)
        x = torch.randn(3, 5) * 3
        for t in layouts(x):
            add(ops.quantize_per_tensor.default, t, 0.0173, z, lo, hi, dtype)
        q = torch.randint(max(lo, -400), min(hi, 400) + 1, (3, 6)).to(dtype)
        for t in layouts(q):
            add(ops.dequantize_per_tensor.default, t, 0.0173, z, lo, hi, dtype)
        for out in (torch.float16, torch.bfloat16, torch.float64):
            add(ops.dequantize_per_tensor.default, q, 0.0173, z, lo, hi, dtype, out_dtype=out)
    x = torch.randn(2, 3, 3, 2)
    for t in layouts(x):
        add(ops.quantize_per_tensor.default, t, 0.021, 4, -128, 127, INT8)
    add(ops.quantize_per_tensor.default, torch.randn(1, 4, 1, 1), 0.021, 4, -128, 127, INT8)
    add(ops.quantize_per_tensor.default, torch.randn(1, 4).expand(3, 4), 0.021, 4, -128, 127, INT8)
    add(ops.quantize_per_tensor.default, torch.randn(()), 0.021, 4, -128, 127, INT8)
    add(ops.quantize_per_tensor.default, torch.randn(0, 3), 0.021, 4, -128, 127, INT8)
    x, s, z = torch.randn(4, 3), torch.tensor([0.013]), torch.tensor([7])
    for sc in (s, s.double(), s[0]):
        for zp in (z, z.int(), z[0]):
            add(ops.quantize_per_tensor.tensor, x, sc, zp, -128, 127, INT8)
            q = ops.quantize_per_tensor.tensor(x, sc, zp, -128, 127, INT8)
            add(ops.dequantize_per_tensor.tensor, q, sc, zp, -128, 127, INT8)
    lo, hi = torch.tensor(-128), torch.tensor(127)
    add(ops.quantize_per_tensor.tensor2, x, s, z, lo, hi, INT8)
    add(ops.dequantize_per_tensor.tensor2, q, s, z, lo, hi, INT8)
    # what must fail
    add(ops.quantize_per_tensor.default, x.double(), 0.1, 0, -128, 127, INT8)
    add(ops.quantize_per_tensor.default, x, 0.1, 0, -129, 127, INT8)
    add(ops.quantize_per_tensor.default, x, 0.1, 0, -128, 127, torch.int64)
    add(ops.quantize_per_tensor.default, x, 0.0, 0, -128, 127, INT8)
    add(ops.dequantize_per_tensor.default, q, 0.1, 0, 0, 255, UINT8)
    add(ops.quantize_per_tensor.tensor, x, torch.tensor([0.1, 0.2]), z, -128, 127, INT8)


def choose():
    tensors = [torch.randn(5, 7), torch.randn(8).abs(), -torch.randn(8).abs(), torch.zeros(4), torch.full((3,), 2.5),
               torch.tensor([-1.0, 0.5, 2.0, 0.25]), torch.tensor([-1e-8, 2e-8]), torch.tensor([-3e38, 3e38]),
               torch.tensor([1.0, INF]), torch.tensor([NAN, 1.0])]
    for t in tensors:
        for lo, hi, eps, dtype in ((-128, 127, 2.0**-12, INT8), (0, 255, 2.0**-23, UINT8), (-127, 127, 1e-6, INT8), (0, 127, 2.0**-12, UINT8)):
            add(ops.choose_qparams.tensor, t, lo, hi, eps, dtype)
            add(ops.choose_qparams_symmetric.tensor, t, lo, hi, eps, dtype)
    for half in (torch.float16, torch.bfloat16):
        add(ops.choose_qparams.tensor, torch.randn(9).to(half), -128, 127, 2.0**-12, INT8)
        add(ops.choose_qparams_symmetric.tensor, torch.randn(9).to(half), -128, 127, 2.0**-12, INT8)
    add(ops.choose_qparams.tensor, torch.randn(3), 1, 127, 1e-5, INT8)
    add(ops.choose_qparams.tensor, torch.randn(3).double(), -128, 127, 1e-5, INT8)


def per_channel():
    for dtype, lo, hi, _ in RANGES[:7]:
        for shape, axis in (((4, 3), 0), ((4, 3), 1), ((4, 1, 3, 3), 0), ((1, 4, 3), 1), ((2, 3, 4), 2), ((4, 3, 2, 2), 1), ((3,), 0),
                            ((3, 4, 1, 1), 0), ((1, 3, 2, 2), 1), ((1, 1, 2, 2), 0), ((2, 1, 1, 4), 0), ((2, 3, 1, 4), 1), ((3, 1, 2, 2), 1)):
            n = shape[axis]
            x = torch.randn(shape) * 2
            s = torch.rand(n) * 0.05 + 0.01
            z = torch.randint(max(lo, -20), 20, (n,))
            add(ops.quantize_per_channel.default, x, s, z, axis, lo, hi, dtype)
            q = ops.quantize_per_channel.default(x, s, z, axis, lo, hi, dtype)
            add(ops.dequantize_per_channel.default, q, s, z, axis, lo, hi, dtype)
    x = torch.randn(4, 6, 3, 3)
    s, z = torch.rand(6) * 0.1 + 0.01, torch.randint(-100, 100, (6,))
    for t in layouts(x):
        if t.shape[1] == 6:
            add(ops.quantize_per_channel.default, t, s, z, 1, -128, 127, INT8)
            add(ops.dequantize_per_channel.default, ops.quantize_per_channel.default(t, s, z, 1, -128, 127, INT8), s, z, 1, -128, 127, INT8)
    q = torch.randint(-128, 128, (6, 5)).to(INT8)
    for zp in (z.to(INT8), z.int(), z.to(INT16), z.float(), z.double(), None):  # int8 - int8 wraps
        for sc in (s, s.double()):
            add(ops.dequantize_per_channel.default, q, sc, zp, 0, -128, 127, INT8)
            if zp is not None:
                add(ops.quantize_per_channel.default, torch.randn(6, 5) * 9, sc, zp, 0, -128, 127, INT8)
    big = torch.tensor([2**40, -(2**40), 5, 6, 7, 8])
    add(ops.dequantize_per_channel.default, q, s, big, 0, -128, 127, INT8)
    for out in (torch.float16, torch.bfloat16, torch.float64):
        add(ops.dequantize_per_channel.default, q, s, z, 0, -128, 127, INT8, out_dtype=out)
    e = edge.reshape(3, 7)
    add(ops.quantize_per_channel.default, e, torch.tensor([0.1, 0.2, 1.0]), torch.tensor([0, 3, -7]), 0, -128, 127, INT8)
    add(ops.quantize_per_channel.default, torch.randn(2, 3).half(), torch.tensor([0.1, 0.2]), torch.tensor([1, 2]), 0, -128, 127, INT8)
    add(ops.quantize_per_channel.default, torch.randn(2, 3), torch.tensor([0.1, 0.2]), torch.tensor([1, 2]), 2, -128, 127, INT8)
    for axis in (0, 1):
        t = torch.randn(4, 4) * 5
        t[0, :3] = torch.tensor([NAN, INF, -INF])
        add(ops.fake_quant_per_channel.default, t, torch.rand(4) * 0.1 + 0.01, torch.randint(-5, 5, (4,)), axis, -128, 127)
    add(ops.fake_quant_per_channel.default, torch.randn(2, 3, 2), torch.rand(3).double() + 0.1, torch.tensor([1, 2, 3], dtype=INT32), 1, 0, 255)


def per_token():
    for t in (torch.randn(3, 8), torch.randn(2, 3, 4) * 10, torch.zeros(2, 4), torch.randn(3, 8).half(), torch.randn(3, 8).bfloat16(),
              torch.tensor([[NAN, 1.0], [INF, 2.0], [1e-9, -1e-9]])):
        add(ops.choose_qparams_per_token.default, t, INT8)
        add(ops.choose_qparams_per_token_asymmetric.default, t, INT8)
        add(ops._choose_qparams_per_token_asymmetric_impl.default, t, INT8)
        if t.dtype == torch.float32 and t.isfinite().all():
            for chooser in (ops.choose_qparams_per_token, ops.choose_qparams_per_token_asymmetric):
                s, z = chooser(t, INT8)
                add(ops.quantize_per_token.default, t, s, z, -128, 127, INT8)
                q = ops.quantize_per_token.default(t, s, z, -128, 127, INT8)
                add(ops.dequantize_per_token.default, q, s, z, -128, 127, INT8, torch.float32)
                add(ops.dequantize_per_token.default, q, s, z, -128, 127, INT8, torch.bfloat16)
    add(ops.choose_qparams_per_token.default, torch.randn(2, 2), UINT8)
    add(ops.quantize_per_token.default, torch.randn(2, 2), torch.ones(3), torch.zeros(3), -128, 127, INT8)
    ties = torch.tensor([[0.5, 1.5, 2.5, -0.5]])
    add(ops.quantize_per_token.default, ties, torch.ones(1, 1), torch.ones(1, 1, dtype=torch.int64), -128, 127, INT8)


def per_group():
    x = torch.randn(4, 12)
    for group in (2, 3, 6, 12):
        s = torch.rand(4, 12 // group) * 0.1 + 0.01
        z = torch.randint(-8, 8, (4, 12 // group))
        for zp in (z, z.int(), z.float()):
            add(ops.quantize_per_channel_group.default, x, s, zp, -8, 7, INT8, group)
            q = ops.quantize_per_channel_group.default(x, s, zp, -8, 7, INT8, group)
            add(ops.dequantize_per_channel_group.default, q, s, zp, -8, 7, INT8, group, torch.float32)
            add(ops.dequantize_per_channel_group.default, q, s, zp, -8, 7, INT8, group, torch.float16)
        add(ops.dequantize_per_channel_group.default, q, s, None, -8, 7, INT8, group, torch.float32)
    add(ops.quantize_per_channel_group.default, x, torch.rand(4, 1) + 0.1, torch.zeros(4, 1), -8, 7, INT8, 128)
    add(ops.quantize_per_channel_group.default, x, s, z, -8, 7, INT8, 5)
    add(ops.quantize_per_channel_group.default, x, s, z, -8, 7, INT8, 1)
    add(ops.quantize_per_channel_group.default, torch.full((1, 2), NAN), torch.ones(1, 1), torch.zeros(1, 1), -8, 7, INT8, 2)


def convert():
    for source in (torch.float32, torch.int8, torch.bfloat16):
        t = (torch.randn(3, 4) * 5).to(source).t()
        for target in (torch.float32, torch.int8, torch.float16, torch.int64):
            add(ops.convert_element_type.no_fuse, t, target)


per_tensor()
choose()
per_channel()
per_token()
per_group()
convert()
golden.write()
