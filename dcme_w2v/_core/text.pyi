import numpy as np
from numpy.typing import NDArray

LAST: int
NONE: int
ROLE_SIDE: int
RUN_MAX: int
REFUSE_NONE: int
REFUSE_NUL: int
REFUSE_BROKEN: int

class Table:
    def __init__(self) -> None: ...
    def __len__(self) -> int: ...
    def add(
        self, text: NDArray[np.uint8], offsets: NDArray[np.int64], counts: NDArray[np.int64]
    ) -> None: ...
    def parse(self, lines: bytes | memoryview) -> None: ...
    def encode(
        self, text: bytes | memoryview, refuse: int, ids: NDArray[np.uint32] | None = None
    ) -> tuple[int, int, bool, int]: ...
    def merge(
        self, other: Table, first: int, last: int, errors: int, map: NDArray[np.uint32]
    ) -> tuple[int, int]: ...
    def counts(self) -> NDArray[np.int64]: ...
    def words(self, order: NDArray[np.int64]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]: ...

class Renumbering:
    def __init__(self) -> None: ...
    @property
    def lines(self) -> int: ...
    def add(
        self,
        ids: NDArray[np.uint32],
        map: NDArray[np.uint32],
        newline: bool,
        to: NDArray[np.uint32],
    ) -> int: ...

class Pairs:
    def __init__(self, size: int, bits: int = 0, value: int = 0) -> None: ...
    @property
    def bits(self) -> int: ...
    def count(self, ids: NDArray[np.uint32], roles: NDArray[np.uint8]) -> None: ...
    def counted(
        self, least: int
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint32], NDArray[np.int64]]: ...
    def add(
        self,
        left: NDArray[np.uint32],
        right: NDArray[np.uint32],
        runs: NDArray[np.uint32],
        joined: NDArray[np.uint32],
    ) -> None: ...
    def join(
        self, ids: NDArray[np.uint32], roles: NDArray[np.uint8], last: bool = False
    ) -> NDArray[np.uint32]: ...

def text_of(
    ids: NDArray[np.uint32], words: NDArray[np.uint8], offsets: NDArray[np.int64]
) -> NDArray[np.uint8]: ...
def release_freed() -> None: ...
def format_counts(
    text: NDArray[np.uint8], offsets: NDArray[np.int64], counts: NDArray[np.int64]
) -> NDArray[np.uint8]: ...
def ngrams_of(
    text: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    shortest: int,
    longest: int,
    buckets: int,
) -> tuple[NDArray[np.int64], NDArray[np.int32]]: ...
