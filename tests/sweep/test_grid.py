"""Grids: what they expand to, ready-made ones, YAML, and errors that name the field."""

from pathlib import Path
from typing import Any

import pytest

from gcb.cli.sweep import Sweep, parse_seeds
from gcb.errors import GCBError
from gcb.methods import METHODS
from gcb.runs.ablations import ABLATIONS
from gcb.runs.config import make_config
from gcb.sweep.grid import Grid, Variant, merged
from gcb.sweep.grid_file import parse_settings, parse_variants, plain_grid, read_grid
from gcb.sweep.ready import ready_grid
from gcb.sweep.run_job import RunJob
from gcb.utils.dataclass_io import to_dict

OUT, ROOT = Path("/out"), Path("/data")


def names(grid: Grid) -> list[str]:
    return [job.name for job in grid.runs(OUT, ROOT)]


def test_a_grid_is_the_product_of_its_lists_seed_by_seed() -> None:
    grid = Grid(("gcb", "gcbc"), ("drawer", "button_drawer"), ("plain", "video"), seeds=2)
    found = names(grid)
    assert len(found) == len(set(found)) == 16
    assert found[:4] == ["drawer-gcb-s0", "drawer-bc-s0", "drawer_video-gcb-s0", "drawer_video-bc-s0"]
    assert found[8] == "drawer-gcb-s1"
    datasets = list(grid.datasets(ROOT))
    folders = [job.folder.name for job in datasets]
    assert folders == ["drawer", "drawer_video", "button_drawer", "button_drawer_video"]
    assert [job.config.options["video"] for job in datasets if job.config] == [None, "builtin", None, "builtin"]
    job = grid.runs(OUT, ROOT)[2]
    assert (job.data, job.folder) == (ROOT / "drawer_video", OUT / "runs" / "drawer_video-gcb-s0")


def test_settings_of_the_grid_and_the_variant_meet_field_by_field() -> None:
    variant = Variant("far", {"iql": {"discount": 0.95}}, methods=("gcb",))
    changes = {"steps": 700, "iql": {"hidden": 8}}
    grid = Grid(("gcb", "gcbc"), seeds=(3,), set=changes, variants=(Variant(), variant))
    jobs = {job.name: job for job in grid.runs(OUT, ROOT)}
    assert list(jobs) == ["button_drawer-gcb-s3", "button_drawer-gcb-far-s3", "button_drawer-bc-s3"]
    wanted = make_config("gcb", "laptop", {"seed": 3, "steps": 700, "iql": {"hidden": 8, "discount": 0.95}})
    assert jobs["button_drawer-gcb-far-s3"].config == wanted


def test_runs_with_video_take_the_preset_for_it() -> None:
    overlays = [job.config.random_overlay for job in Grid(("gcb",), video=("plain", "video")).runs(OUT, ROOT)]
    assert overlays == [0.0, make_config("gcb", "laptop_video").random_overlay]
    assert Grid(("gcb",), video=("video",), preset="paper").runs(OUT, ROOT)[0].config == make_config("gcb", "paper")


def test_changes_merge_without_changing_what_they_come_from() -> None:
    first = {"a": {"b": 1, "c": 2}, "d": 3}
    assert merged(first, {"a": {"c": 4}, "d": {"e": 5}}) == {"a": {"b": 1, "c": 4}, "d": {"e": 5}}
    assert first == {"a": {"b": 1, "c": 2}, "d": 3}


def test_a_job_survives_its_file() -> None:
    job = Grid(("gcbc",), video=("video",), modes=("loose",)).runs(OUT, ROOT, Path("/clips"))[0]
    assert job.config.iql.temperature == float("inf")
    assert RunJob.from_dict(job.to_dict(), OUT) == job
    assert job.clips == "/clips"


def test_a_method_without_analogies_is_asked_by_goal_only() -> None:
    jobs = Grid(("gcb", "gcbc"), modes=("goal", "strict")).runs(OUT, ROOT)
    assert [job.possible_modes for job in jobs] == [("goal", "strict"), ("goal",)]


def test_ready_made_grids() -> None:
    table1 = ready_grid("table1")
    assert len(names(table1)) == 4 * len(METHODS)
    assert len(list(table1.datasets(ROOT))) == 4
    assert len(names(ready_grid("reference"))) == 12
    assert names(ready_grid("comparison")) == [f"button_drawer-{method}-s0" for method in METHODS]
    dimensions = names(ready_grid("ablatedim"))
    assert dimensions[0] == "drawer-gcb-s0"
    assert "drawer-gcb-dimension_32-s0" in dimensions
    assert not any(name.startswith("button") for name in dimensions)
    envs = {one.env for one in ABLATIONS.values()}
    assert len(names(ready_grid("ablations"))) == len(ABLATIONS) + len(envs)
    with pytest.raises(GCBError, match=r"There is no grid 'tabel1'; did you mean table1\?"):
        ready_grid("tabel1")


def test_every_ablation_of_a_grid_is_what_gcb_ablate_would_train() -> None:
    from gcb.runs.ablations import ablated_config

    for job in ready_grid("ablations").runs(OUT, ROOT):
        if job.variant:
            assert to_dict(job.config) == to_dict(ablated_config(job.variant, "laptop"))


def test_a_grid_from_yaml(tmp_path: Path) -> None:
    path = tmp_path / "grid.yaml"
    path.write_text("""
methods: [gcb, bc]
worlds: [drawer]
video: [plain, video]
seeds: [4]
preset: smoke
set: {steps: 30, iql.discount: 0.9}
variants:
  - {}
  - {name: wide, methods: [gcb], set: {method_config: {size: 48}}}
episodes: 10
""")
    grid = read_grid(path)
    assert names(grid) == [
        "drawer-gcb-s4",
        "drawer-gcb-wide-s4",
        "drawer-bc-s4",
        "drawer_video-gcb-s4",
        "drawer_video-gcb-wide-s4",
        "drawer_video-bc-s4",
    ]
    changes = {"seed": 4, "steps": 30, "iql": {"discount": 0.9}, "method_config": {"size": 48}}
    assert grid.runs(OUT, ROOT)[1].config == make_config("gcb", "smoke", changes)


@pytest.mark.parametrize(
    ("plain", "message"),
    [
        ([], "the grid is []; accepted: a mapping"),
        ({}, "the configuration is incomplete"),
        ({"methods": ["gcb"], "env": ["drawer"]}, "env is not a setting; did you mean envs?"),
        ({"methods": "gcb"}, "methods is 'gcb'; accepted: a list."),
        ({"methods": ["gcbb"]}, "There is no method 'gcbb'; did you mean gcb?"),
        ({"methods": []}, "methods is empty"),
        ({"methods": ["gcb", "gcb"]}, "each may be there once"),
        ({"methods": ["gcb"], "seeds": 0}, "seeds is 0; accepted"),
        ({"methods": ["gcb"], "seeds": [1, 1]}, "seeds is (1, 1); accepted"),
        ({"methods": ["gcb"], "seeds": "many"}, "seeds is 'many'; accepted: a whole number or a list."),
        ({"methods": ["gcb"], "video": ["colour"]}, "video[0] is 'colour'; accepted: 'plain', 'video'."),
        ({"methods": ["gcb"], "episodes": 0}, "episodes is 0; it must be at least 1."),
        ({"methods": ["gcb"], "envs": ["../home"]}, "envs holds '../home'; accepted: drawer, button_drawer"),
        ({"methods": ["gcb"], "set": 3}, "set is 3; accepted: a mapping of settings"),
        ({"methods": ["gcb"], "variants": {"a": 1}}, "variants is {'a': 1}; accepted: a list"),
        ({"methods": ["gcb"], "variants": [{"nam": "a"}]}, "variants[0].nam is not a setting; did you mean name?"),
        ({"methods": ["gcb"], "variants": [{"set": 1}]}, "variants[0].set is 1; accepted: a mapping"),
        ({"methods": ["gcb"], "variants": [{"name": "a/b"}]}, "variants has the name 'a/b'"),
        (
            {"methods": ["gcb"], "variants": [{"name": "a", "methods": ["gcbc"]}]},
            "methods has 'bc', which the grid has",
        ),
    ],
)
def test_what_does_not_fit_is_named(plain: Any, message: str) -> None:
    with pytest.raises(GCBError) as error:
        plain_grid(plain)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"methods: [gcb", "is not plain YAML"),
        (b"methods: !!python/object/apply:os.getcwd []", "is not plain YAML"),
        (b"\xff\xff", "is not plain YAML"),
        (b"methods: [1]", "grid.yaml: methods[0] is 1; accepted: text."),
    ],
)
def test_a_file_is_only_read(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "grid.yaml").write_bytes(content)
    with pytest.raises(GCBError) as error:
        read_grid(tmp_path / "grid.yaml")
    assert message in str(error.value)


def test_settings_are_checked_with_every_method() -> None:
    with pytest.raises(GCBError, match=r"gcb far: iql.discont is not a setting; did you mean discount\?"):
        Grid(("gcb",), variants=(Variant("far", {"iql": {"discont": 1}}),)).runs(OUT, ROOT)


def test_settings_in_words() -> None:
    assert parse_settings(["steps=30", "iql.discount=0.9", "iql.hidden=8", "lr_schedule=none", "minutes=null"]) == {
        "steps": 30,
        "iql": {"discount": 0.9, "hidden": 8},
        "lr_schedule": "none",
        "minutes": None,
    }
    for wrong in ("steps", "=3", "steps=", "steps=[1"):
        with pytest.raises(GCBError, match=r"is not a setting|has no plain value"):
            parse_settings([wrong])


def test_variants_in_words() -> None:
    assert parse_variants(["method_config.size=8,16", "learning_rate=1e-3"]) == (
        Variant("size=8+learning_rate=1e-3", {"method_config": {"size": 8}, "learning_rate": "1e-3"}),
        Variant("size=16+learning_rate=1e-3", {"method_config": {"size": 16}, "learning_rate": "1e-3"}),
    )


def test_seeds_in_words() -> None:
    assert parse_seeds(["5"]) == 5
    assert parse_seeds(["0", "3"]) == (0, 3)
    assert parse_seeds(["7-7"]) == (7,)
    assert parse_seeds(["1", "4-6"]) == (1, 4, 5, 6)
    with pytest.raises(GCBError, match="seeds is 'x'; accepted"):
        parse_seeds(["x"])


def test_options_change_a_ready_made_grid() -> None:
    command = Sweep("reference", envs=("drawer",), seeds=("2",), episodes=7, set=("steps=9",), videos=True)
    grid = command.chosen_grid()
    assert (grid.methods, grid.envs, grid.seeds, grid.episodes) == (
        ("gcb", "gcbc", "goal_agnostic_bc"),
        ("drawer",),
        2,
        7,
    )
    assert (grid.video, grid.videos, grid.set) == (("plain", "video"), True, {"steps": 9})
    with pytest.raises(GCBError, match="neither a grid nor --methods"):
        Sweep().chosen_grid()
