"""The ``stct`` command: thin functions over `stct.data` and `LabelCorrector`.

Heavy imports wait inside the commands so that ``stct --help`` answers at once.
"""

import inspect
import os
import signal
import sys
import traceback
import warnings
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
    """Run the command; an error is one line on stderr and exit code 2.

    With ``STCT_DEBUG=1`` in the environment it comes with its traceback.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # labels in any script
    signal.signal(signal.SIGTERM, _end)
    hangup = getattr(signal, "SIGHUP", None)  # Windows has none
    if hangup is not None and signal.getsignal(hangup) != signal.SIG_IGN:  # nohup
        signal.signal(hangup, _end)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            sys.exit(app(prog_name="stct", standalone_mode=False) or 0)
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(130)
    except MemoryError as error:
        _fail(f"out of memory {error}")
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        _fail(f"{place}{error.strerror or error}")
    except Exception as error:
        if type(error) is ValueError:
            _fail(str(error))
        # A wrong option or argument; the class depends on the click that typer brings.
        if not hasattr(error, "format_message"):
            _fail(_unexpected(error))
        message = error.format_message().replace("Value error, ", "")
        if not message:  # no command at all: the help has been shown
            sys.exit(2)
        _fail(message)
    finally:
        _let_locks_go()


def _let_locks_go() -> None:
    locks = sys.modules.get("stct.data.locks")  # importing it takes its time
    if locks is not None:
        locks.let_all_go()


def _unexpected(error: Exception) -> str:
    """Say that nobody has thought of this error, and where more is told."""
    command = " ".join(["stct", *sys.argv[1:2]])
    return (
        f"{command}: {type(error).__name__}: {str(error)[:300]} (an error that stct "
        "does not expect; STCT_DEBUG=1 in the environment shows where it came from)"
    )


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    """Show a warning of a library as one line."""
    _tell(f"stct: warning: {message}")


def _end(number: int, _: FrameType | None) -> NoReturn:
    """Leave as after an error: what is half-written goes, nothing is said."""
    sys.exit(128 + number)


def _fail(message: str) -> NoReturn:
    if os.environ.get("STCT_DEBUG") == "1":
        traceback.print_exc()
    _tell(f"stct: error: {message}")
    sys.exit(2)


def _tell(text: str) -> None:
    from stct.console import printable

    print(printable(" ".join(text.split()), 2000), file=sys.stderr)


@app.callback(invoke_without_command=True)
def _stct(version: shared.Version = False) -> None:
    if version:
        from stct import __version__

        print(f"stct {__version__}")
        raise typer.Exit
