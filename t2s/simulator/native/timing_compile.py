"""How numba compiles the timing kernels, and the types of what they work on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

Signed = NDArray[np.int64]
Unsigned = NDArray[np.uint64]
Word = Any  # a 64-bit integer inside compiled code, signed for times, unsigned for positions

F = TypeVar("F", bound=Callable[..., Any])

# The kernels allocate nothing.  Without the run-time for reference counts (``_nrt``) passing an
# array to an inlined function costs nothing; with it, an atomic addition: a third of a firing.
_njit = cast(Any, numba.njit)
compiled: Callable[[F], F] = _njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
inlined: Callable[[F], F] = _njit(
    cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True
)
