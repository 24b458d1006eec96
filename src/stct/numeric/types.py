"""Arrays of numbers, as the signatures call them."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]
Ints = NDArray[np.intp]
