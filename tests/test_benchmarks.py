"""The driver of the benchmarks; `make bench` runs the measurements."""

import pytest
import torch
from helpers.tiny import tiny_config, tiny_dataset

from benchmarks.__main__ import main
from benchmarks.rows import Row
from benchmarks.training import _record_passes, _replay
from gcb.training.trainer import Trainer

GOOD = Row("fast enough", 0.8, 0.6, "ten times a second", at_least=True)
UNLIMITED = Row("informative", 3.0, None, "no limit")


@pytest.mark.parametrize(
    ("row", "ok"),
    [
        (Row("", 1.9, 2.0, ""), True),
        (Row("", 2.1, 2.0, ""), False),
        (Row("", 0.61, 0.6, "", at_least=True), True),
        (Row("", 0.59, 0.6, "", at_least=True), False),
        (Row("", 1e9, None, ""), True),
    ],
)
def test_limits(row, ok):
    assert row.ok == ok


def test_table_and_exit_code(capsys):
    groups = {
        "good": lambda: [GOOD, UNLIMITED],
        "bad": lambda: [Row("too slow", 0.5, 0.6, "six times a second", at_least=True)],
    }
    assert main(["good"], groups) == 0
    printed = capsys.readouterr().out
    assert "fast enough" in printed
    assert "≥ 0.6" in printed
    assert "ok" in printed
    assert "too slow" not in printed
    assert main([], groups) == 1
    assert "FAIL" in capsys.readouterr().out


def test_unknown_group(capsys):
    assert main(["engines"], {"good": lambda: [GOOD]}) == 2
    assert "unknown group 'engines'; accepted: good" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        (
            "gcb",
            [
                ("ImageTrunk", 16, True),  # eight states, and the goals and initial states of four groups
                ("ImageTrunk", 4, False),  # their next states
                ("StateHead", 12, True),  # ψ(s) and ψ(s_0)
                ("StateHead", 4, False),
                ("PairHead", 12, True),  # φ(s, g) and φ(s_0, g)
                ("PairHead", 4, False),  # φ(s', g)
                ("PairHead", 1, False),  # φ(g, g)
                ("StateHead", 1, False),  # ψ(g)
            ],
        ),
        ("gcbc", [("Encoder", 8, True), ("Encoder", 4, False)]),
    ],
)
def test_recorded_passes_are_those_of_a_step(method, expected):
    trainer = Trainer(tiny_config(method), tiny_dataset(), torch.device("cpu"))
    learner, batch = trainer.learner, trainer.next_batch()
    passes = _record_passes(learner.method, lambda: learner.step(batch, 0))
    assert [(type(each.network).__name__, len(each.inputs[0]), each.with_gradient) for each in passes] == expected
    learner.method.zero_grad()
    _replay(passes)
    for each in passes:
        if each.with_gradient:
            assert all(weight.grad is not None for weight in each.network.parameters())
            assert all((part.grad is not None) == part.is_floating_point() for part in each.inputs)
