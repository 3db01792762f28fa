"""Files and directories are written completely or not at all; locks."""

import errno
import fcntl
import hashlib
import os
import threading
from pathlib import Path

import pytest

from gcb.errors import GCBError
from gcb.utils.files import (
    atomic_file,
    directory_lock,
    file_lock,
    output_file,
    sha256,
    staged_dir,
    write_atomically,
    write_json,
)
from gcb.utils.os_errors import explain_os_errors
from gcb.utils.text_files import read_json


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"old")
    with pytest.raises(TypeError), atomic_file(path) as handle:
        handle.writelines([b"new", None])  # pyright: ignore[reportCallIssue, reportArgumentType]
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_readers_see_the_old_file_until_the_new_one_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"old")
    with atomic_file(path) as handle:
        handle.write(b"new")
        handle.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["file"]


def test_the_content_is_on_disk_before_the_rename(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    real_sync, real_replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda file: (order.append("fsync"), real_sync(file)))
    monkeypatch.setattr(os, "replace", lambda old, new: (order.append("replace"), real_replace(old, new)))
    write_atomically(tmp_path / "file", b"bytes")
    assert order == ["fsync", "replace", "fsync"]  # the content, the rename, the directory


def test_json_does_not_depend_on_the_order_of_keys(tmp_path: Path) -> None:
    write_json(tmp_path / "one", {"b": 1, "a": [2.5, None]})
    write_json(tmp_path / "two", {"a": [2.5, None], "b": 1})
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert read_json(tmp_path / "one") == {"a": [2.5, None], "b": 1}
    (tmp_path / "one").write_bytes(b"\xff{")
    with pytest.raises(GCBError, match="one is not readable JSON"):
        read_json(tmp_path / "one")


def test_truncated_and_missing_json_is_named(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_json(path, {3: "three", 10: None})
    assert read_json(path) == {"3": "three", "10": None}
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(GCBError, match="file is not readable JSON"):
        read_json(path)
    with pytest.raises(GCBError, match="nowhere could not be read: No such file"):
        read_json(tmp_path / "nowhere")


def test_sha256_of_more_than_one_chunk(tmp_path: Path) -> None:
    content = bytes(range(256)) * 5000
    (tmp_path / "file").write_bytes(content)
    assert sha256(tmp_path / "file") == hashlib.sha256(content).hexdigest()
    (tmp_path / "abc").write_bytes(b"abc")
    assert sha256(tmp_path / "abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # FIPS 180-2


def test_a_locked_directory_is_refused_until_it_is_free(tmp_path: Path) -> None:
    with directory_lock(tmp_path), pytest.raises(GCBError, match="in use"), directory_lock(tmp_path):
        pass
    with directory_lock(tmp_path):
        pass
    assert os.listdir(tmp_path) == []
    with pytest.raises(GCBError, match="nowhere could not be opened"), directory_lock(tmp_path / "nowhere"):
        pass


def test_a_file_system_without_locks_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(GCBError, match=r"could not be locked \(No locks available\)"), directory_lock(tmp_path):
        pass


def test_concurrent_updates_of_a_file_wait_for_each_other(tmp_path: Path) -> None:
    def count() -> None:
        for _ in range(10):
            with file_lock(path):
                write_json(path, {"count": read_json(path)["count"] + 1})

    path = tmp_path / "file"
    write_json(path, {"count": 0})
    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert read_json(path) == {"count": 40}
    assert os.listdir(tmp_path) == ["file"]
    with pytest.raises(FileNotFoundError), file_lock(path):
        (tmp_path / "nowhere").read_bytes()


def test_an_os_error_names_the_file_and_the_reason(tmp_path: Path) -> None:
    with (
        pytest.raises(GCBError, match=r"run could not be written: No such file or directory\. Nothing was kept"),
        explain_os_errors("run"),
    ):
        write_atomically(tmp_path / "nowhere" / "file", b"")


@pytest.mark.parametrize("path", ["", ".", "/", "/tmp"])
def test_a_directory_is_not_a_file_to_write(path: str) -> None:
    with pytest.raises(GCBError, match="could not be written: Is a directory"), output_file(path):
        pass


def test_a_staged_directory_appears_complete_or_not_at_all(tmp_path: Path) -> None:
    (tmp_path / ".out.partial" / "data").mkdir(parents=True)  # left by a killed process
    (tmp_path / ".out.partial" / "stale").write_bytes(b"old")
    with pytest.raises(TypeError), staged_dir(tmp_path / "out") as staging:
        (staging / "file").write_bytes(None)  # pyright: ignore[reportArgumentType]
    assert os.listdir(tmp_path) == []
    with staged_dir(tmp_path / "out") as staging:
        (staging / "file").write_bytes(b"new")
        assert not (tmp_path / "out").exists()
        with pytest.raises(GCBError, match="in use"), staged_dir(tmp_path / "out"):
            pass
    assert os.listdir(tmp_path) == ["out"]
    assert os.listdir(tmp_path / "out") == ["file"]
