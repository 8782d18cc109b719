# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The choice of a backend class for a layer."""

from __future__ import annotations

from typing import Any

from .backend import Backend


def make_selection() -> Any:
    return Backend
