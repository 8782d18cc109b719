# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calling what was compiled: arguments, on this machine and on its GPUs."""
