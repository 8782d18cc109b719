# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pauses of Python's garbage collector while many pages are made."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

_MANY = 4096  # pages; fewer are made before the collector costs much


def pause_collection(pages: int) -> AbstractContextManager[None]:
    """Pauses the collector while many pages are made.

    None of them is garbage, and it would look at each again and again.
    """
    return _pause() if pages >= _MANY and gc.isenabled() else _NO_PAUSE


@contextmanager
def _pause() -> Iterator[None]:
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


_NO_PAUSE = nullcontext()  # one for all, because most calls make few pages
