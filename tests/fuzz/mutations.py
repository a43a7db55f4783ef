"""Mutations of files: of bytes, of JSON, of arrays and of sparse matrices; for fuzz_files.py."""

import copy
import io
import json
import zipfile

import numpy as np

from dcme_w2v.formats.artifact import kind_of_artifact, read_artifact, tensor_pieces

TOKENS = (
    b'"', b"{", b"}", b"[", b"]", b",", b":", b"null", b"true", b"-1", b"1e999", b"NaN", b"0",
    b"9" * 30, b'"epoch"', b'"files"', b"../../x", b"\0", b"\xff", b"\n", b" ", b"\r\n", b"nan",
    b"[" * 2000, b"\\u0000", b"\\ud800", b"0.5", b"{}", b"2 2\n", b"|", b"\xc2\x85",
    b"\xe2\x80\xa8", b"1:1", b"-1:1", b"99999999999:1", b"1:1e39", b"__label__", b"\t",
    b" __label__x\n", b"# text = x\n", b"1.0", b"['a', 'b']", b'"a" ', b"%%", b"\r", b",,",
    "i\u0307".encode(), "\u200d\u0301".encode(), b"\x1b", b"\xef\xbf\xbe", b"\xef\xbb\xbf",
)  # fmt: skip
VALUES = (None, True, -1, 0, 1 << 70, 10**400, 1e300, "", "x", [], {}, [1, 2], {"epoch": 1},
          "../../x", "\ud800", "a\nb", 0.5, 3, [[]], ["a", "a"])  # fmt: skip
INTEGERS = (0, 1, -1, 2, 7, 255, 65536, 2**31 - 1, -(2**31), 2**62, -(2**63))
FLOATS = (0.0, -0.0, 1.0, -1.0, 1e-45, 3e38, -3e38, np.inf, -np.inf, np.nan)
DTYPES = ("<f4", "<f8", ">f4", "<i4", "<i8", "|u1", "<u2", "<u8", "|b1", "|S3", "<U2", "<c8", "<f2")


def mutated(data, chance):
    """Return some bytes changed in a few places."""
    found = bytearray(data)
    for _ in range(chance.randint(1, 5)):
        at = chance.randint(0, len(found))
        kind = chance.randrange(4)
        if kind == 0 and at < len(found):
            found[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            found[at:at] = chance.choice(TOKENS)
        elif kind == 2:
            del found[at : at + chance.choice((1, 5, 50))]
        else:
            found[at:at] = found[chance.randint(0, len(found)) :][: chance.randint(1, 40)]
    return bytes(found)


def mutated_json(data, chance):
    """Return a JSON text with one value of another type, or with changed bytes."""
    if chance.random() < 0.3:
        return mutated(data, chance)
    record = json.loads(data)
    for _ in range(chance.choice((1, 1, 1, 2, 5))):
        _change_value(record, chance)
    return json.dumps(record).encode()


def _change_value(record, chance):
    place = record
    while place:
        key = chance.choice(list(place) if isinstance(place, dict) else range(len(place)))
        if isinstance(place[key], (dict, list)) and place[key] and chance.random() < 0.8:
            place = place[key]
            continue
        if chance.random() < 0.2:
            del place[key]
        else:
            place[key] = copy.deepcopy(chance.choice(VALUES))
        return


def mutated_array(array, chance):
    """Return an array with other numbers, length, shape or type."""
    found = array.copy()
    for _ in range(chance.choice((1, 1, 2, 4))):
        kind = chance.random()
        if kind < 0.6 and found.size:
            _change_number(found, chance)
        elif kind < 0.7:
            found = np.resize(found, chance.choice((0, 1, 2, found.size + 1, found.size // 2)))
        elif kind < 0.8:
            found = found.reshape(chance.choice(((-1,), (1, -1), (-1, 1), found.shape)))
        elif kind < 0.9 and found.ndim:
            found = found[:: chance.choice((-1, 2))]
        elif found.dtype.kind in "biuf":
            with np.errstate(all="ignore"):
                found = found.astype(chance.choice(DTYPES))
    return found


def _change_number(array, chance):
    kind, at = array.dtype.kind, chance.randrange(array.size)
    value = chance.choice(FLOATS)
    if kind in "iub":
        near = int(array.flat[at]) + chance.choice((-1, 1, 2))
        value = chance.choice((near, chance.choice(INTEGERS)))
        value = np.array(value % (1 << 64), dtype=np.uint64).astype(array.dtype)
    elif kind not in "fc":
        return
    with np.errstate(all="ignore"):
        array.flat[at] = value


def npy(array):
    """Return an array as the bytes of an .npy file."""
    file = io.BytesIO()
    np.lib.format.write_array(file, np.ascontiguousarray(array), allow_pickle=False)
    return file.getvalue()


def mutated_npz(data, chance):
    """Return an archive with other arrays, or with changed bytes, in it or in its members."""
    if chance.random() < 0.2:
        return mutated(data, chance)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    for _ in range(chance.choice((1, 1, 2))):
        name = chance.choice(list(members))
        kind = chance.random()
        if kind < 0.75:
            array = np.load(io.BytesIO(members[name]), allow_pickle=False)
            members[name] = npy(mutated_array(array, chance))
        elif kind < 0.9:
            members[name] = mutated(members[name], chance)
            break
        elif len(members) > 1:
            members[chance.choice(("row.npy", "x", name))] = members.pop(name)
    file = io.BytesIO()
    compressing = chance.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    with zipfile.ZipFile(file, "w", compressing) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def mutated_artifact(path, chance):
    """Return a file of arrays and a record with other numbers, or another record."""
    record, arrays = read_artifact(path)
    text = json.dumps(record)
    if chance.random() < 0.7:
        name = chance.choice(list(arrays))
        arrays[name] = np.ascontiguousarray(mutated_array(np.array(arrays[name]), chance))
    else:
        text = mutated_json(text.encode(), chance).decode("utf-8", "replace")
    try:
        return b"".join(map(bytes, tensor_pieces(arrays, {"dcme_w2v": text})))
    except ValueError:  # a dtype that is not written
        return mutated(path.read_bytes(), chance)


def mutation(path, data, chance):
    """Return mutated bytes of a file, by its content or suffix."""
    if kind_of_artifact(path) is not None and chance.random() < 0.8:
        return mutated_artifact(path, chance)
    change = {".json": mutated_json, ".npz": mutated_npz}.get(path.suffix, mutated)
    return change(data, chance)
