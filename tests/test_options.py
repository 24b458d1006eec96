"""Which options the commands have, and what the help says."""

from itertools import pairwise

import pytest
import typer.main
from command import stct

from stct import LabelCorrector, __version__
from stct.cli import app
from stct.cli.options.correcting import Method
from stct.cli.options.rewriting import Kind
from stct.data.noising import KINDS

pytestmark = pytest.mark.slow  # starts real processes


OPTIONS = {
    "correct": {
        "TABLE",
        "--embeddings",
        "--embeddings-column",
        "--text-column",
        "--feature-columns",
        "--encoder",
        "--skip-bad",
        "--cache-dir",
        "--no-cache",
        "--pred-probs",
        "--label-column",
        "--annotations",
        "--label-columns",
        "--id-column",
        "--sep",
        "--encoding",
        "--locked-column",
        "--locked",
        "--audit",
        "--since",
        "--image-column",
        "--method",
        "--min-odds",
        "--multi-label",
        "--numeric",
        "--from",
        "--refit",
        "--engine",
        "--ray-address",
        "--seed",
        "--output",
        "-o",
        "--overwrite",
        "--quiet",
        "--json",
    },
    "plan": {
        "TABLE",
        "--embeddings",
        "--embeddings-column",
        "--label-column",
        "--id-column",
        "--sep",
        "--encoding",
        "--rows",
        "--columns",
        "--classes",
        "--workers",
        "--json",
    },
    "noise": {
        "TABLE",
        "--output",
        "-o",
        "--kind",
        "--rate",
        "--seed",
        "--map",
        "--matrix",
        "--embeddings",
        "--embeddings-column",
        "--label-column",
        "--id-column",
        "--keep-clean",
        "--overwrite",
        "--quiet",
        "--json",
    },
    "export": {"DIR", "--to", "--output", "-o", "--images", "--top", "--quiet"},
    "import": {"ANNOTATIONS", "DIR", "--output", "-o", "--overwrite", "--quiet"},
    "report": {"DIR", "--map", "--images", "--quiet"},
    "train": {
        "DATA",
        "--preset",
        "--set",
        "--config",
        "--encoder",
        "--precision",
        "--test",
        "--init",
        "--resume",
        "--seed",
        "--label-column",
        "--image-column",
        "--id-column",
        "--skip-bad",
        "--save-every",
        "--output",
        "-o",
        "--quiet",
        "--json",
    },
    "check": {
        "TABLE",
        "--max-wrong",
        "--embeddings",
        "--embeddings-column",
        "--audit",
        "--from",
        "--label-column",
        "--id-column",
        "--sep",
        "--encoding",
        "--junit",
        "--overwrite",
        "--quiet",
        "--json",
    },
    "predict": {
        "MODEL",
        "DATA",
        "--embeddings",
        "--embeddings-column",
        "--encoder",
        "--output",
        "-o",
        "--image-column",
        "--id-column",
        "--sep",
        "--encoding",
        "--skip-bad",
        "--overwrite",
        "--quiet",
    },
    "demo": {
        "--output",
        "-o",
        "--seed",
        "--overwrite",
        "--training",
        "--quiet",
        "--json",
    },
    "bench": {
        "TABLE|NPZ",
        "--embeddings",
        "--embeddings-column",
        "--label-column",
        "--id-column",
        "--noisy-column",
        "--noise",
        "--map",
        "--methods",
        "--seeds",
        "--output",
        "-o",
        "--overwrite",
        "--quiet",
        "--json",
    },
    "download": {"NAME", "FOLDER", "--mirror", "--quiet"},
}
OPTIONS["audit"] = {
    "DIR",
    "--rows",
    "-n",
    "--output",
    "-o",
    "--images",
    "--seed",
    "--overwrite",
    "--quiet",
}
OPTIONS["review"] = {
    "DIR",
    "--top",
    "--for",
    "--output",
    "-o",
    "--seed",
    "--overwrite",
    "--quiet",
}
OPTIONS["apply"] = OPTIONS["revert"] = {
    "PATCH",
    "TABLE",
    "--output",
    "-o",
    "--label-column",
    "--id-column",
    "--sep",
    "--encoding",
    "--skip-conflicts",
    "--overwrite",
    "--quiet",
    "--json",
}


def test_the_options_are_these():
    """A new option is a decision: add it here and in the documentation."""
    commands = typer.main.get_command(app).commands
    found = {
        name: {
            text
            for parameter in command.params
            for text in (
                parameter.opts
                if parameter.param_type_name == "option"
                else [parameter.metavar]
            )
        }
        for name, command in commands.items()
    }
    assert {name: texts - {"--help"} for name, texts in found.items()} == OPTIONS
    for command in commands.values():
        assert all(p.help for p in command.params if p.name != "help")


def test_choices_and_defaults_are_those_of_the_library():
    assert [kind.value for kind in Kind] == list(KINDS)
    for method in Method:
        LabelCorrector(method.value)._validate_params()
    commands = typer.main.get_command(app).commands
    defaults = {p.name: p.default for p in commands["correct"].params}
    assert defaults["method"] == LabelCorrector().method
    assert defaults["min_odds"] == LabelCorrector().min_odds


def test_help_and_version(tmp_path):
    done = stct("correct", "--help", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    for text in ("stct correct photos.csv", "patch.csv", "soft_labels.npz", "abstain"):
        assert text in done.stdout
    done = stct("--version", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"stct {__version__}\n")


@pytest.mark.parametrize("name", ["apply", "revert", "demo", "bench", "correct"])
def test_help_has_no_lonely_words_and_no_lost_brackets(tmp_path, name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    text = stct(name, "--help", cwd=tmp_path).stdout.split("╭")[0]
    lines = [line.strip() for line in text.splitlines()]
    for line, after in pairwise(lines):
        lonely = line and " " not in line and after
        assert not lonely, line
    assert name != "demo" or "stct[train]" in text
