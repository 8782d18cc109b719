# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a cache is: its parameters, formats and layouts, and the geometry of its tiles."""
