# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pages in a file, the tier after host memory."""

from __future__ import annotations

import os
import tempfile

import numpy as np


class PageFile:
    """A file of pages of equal size, without a name, so that it ends with the manager.

    Its space is allocated at once, so that a full disk raises here and not later.
    Errors of the disk are ``OSError``.

    Args:
        folder: The folder of the file.
        pages: The number of pages.
        page_bytes: Bytes per page.
    """

    def __init__(
        self, folder: str | os.PathLike[str], pages: int, page_bytes: int
    ) -> None:
        self._page_bytes = page_bytes
        try:
            # No Python buffers between the pages and the disk.
            self._file = tempfile.TemporaryFile(dir=folder, buffering=0)
        except OSError as error:
            raise _name_folder(error, "can't make a file in 'disk_folder'", folder) from None
        try:
            os.posix_fallocate(self._file.fileno(), 0, pages * page_bytes)
        except OSError as error:
            self._file.close()
            what = f"can't allocate the {pages * page_bytes} bytes of 'disk_space_gb'"
            raise _name_folder(error, what, folder) from None

    def write(self, page: int, start: int, values: np.ndarray) -> None:
        """Writes C-contiguous bytes from byte ``start`` of a page on."""
        left = values.reshape(-1).view(np.uint8).data
        offset = page * self._page_bytes + start
        while left:
            count = os.pwrite(self._file.fileno(), left, offset)
            left, offset = left[count:], offset + count

    def read(self, page: int, start: int, into: np.ndarray) -> None:
        """Reads bytes from byte ``start`` of a page on into a C-contiguous array."""
        left = into.reshape(-1).view(np.uint8).data
        offset = page * self._page_bytes + start
        while left:
            count = os.preadv(self._file.fileno(), [left], offset)
            if not count:
                raise OSError(f"the file of pages ends within page {page}")
            left, offset = left[count:], offset + count


def _name_folder(error: OSError, what: str, folder: str | os.PathLike[str]) -> OSError:
    """Makes an error of the same number that names the option and the user's folder."""
    return OSError(error.errno, f"{what}: {error.strerror}", os.fspath(folder))
