"""Run numbered cases in a process of their own, and say what was wrong with each.

A case is a number: it decides on the kind, the file and the change, so any case can be
run again by its number. This file is also the program of that process: it reads
numbers from stdin and writes a line of JSON for each to stdout.
"""

import contextlib
import hashlib
import io
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

import mutations
import numpy as np
from kinds import KINDS, change

from stct.console import printable

SECONDS = 30  # for a case
MOST_MEMORY = 4.0  # times what the honest files of its kind take
_SPARE_MB = 100.0  # what a library may take on its first call
_LONGEST_LINE = 5_000


class Worker:
    """The process; it is started again after a crash."""

    def __init__(self):
        self.process = None

    def run(self, number, heavy):
        """Give the result of one case; a crash or a hang is a result, too."""
        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen(
                [sys.executable, "-W", "ignore", __file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"},
            )
        self.process.stdin.write(f"{number} {int(heavy)}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if line:
            return json.loads(line)
        code = self.process.wait()
        kind = kind_of(number, heavy)
        hang = code in (-signal.SIGALRM, -signal.SIGPROF)
        what = "hang" if hang else f"crash with code {code}"
        return {"case": number, "kind": kind, "wrong": [what], "refused": False}

    def close(self):
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()
            self.process.stdout.close()


def kind_of(number, heavy):
    names = [name for name, kind in KINDS.items() if heavy or not kind.heavy]
    return names[number % len(names)]


def _serve():
    """Run the cases whose numbers come in."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries in C print is no answer
    honest = {}
    with tempfile.TemporaryDirectory() as folder:
        for line in sys.stdin:
            number, heavy = map(int, line.split())
            result = _run(number, bool(heavy), Path(folder), honest)
            answers.write(json.dumps(result) + "\n")
            answers.flush()


def _run(number, heavy, base, honest):
    name = kind_of(number, heavy)
    kind = KINDS[name]
    if name not in honest:
        template = base / f"{name} honest"
        template.mkdir()
        kind.make(template)
        honest[name] = template, 0.0
        for _ in range(2):  # the first call imports
            here = _copy(template, base)
            outcome = _observe(kind, here)
            assert outcome["code"] == 0, (name, outcome["errors"])
        honest[name] = template, outcome["memory"]
    template, memory = honest[name]
    here = _copy(template, base)
    draw = np.random.default_rng([number, 2])
    file = here / kind.files[draw.integers(len(kind.files))]
    change(file, draw)
    outcome = _observe(kind, here)
    most = MOST_MEMORY * memory + _SPARE_MB
    if outcome["memory"] > most:
        outcome["wrong"].append(f"{outcome['memory']:.0f} MB, {memory:.0f} if honest")
    return {
        "case": number,
        "kind": name,
        "file": file.name,
        "refused": outcome["code"] != 0,
        "wrong": outcome["wrong"],
        "said": outcome["errors"][-400:],
    }


def _copy(template, base):
    here = base / "here"
    shutil.rmtree(here, ignore_errors=True)
    shutil.copytree(template, here)
    return here


def _observe(kind, here):
    """Run in a folder, and look at what was said, written and used."""
    os.chdir(here)
    before = _files(here)
    out, errors = io.StringIO(), io.StringIO()
    start = _reset_peak()
    signal.setitimer(signal.ITIMER_PROF, SECONDS)  # of work: others may be busy, too
    signal.alarm(20 * SECONDS)  # also of waiting
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        code, wrong = _call(kind.run)
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.alarm(0)
    memory = _peak() - start
    os.chdir("/")
    said = errors.getvalue()
    if code:
        lines = [line for line in said.splitlines() if not _may_precede(line)]
        if len(lines) != 1 or not lines[0].startswith("stct: error: "):
            wrong.append("more than one line, or none")
    if "does not expect" in said or "Traceback" in said:
        wrong.append("an unexpected error")
    for text in (out.getvalue(), said):
        if mutations.is_odd(text):
            wrong.append("escapes reach the terminal")
        longest = max(map(len, text.splitlines()), default=0)
        if longest > _LONGEST_LINE and not text.startswith("{"):  # of --json
            wrong.append("a very long line")
    wrong += _look(here, before, _files(here), code)
    return {"code": code, "errors": said, "wrong": wrong, "memory": memory}


def _may_precede(line):
    return line.startswith(("stct: warning: ", "conflict: "))


def _call(run):
    """Give the exit code and what is wrong with how it came about."""
    try:
        if callable(run):
            run()
            return 0, []
        from stct import cli

        sys.argv = ["stct", *run]
        cli.main()
    except SystemExit as end:
        code = end.code or 0
        return code, [] if code in (0, 2) else [f"exit code {code}"]
    except (ValueError, OSError, MemoryError) as error:
        if isinstance(error, ValueError) and type(error) is not ValueError:
            return 1, [_where(error)]
        message = " ".join(str(error).split())
        print(f"stct: error: {printable(message)}", file=sys.stderr)
        return 2, [] if message else ["an error without a word"]
    except BaseException as error:
        return 1, [_where(error)]
    return 0, []


def _where(error):
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if "/stct/" in f.filename] or frames
    place = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}"
    return f"{type(error).__name__} at {place}: {str(error)[:80]}"


def _files(here):
    return {
        str(path.relative_to(here)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in here.rglob("*")
        if path.is_file()
    }


def _look(here, before, after, code):
    """Nothing but the output may change, and that only if all went well."""
    wrong = []
    may = ("run/", "out", "made/report.html", "made/review.npz", "made/summary.json")
    may = may if code == 0 else may[:1]
    for name in before:
        if after.get(name) != before[name] and not name.startswith(may):
            wrong.append(f"changed: {name}")
    new = set(after) - set(before)
    if code:
        wrong += [f"left: {name}" for name in new if not name.startswith("run/.lock")]
    else:
        allowed = ("out", "made/", "run/")
        wrong += [f"stray: {name}" for name in new if not name.startswith(allowed)]
    wrong += [f"left: {name}" for name in new if name.endswith((".tmp", ".old"))]
    if code == 0 and (here / "out" / "summary.json").exists():
        from stct.data.corrected import read_corrected

        read_corrected(here / "out")
    return sorted(set(wrong))


def _reset_peak():
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def _peak():
    return _status("VmHWM")


def _status(name):
    """Megabytes, from the kernel."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1000 for line in lines if line.startswith(name))


if __name__ == "__main__":
    _serve()
