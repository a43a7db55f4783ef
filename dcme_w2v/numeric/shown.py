"""Show results as tables in notebooks, and as short texts elsewhere."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, TypeVar

T = TypeVar("T", bound=tuple[Any, ...])
_ROWS = 50


class Rows(list[T]):
    """A list of tuples that a notebook shows as a table."""

    def _repr_html_(self) -> str:
        more = [("...",)] if len(self) > _ROWS else []
        return table([*self[:_ROWS], *more], getattr(self[0], "_fields", ()) if self else ())


class Shown:
    """Base class for objects that print their main attributes; notebooks show a table."""

    def _facts(self) -> Mapping[str, Any]:
        raise NotImplementedError

    def __repr__(self) -> str:
        facts = ", ".join(f"{name}={value}" for name, value in self._facts().items())
        return f"{type(self).__name__}({facts})"

    def _repr_html_(self) -> str:
        return table(self._facts().items())


def table(rows: Iterable[Sequence[Any]], head: Sequence[str] = ()) -> str:
    """Format an HTML table; a cell that contains tuples shows the first element of each."""
    lines = [*([("th", head)] if head else ()), *(("td", row) for row in rows)]
    cells = ("".join(f"<{tag}>{_cell(one)}</{tag}>" for one in row) for tag, row in lines)
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in cells)}</table>"


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        value = " ".join(str(one[0]) for one in value)
    return "" if value is None else escape(str(value))
