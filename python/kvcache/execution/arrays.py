# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Types of what compiled functions take and return."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

import numpy as np


class Array(Protocol):
    """An array of NumPy, or of a library with DLPack: PyTorch, JAX, CuPy, TVM-FFI."""

    @property
    def shape(self) -> Any:
        """The sizes, integers."""

    @property
    def dtype(self) -> Any:
        """The library's dtype."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any:
        """The memory, for another library."""


Value: TypeAlias = Array | int | float | np.generic
"""An argument: an array for a memref, or a number."""

Number: TypeAlias = int | float

Result: TypeAlias = None | Number | tuple[Number, ...]
"""What a function returns: nothing, a number, or several."""
