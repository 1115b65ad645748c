# SPDX-License-Identifier: GPL-3.0-or-later
"""The part of resources/python/dblame_export.py that needs nothing but torch. Run with the interpreter of LibTorch."""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tempfile
import unittest
import warnings
from pathlib import Path
from unittest import mock

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "resources" / "python"))
import dblame_export as companion  # noqa: E402

warnings.filterwarnings("ignore")
torch.set_num_threads(2)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1)
        self.bn = nn.BatchNorm2d(4)
        self.drop = nn.Dropout(0.5)
        self.fc = nn.Linear(4 * 16, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(self.drop(torch.relu(self.bn(self.conv(x)))).flatten(1))


class TwoInputs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(5, 2)

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor | None = None, gain: float = 1.0) -> torch.Tensor:
        y = self.fc(tokens) * gain
        return y if mask is None else y * mask


class ScaleByStatistics(nn.Module):
    """A FakeQuantize of torch.ao on weight and input: branches on its values, so it never exports as it is."""

    def __init__(self) -> None:
        super().__init__()
        from torch.ao.quantization import FakeQuantize, MovingAveragePerChannelMinMaxObserver

        self.fc = nn.Linear(6, 4)
        self.input_fake_quant = FakeQuantize(quant_min=-128, quant_max=127, dtype=torch.qint8)
        self.weight_fake_quant = FakeQuantize(
            observer=MovingAveragePerChannelMinMaxObserver,
            quant_min=-127,
            quant_max=127,
            dtype=torch.qint8,
            qscheme=torch.per_channel_symmetric,
            ch_axis=0,
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(self.input_fake_quant(x), self.weight_fake_quant(self.fc.weight), self.fc.bias)


class CompanionTest(unittest.TestCase):
    def setUp(self) -> None:
        torch.manual_seed(0)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name) / "pair"

    def save(self, *args, **kwargs) -> companion.Pair:
        with contextlib.redirect_stdout(io.StringIO()) as said:
            pair = companion.save_pair(*args, **kwargs)
        self.said = said.getvalue()
        return pair

    def loaded(self, path: Path) -> nn.Module:
        return torch.export.load(path).module()

    def test_modules_in_training_mode_are_saved_in_evaluation_mode_and_left_as_they_were(self) -> None:
        net, other = Net().train(), Net().eval()
        other.load_state_dict(net.state_dict())
        x = torch.randn(8, 1, 4, 4)
        pair = self.save(net, other, [x], self.folder)
        self.assertTrue(net.training and net.drop.training and net.bn.training)
        expected = other(x)
        self.assertTrue(torch.equal(self.loaded(pair.reference)(x), expected))
        self.assertTrue(torch.equal(self.loaded(pair.candidate)(x), expected))
        self.assertEqual(pair.lost, [])

    def test_a_loader_gives_batches_and_its_labels(self) -> None:
        x, y = torch.randn(10, 1, 4, 4), torch.arange(10)
        loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=4)
        pair = self.save(Net().eval(), Net().eval(), loader, self.folder)
        batches, labels = torch.load(pair.inputs), torch.load(pair.labels)
        self.assertEqual(
            [[list(t.shape) for t in batch] for batch in batches], [[[4, 1, 4, 4]], [[4, 1, 4, 4]], [[2, 1, 4, 4]]]
        )
        self.assertTrue(torch.equal(torch.cat([batch[0] for batch in batches]), x))
        self.assertEqual([label.tolist() for label in labels], [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]])

    def test_one_tensor_is_one_batch_and_own_labels_are_split_by_batch(self) -> None:
        x = torch.randn(6, 1, 4, 4)
        pair = self.save(Net().eval(), Net().eval(), x, self.folder, labels=torch.arange(6))
        self.assertEqual(len(torch.load(pair.inputs)), 1)
        pair = self.save(Net().eval(), Net().eval(), iter([x[:4], x[4:]]), self.folder, labels=torch.arange(6))
        self.assertEqual([label.tolist() for label in torch.load(pair.labels)], [[0, 1, 2, 3], [4, 5]])
        with self.assertRaisesRegex(companion.ExportError, "5 for 6 samples"):
            self.save(Net().eval(), Net().eval(), x, self.folder, labels=torch.arange(5))

    def test_a_view_is_saved_alone(self) -> None:
        big = torch.randn(1000, 1, 4, 4)
        pair = self.save(Net().eval(), Net().eval(), [big[:2]], self.folder)
        self.assertLess(pair.inputs.stat().st_size, 4000)

    def test_integers_beside_an_optional_argument_are_labels_unless_told_otherwise(self) -> None:
        tokens, classes = torch.randn(3, 5), torch.tensor([1, 0, 1])
        pair = self.save(TwoInputs(), TwoInputs(), [(tokens, classes)], self.folder)
        self.assertEqual(torch.load(pair.labels)[0].tolist(), [1, 0, 1])
        self.assertEqual(len(torch.load(pair.inputs)[0]), 1)
        self.assertIn("taken as labels and not given as 'mask'", self.said)
        self.assertIn("labels=False", self.said)
        # Told that it is an input, it is one (and does not fit here: [3, 2] * [3]).
        with self.assertRaisesRegex(companion.ExportError, "reference: torch.export.export"):
            self.save(TwoInputs(), TwoInputs(), [(tokens, classes)], self.folder, labels=False)
        # Floats may well be the argument: when they do not fit, the error says what was assumed.
        with self.assertRaisesRegex(companion.ExportError, "was given as 'mask': if it is labels, pass labels=True"):
            self.save(TwoInputs(), TwoInputs(), [(tokens, torch.randn(3))], self.folder)
        pair = self.save(TwoInputs(), TwoInputs(), [(tokens, torch.ones(3))], self.folder, labels=True)
        self.assertEqual(torch.load(pair.labels)[0].tolist(), [1.0, 1.0, 1.0])
        self.assertEqual(len(torch.load(pair.inputs)[0]), 1)
        pair = self.save(TwoInputs(), TwoInputs(), [(tokens, torch.ones(3, 2))], self.folder)
        self.assertEqual(len(torch.load(pair.inputs)[0]), 2)
        self.assertIsNone(pair.labels)

    def test_labels_of_an_earlier_pair_do_not_stay(self) -> None:
        x = torch.randn(2, 1, 4, 4)
        self.save(Net().eval(), Net().eval(), x, self.folder, labels=torch.arange(2))
        pair = self.save(Net().eval(), Net().eval(), x, self.folder)
        self.assertIsNone(pair.labels)
        self.assertFalse((self.folder / "labels.pt").exists())
        self.assertEqual(
            sorted(p.name for p in self.folder.iterdir()),
            ["candidate.pt2", "inputs.pt", "observers.json", "reference.pt2"],
        )

    def test_dicts_are_put_in_the_order_of_the_signature(self) -> None:
        net = TwoInputs().eval()
        tokens, mask = torch.randn(3, 5), torch.ones(3, 2)
        batch = {"mask": mask, "tokens": tokens, "labels": torch.tensor([1, 0, 1]), "attention": torch.ones(1)}
        pair = self.save(net, TwoInputs().eval(), [batch], self.folder)
        values = torch.load(pair.inputs)[0]
        self.assertTrue(torch.equal(values[0], tokens) and torch.equal(values[1], mask))
        self.assertEqual(torch.load(pair.labels)[0].tolist(), [1, 0, 1])
        self.assertEqual(pair.lost, ["inputs: 'attention' is no input of the model and was left out"])
        self.assertIn("'attention' is no input", self.said)

    def test_numbers_baked_into_the_graph_are_not_inputs(self) -> None:
        net, tokens = TwoInputs().eval(), torch.randn(3, 5)
        pair = self.save(net, TwoInputs().eval(), [{"tokens": tokens, "gain": 2.0}], self.folder)
        values = torch.load(pair.inputs)[0]
        self.assertEqual(len(values), 1)
        self.assertTrue(torch.equal(self.loaded(pair.reference)(tokens, gain=2.0), net(tokens, gain=2.0)))

    def test_exported_programs_take_names_too(self) -> None:
        tokens, mask = torch.randn(3, 5), torch.ones(3, 2)
        by_name = torch.export.export(TwoInputs().eval(), (tokens,), {"mask": mask})
        in_order = torch.export.export(TwoInputs().eval(), (tokens, mask))
        for batch in ({"tokens": tokens, "mask": mask}, (tokens, mask)):
            for program in (by_name, in_order):
                pair = self.save(program, program, [batch], self.folder)
                values = torch.load(pair.inputs)[0]
                self.assertTrue(torch.equal(values[0], tokens) and torch.equal(values[1], mask))

    def test_wrong_batches_are_refused_with_a_way_out(self) -> None:
        net, x = Net().eval(), torch.randn(2, 1, 4, 4)
        for batches, message in (
            ([], "none; an iterator that was used before"),
            ((x, x), "write \\[batch\\]"),
            ([(x, x, x)], "has 3 elements, the model takes 1"),
            ([{"image": x}], r"none of \['image'\] is an input \(x\)"),
            (["x.pt"], "batches\\[0\\] is a str"),
        ):
            with self.assertRaisesRegex(companion.ExportError, message):
                self.save(net, net, batches, self.folder)

    def test_models_that_cannot_be_taken(self) -> None:
        net, x = Net().eval(), torch.randn(2, 1, 4, 4)
        with self.assertRaisesRegex(companion.ExportError, "TorchScript.*nn.Module"):
            self.save(net, torch.jit.trace(net, x), [x], self.folder)
        with self.assertRaisesRegex(companion.ExportError, "dict is neither"):
            self.save(net, {"fc.weight": x}, [x], self.folder)
        with self.assertRaisesRegex(companion.ExportError, "candidate takes 2 inputs, reference 1"):
            two = torch.export.export(TwoInputs().eval(), (torch.randn(2, 5), torch.ones(2, 2)))
            self.save(net, two, [x], self.folder)

        class Branches(nn.Module):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return x * 2 if x.sum() > 0 else x

        with self.assertRaisesRegex(companion.ExportError, "candidate: torch.export.export: .*branches on its values"):
            self.save(net, Branches(), [x], self.folder)
        self.assertFalse(self.folder.exists(), "a failed pair leaves no half folder")

    def test_wrappers_are_taken_off(self) -> None:
        net, x = Net().eval(), torch.randn(2, 1, 4, 4)
        pair = self.save(nn.DataParallel(net), torch.compile(net), [x], self.folder)
        names = [node.name for node in torch.export.load(pair.reference).graph.nodes]
        self.assertIn("p_conv_weight", names)

    def test_fake_quants_that_cannot_be_exported_are_frozen_with_equal_values(self) -> None:
        candidate, x = ScaleByStatistics().eval(), torch.randn(8, 6)
        candidate(x)
        for fake_quant in (candidate.input_fake_quant, candidate.weight_fake_quant):
            fake_quant.disable_observer()
        before = {name: value.clone() for name, value in candidate.state_dict().items()}
        pair = self.save(candidate.fc, candidate, [x], self.folder)
        self.assertTrue(torch.equal(self.loaded(pair.candidate)(x), candidate(x)))
        self.assertEqual(len(pair.lost), 1)
        self.assertRegex(pair.lost[0], "FakeQuantize cannot be exported: its 2 fake-quants were frozen")
        for name, value in candidate.state_dict().items():
            self.assertTrue(torch.equal(value, before[name]), name)
        targets = [str(node.target) for node in torch.export.load(pair.candidate).graph.nodes]
        self.assertIn("aten.fake_quantize_per_channel_affine.default", targets)

        observers = {o["role"]: o for o in json.loads(pair.observers.read_text())["observers"]}
        self.assertEqual(set(observers), {"input", "weight"})
        weight = observers["weight"]
        self.assertEqual(
            (weight["module"], weight["axis"], weight["quant_min"], weight["quant_max"]), ("", 0, -127, 127)
        )
        self.assertEqual(weight["scale"], candidate.weight_fake_quant.scale.tolist())
        self.assertEqual(weight["min"], candidate.fc.weight.amin(1).tolist())
        self.assertEqual(observers["input"]["max"], [float(x.max())])
        self.assertEqual(observers["input"]["zero_point"], candidate.input_fake_quant.zero_point.tolist())

    def test_a_reference_loses_its_fake_quants(self) -> None:
        model, x = ScaleByStatistics().eval(), torch.randn(8, 6)
        model(x)
        pair = self.save(model, model.fc, [x], self.folder)
        self.assertTrue(torch.equal(self.loaded(pair.reference)(x), model.fc(x)))
        self.assertEqual(len(pair.lost), 1)
        self.assertRegex(pair.lost[0], "^reference: its 2 observers and fake-quants were taken out")

    def test_histograms_of_a_prepared_model_are_kept(self) -> None:
        from torch.ao.quantization import HistogramObserver

        net = nn.Sequential()
        net.add_module("fc", nn.Linear(6, 4))
        net.fc.add_module("activation_post_process", HistogramObserver(bins=64))
        x = torch.randn(50, 6)
        net.fc.activation_post_process(net.fc(x))
        pair = self.save(nn.Sequential(nn.Linear(6, 4)), nn.Sequential(nn.Linear(6, 4)), [x], self.folder, prepared=net)
        document = json.loads(pair.observers.read_text())
        self.assertEqual(document["version"], 1)
        (record,) = document["observers"]
        self.assertEqual(
            (record["module"], record["role"], record["name"]), ("fc", "output", "fc.activation_post_process")
        )
        self.assertEqual(len(record["histogram"]), 64)
        self.assertAlmostEqual(sum(record["histogram"]), 200, places=3)
        y = net.fc(x).detach()
        self.assertEqual(record["histogram_range"], [float(y.min()), float(y.max())])
        self.assertEqual(record["dtype"], "quint8")

    def test_an_observer_without_data_has_no_range_and_is_said(self) -> None:
        from torch.ao.quantization import MinMaxObserver

        net = nn.Sequential(nn.Linear(6, 4))
        net[0].add_module("activation_post_process", MinMaxObserver())
        pair = self.save(
            nn.Sequential(nn.Linear(6, 4)),
            nn.Sequential(nn.Linear(6, 4)),
            [torch.randn(2, 6)],
            self.folder,
            prepared=net,
        )
        (record,) = json.loads(pair.observers.read_text())["observers"]
        self.assertEqual((record["min"], record["scale"], record["histogram"]), ([], [], None))
        self.assertEqual(pair.lost, ["1 of 1 observers saw no data or are dynamic: no range"])

    def test_dynamic_shapes_and_limit(self) -> None:
        x = torch.randn(9, 1, 4, 4)
        shapes = ({0: torch.export.Dim("batch", min=2)},)
        pair = self.save(Net().eval(), Net().eval(), list(x.split(3)), self.folder, dynamic_shapes=shapes, limit=2)
        self.assertEqual(len(torch.load(pair.inputs)), 2)
        self.assertEqual(self.loaded(pair.reference)(x).shape, (9, 3))
        self.assertEqual(pair.lost, ["inputs: only the first 2 batches were taken, as asked"])

    def test_show_needs_the_program(self) -> None:
        no_path = mock.patch.dict("os.environ", {"PATH": "", "DBLAME_GUI": ""})
        elsewhere = mock.patch.object(companion, "__file__", "/nowhere/a/b/dblame_export.py")
        with self.assertRaisesRegex(companion.ExportError, "DBLAME_GUI"), no_path, elsewhere:
            companion.show(Net().eval(), Net().eval(), [torch.randn(2, 1, 4, 4)])

    def test_show_starts_the_program_on_the_folder(self) -> None:
        started = self.folder.parent / "started"
        program = self.folder.parent / "fake-gui"
        program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > "{started}"\n')
        program.chmod(0o755)
        with contextlib.redirect_stdout(io.StringIO()), mock.patch.dict("os.environ", {"DBLAME_GUI": str(program)}):
            pair = companion.show(Net().eval(), Net().eval(), [torch.randn(2, 1, 4, 4)], self.folder, wait=True)
        self.assertEqual(started.read_text().split("\n"), [str(pair.folder), "--run", ""])


if __name__ == "__main__":
    unittest.main(verbosity=1, warnings="ignore")
