# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The interface of stores, which keep pages beyond the life of a process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

KEY_BYTES = 32


@runtime_checkable
class StoreCopy(Protocol):
    """Values that a ``Store`` has begun to copy. Any thread may ask for their end.

    Attributes:
        done: Whether each value was copied; final once ``poll`` returns True.
    """

    done: list[bool]

    def poll(self) -> bool:
        """Returns whether all copies have ended; never waits, never raises.

        Afterwards the store no longer writes to the buffers.
        """

    def wait(self) -> None:
        """Waits until ``poll`` returns True, at most until the store's deadline."""


@runtime_checkable
class Store(Protocol):
    """The interface of a store of values by keys of 32 bytes.

    Equal keys have equal values. No method raises: a value that is missing, short,
    corrupt or late is False. One thread calls at a time, and it may be any.

    A store may have an attribute ``deadline``: the seconds after which its calls have
    returned, and its copies have ended. A manager gives up what lasts longer, or a minute
    without ``deadline``. It makes no other call until the one that it gave up returns.

    A manager makes the calls in a thread of its own. If a store keeps its deadline in each
    call, it may set ``keeps_deadline`` to True, so that the caller's thread makes them.
    """

    def find(self, keys: Sequence[bytes]) -> list[bool]:
        """Returns whether the store has each key, which may change at any time."""

    def begin_put(self, keys: Sequence[bytes], buffers: Sequence[memoryview]) -> StoreCopy:
        """Begins to store values. A store without room refuses them.

        Buffers may not change until the copy has ended. A store keeps those that it
        still uses: the caller may have given up the copy.
        """

    def begin_get(self, keys: Sequence[bytes], buffers: Sequence[memoryview]) -> StoreCopy:
        """Begins to read values into buffers of their sizes.

        A buffer holds anything where ``done`` is False.
        """

    def remove(self, keys: Sequence[bytes]) -> None:
        """Removes values, if they are there."""

    def close(self) -> None:
        """Ends all copies. Later calls find and store nothing."""
