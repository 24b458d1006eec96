"""Changes of honest files: bytes, text, JSON, arrays. All drawn from one generator."""

import io
import json
import zipfile

import numpy as np

NASTY = (
    *("", "nan", "inf", "-inf", "1e999", "9" * 400, "-1", "0", "99999999999", "null"),
    *(
        "\x1b[2J\x1b]0;x\x07",
        "\x9b31m",
        "\u202eabc",
        "\u200b",
        "\ufeff",
        "=cmd|'/c x'!A1",
    ),
    *("[" * 3000, "{" * 200, '{"a":' * 300, '"', "a" * 100_000, "\t", "\r", "../../x"),
    *("true", "[1, 2]", "{}", "\\ud800", "１２", "²", "é" * 50, "1_000", "0x10"),
)
VALUES = (
    *(None, True, -1, 0, 1, 2**31, 2**63, 10**30, 10**400, 1e300, -0.5, 1.5, "", "x"),
    *([], {}, [[]], [None], {"a": 1}, ["a", 1], "\x1b[31m", "../..", [1] * 1000),
    *(0.3, "labels.csv", [0.5, 0.5], [[0.5, 0.5], [0.5, 0.5]]),
)
SHAPES = ((), (0,), (-1, 4), (10**18, 10**18), (2**62, 4), (60,), (60, 0), (1,) * 40)
TYPES = ("O", "V0", "U0", "<U3", "c16", "M8[s]", "f2", ">f8", "i1", "b1", "S4", "V8")


def change_bytes(data, draw):
    """Flip, cut, repeat, insert or overwrite some bytes."""
    data = bytearray(data)
    for _ in range(draw.integers(1, 4)):
        kind = draw.integers(8)
        at = int(draw.integers(len(data) + 1)) if data else 0
        if kind <= 2 and data:
            data[min(at, len(data) - 1)] ^= 1 << int(draw.integers(8))
        elif kind == 3:
            del data[at:]
        elif kind == 4:
            del data[at : at + int(draw.integers(1, 64))]
        elif kind == 5:
            data[at:at] = draw.bytes(int(draw.integers(1, 64)))
        elif kind == 6:
            data[at:at] = data[at : at + int(draw.integers(1, 200))]
        else:
            data[at : at + 8] = draw.bytes(8)
    return bytes(data)


def change_text(data, draw):
    """Put something nasty in the place of a cell, a line or a character."""
    text = data.decode("utf-8", "replace")
    nasty = NASTY[draw.integers(len(NASTY))]
    kind = draw.integers(4)
    if kind == 0:
        lines = text.split("\n")
        row = int(draw.integers(len(lines)))
        cells = lines[row].split(",")
        cells[draw.integers(len(cells))] = nasty
        lines[row] = ",".join(cells)
        text = "\n".join(lines)
    elif kind == 1:
        lines = text.split("\n")
        lines.insert(int(draw.integers(len(lines))), nasty)
        text = "\n".join(lines)
    elif kind == 2:
        at = int(draw.integers(len(text) + 1))
        text = text[:at] + nasty + text[at + int(draw.integers(4)) :]
    else:
        lines = text.split("\n")
        a, b = draw.integers(len(lines), size=2)
        lines[a], lines[b] = lines[b], lines[a]
        if draw.integers(2):
            lines.append(lines[a])
        text = "\n".join(lines)
    return text.encode("utf-8", "surrogatepass")


def change_json(value, draw):
    """Replace, remove, rename or repeat something inside a JSON value."""
    value = json.loads(json.dumps(value))
    places = list(_places(value, ()))
    if not places:
        return VALUES[draw.integers(len(VALUES))]
    *way, last = places[draw.integers(len(places))]
    inside = value
    for step in way:
        inside = inside[step]
    kind = draw.integers(6)
    if kind == 0:
        del inside[last]
    elif kind == 1 and isinstance(inside, dict):
        inside[f"{last}x"] = inside.pop(last)
    elif kind == 1:
        inside.append(inside[last])
    else:
        inside[last] = VALUES[draw.integers(len(VALUES))]
    return value


def _places(value, way):
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for name, inside in list(items)[:40]:
        yield (*way, name)
        if isinstance(inside, dict | list):
            yield from _places(inside, (*way, name))


def change_array(array, draw):
    """Give another shape, type or other values."""
    kind = draw.integers(7)
    if kind == 0:
        return array[:-1] if array.ndim and len(array) else array.reshape(1, -1)
    if kind == 1:
        return np.concatenate([array, array]) if array.ndim else array.reshape(1)
    if kind == 2:
        return array[..., None]
    if kind == 3 and array.dtype.kind != "U":
        return array.astype([np.float64, np.int64, np.uint8, "U5"][draw.integers(4)])
    if kind == 4 and array.ndim and len(array) > 1:
        return array[draw.permutation(len(array))]
    changed = array.copy()
    if changed.size:
        place = changed.reshape(-1)
        bad = (
            [np.nan, np.inf, -1.0, 1e30] if array.dtype.kind == "f" else [-1, 77, 2**31]
        )
        with np.errstate(all="ignore"):
            value = np.array(bad[draw.integers(len(bad))]).astype(array.dtype)
        place[draw.integers(place.size)] = value
    return changed


def npy_bytes(array):
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asanyarray(array), allow_pickle=True)
    return file.getvalue()


def change_npy(data, draw):
    """Change a .npy file: its bytes, its array, or what its header says."""
    kind = draw.integers(4)
    if kind == 0:
        return change_bytes(data, draw)
    array = np.load(io.BytesIO(data), allow_pickle=False)
    if kind == 1:
        return npy_bytes(change_array(array, draw))
    shape = SHAPES[draw.integers(len(SHAPES))] if draw.integers(2) else array.shape
    if array.shape and draw.integers(2):
        shape = (array.shape[0] * 10 ** int(draw.integers(12)), *array.shape[1:])
    text = TYPES[draw.integers(len(TYPES))] if draw.integers(2) else array.dtype.str
    header = f"{{'descr': '{text}', 'fortran_order': False, 'shape': {shape}, }}"
    if draw.integers(3) == 0:
        header = change_bytes(header.encode(), draw).decode("latin1")
    raw = header.encode("latin1", "replace") + b"\n"
    length = len(raw) if draw.integers(8) else int(draw.integers(65_536))
    return b"\x93NUMPY\x01\x00" + length.to_bytes(2, "little") + raw + array.tobytes()


def change_npz(data, draw):
    """Change an .npz file: its bytes, or a member with a checksum that fits."""
    if draw.integers(3) == 0:
        return change_bytes(data, draw)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = list(members)[draw.integers(len(members))]
    kind = draw.integers(5)
    if kind == 0:
        del members[name]
    elif kind == 1:
        members[f"x{name}"] = members.pop(name)
    elif kind == 2:
        array = np.load(io.BytesIO(members[name]), allow_pickle=False)
        members[name] = npy_bytes(change_array(array, draw))
    else:
        members[name] = change_npy(members[name], draw)
    out = io.BytesIO()
    how = [
        zipfile.ZIP_STORED,
        zipfile.ZIP_DEFLATED,
        zipfile.ZIP_BZIP2,
        zipfile.ZIP_LZMA,
    ]
    method = how[0] if draw.integers(2) else how[draw.integers(4)]
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    changed = out.getvalue()
    return change_bytes(changed, draw) if draw.integers(8) == 0 else changed


def is_odd(text):
    """Tell whether a terminal would obey something in a text."""
    return any(not (c.isprintable() or c == "\n") for c in text)
