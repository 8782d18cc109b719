# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pauses of Python's garbage collector while many pages are made."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_MANY = 4096  # pages; fewer are made before the collector costs much


@contextmanager
def pause_collection(pages: int) -> Iterator[None]:
    """Pauses the collector while many pages are made.

    None of them is garbage, and it would look at each again and again.
    """
    if pages < _MANY or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
