"""Downloads from a real server on this machine: whole and checked, or not at all."""

import functools
import hashlib
import http.server
import threading

import pytest
from command import assert_error, stct

from stct.cli import app
from stct.data import download
from stct.data.download import download_cifar

FILE = "cifar-10-python.tar.gz"
CONTENT = b"content" * 50_000


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def send_header(self, name, value):
        """Promise more than comes, where the path says so."""
        more = "cut" in self.path and name == "Content-Length"
        super().send_header(name, str(int(value) + 7) if more else value)


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    served = tmp_path_factory.mktemp("served")
    for folder in (served, served / "cut"):
        folder.mkdir(exist_ok=True)
        (folder / FILE).write_bytes(CONTENT)
    handler = functools.partial(Handler, directory=str(served))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def published(monkeypatch):
    """Let the MD5 of what is served be the published one."""
    md5 = hashlib.md5(CONTENT).hexdigest()
    monkeypatch.setitem(download.ARCHIVES, "cifar10", (FILE, md5))


def test_a_file_arrives_once(tmp_path, address, published):
    shares = []
    path = download_cifar(
        "cifar10", tmp_path / "new", home=address, progress=shares.append
    )
    assert path == tmp_path / "new" / FILE
    assert path.read_bytes() == CONTENT
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert len(shares) > 3
    before = path.stat()
    again = download_cifar("cifar10", tmp_path / "new", home="http://127.0.0.1:9/")
    assert again == path  # without a server
    assert path.stat() == before


def test_the_command_says_where_the_file_is(tmp_path, address, published, capsys):
    command = ["download", "cifar10", str(tmp_path), "--mirror", address]
    app(command, standalone_mode=False)
    said = capsys.readouterr()
    assert said.out.startswith(f"{tmp_path / FILE}: there")
    assert said.err == ""
    assert (tmp_path / FILE).read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("home", "message"),
    [
        ("http://127.0.0.1:9", "not downloaded: no connection"),
        ("{}/nowhere", "not downloaded: 404"),
        ("{}/cut", "not downloaded"),
    ],
)
def test_what_does_not_arrive_leaves_nothing(
    tmp_path, address, published, home, message
):
    with pytest.raises(ValueError, match=message):
        download_cifar("cifar10", tmp_path / "a" / "b", home=home.format(address))
    assert list(tmp_path.iterdir()) == []


def test_folders_above_are_made_too(tmp_path, address, published):
    path = download_cifar("cifar10", tmp_path / "a" / "b", home=address)
    assert path == tmp_path / "a" / "b" / FILE
    assert path.read_bytes() == CONTENT


def test_another_file_is_not_replaced(tmp_path, address, published):
    (tmp_path / FILE).write_bytes(b"mine")
    with pytest.raises(ValueError, match=r"its MD5 is \w+, expected \w+; move it away"):
        download_cifar("cifar10", tmp_path, home=address)
    assert (tmp_path / FILE).read_bytes() == b"mine"


def test_only_what_is_known(tmp_path):
    with pytest.raises(ValueError, match="cifar10 and cifar100, not 'mnist'"):
        download_cifar("mnist", tmp_path)


@pytest.mark.slow
def test_bad_downloads_are_one_line(tmp_path, address):
    command = ["download", "cifar10", "new", "--mirror"]
    done = stct(*command, address, cwd=tmp_path)  # the published MD5 is another one
    assert_error(done, FILE, "does not match", download.ARCHIVES["cifar10"][1])
    done = stct(*command, "http://127.0.0.1:9", cwd=tmp_path)
    assert_error(done, f"http://127.0.0.1:9/{FILE}", "is there a network?")
    assert_error(stct("download", "mnist", cwd=tmp_path), "'mnist'", "cifar100")
    assert list(tmp_path.iterdir()) == []
