# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes torchao.json: what torchao's own operators give, byte for byte.

    python make_torchao.py      (torchao 0.18 and its torch)
"""
import torch
import torchao
import torchao.quantization.quant_primitives  # registers torchao::*

from golden import Golden

torch.manual_seed(21)
torch.set_num_threads(1)
ops = torch.ops.torchao
golden = Golden(__file__, {"torch": torch.__version__.split("+")[0], "torchao": torchao.__version__.split("+")[0]})


def add(op, *args, **kwargs):
    golden.add(op.default, *args, **kwargs)


tensors = [torch.randn(4, 8) * 3, torch.zeros(4, 8), torch.randn(4, 8).bfloat16(), torch.randn(4, 8).half(), torch.randn(4, 8).abs(),
           torch.tensor([[1e-9, -1e-9] * 4] * 4)]
blocks = [[4, 8], [1, 8], [4, 1], [1, 4], [2, 2], [1, 1]]
for x in tensors:
    for block in blocks:
        for mapping, dtype, lo, hi in (("SYMMETRIC", torch.int8, None, None), ("ASYMMETRIC", torch.uint8, None, None),
                                       ("SYMMETRIC_NO_CLIPPING_ERR", torch.int8, -8, 7), ("SYMMETRIC", torch.int8, -127, 127)):
            add(ops.choose_qparams_affine, x, mapping, block, dtype, lo, hi)
            s, z = ops.choose_qparams_affine(x, mapping, block, dtype, lo, hi)
            if block in ([1, 8], [1, 4]):
                add(ops.quantize_affine, x, block, s, z, dtype, lo, hi)
                q = ops.quantize_affine(x, block, s, z, dtype, lo, hi)
                for out in (torch.float32, torch.bfloat16):
                    add(ops.dequantize_affine, q, block, s, z, dtype, lo, hi, output_dtype=out)
                add(ops.dequantize_affine, q, block, s, None, dtype, lo, hi, output_dtype=torch.float32)
x = tensors[0]
add(ops.choose_qparams_affine, x, "SYMMETRIC", [1, 4], torch.int8, -8, 7, 1e-5, torch.float32, torch.int64, True)
add(ops.choose_qparams_affine, x, "ASYMMETRIC", [1, 8], torch.int8, None, None, 1e-5, torch.bfloat16, torch.int8, False)
add(ops.choose_qparams_affine, x, "NONSENSE", [1, 8], torch.int8)
add(ops.choose_qparams_affine, x, "SYMMETRIC", [1, 3], torch.int8)
add(ops.choose_qparams_affine, x, "SYMMETRIC", [8], torch.int8)
add(ops.quantize_affine, x, [1, 8], torch.ones(4), None, torch.int8)
add(ops.quantize_affine, x, [1, 8], torch.ones(4), torch.zeros(4), torch.int8, -129, 127)
add(ops.quantize_affine, x.double(), [1, 8], torch.ones(4), torch.zeros(4), torch.int8)
for float8 in (torch.float8_e4m3fn, torch.float8_e5m2):
    for block in ([4, 8], [1, 8], [1, 4]):
        add(ops.choose_scale_float8, x, block, float8)
        add(ops.choose_scale_float8, x, block, float8, torch.float8_e8m0fnu)
        add(ops.choose_scale_float8, x, block, float8, torch.float32, 0.5, 2.0)
        s = ops.choose_scale_float8(x, block, float8)
        for t in (x, x.bfloat16(), x * 1000):
            add(ops.quantize_affine_float8_non_decomposed, t, s, float8)
        q = ops.quantize_affine_float8_non_decomposed(x, s, float8)
        for out in (torch.float32, torch.bfloat16):
            add(ops.dequantize_affine_float8_non_decomposed, q, s, out)
golden.write()
