# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Who has which pages: the manager, its memory, and what it lends to other machines."""
