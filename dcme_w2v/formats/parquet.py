"""Parquet: the decoded size of pages is known before anything is decoded.

The footer and the header before each page are structures of Thrift's compact protocol, whose fields
have numbers (parquet.thrift). pyarrow ends the process if one that it shows is damaged.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any, BinaryIO

from dcme_w2v.files.opening import check_expansion

VALUE_BYTES = 8  # at least, in memory, of a null, a row or a token of a list
_PAGE_HEADER = 1 << 16  # bytes, more than one has
_BYTE, _DOUBLE, _BINARY, _STRUCT = 3, 7, 8, 12
_BOOLS, _INTEGERS, _LISTS = (1, 2), (4, 5, 6), (9, 10)


class _Parser:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def _byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def _varint(self) -> int:
        number = 0
        for shift in range(0, 64, 7):
            byte = self._byte()
            number |= (byte & 127) << shift
            if byte < 128:
                return number
        raise ValueError("its metadata is damaged")

    def _integer(self) -> int:
        number = self._varint()
        return number >> 1 ^ -(number & 1)

    def struct(self) -> dict[int, Any]:
        """Return the values of a structure by the numbers of its fields."""
        found, number = dict[int, Any](), 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._integer()
            kind = head & 15
            found[number] = kind == 1 if kind in _BOOLS else self._value(kind)
        return found

    def _value(self, kind: int) -> Any:
        if kind in _INTEGERS:
            return self._integer()
        if kind == _STRUCT:
            return self.struct()
        if kind in _LISTS:
            head = self._byte()
            size = head >> 4 if head >> 4 < 15 else self._varint()
            return [self._value(head & 15) for _ in range(size)]
        if kind in (*_BOOLS, _BYTE):
            return self._byte()
        if kind not in (_DOUBLE, _BINARY):
            raise ValueError("its metadata is damaged")
        size = 8 if kind == _DOUBLE else self._varint()
        self.at += size
        return self.data[self.at - size : self.at]


def check_pages(
    path: str, chosen: Collection[str], group: int | None
) -> list[tuple[int, int, int]]:
    """Return rows, decoded bytes and stored bytes of each row group, or of one.

    Raises
    ------
    CorpusError
        The pages of a column decode to far more bytes than they have.
    ValueError
        The file is damaged.
    """
    names = {name.encode() for name in chosen}
    with Path(path).open("rb") as file:
        end = file.seek(-8, 2)
        size = int.from_bytes(file.read(4), "little")
        file.seek(max(0, end - size))
        try:
            groups = _Parser(file.read(size)).struct()[4]
            found = []
            for one in groups if group is None else [groups[group]]:
                columns = [column[3] for column in one[1]]
                for column in columns:
                    if column[3][0] in names and column[5]:  # no page of no values
                        _check_column(path, file, column)
                stored = sum(column[7] for column in columns)
                found.append((one[3], max(one[2], 1), stored))
        except (AttributeError, IndexError, KeyError, TypeError):
            raise ValueError("its metadata is damaged") from None
    return found


def _check_column(path: str, file: BinaryIO, column: dict[int, Any]) -> None:
    begin, size, decoded = column[9], column[7], 0
    if 0 < column.get(11, 0) < begin:  # a dictionary is before the pages
        begin = column[11]
    at = 0
    while at < size:
        file.seek(begin + at)
        parser = _Parser(file.read(_PAGE_HEADER))
        page = parser.struct()
        if min(page[2], page[3]) < 0:
            raise ValueError("its metadata is damaged")
        at += parser.at + page[3]
        values = (page.get(5) or page.get(8) or {}).get(1, 0)
        if len(column[3]) > 1:  # of lists, of which a row may have all values
            decoded += max(page[2], VALUE_BYTES * values)
        else:
            decoded = page[2]
        check_expansion(path, size, decoded)
