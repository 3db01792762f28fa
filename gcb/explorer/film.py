"""A film of an episode for download: the task, the agents and the expert side by side."""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from gcb.explorer.display import from_data_url
from gcb.explorer.episode import Event
from gcb.utils.media import tile, write_video

FPS = 24  # the environment's own speed
LAST_FRAME_REPEATS = FPS


def film(before_url: str, after_url: str, names: Sequence[str], events: Sequence[Event]) -> bytes:
    """Return the events of an episode as an MP4 file; `names` are the captions of the agents."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "film.mp4")
        write_video(path, _frames(before_url, after_url, names, events), FPS)
        return path.read_bytes()


def _frames(before_url: str, after_url: str, names: Sequence[str], events: Sequence[Event]) -> Iterator[np.ndarray]:
    frames = [event for event in events if event["type"] in ("start", "step")]
    expert = from_data_url(frames[0]["agents"][0]["image"])  # both begin in the same state
    task = [from_data_url(url, len(expert)) for url in (before_url, after_url)]
    labels = ["before", "after", *names, "expert"]
    for event in [*frames, *frames[-1:] * LAST_FRAME_REPEATS]:
        agents = [from_data_url(agent["image"]) for agent in event["agents"]]
        expert = from_data_url(url) if (url := event.get("expert_image")) else expert
        yield tile([*task, *agents, expert], len(labels), labels=labels)
