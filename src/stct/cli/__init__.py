"""The ``stct`` command: thin functions over `stct.data` and `LabelCorrector`.

Heavy imports wait inside the commands so that ``stct --help`` answers at once.
"""

import inspect
import signal
import sys
from collections.abc import Callable
from io import TextIOWrapper
from types import FrameType
from typing import NoReturn

import typer

from stct.cli.auditing import audit, review
from stct.cli.checking import check
from stct.cli.correcting import correct, plan
from stct.cli.options import shared
from stct.cli.reporting import export, import_, report
from stct.cli.rewriting import apply, noise, revert
from stct.cli.training import predict, train
from stct.cli.trying import bench, demo, download

app = typer.Typer(
    name="stct",
    help="Correct noisy labels from embeddings, without clean data.",
    epilog="Start with 'stct demo', then 'stct correct --help'.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
COMMANDS: tuple[Callable[..., None], ...] = (  # in the order of the help
    correct,
    audit,
    review,
    check,
    apply,
    revert,
    report,
    export,
    import_,
    noise,
    train,
    predict,
    bench,
    demo,
    download,
    plan,
)


def _help(command: Callable[..., None]) -> str:
    """Give each paragraph of a docstring as one line: the terminal breaks it."""
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    return "\n\n".join(" ".join(text.splitlines()) for text in paragraphs)


for _command in COMMANDS:
    app.command(_command.__name__.rstrip("_"), help=_help(_command))(_command)


def main() -> None:
    """Run the command; an error is one line on stderr and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # labels in any script
    signal.signal(signal.SIGTERM, _end)
    try:
        sys.exit(app(prog_name="stct", standalone_mode=False) or 0)
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(130)
    except MemoryError as error:
        _fail(f"out of memory {error}")
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        _fail(f"{place}{error.strerror or error}")
    except ValueError as error:
        _fail(str(error))
    except Exception as error:
        # A wrong option or argument; the class depends on the click that typer brings.
        if not hasattr(error, "format_message"):
            raise
        message = error.format_message().replace("Value error, ", "")
        if not message:  # no command at all: the help has been shown
            sys.exit(2)
        _fail(message)


def _end(number: int, _: FrameType | None) -> NoReturn:
    """Leave as after an error: what is half-written goes, nothing is said."""
    sys.exit(128 + number)


def _fail(message: str) -> NoReturn:
    print(f"stct: error: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(2)


@app.callback(invoke_without_command=True)
def _stct(version: shared.Version = False) -> None:
    if version:
        from stct import __version__

        print(f"stct {__version__}")
        raise typer.Exit
