"""Make an agent that comes with the package from a run: `python -m scripts.bundle_agent RUN NAME`.

The weights are stored in half precision, without the networks that only training needs. The run must be finished and
evaluated: its success rates and the commands that made it are part of the model card.
"""

import argparse
import hashlib
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import safetensors.torch
import torch
from torch import Tensor

from gcb.agent.agent import load
from gcb.agent.build import TRAINING_ONLY
from gcb.agent.export import CARD, model_card
from gcb.errors import GCBError
from gcb.runs.config import PRESETS, make_config
from gcb.runs.evaluations import read_results
from gcb.runs.find import BUNDLED
from gcb.runs.run_dir import CHECKPOINT, CONFIG, EVAL, RECORD, CheckpointFile, Run
from gcb.utils.dataclass_io import differences, to_dict
from gcb.utils.files import staged_dir, write_atomically, write_json
from gcb.utils.text_files import read_json

MAX_BYTES = 3_000_000
"""Size of a bundled agent's weights: the package carries them for everybody."""
NOT_RESULTS = ("device", "threads", "log_every", "checkpoint_every", "preload", "tensorboard", "wandb")
"""Settings that a reader need not repeat to train the same agent."""


def bundle(run_path: Path, name: str, root: Path = BUNDLED) -> Path:
    """Write ROOT/NAME from a finished, evaluated run, in place of an older one; return its directory."""
    agent = load(run_path)
    run = agent.run
    assert run is not None, "load sets the agent's run"
    results, (weights, checkpoint) = read_results(run.path), run.weights()
    if not checkpoint.finished or not results:
        raise GCBError(f"{run.path} is not finished or not evaluated; accepted: a run after `gcb train` and `gcb eval`")
    content = safetensors.torch.save(halved(weights), {"method": checkpoint.method, "step": str(checkpoint.step)})
    if len(content) > MAX_BYTES:
        raise GCBError(f"the weights of {run.path} take {len(content):,} bytes; accepted: at most {MAX_BYTES:,}")
    entry = CheckpointFile(checkpoint.weights.name, len(content), hashlib.sha256(content).hexdigest())
    data = replace(run.dataset, path=None, name=Path(run.dataset.path or name).name)
    card = "\n".join([model_card(agent, name).rstrip(), "", "## How it was made", "", *made(run, name), ""])
    with staged_dir(root / name) as out:
        write_atomically(out / entry.name, content)
        write_atomically(out / CONFIG, (run.path / CONFIG).read_bytes())
        write_json(out / RECORD, {**read_json(run.path / RECORD), "data": to_dict(data)})
        write_json(out / EVAL, results)
        write_json(out / CHECKPOINT, to_dict(replace(checkpoint, state=None, weights=entry)))
        write_atomically(out / CARD, card.encode())
        shutil.rmtree(root / name, ignore_errors=True)
    return root / name


def halved(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights that acting needs, in half precision."""
    prefixes = tuple(f"{name}." for name in TRAINING_ONLY)
    kept = {name: tensor.half() for name, tensor in weights.items() if not name.startswith(prefixes)}
    broken = [name for name, tensor in kept.items() if not torch.isfinite(tensor).all()]
    if broken:
        raise GCBError(f"{broken[0]} is too large for half precision")
    return kept


def made(run: Run, name: str) -> list[str]:
    """Return the section of the model card that says how to make the agent again."""
    modes = " ".join(read_results(run.path))
    episodes = max(result["episodes"] for result in read_results(run.path).values())
    commands = [
        run.dataset.collect_command() or f"# the dataset {run.dataset.fingerprint}",
        train_command(run),
        f"gcb eval RUN --episodes {episodes} --modes {modes}",
        f"python -m scripts.bundle_agent RUN {name}",
    ]
    dropped = "The weights are in half precision, and value functions, critics and decoders are left out: acting, φ and"
    return ["```bash", *commands, "```", "", f"{dropped} ψ need none of them."]


def train_command(run: Run) -> str:
    """Return the command that trains the run: the nearest preset, and every setting that differs from it."""
    settings = to_dict(run.config)
    found = {preset: differences(to_dict(make_config(run.config.method, preset)), settings) for preset in PRESETS}
    preset = min(found, key=lambda name: len(found[name]))
    changes = [change for change in found[preset] if change.name not in NOT_RESULTS]
    options = [f"--{change.name.replace('_', '-')} {change.new}" for change in changes if change.name != "seed"]
    method = [] if run.config.method == "gcb" else [f"--method {run.config.method}"]
    words = ["gcb train --data DATA --out RUN", *method, f"--preset {preset} --seed {run.config.seed}", *options]
    return " ".join(words)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("run", type=Path, help="directory of the run")
    parser.add_argument("name", help="the agent's name, for gcb.load")
    given = parser.parse_args()
    try:
        out = bundle(given.run, given.name)
    except GCBError as error:
        sys.exit(f"bundle_agent: {error}")
    size = sum(path.stat().st_size for path in out.iterdir())
    print(f"{out} ({size / 1e6:.2f} MB)")


if __name__ == "__main__":
    main()
