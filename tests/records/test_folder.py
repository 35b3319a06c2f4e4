"""Facts of `geode.records.folder`: which file is what, and a status file that is never half."""

import json
from pathlib import Path

import pytest

from geode.records.folder import SessionFolder, write_atomically


def test_the_files_have_their_published_names(tmp_path: Path) -> None:
    folder = SessionFolder(tmp_path)
    names = [folder.checkpoint, folder.receipts, folder.timeline, folder.evidence, folder.state]
    assert [path.name for path in names] == [
        "session.db",
        "effects.db",
        "timeline.jsonl",
        "evidence.jsonl",
        "state.json",
    ]
    assert {path.parent for path in names} == {tmp_path}


def test_a_status_reads_back_with_its_schema(tmp_path: Path) -> None:
    folder = SessionFolder(tmp_path)
    folder.write_state({"status": "열림"})
    folder.write_state({"status": "idle", "pid": 7})
    assert folder.read_state() == {"schema": "geode.state/1", "status": "idle", "pid": 7}
    assert [path.name for path in tmp_path.iterdir()] == ["state.json"]


def test_a_folder_without_a_status_is_no_session(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        SessionFolder(tmp_path).read_state()


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"\xff\xfe", b'{"status":"idle"}', b'{"schema":"geode.state/2","status":"idle"}']
)
def test_a_status_that_cannot_be_read_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    folder = SessionFolder(tmp_path)
    folder.state.write_bytes(content)
    with pytest.raises(ValueError, match=r"state\.json"):
        folder.read_state()
    assert folder.state.read_bytes() == content


@pytest.mark.parametrize("durable", [False, True])
def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path: Path, *, durable: bool) -> None:
    path = tmp_path / "a.json"
    write_atomically(path, "old", durable=durable)
    with pytest.raises(UnicodeEncodeError):
        write_atomically(path, "new \ud83c", durable=durable)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_status_of_a_killed_writer_is_whole(tmp_path: Path) -> None:
    """The name is given last, so whoever reads in between reads the old one."""
    path = tmp_path / "a.json"
    write_atomically(path, json.dumps({"n": 1}))
    (tmp_path / ".a.json.123.tmp").write_text('{"n": ')  # what the killed one left
    write_atomically(path, json.dumps({"n": 2}))
    assert json.loads(path.read_text()) == {"n": 2}
