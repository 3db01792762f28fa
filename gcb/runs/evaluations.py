"""RUN/eval.json: every evaluation of a run.

    {"goal": result, "strict": result, …, "history": [result, …]}

Under each mode is the result that tables, reports and model cards show (`rank`). All others are in the history, each
with its "mode". A result is extended when the same evaluation is repeated with more episodes, and never replaced by one
with fewer; "date" is when its last episode was added.
"""

import os
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from gcb.envs.spec import MODES, recorded_env_spec
from gcb.errors import GCBError
from gcb.runs.run_dir import EVAL, Run
from gcb.utils.dataclass_io import check_entries
from gcb.utils.files import file_lock, write_json
from gcb.utils.os_errors import explain_os_errors
from gcb.utils.text_files import read_json

HISTORY = "history"
"""The key in eval.json of evaluations that are kept, but not shown."""
Rates = dict[str, dict[str, Any]]
RESULT_TYPES: dict[str, Any] = {
    "episodes": int,
    "seed": int,
    "step": int | None,
    "eval_temperature": float,
    "env": dict[str, Any],
    "gcb": str,
    "all": Rates,
    "tasks": dict[str, Rates],
    "outcomes": tuple[Any, ...],
}
RATE_TYPES: dict[str, Any] = {"rate": float, "interval": tuple[float, float], "successes": int, "of": int}
"""Types of the entries of eval.json; older ones lack some."""
IDENTITY = ("mode", "seed", "step", "eval_temperature", "env", "gcb")
"""The entries in which two evaluations must agree to have the same episodes."""
REPORTED_SEED = 0
"""Seed of the evaluation that is shown if a run was evaluated with several."""

Evaluation = Mapping[str, Any]


def read_results(run: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the results to show, by mode, in the order of `MODES`; empty before the first evaluation."""
    results = read_eval_file(run)
    results.pop(HISTORY, None)
    return dict(sorted(results.items(), key=lambda entry: MODES.index(entry[0]) if entry[0] in MODES else len(MODES)))


def read_eval_file(run: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the content of RUN/eval.json, the history included."""
    path = Path(run) / EVAL
    content = read_json(path) if path.exists() else {}
    try:
        check_entries(content, {HISTORY: tuple[dict[str, Any], ...]})
        for mode, result in content.items():
            if mode != HISTORY:
                _check_result(result, mode)
        for entry in content.get(HISTORY, ()):
            _check_result(entry, HISTORY)
            if not isinstance(entry.get("mode"), str):
                raise GCBError(f"{HISTORY} has an entry without a mode")
    except GCBError as error:
        raise GCBError(f"{path} is damaged: {error}") from error
    return content


def read_evaluations(run: str | os.PathLike[str]) -> list[Evaluation]:
    """Return all evaluations of a run, each with its "mode"; those that are shown come first."""
    content = read_eval_file(run)
    history = content.pop(HISTORY, [])
    return [*({**result, "mode": mode} for mode, result in content.items()), *history]


def best_results(run: Run, seed: int = REPORTED_SEED) -> dict[str, Evaluation]:
    """Return the evaluation to show of each mode: of the final policy, of this seed if there is one, the largest."""
    return _choose(read_evaluations(run.path), run, seed)


def find_evaluation(run: str | os.PathLike[str], wanted: Evaluation) -> Evaluation | None:
    """Return the evaluation with the same mode, seed, step, temperature, environment and version of gcb."""
    return next((entry for entry in read_evaluations(run) if _identity(entry) == _identity(wanted)), None)


def write_evaluation(run: Run, evaluation: Evaluation) -> None:
    """Add an evaluation to RUN/eval.json, in the place of one with the same identity and fewer episodes."""
    path = run.path / EVAL
    date = datetime.now(timezone.utc).isoformat(timespec="seconds")
    # Another process may be evaluating the run in another mode.
    with explain_os_errors(path), file_lock(path):
        entries = read_evaluations(run.path)
        same = [entry for entry in entries if _identity(entry) == _identity(evaluation)]
        if any(_episodes(entry) > _episodes(evaluation) for entry in same):
            return
        entries = [entry for entry in entries if entry not in same] + [{**evaluation, "date": date}]
        write_json(path, _arrange(entries, run))


def check_writable(run: Run) -> None:
    """Raise an error if RUN/eval.json is damaged or cannot be written."""
    with explain_os_errors(run.path / EVAL), file_lock(run.path / EVAL):
        read_evaluations(run.path)


def _check_result(result: Any, mode: str) -> None:
    """Raise `GCBError` unless an entry of eval.json has the types that `gcb.evaluation.evaluate` writes."""
    check_entries(result, RESULT_TYPES, mode)
    if missing := [name for name in ("all", "tasks") if name not in result]:
        raise GCBError(f"{mode} has no {missing[0]}")
    for task, rates in (("all", result["all"]), *result["tasks"].items()):
        for criterion, rate in rates.items():
            check_entries(rate, RATE_TYPES, f"{mode}, {task}, {criterion}")


def _arrange(entries: Sequence[Evaluation], run: Run) -> dict[str, Any]:
    """Return the content of eval.json."""
    chosen = _choose(entries, run, REPORTED_SEED)
    history = [entry for entry in entries if entry is not chosen[entry["mode"]]]
    shown = {mode: {key: value for key, value in entry.items() if key != "mode"} for mode, entry in chosen.items()}
    return {**shown, HISTORY: history} if history else shown


def _choose(entries: Sequence[Evaluation], run: Run, seed: int) -> dict[str, Evaluation]:
    """Return the first-ranked evaluation of each mode."""
    checkpoint = run.checkpoint()
    preferred: dict[str, Any] = {"seed": seed, "step": checkpoint.step if checkpoint else None}
    try:
        env_spec = recorded_env_spec(run.dataset.config)
        preferred |= {"env": env_spec.record(), "eval_temperature": env_spec.adapter.eval_temperature}
    except GCBError:
        pass  # a user's own data need not name an environment
    chosen: dict[str, Evaluation] = {}
    for entry in entries:
        best = chosen.setdefault(entry["mode"], entry)
        if rank(entry, preferred) > rank(best, preferred):
            chosen[entry["mode"]] = entry
    return chosen


def rank(entry: Evaluation, preferred: Mapping[str, Any]) -> tuple:
    """Return a key to compare evaluations by: of the final policy, in the environment of its data, with the default
    temperature, with the preferred seed; then the number of episodes, then the date."""
    matches = (entry.get(name) == preferred.get(name) for name in ("step", "env", "eval_temperature", "seed"))
    return *matches, _episodes(entry), str(entry.get("date", ""))


def _identity(entry: Evaluation) -> tuple:
    return tuple(entry.get(name) for name in IDENTITY)


def _episodes(entry: Evaluation) -> int:
    count = entry.get("episodes")
    return count if isinstance(count, int) else 0
