# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Stores of pages that outlive a process.

``Folder`` keeps values in files. A ``Store`` is any class with its methods. The extra
``kvcache[stores]`` has the package for checksums.
"""

from ..pages.stores import Store, StoreCopy
from .folder import Folder

__all__ = ["Folder", "Store", "StoreCopy"]
