"""A network of the caller's own, named as MODULE:FACTORY."""

import importlib
import sys
from pathlib import Path

from torch import nn


def own_network(name: str | None, of_run: str | None) -> nn.Module | None:
    """Import and call the factory; None: no network of the caller's own.

    ``of_run`` is what the run began with. It is only compared: what a folder says is
    never imported.
    """
    if of_run is not None and name != of_run:
        raise ValueError(
            f"this run has an encoder of its own; name it again: --encoder {of_run}"
        )
    if name is None:
        return None
    if of_run is None:
        raise ValueError(f"--encoder {name}: this run began without it")
    module, colon, factory = name.partition(":")
    if not (module and colon and factory):
        raise ValueError(
            f"--encoder {name}: write it as MODULE:FACTORY, e.g. networks:small"
        )
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        network = getattr(importlib.import_module(module), factory)()
    except Exception as error:  # whatever the caller's code raises
        reason = f"{type(error).__name__}: {error}"
        raise ValueError(f"--encoder {name}: {reason}") from error
    if not isinstance(network, nn.Module):
        raise ValueError(
            f"--encoder {name}: gives a {type(network).__name__}, not a torch module"
        )
    return network
