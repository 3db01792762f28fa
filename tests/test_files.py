"""Files that are wholly there or not at all."""

import hashlib
import os
from pathlib import Path

import pytest

from gcb.errors import GCBError
from gcb.files import atomic_file, disk_faults, folder_lock, read_json, sha256, write_atomically, write_json


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"old")
    with pytest.raises(TypeError), atomic_file(path) as handle:
        handle.writelines([b"new", None])  # pyright: ignore[reportCallIssue, reportArgumentType]
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_reader_meanwhile_sees_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"old")
    with atomic_file(path) as handle:
        handle.write(b"new")
        handle.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["file"]


def test_the_bytes_reach_the_disk_before_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    real_sync, real_replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda file: (order.append("fsync"), real_sync(file)))
    monkeypatch.setattr(os, "replace", lambda old, new: (order.append("replace"), real_replace(old, new)))
    write_atomically(tmp_path / "file", b"bytes")
    assert order == ["fsync", "replace", "fsync"]  # the file, its name, the folder that holds the name


def test_json_is_the_same_whatever_the_order(tmp_path: Path) -> None:
    write_json(tmp_path / "one", {"b": 1, "a": [2.5, None]})
    write_json(tmp_path / "two", {"a": [2.5, None], "b": 1})
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert read_json(tmp_path / "one") == {"a": [2.5, None], "b": 1}
    (tmp_path / "one").write_bytes(b"\xff{")
    with pytest.raises(GCBError, match="one is not readable JSON"):
        read_json(tmp_path / "one")


def test_sha256_of_more_than_one_chunk(tmp_path: Path) -> None:
    content = bytes(range(256)) * 5000
    (tmp_path / "file").write_bytes(content)
    assert sha256(tmp_path / "file") == hashlib.sha256(content).hexdigest()
    (tmp_path / "abc").write_bytes(b"abc")
    assert sha256(tmp_path / "abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # FIPS 180-2


def test_a_locked_folder_is_refused_until_it_is_free(tmp_path: Path) -> None:
    with folder_lock(tmp_path), pytest.raises(GCBError, match="in use"), folder_lock(tmp_path):
        pass
    with folder_lock(tmp_path):
        pass
    assert os.listdir(tmp_path) == []
    with pytest.raises(GCBError, match="nowhere could not be opened"), folder_lock(tmp_path / "nowhere"):
        pass


def test_a_refusal_of_the_system_names_the_file_and_the_reason(tmp_path: Path) -> None:
    with (
        pytest.raises(GCBError, match=r"run could not be written: No such file or directory\. Nothing was kept"),
        disk_faults("run"),
    ):
        write_atomically(tmp_path / "nowhere" / "file", b"")
