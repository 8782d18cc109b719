# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pages from one machine's cache to another's.

The machine that has a sequence lends its pages and describes them in an *offer*, bytes
that the engine brings to the other machine with its own messages. The other machine
reads the pages straight from the first one's memory, by a *transport*::

    # Where the prompt was processed
    lease = cache.export("r", seconds=30)
    message = kvcache.transfer.offer(cache, lease, transport)

    # Where decoding goes on
    transfer = kvcache.transfer.fetch(cache, message, transport, request="r")
    while not transfer.poll():      # never blocks
        ...                         # other work
    was_held = ...                  # ask the first machine for lease.end()
    transfer.finish(was_held)       # now there is a sequence "r"

What arrives is invisible until ``finish``, and its pages come back whatever happens. A
transfer is *refused* where it can't begin, because the ends do not fit together, and
*fails* where something breaks on the way. Errors name the peer and the request.
"""

from ..pages.regions import merge, pair
from .distributed import TorchTransport
from .fetch import Transfer, fetch
from .local import LocalTransport
from .nixl import NIXLTransport
from .offers import VERSION, Offer, offer
from .transport import (
    PageTransport,
    TransferError,
    TransferFailed,
    TransferRefused,
    Transport,
)

__all__ = [
    "VERSION",
    "LocalTransport",
    "NIXLTransport",
    "Offer",
    "PageTransport",
    "TorchTransport",
    "Transfer",
    "TransferError",
    "TransferFailed",
    "TransferRefused",
    "Transport",
    "fetch",
    "merge",
    "offer",
    "pair",
]
