"""Untrusted JSON and YAML: plain values of bounded size, or a message."""

import tracemalloc
from pathlib import Path

import pytest

from gcb.errors import GCBError
from gcb.utils.text_files import MAX_YAML_BYTES, MAX_YAML_NODES, parse_yaml, read_json, read_yaml


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_json_has_no_nan(tmp_path: Path, word: str) -> None:
    (tmp_path / "x.json").write_text(f'{{"seconds": {word}}}')
    with pytest.raises(GCBError, match=rf"x\.json is not readable JSON \('{word}' is not a finite number\)"):
        read_json(tmp_path / "x.json")


def test_aliases_are_counted_as_written_out() -> None:
    assert parse_yaml("a: &a {b: 1}\nc: [*a, *a]\nd: {<<: *a, e: 2}", "x") == {
        "a": {"b": 1},
        "c": [{"b": 1}, {"b": 1}],
        "d": {"b": 1, "e": 2},
    }
    assert parse_yaml("", "x") is None
    few = f"a: &a [{', '.join('x' * 100)}]\nb: [{', '.join(['*a'] * 190)}]"  # 2 + 101 + 1 + 190 × 101 + ... < 20,000
    assert len(parse_yaml(few, "x")["b"]) == 190
    with pytest.raises(GCBError, match=f"x has more than {MAX_YAML_NODES:,} values"):
        parse_yaml(few.replace(", *a", ", *a, *a"), "x")


def test_a_bomb_takes_no_memory() -> None:
    lines = ["a0: &a0 [x, x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30))]
    tracemalloc.start()
    with pytest.raises(GCBError, match="values, with its aliases written out"):
        parse_yaml("\n".join(lines), "x")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10_000_000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: &a [*a]", "nested more than 50 levels"),
        ("[" * 60 + "]" * 60, "nested more than 50 levels"),
        ("!!bool x", "is not plain YAML"),
        ("!!timestamp x", "is not plain YAML"),
        ("a: 1\na: [", "is not plain YAML"),
        ("--- 1\n--- 2", "is not plain YAML"),
        ("9" * 5000, "is not plain YAML"),
    ],
)
def test_other_texts_that_break_the_parser(text: str, message: str) -> None:
    with pytest.raises(GCBError, match=message):
        parse_yaml(text, "x")


def test_large_and_missing_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_bytes(b"#" * (MAX_YAML_BYTES + 1))
    with pytest.raises(GCBError, match=r"x\.yaml is larger than 1 MB"):
        read_yaml(tmp_path / "x.yaml")
    with pytest.raises(GCBError, match="nowhere could not be read: No such file"):
        read_yaml(tmp_path / "nowhere")
    with pytest.raises(GCBError, match="could not be read: Is a directory"):
        read_json(tmp_path)
