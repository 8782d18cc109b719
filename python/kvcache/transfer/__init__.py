# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Transfers of pages from one machine's cache to another's.

The machine with a sequence lends its pages and describes them in an *offer*. The engine
sends these bytes to the other machine with its own messages. The other machine reads
the pages directly from the first one's memory, by a *transport*::

    # On the machine that processed the prompt
    lease = cache.export("r", seconds=30)
    message = kvcache.transfer.offer(cache, lease, transport)

    # On the machine that decodes
    transfer = kvcache.transfer.fetch(cache, message, transport, request="r")
    while not transfer.poll():      # never blocks
        ...                         # other work
    was_held = ...                  # the result of lease.end() on the first machine
    transfer.finish(was_held)       # begins the sequence "r"

The data is invisible until ``finish``, and its pages are freed in all other cases. A
transfer is *refused* if it can't begin because the ends do not fit. It *fails* if an
error occurs after that. Errors name the peer and the request.
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
