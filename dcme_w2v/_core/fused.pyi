import numpy as np
from numpy.typing import NDArray

def pack_levels(
    starts: NDArray[np.int64],
    columns: NDArray[np.int32],
    levels: NDArray[np.int8],
    kinds: NDArray[np.uint8],
    classes: int,
) -> NDArray[np.uint8]: ...
def unpack_levels(
    data: NDArray[np.uint8], kinds: NDArray[np.uint8], classes: int, entries: int
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int8]]: ...
def pack_numbers(numbers: NDArray[np.uint32], bits: int) -> NDArray[np.uint8]: ...
def unpack_numbers(data: NDArray[np.uint8], count: int, bits: int) -> NDArray[np.uint32]: ...
