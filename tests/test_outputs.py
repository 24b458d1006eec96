import json
import subprocess
import sys

import pytest

from stct.data.locks import let_all_go
from stct.data.outputs import check_file, sign, whole_file, whole_folder


def make(target, *, overwrite=False, files=("summary.json", "a.txt")):
    with whole_folder(target, overwrite=overwrite) as folder:
        for name in files:
            (folder / name).write_text(name)
        summary = {"written_by": "stct", "files": list(files)}
        sign(summary, folder)
        (folder / "summary.json").write_text(json.dumps(summary))


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_folder_appears_whole(tmp_path):
    make(tmp_path / "out")
    assert names(tmp_path) == ["out"]
    assert names(tmp_path / "out") == ["a.txt", "summary.json"]
    (tmp_path / "plain").mkdir()
    assert (tmp_path / "out").stat().st_mode == (tmp_path / "plain").stat().st_mode


def fail_halfway(whole, target, error, *, overwrite=False):
    with whole(target, overwrite=overwrite) as path:
        (path if whole is whole_file else path / "x").write_text("half")
        raise error


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, MemoryError])
@pytest.mark.parametrize("whole", [whole_file, whole_folder])
def test_nothing_is_left_after_an_error(tmp_path, whole, error):
    with pytest.raises(error):
        fail_halfway(whole, tmp_path / "out", error())
    assert names(tmp_path) == []


@pytest.mark.parametrize("whole", [whole_file, whole_folder])
def test_a_full_disk_is_one_line_and_nothing_is_left(tmp_path, whole):
    full = OSError(28, "No space left on device")
    with pytest.raises(ValueError, match="out: not written .No space left on device"):
        fail_halfway(whole, tmp_path / "out", full)
    assert names(tmp_path) == []


def test_an_earlier_output_is_replaced_on_request_only(tmp_path):
    make(tmp_path / "out")
    with pytest.raises(
        ValueError, match="exists; choose another -o or use --overwrite"
    ):
        make(tmp_path / "out")
    make(tmp_path / "out", overwrite=True, files=["summary.json", "b.txt"])
    assert names(tmp_path) == ["out"]
    assert names(tmp_path / "out") == ["b.txt", "summary.json"]


def test_an_earlier_output_survives_a_failed_overwrite(tmp_path):
    make(tmp_path / "out")
    with pytest.raises(KeyboardInterrupt):
        fail_halfway(
            whole_folder, tmp_path / "out", KeyboardInterrupt(), overwrite=True
        )
    assert names(tmp_path) == ["out"]
    assert names(tmp_path / "out") == ["a.txt", "summary.json"]


def test_an_empty_folder_can_be_replaced(tmp_path):
    (tmp_path / "out").mkdir()
    make(tmp_path / "out", overwrite=True)
    assert names(tmp_path / "out") == ["a.txt", "summary.json"]


@pytest.mark.parametrize("summary", [None, "{}", "not json", '{"written_by": "me"}'])
def test_other_peoples_files_are_never_replaced(tmp_path, summary):
    folder = tmp_path / "out"
    if summary is None:
        make(folder)
        (folder / "thesis.txt").write_text("years of work")
    else:
        folder.mkdir()
        (folder / "summary.json").write_text(summary)
    before = names(folder)
    with pytest.raises(ValueError, match="which stct did not write"):
        make(folder, overwrite=True)
    assert names(folder) == before
    assert names(tmp_path) == ["out"]


def test_a_folder_cannot_take_the_place_of_a_file_nor_the_reverse(tmp_path):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    with pytest.raises(ValueError, match="not a folder"):
        make(tmp_path / "file", overwrite=True)
    with (
        pytest.raises(ValueError, match="not a file"),
        whole_file(tmp_path / "folder", overwrite=True),
    ):
        pass


def test_a_file_is_replaced_on_request_only(tmp_path):
    target = tmp_path / "out.csv"
    for overwrite in (False, True):
        with whole_file(target, overwrite=overwrite) as path:
            path.write_text(str(overwrite))
    with (
        pytest.raises(ValueError, match="the output file exists"),
        whole_file(target, overwrite=False),
    ):
        pass
    assert target.read_text() == "True"
    assert names(tmp_path) == ["out.csv"]


def test_the_parent_must_be_a_folder(tmp_path):
    (tmp_path / "file").write_text("mine")
    for parent in ("file", "nowhere"):
        with pytest.raises(ValueError, match="there is no folder"):
            make(tmp_path / parent / "out")


def test_modes_stay_when_something_is_replaced(tmp_path):
    make(tmp_path / "out")
    (tmp_path / "out").chmod(0o750)
    (tmp_path / "out" / "a.txt").chmod(0o640)
    make(tmp_path / "out", overwrite=True)
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o750
    assert (tmp_path / "out" / "a.txt").stat().st_mode & 0o777 == 0o640
    target = tmp_path / "file.csv"
    target.touch(0o600)
    with whole_file(target, overwrite=True) as path:
        path.write_text("new")
    assert target.stat().st_mode & 0o777 == 0o600


def test_a_forged_summary_deletes_nothing(tmp_path):
    folder = tmp_path / "out"
    (folder / "photos").mkdir(parents=True)
    (folder / "photos" / "me.jpg").write_text("a photo")
    (folder / "thesis.txt").write_text("years of work")
    (folder / "link").symlink_to(tmp_path / "elsewhere")
    files = ["photos", "thesis.txt", "link", "..", "summary.json"]
    forged = {"written_by": "stct", "files": files, "sha256": {"thesis.txt": "0" * 64}}
    (folder / "summary.json").write_text(json.dumps(forged))
    before = names(folder)
    with pytest.raises(ValueError, match="which stct did not write"):
        make(folder, overwrite=True)
    assert names(folder) == before


def test_what_was_changed_by_hand_is_not_replaced(tmp_path):
    make(tmp_path / "out")
    (tmp_path / "out" / "a.txt").write_text("my own work in it")
    with pytest.raises(ValueError, match="'a.txt', which stct did not write, or"):
        make(tmp_path / "out", overwrite=True)


WRITES = """
import sys
from pathlib import Path
from stct.data.outputs import check_folder, whole_folder
target = Path(sys.argv[1])
check_folder(target, overwrite=True)
print("mine", flush=True)
sys.stdin.readline()
with whole_folder(target, overwrite=True) as folder:
    (folder / "a.txt").write_text("first")
"""


def test_of_two_processes_one_wins_and_the_other_says_so(tmp_path):
    first = subprocess.Popen(
        [sys.executable, "-c", WRITES, tmp_path / "out"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert first.stdout.readline() == "mine\n"
    with pytest.raises(ValueError, match="out: another stct process is writing it"):
        make(tmp_path / "out", overwrite=True)
    first.communicate("go\n", timeout=60)
    assert (tmp_path / "out" / "a.txt").read_text() == "first"
    check_file(tmp_path / "file.csv", overwrite=False)  # another place is free
    let_all_go()
    assert names(tmp_path) == [".out.lock", "out"]  # of a process that was not 'stct'


def test_what_killed_processes_left_is_put_right(tmp_path):
    make(tmp_path / "out")
    (tmp_path / "out").rename(tmp_path / ".out.0123abcd.old")  # between two renames
    (tmp_path / ".out.aaaaaaaa.tmp").mkdir()
    (tmp_path / ".out.aaaaaaaa.tmp" / "a.txt").write_text("half")
    (tmp_path / ".out.lock").touch()
    (tmp_path / ".other.aaaaaaaa.tmp").mkdir()  # of another output
    with pytest.raises(ValueError, match="the output folder exists"):
        make(tmp_path / "out")
    assert (tmp_path / "out" / "a.txt").read_text() == "a.txt"
    assert names(tmp_path) == [".other.aaaaaaaa.tmp", "out"]
