"""Configurations: presets, the YAML file, and strict checks of names, types and ranges."""

from dataclasses import dataclass, fields, replace
from math import inf, nan
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml

from gcb.errors import GCBError
from gcb.methods import METHODS
from gcb.runs.config import PRESETS, TrainConfig, config_from_dict, make_config, read_config, write_config
from gcb.utils.dataclass_io import Difference, check_fields, differences, from_dict, replace_nested, to_dict


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("preset", PRESETS)
def test_the_file_holds_every_setting(tmp_path: Path, method: str, preset: str) -> None:
    config = make_config(method, preset, {"seed": 3})
    write_config(tmp_path / "config.yaml", config)
    assert read_config(tmp_path / "config.yaml") == config
    plain = yaml.safe_load((tmp_path / "config.yaml").read_text())
    assert plain.keys() == {field.name for field in fields(config)}
    assert plain["method_config"].keys() == {field.name for field in fields(config.method_config)}
    assert plain["seed"] == 3


def test_a_preset_changes_only_what_it_lists() -> None:
    plain = TrainConfig("gcbc", METHODS["gcbc"].config_type())
    paper = make_config("gcbc", "paper")
    changes = differences(to_dict(plain), to_dict(paper))
    assert sorted(change.name for change in changes) == [
        "checkpoint_every",
        "iql.temperature",  # behaviour cloning's own
        "method_config.encoder",
        "method_config.learning_rate",
        "random_shift",
        "steps",
    ]
    assert paper.iql.temperature == inf


@pytest.mark.parametrize("method", METHODS)
def test_laptop_video_differs_from_laptop_in_augmentation_and_steps_alone(method: str) -> None:
    """Except for the weight of GCB's L_φ."""
    laptop, video = (to_dict(make_config(method, preset)) for preset in ("laptop", "laptop_video"))
    changed = ["steps"] if method == "pixel" else ["random_overlay", "steps"]  # pixel is not augmented by definition
    changed += ["method_config.phi_weight"] if method == "gcb" else []
    assert sorted(change.name for change in differences(laptop, video)) == sorted(changed)


@pytest.mark.parametrize("method", METHODS)
def test_laptop_trains_on_the_episodes_own_goals(method: str) -> None:
    config = make_config(method, "laptop")
    assert (config.goals.p_original, config.only_successful) == (1.0, True)
    assert config.batch_size % (2 * config.transitions_per_episode) == 0
    assert config.transitions_per_episode == 2


def test_changes_override_the_preset() -> None:
    config = make_config("gcbc", "smoke", {"steps": 7, "iql": {"temperature": 2}, "method_config": {"size": 5}})
    assert (config.steps, config.iql.temperature, config.method_config.size) == (7, 2.0, 5)
    assert config.batch_size == PRESETS["smoke"]["batch_size"]


def test_missing_settings_keep_their_defaults(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("method: gcbc\nlearning_rate: 1e-5\niql: {expectile: 0.9}\n")
    config = read_config(tmp_path / "config.yaml")
    assert config == replace(
        TrainConfig("gcbc", METHODS["gcbc"].config_type()), learning_rate=1e-5, iql=replace(config.iql, expectile=0.9)
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("method: gcbc\nbatchsize: 3", "batchsize is not a setting; did you mean batch_size?"),
        ("method: gcbc\niql: {width: 0.7}", "iql.width is not a setting; accepted: discount, expectile"),
        ("method: gcbc\nmethod_config: {colour: red}", "method_config.colour is not a setting"),
        ("method: gcbc\nsteps: 2.5", "steps is 2.5; accepted: a whole number."),
        ("method: gcbc\nsteps: many", "steps is 'many'; accepted: a whole number."),
        ("method: gcbc\nsteps: true", "steps is True; accepted: a whole number."),
        ("method: gcbc\ncompile: 1", "compile is 1; accepted: true or false."),
        ("method: gcbc\nminutes: soon", "minutes is 'soon'; accepted: a number or none."),
        ("method: gcbc\nlearning_rate: .nan", "learning_rate is nan; accepted: a number."),
        ("method: gcbc\nlr_schedule: slowly", "lr_schedule is 'slowly'; accepted: 'none', 'linear', 'cosine'."),
        ("method: gcbc\niql: 3", "iql is 3; accepted: a mapping of discount"),
        ("method: gcbc\nsteps: 0", "steps is 0; it must be in [1, 1000000000]."),
        ("method: gcbc\nbatch_size: 1", "batch_size is 1; it must be in [2, 65536]"),
        ("method: gcbc\nbatch_size: 3", "batch_size is 3; it must be a multiple of 2"),
        (
            "method: gcbc\nbatch_size: 18\ntransitions_per_episode: 3\nmicrobatches: 2",
            "batch_size is 18; it must be a multiple of 12 (2 × transitions_per_episode × microbatches).",
        ),
        ("method: gcbc\ntransitions_per_episode: 0", "transitions_per_episode is 0; it must be in [1, 65536]."),
        ("method: gcb\nmethod_config: {partners: {colour: red}}", "method_config.partners.colour is not a setting"),
        ("method: gcbc\nsteps: 10\nwarmup_steps: 10", "warmup_steps is 10; it must be in [0, 10)"),
        ("method: gcbc\nmax_grad_norm: -1", "max_grad_norm is -1.0; it must be above 0."),
        ("method: gcbc\nmin_lr_ratio: 2", "min_lr_ratio is 2.0; it must be in [0, 1]"),
        ("method: gcbc\niql: {expectile: 1.0}", "iql.expectile is 1.0"),
        ("method: gcbc\ngoals: {p_original: 0.9}", "must add up to 1"),
        ("method: gcbcc", "no method 'gcbcc'; did you mean gcbc?"),
        ("steps: 3", "does not name its method"),
        ("- 1", "does not name its method"),
        ("", "does not name its method"),
        ("method: [", "is not plain YAML"),
        ("\x00", "is not plain YAML"),
        ("method: !!python/object/apply:os.system ['touch /tmp/gcb-was-here']", "is not plain YAML"),
    ],
)
def test_invalid_settings_are_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(GCBError) as error:
        read_config(path)
    assert str(error.value).startswith(str(path))
    assert message in str(error.value)
    assert not Path("/tmp/gcb-was-here").exists()


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(GCBError, match=r"nothing\.yaml could not be read: No such file"):
        read_config(tmp_path / "nothing.yaml")


def test_settings_given_in_python_are_checked_too() -> None:
    with pytest.raises(GCBError, match="steps is 'many'; accepted: a whole number"):
        make_config("gcbc", "smoke", {"steps": "many"})
    with pytest.raises(GCBError, match=r"iql\.taux is not a setting"):
        make_config("gcbc", "smoke", {"iql": {"taux": 1}})
    with pytest.raises(GCBError, match="no preset 'large'; accepted: paper, laptop, laptop_video, smoke"):
        make_config("gcbc", "large")
    with pytest.raises(GCBError, match="gcbc needs a BCConfig"):
        TrainConfig("gcbc", {"size": 3})
    with pytest.raises(GCBError, match=r"method_config\.size is 0"):
        make_config("gcbc", "smoke", {"method_config": {"size": 0}})


@dataclass(frozen=True)
class Bounded:
    value: float | None

    def __post_init__(self) -> None:
        check_fields(self, "config.", value="[0, 1)")


@dataclass(frozen=True)
class Unbounded:
    value: float

    def __post_init__(self) -> None:
        check_fields(self, value="(0, inf)")


@pytest.mark.parametrize("value", [0, 0.5, None])
def test_a_value_inside_its_interval_passes(value: float | None) -> None:
    assert Bounded(value).value == value


@pytest.mark.parametrize(
    ("cls", "value", "message"),
    [
        (Bounded, 1, "config.value is 1; it must be in [0, 1)."),
        (Bounded, -0.1, "config.value is -0.1; it must be in [0, 1)."),
        (Bounded, nan, "config.value is nan; it must be in [0, 1)."),
        (Unbounded, 0, "value is 0; it must be above 0."),
        (Unbounded, inf, "value is inf; it must be above 0 and finite."),
    ],
)
def test_a_value_outside_its_interval_is_named(cls: type, value: float, message: str) -> None:
    with pytest.raises(GCBError) as error:
        cls(value)
    assert str(error.value) == message


@dataclass(frozen=True)
class Inner:
    sizes: tuple[int, ...] = (1, 2)
    pair: tuple[float, str] = (1.0, "a")


@dataclass(frozen=True)
class Outer:
    needed: int
    inner: Inner = Inner()
    choice: Literal["a", 1] | None = None
    place: Any = None


def test_tuples_literals_and_nesting_round_trip() -> None:
    value = Outer(3, Inner((5,), (2.5, "b")), choice=1)
    assert from_dict(Outer, to_dict(value), types_of={"place": type(None)}) == value
    with pytest.raises(GCBError, match=r"inner\.pair has 1 entries; accepted: 2"):
        from_dict(Outer, {"needed": 1, "inner": {"pair": [1]}})
    with pytest.raises(GCBError, match=r"inner\.sizes\[1\] is 'x'"):
        from_dict(Outer, {"needed": 1, "inner": {"sizes": [1, "x"]}})
    with pytest.raises(GCBError, match="choice is True"):
        from_dict(Outer, {"needed": 1, "choice": True})
    with pytest.raises(GCBError, match="needed is missing"):
        from_dict(Outer, {})
    assert replace_nested(value, {"inner": {"sizes": [7]}}).inner == Inner((7,), (2.5, "b"))


def test_differences_name_each_field() -> None:
    assert differences({"a": 1, "b": {"c": 2, "d": 3}}, {"a": 1, "b": {"c": 5, "d": 3}, "e": 0}) == [
        Difference("b.c", 2, 5),
        Difference("e", None, 0),
    ]
    assert config_from_dict(to_dict(make_config("gcbc", "smoke"))) == make_config("gcbc", "smoke")
