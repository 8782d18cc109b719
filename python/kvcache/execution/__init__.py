# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Execution of compiled functions on this machine and its GPUs, and their arguments."""
