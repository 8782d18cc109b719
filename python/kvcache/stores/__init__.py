# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Stores of pages that outlive a process.

``Folder`` keeps values in files, and ``NIXLObjects`` in S3. A ``Store`` is any class
with its methods. The extra ``kvcache[stores]`` has the package for checksums.
"""

from ..pages.stores import Store, StoreCopy
from .folder import Folder
from .nixl_objects import NIXLObjects

__all__ = ["Folder", "NIXLObjects", "Store", "StoreCopy"]
