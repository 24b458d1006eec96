"""Optional parts of ``stct``: are they installed, and if not, what to install."""

TRAINING = ("torch", "lightning_fabric", "safetensors", "PIL")  # of stct[train]


def require(*modules: str, extra: str) -> None:
    """Say what to install when an optional part is not there."""
    absent = missing(*modules)
    if absent:
        raise ValueError(f"this needs {absent[0]}: pip install 'stct[{extra}]'")


def missing(*modules: str) -> list[str]:
    """Give those that are not installed, without importing any."""
    from importlib.util import find_spec

    return [name for name in modules if find_spec(name) is None]
