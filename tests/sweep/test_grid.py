"""Grids: the runs they expand to, named grids, YAML, and errors that name the field."""

import pickle
from pathlib import Path
from typing import Any

import pytest

from gcb.cli.sweep import Sweep, parse_seeds
from gcb.errors import GCBError
from gcb.methods import METHODS
from gcb.runs.ablations import ABLATIONS
from gcb.runs.config import make_config
from gcb.sweep.grid import Grid, Variant, merge, parse_overrides, parse_variants, read_grid
from gcb.sweep.presets import named_grid
from gcb.utils.dataclass_io import from_dict, to_dict

RUNS, ROOT = Path("/out/runs"), Path("/data")


def names(grid: Grid) -> list[str]:
    return [job.name for job in grid.jobs(RUNS, ROOT)]


def test_a_grid_is_the_product_of_its_lists_one_seed_after_the_other() -> None:
    grid = Grid(("gcb", "gcbc"), ("drawer", "button_drawer"), (False, True), seeds=2)
    runs = names(grid)
    assert len(runs) == len(set(runs)) == 16
    assert runs[:4] == ["drawer-gcb-s0", "drawer-gcbc-s0", "drawer_video-gcb-s0", "drawer_video-gcbc-s0"]
    assert runs[8] == "drawer-gcb-s1"
    datasets = list(grid.datasets(ROOT))
    assert [job.path.name for job in datasets] == ["drawer", "drawer_video", "button_drawer", "button_drawer_video"]
    assert [job.config.options["video"] for job in datasets if job.config] == [None, "builtin", None, "builtin"]
    job = grid.jobs(RUNS, ROOT)[2]
    assert (job.dataset, job.path) == (ROOT / "drawer_video", RUNS / "drawer_video-gcb-s0")


def test_overrides_of_grid_and_variant_are_merged_field_by_field() -> None:
    variant = Variant("far", {"iql": {"discount": 0.95}}, methods=("gcb",))
    changes = {"steps": 700, "iql": {"hidden": 8}}
    grid = Grid(("gcb", "gcbc"), seeds=(3,), overrides=changes, variants=(Variant(), variant))
    jobs = {job.name: job for job in grid.jobs(RUNS, ROOT)}
    assert list(jobs) == ["button_drawer-gcb-s3", "button_drawer-gcb-far-s3", "button_drawer-gcbc-s3"]
    wanted = make_config("gcb", "laptop", {"seed": 3, "steps": 700, "iql": {"hidden": 8, "discount": 0.95}})
    assert jobs["button_drawer-gcb-far-s3"].config == wanted


def test_runs_with_video_use_the_video_preset() -> None:
    overlays = [job.config.random_overlay for job in Grid(("gcb",), video=(False, True)).jobs(RUNS, ROOT)]
    assert overlays == [0.0, make_config("gcb", "laptop_video").random_overlay]
    assert Grid(("gcb",), video=(True,), preset="paper").jobs(RUNS, ROOT)[0].config == make_config("gcb", "paper")


def test_merging_overrides_does_not_change_its_arguments() -> None:
    first = {"a": {"b": 1, "c": 2}, "d": 3}
    assert merge(first, {"a": {"c": 4}, "d": {"e": 5}}) == {"a": {"b": 1, "c": 4}, "d": {"e": 5}}
    assert first == {"a": {"b": 1, "c": 2}, "d": 3}


def test_a_job_can_be_sent_to_another_process() -> None:
    job = Grid(("gcbc",), video=(True,), modes=("loose",)).jobs(RUNS, ROOT, Path("/clips"))[0]
    assert job.config.iql.temperature == float("inf")
    assert pickle.loads(pickle.dumps(job)) == job
    assert job.clips == "/clips"


def test_a_method_without_analogies_is_evaluated_with_goal_images_only() -> None:
    jobs = Grid(("gcb", "gcbc")).jobs(RUNS, ROOT)
    assert [job.supported_modes for job in jobs] == [("goal", "strict", "free"), ("goal",)]


def test_named_grids() -> None:
    table1 = named_grid("table1")
    assert len(names(table1)) == 4 * len(METHODS)
    assert len(list(table1.datasets(ROOT))) == 4
    assert len(names(named_grid("reference"))) == 12
    assert names(named_grid("comparison")) == [f"button_drawer-{method}-s0" for method in METHODS]
    dimensions = names(named_grid("ablatedim"))
    assert dimensions[0] == "drawer-gcb-s0"
    assert "drawer-gcb-dimension_32-s0" in dimensions
    assert not any(name.startswith("button") for name in dimensions)
    envs = {ablation.env for ablation in ABLATIONS.values()}
    assert len(names(named_grid("ablations"))) == len(ABLATIONS) + len(envs)
    with pytest.raises(GCBError, match="'tabel1'; did you mean table1"):
        named_grid("tabel1")


def test_ablations_of_a_grid_have_the_configuration_of_gcb_ablate() -> None:
    from gcb.runs.ablations import ablated_config

    for job in named_grid("ablations").jobs(RUNS, ROOT):
        if job.variant:
            assert to_dict(job.config) == to_dict(ablated_config(job.variant, "laptop"))


def test_a_grid_from_yaml(tmp_path: Path) -> None:
    path = tmp_path / "grid.yaml"
    path.write_text("""
methods: [gcb, gcbc]
envs: [drawer]
video: [off, on]
seeds: [4]
preset: smoke
overrides: {steps: 30, iql.discount: 0.9}
variants:
  - {}
  - {name: wide, methods: [gcb], overrides: {method_config: {size: 48}}}
episodes: 10
""")
    grid = read_grid(path)
    assert names(grid) == [
        "drawer-gcb-s4",
        "drawer-gcb-wide-s4",
        "drawer-gcbc-s4",
        "drawer_video-gcb-s4",
        "drawer_video-gcb-wide-s4",
        "drawer_video-gcbc-s4",
    ]
    changes = {"seed": 4, "steps": 30, "iql": {"discount": 0.9}, "method_config": {"size": 48}}
    assert grid.jobs(RUNS, ROOT)[1].config == make_config("gcb", "smoke", changes)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], "is []; accepted: a mapping of methods, envs"),
        ({}, "methods"),
        ({"methods": ["gcb"], "env": ["drawer"]}, "env is not a setting; did you mean envs"),
        ({"methods": "gcb"}, "methods is 'gcb'; accepted: a list."),
        ({"methods": ["gcbb"]}, "'gcbb'; did you mean gcb"),
        ({"methods": []}, "methods is []"),
        ({"methods": ["gcb", "gcb"]}, "methods is ['gcb', 'gcb']"),
        ({"methods": ["gcb"], "seeds": 0}, "seeds is 0"),
        ({"methods": ["gcb"], "seeds": [1, 1]}, "seeds is (1, 1)"),
        ({"methods": ["gcb"], "seeds": [-1]}, "seeds is (-1,)"),
        ({"methods": ["gcb"], "seeds": "many"}, "seeds is 'many'; accepted: a whole number or a list."),
        ({"methods": ["gcb"], "video": ["colour"]}, "video[0] is 'colour'; accepted: true or false."),
        ({"methods": ["gcb"], "episodes": 0}, "episodes is 0"),
        ({"methods": ["gcb"], "modes": ["wild"]}, "modes[0] is 'wild'; accepted: 'goal', 'strict', 'loose', 'free'."),
        ({"methods": ["gcb"], "envs": ["../home"]}, "envs holds '../home'; accepted: drawer, button_drawer"),
        ({"methods": ["gcb"], "envs": ["drawer_video"]}, "envs holds 'drawer_video'"),
        ({"methods": ["gcb"], "overrides": 3}, "overrides is 3; accepted: a mapping"),
        ({"methods": ["gcb"], "variants": {"a": 1}}, "variants is {'a': 1}; accepted: a list"),
        ({"methods": ["gcb"], "variants": [{"nam": "a"}]}, "variants[0].nam is not a setting; did you mean name"),
        ({"methods": ["gcb"], "variants": [{"overrides": 1}]}, "variants[0].overrides is 1; accepted: a mapping"),
        ({"methods": ["gcb"], "variants": [{"name": "a/b"}]}, "name 'a/b'"),
        (
            {"methods": ["gcb"], "variants": [{"name": "a", "methods": ["gcbc"]}]},
            "methods holds 'gcbc'",
        ),
    ],
)
def test_an_invalid_field_is_named(values: Any, message: str) -> None:
    with pytest.raises(GCBError) as error:
        from_dict(Grid, values)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"methods: [gcb", "grid.yaml"),
        (b"methods: !!python/object/apply:os.getcwd []", "grid.yaml"),
        (b"\xff\xff", "grid.yaml"),
        (b"methods: [1]", "grid.yaml: methods[0] is 1; accepted: text."),
    ],
)
def test_nothing_in_a_file_is_executed(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "grid.yaml").write_bytes(content)
    with pytest.raises(GCBError) as error:
        read_grid(tmp_path / "grid.yaml")
    assert message in str(error.value)


def test_overrides_are_checked_for_every_method() -> None:
    with pytest.raises(GCBError, match=r"gcb far: iql\.discont is not a setting; did you mean discount"):
        Grid(("gcb",), variants=(Variant("far", {"iql": {"discont": 1}}),)).jobs(RUNS, ROOT)


def test_overrides_on_the_command_line() -> None:
    assert parse_overrides(["steps=30", "iql.discount=0.9", "iql.hidden=8", "lr_schedule=none", "minutes=null"]) == {
        "steps": 30,
        "iql": {"discount": 0.9, "hidden": 8},
        "lr_schedule": "none",
        "minutes": None,
    }
    for wrong in ("steps", "=3", "steps=", "steps=[1"):
        with pytest.raises(GCBError, match=r"is not an override|is not plain YAML"):
            parse_overrides([wrong])


def test_variants_on_the_command_line() -> None:
    assert parse_variants(["method_config.size=8,16", "learning_rate=1e-3"]) == (
        Variant("size=8+learning_rate=1e-3", {"method_config": {"size": 8}, "learning_rate": "1e-3"}),
        Variant("size=16+learning_rate=1e-3", {"method_config": {"size": 16}, "learning_rate": "1e-3"}),
    )


def test_seeds_on_the_command_line() -> None:
    assert parse_seeds(["5"]) == 5
    assert parse_seeds(["0", "3"]) == (0, 3)
    assert parse_seeds(["7-7"]) == (7,)
    assert parse_seeds(["1", "4-6"]) == (1, 4, 5, 6)
    with pytest.raises(GCBError, match="seeds is 'x'; accepted"):
        parse_seeds(["x"])


def test_options_change_a_named_grid() -> None:
    command = Sweep("reference", envs=("drawer",), seeds=("2",), episodes=7, overrides=("steps=9",), videos=True)
    grid = command.chosen_grid()
    assert (grid.methods, grid.envs, grid.seeds, grid.episodes) == (
        ("gcb", "gcbc", "goal_agnostic_bc"),
        ("drawer",),
        2,
        7,
    )
    assert (grid.video, grid.videos, grid.overrides) == ((False, True), True, {"steps": 9})
    assert Sweep("reference", video=("on",), eval_seed=0).chosen_grid().video == (True,)
    with pytest.raises(GCBError, match="neither a grid nor --methods"):
        Sweep().chosen_grid()
