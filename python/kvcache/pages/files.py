# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pages in a file, behind those in host memory."""

from __future__ import annotations

import os
import tempfile

import numpy as np


class PageFile:
    """A file of pages of equal size, without a name: it ends with the manager.

    Its room is taken at once, so that a full disk is found here and not later. An error
    of the disk is an ``OSError``.

    Args:
        folder: Where it lies.
        pages: How many there are.
        page_bytes: Bytes of each.
    """

    def __init__(
        self, folder: str | os.PathLike[str], pages: int, page_bytes: int
    ) -> None:
        self._page_bytes = page_bytes
        # Python's buffers would be between the pages and the disk.
        self._file = tempfile.TemporaryFile(dir=folder, buffering=0)
        os.posix_fallocate(self._file.fileno(), 0, pages * page_bytes)

    def write(self, page: int, start: int, values: np.ndarray) -> None:
        """Writes C-contiguous bytes from byte ``start`` of a page on."""
        left = values.reshape(-1).view(np.uint8).data
        offset = page * self._page_bytes + start
        while left:
            count = os.pwrite(self._file.fileno(), left, offset)
            left, offset = left[count:], offset + count

    def read(self, page: int, start: int, into: np.ndarray) -> None:
        """Reads as many bytes as there is room for in a C-contiguous array."""
        left = into.reshape(-1).view(np.uint8).data
        offset = page * self._page_bytes + start
        while left:
            count = os.preadv(self._file.fileno(), [left], offset)
            if not count:
                raise OSError(f"the file of pages ends within page {page}")
            left, offset = left[count:], offset + count
