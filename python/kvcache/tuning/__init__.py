# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tuner: measures configs of attention on a GPU, and keeps the fastest."""
