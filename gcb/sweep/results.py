"""Write results.csv from the directories of finished runs."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from gcb.errors import GCBError
from gcb.methods import method_named
from gcb.report.rows import ALL, SUCCESSES, Row, parse_run_name, write_rows
from gcb.runs.config import TrainConfig
from gcb.runs.evaluations import REPORTED_SEED, best_results
from gcb.runs.run_dir import RECORD, Run
from gcb.sweep.sweep_dir import RESULTS, SweepDir
from gcb.utils.dataclass_io import to_dict

HASH_DIGITS = 12


class Results:
    """DIR/results.csv: every finished run in DIR/runs, of this grid and of earlier ones."""

    def __init__(self, sweep_dir: SweepDir, modes: Iterable[str], eval_seed: int = REPORTED_SEED) -> None:
        """`modes` are those of the grid: a method that does not support one gets a row without episodes (NA).

        Of a run that was evaluated with several seeds, the evaluations with `eval_seed` count.
        """
        self.sweep_dir, self.modes, self.eval_seed = sweep_dir, tuple(modes), eval_seed
        self._rows: dict[str, list[Row]] = {}

    def update(self, names: Iterable[str] | None = None) -> list[str]:
        """Read runs by name, or all of them, and write the file; return a message for each run that is damaged."""
        messages = []
        for name in sorted(path.name for path in self.sweep_dir.runs.iterdir()) if names is None else names:
            try:
                self._rows[name] = list(run_rows(self.sweep_dir.runs / name, self.modes, self.eval_seed))
            except GCBError as error:
                self._rows.pop(name, None)
                messages.append(f"{name} is not in {RESULTS}: {error}")
        write_rows(self.sweep_dir.results, (row for rows in self._rows.values() for row in rows))
        return messages


def run_rows(path: Path, modes: Iterable[str] = (), eval_seed: int = REPORTED_SEED) -> Iterator[Row]:
    """Return the rows of a run, one for each mode and task; none before it is trained and evaluated."""
    if not (path / RECORD).is_file():
        return
    run = Run(path)
    results = best_results(run, eval_seed)
    checkpoint = run.checkpoint()
    if checkpoint is None or not checkpoint.finished:
        return
    parts = parse_run_name(path.name, run.config.method, run.config.seed)
    if parts is None:
        raise GCBError(f"{path} has the configuration of another run: {run.config.method}, seed {run.config.seed}")
    env, video, variant = parts
    common = {
        "env": env,
        "video": video,
        "method": run.config.method,
        "variant": variant,
        "seed": run.config.seed,
        "steps": checkpoint.step,
        "train_seconds": round(checkpoint.seconds, 1),
        "dataset_hash": run.dataset.fingerprint[:HASH_DIGITS],
        "config_hash": config_hash(run.config),
    }
    evaluation: dict[str, Any] = {}
    for mode, result in results.items():
        try:
            if result["step"] != checkpoint.step:
                continue
            evaluation = {"gcb_version": result["gcb"], "eval_seed": result["seed"]}
            evaluation["eval_temperature"] = result["eval_temperature"]
            for task, rates in ((ALL, result["all"]), *result["tasks"].items()):
                any_step, at_end = rates["any_step"], rates["at_end"]
                declared = rates.get("declared")  # older evaluations lack it
                counts = {"episodes": any_step["of"], "successes": any_step["successes"]}
                counts["successes_at_end"] = at_end["successes"]
                counts["successes_declared"] = None if declared is None else declared["successes"]
                yield Row(mode=mode, task=task, **counts, **evaluation, **common)
        except (KeyError, TypeError, AttributeError) as error:
            raise GCBError(f"{path}: the evaluation in mode {mode!r} is damaged ({error!r})") from error
    if evaluation and not method_named(run.config.method).supports_analogy:
        zeros = dict.fromkeys(("episodes", *SUCCESSES.values()), 0)
        for mode in (mode for mode in modes if mode != "goal"):
            yield Row(mode=mode, task=ALL, **zeros, **evaluation, **common)


def config_hash(config: TrainConfig[Any]) -> str:
    """Hash a configuration without its seed: equal for all seeds of one setting."""
    values = {name: value for name, value in to_dict(config).items() if name != "seed"}
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:HASH_DIGITS]
