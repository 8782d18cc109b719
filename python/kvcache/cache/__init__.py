# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parameters, formats and layouts of caches, and the geometry of tiles."""
