"""Install the wheel into an empty environment, without extras, and use it.

Builds the wheel of this folder, installs it as a user would (``pip install stct``),
says how long that took and how large it is, and runs commands and pages there.
Fails if anything fails or the environment is larger than 600 MB.
"""

import shutil
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MOST_MB = 600
# Of docs/, run as they stand: every page that needs no extra.
PAGES = "start.md", "embeddings.md", "text.md", "tables.md", "label_kinds.md"
PAGES += "annotators.md", "audit.md", "new_batches.md"
COMPILED = shutil.ignore_patterns("__pycache__", "*.egg-info")
IMPORTED = "import stct, sys; print('torch' in sys.modules, stct.__file__)"


def run(*command: object, cwd: Path) -> str:
    """Run a command; what it says is shown only if it fails."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        encoding="utf-8",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}")
    return done.stdout


def main(folder: Path) -> None:
    """Build, install, measure, use."""
    pip = "-m", "pip", "--disable-pip-version-check"
    quiet = "--quiet", "--no-deps", "--wheel-dir", folder
    source = folder / "source"  # an old build/ would get into the wheel
    shutil.copytree(ROOT / "src", source / "src", ignore=COMPILED)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    run(sys.executable, *pip, "wheel", *quiet, source, cwd=folder)
    (wheel,) = folder.glob("stct-*.whl")

    start = time.perf_counter()
    venv.create(folder / "env", with_pip=True)
    scripts = folder / "env" / ("Scripts" if sys.platform == "win32" else "bin")
    python, stct = scripts / "python", scripts / "stct"
    run(python, *pip, "install", "--quiet", wheel, cwd=folder)
    seconds = time.perf_counter() - start
    files = [path for path in (folder / "env").rglob("*") if path.is_file()]
    size = sum(path.lstat().st_size for path in files) / 1e6
    print(f"{wheel.name}: installed in {seconds:.0f} s, {size:.0f} MB", flush=True)
    if size > MOST_MB:
        sys.exit(f"the light install is larger than {MOST_MB} MB")

    torch, place = run(python, "-c", IMPORTED, cwd=folder).split(maxsplit=1)
    assert torch == "False", "the light install imports torch"
    assert str(folder / "env") in place, f"imported from {place}"
    run(stct, "--version", cwd=folder)
    data = "demo/digits.csv", "--embeddings", "demo/digits.npy"
    run(stct, "demo", "--output", "demo", cwd=folder)
    run(stct, "correct", *data, "--output", "out", cwd=folder)
    restored = folder / "restored.csv"
    run(stct, "apply", "out/patch.csv", data[0], "-o", "new.csv", cwd=folder)
    run(stct, "revert", "out/patch.csv", "new.csv", "-o", restored, cwd=folder)
    assert restored.read_bytes() == (folder / data[0]).read_bytes(), "revert of apply"
    pages = [ROOT / "README.md", *(ROOT / "docs" / name for name in PAGES)]
    run(python, ROOT / "tests" / "documented.py", *pages, cwd=folder)
    print(f"README, {', '.join(PAGES)} work in it to the letter")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(Path(temporary).resolve())
