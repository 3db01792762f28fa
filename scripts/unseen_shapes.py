"""Measure agents among distractor shapes that no training scene has: `python -m scripts.unseen_shapes RUN [RUN ...]`.

The runs' eval.json must hold the same episodes with the usual shapes. This writes results/unseen_shapes.csv.
"""

import csv
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gcb.agent.agent import load
from gcb.evaluation.evaluate import env_spec_of, evaluate
from gcb.report.paired import read_episodes
from gcb.report.run_groups import read_runs
from gcb.utils.statistics import paired_difference

OUT = Path(__file__).parent.parent / "results" / "unseen_shapes.csv"
MODES = ("goal", "strict")
HEADINGS = ("env", "video", "method", "mode", "seeds", "episodes", "usual", "unseen", "difference", "low", "high")


def main(paths: Sequence[str], workers: int = 1) -> None:
    """Evaluate the runs, which are seeds of one method in one environment, and write a row for each mode."""
    records = read_runs([Path(path) for path in paths])
    rows = []
    for mode in MODES:
        usual, unseen = [], []
        for record in records:
            earlier = read_episodes(record, mode, "any_step")
            assert earlier is not None, f"{record.run.path} was not evaluated in mode {mode}"
            agent = load(record.run.path)
            env_spec = env_spec_of(agent)
            env_spec = replace(env_spec, options={**env_spec.options, "distractor_split": "eval"})
            episodes, seed = len(earlier.successes), earlier.evaluation.seed
            result = evaluate(agent, env_spec, mode, episodes=episodes, seed=seed, workers=workers)
            usual.append(earlier.successes)
            unseen.append([outcome.success("any_step") for outcome in result.outcomes])
        difference = paired_difference(unseen, usual)
        rates = [sum(map(sum, group)) / sum(map(len, group)) for group in (usual, unseen)]
        numbers = (*rates, difference.value, *difference.interval)
        first = records[0]
        rows.append(
            (
                first.env,
                first.video,
                first.run.config.method,
                mode,
                len(records),
                len(usual[0]),
                *map("{:.4f}".format, numbers),
            )
        )
        print(*rows[-1])
    with OUT.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([HEADINGS, *rows])


if __name__ == "__main__":
    main(sys.argv[1:])
