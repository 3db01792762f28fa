"""`gcb collect` and `gcb expert`."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcb.cli import Episodes, Json, Seed
from gcb.cli.output import print_json, print_rows, say

if TYPE_CHECKING:
    from gcb.envs.expert_media import ExpertRates


def _env_options(image_size: int, video: bool, clips: Path | None) -> dict[str, Any]:
    return {"image_size": image_size, "video": str(clips) if clips else "builtin" if video else None}


@dataclass
class Collect:
    """Collect an offline dataset with the noisy scripted expert. Run the same command again to resume."""

    out: Path
    """Directory of the dataset."""
    env: str = "gcb/ButtonDrawer-v0"
    """Environment: gcb/Drawer-v0 or gcb/ButtonDrawer-v0."""
    transitions: int = 50_000
    """Exact number of transitions."""
    seed: Seed = 0
    """Seed of the scenes and the noise. The dataset does not depend on the number of workers."""
    workers: int = 1
    """Number of processes; one per core is fastest."""
    noise: float = 0.3
    """Standard deviation of the Gaussian noise on the expert's actions."""
    image_size: int = 64
    """Width and height of the images in pixels."""
    video: bool = False
    """Add video distractors: natural videos behind the scene."""
    clips: Path | None = None
    """Directory of video files (mp4, avi, webm, ...) to use as distractors instead of the built-in ones."""

    def run(self) -> None:
        from gcb.data import CollectConfig, collect, describe, open_dataset

        options = _env_options(self.image_size, self.video, self.clips)
        config = CollectConfig(self.env, self.transitions, self.seed, self.noise, options)
        result = collect(config, self.out, workers=self.workers)
        if result.start_transitions == result.transitions:
            say(f"{result.path} is already complete.")
        print_rows(describe(open_dataset(result.path)))


@dataclass
class Expert:
    """Measure the success rate of the scripted expert, with and without noise, on evaluation scenes."""

    env: str = "gcb/ButtonDrawer-v0"
    """Environment: gcb/Drawer-v0 or gcb/ButtonDrawer-v0."""
    episodes: Episodes = 300
    """Number of episodes."""
    noise: float = 0.3
    """Standard deviation of the Gaussian noise on the actions."""
    seed: Seed = 0
    """Seed of the scenes and the noise."""
    video_out: Path | None = None
    """Also write a video (.mp4 or .gif) of six noise-free episodes."""
    sheet_out: Path | None = None
    """Also write an image (.png) of scenes: state, goal, and an analogous pair."""
    video: bool = False
    """Add video distractors: natural videos behind the scene."""
    clips: Path | None = None
    """Directory of video files to use as distractors instead of the built-in ones."""
    json: Json = False

    def run(self) -> None:
        from gcb.envs.expert_media import expert_video, measure_expert, scene_sheet

        options = _env_options(64, self.video, self.clips)
        if self.sheet_out:  # first, as it takes least and may not be writable
            scene_sheet(self.env, self.sheet_out, 4, self.seed, **options)
        if self.video_out:
            expert_video(self.env, self.video_out, 6, self.seed, **options)
        rates = measure_expert(self.env, self.episodes, self.noise, self.seed, **options)
        if self.json:
            print_json(
                {
                    "env": self.env,
                    "noise": self.noise,
                    "seed": self.seed,
                    **{field.name: getattr(rates, field.name) for field in fields(rates)},
                }
            )
        else:
            self._print(rates)

    def _print(self, rates: "ExpertRates") -> None:
        rows = [("noise-free", str(rates.noise_free)), (f"noise {self.noise:g}", str(rates.noisy))]
        rows += [(f"  {task}", str(rate)) for task, rate in rates.per_task.items()]
        print_rows([*rows, ("mean steps", f"{rates.mean_steps:.1f}")], title=f"expert in {self.env}")
