# SPDX-License-Identifier: GPL-3.0-or-later
"""What the make_*.py here share: calls of Python operators, written down with their results.

A file: {"versions": {...}, "cases": [{"op", "args", "results"} or {"op", "args", "fails"}]}. Tensors as dtype,
shape, strides and elements (base64, little-endian, in logical order).
"""
import base64
import json
import math
import pathlib

import torch


def tensor(t):
    flat = t.detach().contiguous().reshape(-1)
    data = base64.b64encode(bytes(flat.view(torch.uint8).tolist())).decode()
    return {"dtype": str(t.dtype).removeprefix("torch."), "shape": list(t.shape), "strides": list(t.stride()), "data": data}


def encoded(a):
    if isinstance(a, torch.Tensor):
        return {"tensor": tensor(a)}
    if isinstance(a, torch.dtype):
        return {"dtype": str(a).removeprefix("torch.")}
    if isinstance(a, float) and not math.isfinite(a):
        return {"float": str(a)}
    return list(a) if isinstance(a, tuple) else a


class Golden:
    def __init__(self, script, versions):
        self.path = pathlib.Path(script)
        self.versions = versions
        self.cases = []

    def add(self, op, *args, **kwargs):
        """Keeps the call and its results, or that it fails. Keyword arguments must follow the schema's order."""
        name, overload = op._schema.name, op._schema.overload_name
        case = {"op": name.split("::")[1] + ("." + overload if overload else "")}
        case["args"] = [encoded(a) for a in list(args) + list(kwargs.values())]
        try:
            out = op(*args, **kwargs)
            case["results"] = [tensor(o) for o in (out if isinstance(out, (tuple, list)) else (out,))]
        except Exception as error:  # noqa: BLE001 (some operators raise bare Exceptions)
            case["fails"] = type(error).__name__
        self.cases.append(case)

    def write(self):
        out = self.path.with_name(self.path.stem.removeprefix("make_") + ".json")
        text = json.dumps({"versions": self.versions, "cases": self.cases}, separators=(",", ":"))
        out.write_text(text.replace('{"op"', '\n{"op"') + "\n")
        print(len(self.cases), "cases,", sum("fails" in c for c in self.cases), "of them fail")
