"""Pickles of plain data, read without running anything that is in them.

CIFAR's and CIFAR-N's authors publish pickles. They hold containers, text, numbers and
number arrays, and those are all that this loader can make.
"""

import io
import pickle
from typing import Any


def load_plain(data: bytes, *, encoding: str = "ASCII", skip: int = 0) -> Any:
    """Give the object in a pickle.

    Parameters
    ----------
    data : bytes
    encoding : str
        Of text that Python 2 wrote; ``"bytes"`` keeps it as bytes.
    skip : int
        Pickles that stand before the wanted one.

    Raises
    ------
    ValueError
        If it asks for anything but plain data, or is damaged.
    """
    file = io.BytesIO(data)
    try:
        for _ in range(skip):
            _PlainUnpickler(file, encoding=encoding).load()
        return _PlainUnpickler(file, encoding=encoding).load()
    except MemoryError:
        raise
    except Exception as error:  # a damaged pickle can raise anything
        raise ValueError(str(error) or type(error).__name__) from error


class _PlainUnpickler(pickle.Unpickler):
    arrays = {
        ("numpy.core.multiarray", "_reconstruct"),
        ("numpy._core.multiarray", "_reconstruct"),
        ("numpy", "ndarray"),
        ("numpy", "dtype"),
    }

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("_codecs", "encode"):
            return _latin1  # how Python 3 writes bytes in old protocols
        if (module, name) not in self.arrays:
            raise ValueError(f"it wants to run {module}.{name}")
        return super().find_class(module.replace("numpy.core", "numpy._core"), name)


def _latin1(text: str, encoding: str) -> bytes:
    if encoding != "latin1":
        raise ValueError(f"bytes written as {encoding}")
    return text.encode("latin1")
