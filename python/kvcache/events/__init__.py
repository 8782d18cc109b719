# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Events about cached pages, for routers that send requests to where their prefix is.

``Publisher`` sends them in vLLM's format over ZeroMQ, which NVIDIA Dynamo, llm-d,
AIBrix and Mooncake Conductor read::

    events = kvcache.events.Publisher("tcp://127.0.0.1:5557", replay="tcp://127.0.0.1:5558")
    manager = kvcache.PagedKVCacheManager(params, events=events, ...)

``block_hashes`` computes the hashes of an engine's blocks, ``wire_hash`` their form in
events. The extra ``kvcache[events]`` has the packages.
"""

from .hashes import BLOCK_HASHES, block_hashes, wire_hash
from .publisher import Publisher
from .salts import make_salt

__all__ = ["BLOCK_HASHES", "Publisher", "block_hashes", "make_salt", "wire_hash"]
