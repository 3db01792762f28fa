"""`make demo`: a small dataset, its contact sheet, and a video of the expert."""

from pathlib import Path

from rich.console import Console

from gcb.data import CollectConfig, collect, contact_sheet, open_dataset
from gcb.showcase import expert_video, world_sheet

WORLD = "gcb/ButtonDrawer-v0"
TRANSITIONS = 4_000


def demo(out: Path, console: Console) -> None:
    """Make everything into `out`; what is there already is kept."""
    dataset = out / "data"
    console.rule("1. A dataset of the noisy expert")
    collect(CollectConfig(WORLD, TRANSITIONS), dataset, workers=2)
    contact_sheet(open_dataset(dataset), out / "data.png")
    console.rule("2. The world and its expert")
    world_sheet(WORLD, out / "world.png", rows=4, seed=0)
    expert_video(WORLD, out / "expert.mp4", episodes=6, seed=0)
    console.rule("Done")
    for name, what in (
        ("data.png", "episodes of the dataset"),
        ("world.png", "states, goals and analogous pairs"),
        ("expert.mp4", "the expert at work, its goal images below"),
    ):
        console.print(f"{out / name}: {what}")
