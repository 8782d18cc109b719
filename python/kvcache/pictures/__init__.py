# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pictures of caches: the pages of a batch, the bytes of a row, a swizzled tile.

Each function returns a ``Picture``, which a notebook shows and ``save`` writes.
"""

from .pages import draw_pages
from .row import draw_row
from .svg import Picture
from .tile import draw_tile

__all__ = ["Picture", "draw_pages", "draw_row", "draw_tile"]
