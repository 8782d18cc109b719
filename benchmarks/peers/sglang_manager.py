"""Times SGLang's RadixCache and its allocator of pages at the works of manager_works.py; prints JSON.

It needs no GPU for this: the allocator then computes indices by PyTorch in place of Triton.

Usage: sglang_manager.py BATCH,… RUNS
"""

from __future__ import annotations

import json
import sys
from array import array
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import manager_works
import numpy as np
import sglang
import torch
from manager_works import CONTEXT, LONG, PAGE_SIZE
from sglang.srt.mem_cache.allocator.paged import PagedTokenToKVPoolAllocator
from sglang.srt.mem_cache.base_prefix_cache import InsertParams, MatchPrefixParams
from sglang.srt.mem_cache.cache_init_params import CacheInitParams
from sglang.srt.mem_cache.memory_pool import ReqToTokenPool
from sglang.srt.mem_cache.radix_cache import RadixCache, RadixKey, TreeNode


@dataclass
class Request:
    """A sequence as SGLang's scheduler keeps it.

    ``cached`` counts its first tokens whose pages the tree owns, up to ``node``.
    """

    tokens: array[int]
    row: int
    node: TreeNode
    cached: int


class SGLangCache:
    """SGLang's prefix cache, allocator and rows of indices, used as its scheduler does."""

    def __init__(self, num_pages: int) -> None:
        size = num_pages * PAGE_SIZE
        self.allocator = PagedTokenToKVPoolAllocator(size, PAGE_SIZE, torch.bfloat16, "cpu", None, need_sort=False)
        self.rows = ReqToTokenPool(max(size // CONTEXT, 8), LONG + PAGE_SIZE, "cpu", enable_memory_saver=False)
        self.tree = RadixCache(CacheInitParams(False, self.rows, self.allocator, PAGE_SIZE))
        self.requests: dict[str, Request] = {}
        self.lengths = torch.zeros(0, dtype=torch.int64)

    def claim(self, name: str, tokens: np.ndarray) -> None:
        ids = array("q", tokens.tobytes())
        found = self.tree.match_prefix(MatchPrefixParams(key=RadixKey(ids, limit=len(ids) - 1)))
        node, length = found.last_device_node, found.device_prefix_len
        self.tree.inc_lock_ref(node)
        row = self.rows.free_slots.pop()
        indices = self.tree.path_device_indices(node)
        start, stop = torch.tensor([length]), torch.tensor([len(ids)])
        last = indices[-1:] if length else torch.tensor([-1])
        new = self.allocator.alloc_extend(start, start, stop, stop, last, len(ids) - length)
        assert new is not None
        self.rows.write((row, slice(0, length)), indices)
        self.rows.write((row, slice(length, len(ids))), new)
        self.requests[name] = Request(ids, row, node, length)

    def finish(self, names: list[str]) -> None:
        """Adds full pages to the tree, as after a prefill."""
        for name in names:
            request = self.requests[name]
            key = RadixKey(request.tokens).page_aligned(PAGE_SIZE)
            indices = self.rows.req_to_token[request.row, : len(key)].to(torch.int64)
            known = self.tree.insert(InsertParams(key=key, value=indices)).prefix_len
            self.allocator.free_segment(indices[request.cached : known], start_pos=request.cached)
            node = self.tree.match_prefix(MatchPrefixParams(key=key)).last_device_node
            self.tree.dec_lock_ref(request.node)
            self.tree.inc_lock_ref(node)
            shared = self.tree.path_device_indices(node)[request.cached :]
            self.rows.write((request.row, slice(request.cached, len(key))), shared)
            request.node, request.cached = node, len(key)

    def release(self, name: str) -> None:
        request = self.requests.pop(name)
        indices = self.rows.req_to_token[request.row, request.cached : len(request.tokens)].to(torch.int64)
        self.allocator.free_segment(indices, start_pos=request.cached)
        self.tree.dec_lock_ref(request.node)
        self.rows.free_slots.append(request.row)

    def decode(self, names: list[str], tokens: np.ndarray) -> None:
        requests = [self.requests[name] for name in names]
        if len(self.lengths) != len(names):  # in the rounds that don't count
            self.lengths = torch.tensor([len(request.tokens) for request in requests])
            self.batch = torch.tensor([request.row for request in requests])
        last = self.rows.req_to_token[self.batch, self.lengths - 1].to(torch.int64)
        self.lengths += 1
        new = self.allocator.alloc_decode(self.lengths, self.lengths, last)
        assert new is not None
        self.rows.write((self.batch, self.lengths - 1), new.to(torch.int32))
        for request, token in zip(requests, tokens.tolist(), strict=True):
            request.tokens.append(token)


if __name__ == "__main__":
    torch.set_num_threads(1)  # CPU time is that of all threads
    batches = [int(batch) for batch in sys.argv[1].split(",")]
    times = manager_works.measure(SGLangCache, batches, int(sys.argv[2]))
    print(json.dumps({"name": f"SGLang {sglang.__version__}", "times": times}))
