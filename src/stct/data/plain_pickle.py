"""Pickles of plain data, read without running anything that is in them.

CIFAR's and CIFAR-N's authors publish pickles. They hold containers, text, numbers and
number arrays. The instructions of a pickle are carried out here one by one, and those
that make anything else are refused: no function of Python or NumPy is ever called by
name, arrays are rebuilt from a shape, a type of the list below, and bytes.
"""

import io
import math
import pickletools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

_DTYPES = (
    *("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"),
    *("f2", "f4", "f8"),
)
_OBJECTS = ("O", "O8")  # only around a single object, as numpy.save writes it


class _Name(NamedTuple):
    """A function or class that the pickle names; never looked up."""

    module: str
    name: str


class _Type:
    """A NumPy type in the making."""

    def __init__(self, text: Any) -> None:
        text = text.decode("ascii") if isinstance(text, bytes) else text
        if text not in _DTYPES and text not in _OBJECTS:
            raise ValueError(f"an array of type {text!r}")
        self.text = text
        self.order = "|"

    def set(self, state: Any) -> None:
        order = state[1].decode("ascii") if isinstance(state[1], bytes) else state[1]
        if order not in ("<", ">", "|", "="):
            raise ValueError(f"an array of byte order {order!r}")
        self.order = order


class _Array:
    """An array in the making; its value is there once its state was set."""

    value: Any = None

    def set(self, state: Any) -> None:
        _, shape, kind, fortran, raw = state
        sizes = all(type(n) is int and 0 <= n < 2**40 for n in shape)
        if not isinstance(shape, tuple) or not sizes or not isinstance(kind, _Type):
            raise ValueError("an array without a shape and a type")
        if kind.text in _OBJECTS:
            if shape != () or not isinstance(raw, list) or len(raw) != 1:
                raise ValueError("an array of Python objects")
            self.value = raw[0]
            return
        dtype = np.dtype(kind.order + kind.text)
        if not isinstance(raw, bytes) or len(raw) != dtype.itemsize * math.prod(shape):
            raise ValueError(f"an array of shape {shape} with other bytes")
        flat = np.frombuffer(raw, dtype).astype(dtype.newbyteorder("="))
        self.value = flat.reshape(shape, order="F" if fortran else "C")


_MARK = object()
_RECONSTRUCT = tuple(
    _Name(f"numpy.{core}.multiarray", "_reconstruct") for core in ("core", "_core")
)
_NDARRAY, _DTYPE = _Name("numpy", "ndarray"), _Name("numpy", "dtype")
_ENCODE = _Name("_codecs", "encode")  # how Python 3 writes bytes in old protocols
_KNOWN = (*_RECONSTRUCT, _NDARRAY, _DTYPE, _ENCODE)


def load_plain(data: bytes, *, encoding: str = "ASCII", skip: int = 0) -> Any:
    """Give the object in a pickle.

    Parameters
    ----------
    data : bytes
    encoding : str
        Of text that Python 2 wrote; ``"bytes"`` keeps it as bytes.
    skip : int
        Pickles that stand before the wanted one.

    Returns
    -------
    object
        Arrays come as they are, and as the values of a dictionary.

    Raises
    ------
    ValueError
        If it asks for anything but plain data, or is damaged.
    """
    file = io.BytesIO(data)
    try:
        for _ in range(skip):
            _Machine(encoding).run(file)
        return _unwrap(_unwrap(_Machine(encoding).run(file)), inside=True)
    except MemoryError:
        raise
    except Exception as error:  # a damaged pickle can raise anything
        raise ValueError(str(error) or type(error).__name__) from error


def _unwrap(value: Any, *, inside: bool = False) -> Any:
    if isinstance(value, _Array):
        return value.value
    if inside and isinstance(value, dict):
        return {key: _unwrap(item) for key, item in value.items()}
    return value


class _Machine:
    """The stack and the memo of one pickle."""

    def __init__(self, encoding: str) -> None:
        self.encoding = encoding
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def run(self, file: io.BytesIO) -> Any:
        for code, argument, _ in pickletools.genops(file):
            if code.name == "STOP":
                return self.stack.pop()
            self._step(code.name, argument)
        raise ValueError("it has no end")

    def _step(self, name: str, argument: Any) -> None:
        stack = self.stack
        if name in _VALUES:
            stack.append(argument)
        elif name in _MAKERS:
            stack.append(_MAKERS[name]())
        elif name in _OLD_TEXT:
            raw = argument.encode("latin1")
            as_bytes = self.encoding == "bytes"
            stack.append(raw if as_bytes else raw.decode(self.encoding))
        elif name in ("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"):
            self.memo[len(self.memo) if name == "MEMOIZE" else argument] = stack[-1]
        elif name in ("GET", "BINGET", "LONG_BINGET"):
            stack.append(self.memo[argument])
        elif name in _GATHERERS:
            count = int(name[-1]) if name[-1].isdigit() else None
            items = self._since_mark() if count is None else self._last(count)
            stack.append(_GATHERERS[name](items))
        elif name in ("APPEND", "APPENDS"):
            items = self._since_mark() if name == "APPENDS" else self._last(1)
            _expect(stack[-1], list).extend(items)
        elif name in ("SETITEM", "SETITEMS"):
            items = self._since_mark() if name == "SETITEMS" else self._last(2)
            _expect(stack[-1], dict).update(_pairs(items))
        else:
            self._make(name, argument)

    def _make(self, name: str, argument: Any) -> None:
        """Make bytes and arrays; refuse everything else."""
        if name in ("GLOBAL", "STACK_GLOBAL"):
            words = argument.split(" ") if name == "GLOBAL" else self._last(2)
            self.stack.append(_known(*words))
        elif name == "REDUCE":
            self.stack.append(_call(*self._last(2)))
        elif name == "BUILD":
            state = self.stack.pop()
            if not isinstance(self.stack[-1], _Array | _Type):
                raise ValueError("it changes something that is no array")
            self.stack[-1].set(state)
        elif name not in ("PROTO", "FRAME"):
            raise ValueError(f"it holds more than plain data ({name})")

    def _since_mark(self) -> list[Any]:
        items: list[Any] = []
        while (item := self.stack.pop()) is not _MARK:
            items.append(item)
        return items[::-1]

    def _last(self, count: int) -> list[Any]:
        items = self.stack[-count:]
        del self.stack[-count:]
        return items


def _pairs(items: list[Any]) -> dict[Any, Any]:
    return dict(zip(items[::2], items[1::2], strict=True))


_VALUES = (
    *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4"),
    *("FLOAT", "BINFLOAT", "BINBYTES", "BINBYTES8", "SHORT_BINBYTES"),
    *("UNICODE", "BINUNICODE", "BINUNICODE8", "SHORT_BINUNICODE"),
)
_OLD_TEXT = ("STRING", "BINSTRING", "SHORT_BINSTRING")  # of Python 2
_GATHERERS: dict[str, Callable[[list[Any]], Any]] = {
    **dict.fromkeys(("TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"), tuple),
    "LIST": list,
    "DICT": _pairs,
}
_MAKERS: dict[str, Callable[[], Any]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": tuple,
    "EMPTY_DICT": dict,
    "MARK": lambda: _MARK,
}


def _expect(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise ValueError(f"it fills {type(value).__name__} like a {kind.__name__}")
    return value


def _known(module: str, name: str) -> _Name:
    wanted = _Name(module, name)
    if wanted not in _KNOWN:
        raise ValueError(f"it wants to run {module}.{name}")
    return wanted


def _call(function: Any, arguments: Any) -> Any:
    """Make what a known name stands for."""
    if function in _RECONSTRUCT and arguments[0] == _NDARRAY:
        return _Array()
    if function == _DTYPE:
        return _Type(arguments[0])
    if function == _ENCODE and arguments[1] in ("latin1", "latin-1"):
        return arguments[0].encode("latin1")
    raise ValueError(f"it wants to run {getattr(function, 'name', function)!r}")
