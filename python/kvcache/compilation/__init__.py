# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a source to kernels: the compiler, compiled modules, and files of them."""
