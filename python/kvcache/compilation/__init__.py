# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compilation of sources to kernels: compiler, compiled modules, and files."""
