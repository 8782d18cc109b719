# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The page manager, its memory, and the pages that it lends to other machines."""
