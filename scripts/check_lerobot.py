"""Check gcb's LeRobotDatasets with the package `lerobot` itself, in an environment of its own.

    gcb data export DATASET --out EXPORTED --format lerobot
    python scripts/check_lerobot.py read DATASET EXPORTED        what lerobot reads is what the dataset holds
    python scripts/check_lerobot.py write OUT                    lerobot writes OUT/images and OUT/videos …
    gcb data import OUT/images --out FROM_IMAGES --goal last     … which gcb reads
    python scripts/check_lerobot.py compare OUT/images FROM_IMAGES

The environment does not need gcb, as its datasets are plain .npy files, and of lerobot's packages only those that
datasets import. lerobot 0.4.4 cannot write scalars with NumPy 2.4.

    pip install --no-deps lerobot==0.4.4
    pip install torch torchvision "datasets<5" "numpy<2.4" accelerate av deepdiff draccus einops imageio jsonlines
"""

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

FPS, SIZE, LENGTHS = 10, 64, (5, 8)


def lerobot_dataset() -> Any:
    """Import lerobot's class; its torchvision may have been built for another PyTorch, without which it works too."""
    try:
        import torchvision  # noqa: F401  # pyright: ignore[reportMissingImports]
    except RuntimeError:
        library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
    from lerobot.datasets.lerobot_dataset import LeRobotDataset  # pyright: ignore[reportMissingImports]

    return LeRobotDataset


def pixels(image: torch.Tensor) -> np.ndarray:
    """Return lerobot's (C, H, W) image in [0, 1] as uint8 with channels last."""
    return (image * 255).round().to(torch.uint8).permute(1, 2, 0).numpy()


def check_read(dataset: Path, exported: Path, count: int = 500) -> None:
    """Compare `count` frames of an export, as lerobot reads them, with the dataset."""
    data = lerobot_dataset()("gcb/check", root=exported)
    names = ("frames", "actions", "rewards", "episode_first_frame", "episode_length", "episode_goal_frame")
    arrays = {name: np.load(dataset / f"{name}.npy", mmap_mode="r") for name in names}
    length, first = arrays["episode_length"], arrays["episode_first_frame"]
    assert len(data) == (length + 1).sum(), (len(data), (length + 1).sum())
    assert data.num_episodes == len(length)
    start, transition = np.cumsum(length + 1) - (length + 1), np.cumsum(length) - length
    for index in np.linspace(0, len(data) - 1, min(count, len(data))).astype(int).tolist():
        item = data[index]
        episode = int(item["episode_index"])
        step = index - start[episode]
        action = transition[episode] + min(step, length[episode] - 1)
        np.testing.assert_array_equal(pixels(item["observation.images.main"]), arrays["frames"][first[episode] + step])
        goal = arrays["frames"][arrays["episode_goal_frame"][episode]]
        np.testing.assert_array_equal(pixels(item["observation.images.goal"]), goal)
        np.testing.assert_array_equal(item["action"].numpy(), arrays["actions"][action])
        assert float(item["next.reward"]) == arrays["rewards"][action]
        assert isinstance(item["task"], str)
    low, high = data.meta.stats["action"]["min"], data.meta.stats["action"]["max"]
    np.testing.assert_allclose(low, arrays["actions"].min(axis=0))
    np.testing.assert_allclose(high, arrays["actions"].max(axis=0))
    loader = torch.utils.data.DataLoader(data, batch_size=32, shuffle=True)
    batch = next(iter(loader))
    assert batch["observation.images.main"].shape[0] == 32
    print(f"lerobot reads {len(data):,} frames of {data.num_episodes:,} episodes; {count} compared, all equal")


def check_write(out: Path) -> None:
    """Let lerobot write two small datasets, with images and with videos."""
    features: dict[str, Any] = {
        "observation.state": {"dtype": "float32", "shape": (2,), "names": ["x", "y"]},
        "action": {"dtype": "float32", "shape": (2,), "names": ["x", "y"]},
        "next.reward": {"dtype": "float32", "shape": (1,), "names": None},
        "next.success": {"dtype": "bool", "shape": (1,), "names": None},
    }
    for kind in ("image", "video"):
        camera = {"dtype": kind, "shape": (SIZE, SIZE, 3), "names": ["height", "width", "channels"]}
        described = {**features, "observation.images.top": camera}
        data = lerobot_dataset().create(
            "gcb/check", FPS, described, root=out / f"{kind}s", use_videos=kind == "video", vcodec="h264"
        )
        for number, length in enumerate(LENGTHS):
            for step in range(length):
                data.add_frame(frame(number, step, length))
            data.save_episode()
        data.finalize()
        print(f"written: {out / f'{kind}s'}")


def frame(number: int, step: int, length: int) -> dict[str, Any]:
    """Return one frame with a bar at a position that its number and step determine."""
    image = np.full((SIZE, SIZE, 3), 40 * number, np.uint8)
    image[:, 4 * step : 4 * step + 8] = 200
    last = step == length - 1
    return {
        "observation.images.top": image,
        "observation.state": np.array([number, step], np.float32),
        "action": np.array([step / 2, -number], np.float32),
        "next.reward": np.array([float(last)], np.float32),
        "next.success": np.array([last]),
        "task": f"task {number}",
    }


def check_compare(written: Path, imported: Path) -> None:
    """Compare what gcb imported with what `write` gave to lerobot; videos lose some precision."""
    frames, actions = np.load(imported / "frames.npy"), np.load(imported / "actions.npy")
    expected = [frame(number, step, length) for number, length in enumerate(LENGTHS) for step in range(length)]
    goals = np.load(imported / "episode_goal_frame.npy")
    observed = np.delete(frames, goals[goals >= 0], axis=0)
    tolerance = 30 if written.name == "videos" else 0
    images = np.stack([entry["observation.images.top"] for entry in expected]).astype(int)
    error = int(np.abs(observed.astype(int) - images).max())
    assert error <= tolerance, error
    kept = [entry["action"] for entry, end in zip(expected, ends(), strict=True) if not end]
    bound = max(1.0, float(np.abs([entry["action"] for entry in expected]).max()))
    np.testing.assert_allclose(actions, np.stack(kept) / bound, rtol=1e-6)
    assert np.load(imported / "episode_success.npy").all()
    print(f"gcb reads what lerobot wrote: {len(images)} frames, largest difference of a pixel {error}")


def ends() -> list[bool]:
    return [step == length - 1 for length in LENGTHS for step in range(length)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("check", choices=("read", "write", "compare"))
    parser.add_argument("paths", nargs="+", type=Path)
    arguments = parser.parse_args()
    {"read": check_read, "write": check_write, "compare": check_compare}[arguments.check](*arguments.paths)


if __name__ == "__main__":
    main()
