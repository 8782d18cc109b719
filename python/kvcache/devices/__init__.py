# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""GPUs, real and emulated: memory, streams, launches, and the emulator's meter."""
