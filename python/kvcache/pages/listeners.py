# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Listeners to the cached pages of a manager."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from ..cache.groups import LayerGroup
from .prefixes import Page


@runtime_checkable
class PageListener(Protocol):
    """The interface of an object that publishes which pages a manager has cached."""

    def begin(self, groups: tuple[LayerGroup, ...]) -> None:
        """Begins to listen to a manager, which has no pages yet.

        May raise ``ValueError``, such as for a second manager.
        """

    def publish(self, changed: Iterable[Page]) -> None:
        """Publishes pages that were cached, moved or dropped since the last call.

        Their contents can be read now. A page that is no longer cached has no
        ``prefix``. May not raise, because the manager has changed already.
        """
