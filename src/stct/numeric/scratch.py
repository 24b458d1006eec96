"""Room for values of rows that are many: on the disk, where the system may put them.

Where embeddings are larger than memory, their scores and probabilities are large, too.
The file has no name and is gone with the array, also if the process is killed.
"""

import math
import os
import tempfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

LEAST = 2**26  # bytes; less is kept in memory


def make_room(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Give an array of undefined values in a file; in memory if it is small.

    In memory, too, where the folder for temporary files has no space for it: space is
    taken at once, because a disk that is full later would end the process.
    """
    size = math.prod(shape) * dtype.itemsize
    if size < LEAST or not hasattr(os, "posix_fallocate"):
        return np.empty(shape, dtype)
    try:
        with tempfile.TemporaryFile(prefix="stct-") as file:
            os.posix_fallocate(file.fileno(), 0, size)
            return np.asarray(np.memmap(file, dtype, "r+", shape=shape))
    except OSError:
        return np.empty(shape, dtype)
