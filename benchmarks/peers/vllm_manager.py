"""Times vLLM's KVCacheManager at the works of manager_works.py; prints JSON.

It needs no GPU for this.

Usage: vllm_manager.py BATCH,… RUNS
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import manager_works
import numpy as np
import torch
import vllm
from manager_works import MAX_SEQ_LEN, PAGE_SIZE
from vllm.sampling_params import SamplingParams
from vllm.utils.hashing import sha256
from vllm.v1.core.kv_cache_manager import KVCacheManager
from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec
from vllm.v1.request import Request

HASHER = get_request_block_hasher(PAGE_SIZE, sha256)


class VLLMCache:
    """vLLM's manager, with the rows of a block table as its runner keeps them."""

    def __init__(self, num_pages: int) -> None:
        spec = FullAttentionSpec(block_size=PAGE_SIZE, num_kv_heads=8, head_size=128, dtype=torch.bfloat16)
        groups = [KVCacheGroupSpec(["layer"], spec)]
        config = KVCacheConfig(num_blocks=num_pages + 1, kv_cache_tensors=[], kv_cache_groups=groups)
        self.manager = KVCacheManager(
            config,
            max_model_len=MAX_SEQ_LEN,
            scheduler_block_size=PAGE_SIZE,
            hash_block_size=PAGE_SIZE,
            enable_caching=True,
        )
        self.requests: dict[str, Request] = {}
        self.rows: dict[str, int] = {}
        self.columns: list[int] = []
        self.table = np.zeros((0, MAX_SEQ_LEN // PAGE_SIZE), np.int32)

    def claim(self, name: str, tokens: np.ndarray) -> None:
        request = Request(name, tokens.tolist(), SamplingParams(max_tokens=100), None, block_hasher=HASHER)
        blocks, found = self.manager.get_computed_blocks(request)[:2]
        assert self.manager.allocate_slots(request, len(tokens) - found, found, blocks) is not None
        self.requests[name] = request

    def finish(self, names: list[str]) -> None:
        for name in names:
            self.requests[name].num_computed_tokens = self.requests[name].num_tokens

    def release(self, name: str) -> None:
        self.finish([name])
        self.manager.free(self.requests.pop(name))

    def decode(self, names: list[str], tokens: np.ndarray) -> None:
        if len(self.table) < len(names):  # in the rounds that don't count
            self.table = np.zeros((len(names), MAX_SEQ_LEN // PAGE_SIZE), np.int32)
            self.columns = [len(self.manager.get_block_ids(name)[0]) for name in names]
        for i, (name, token) in enumerate(zip(names, tokens.tolist(), strict=True)):
            request = self.requests[name]
            request.append_output_token_ids(token)
            new = self.manager.allocate_slots(request, 1)
            assert new is not None
            if ids := new.get_block_ids(allow_none=True):
                start = self.columns[i]
                self.columns[i] += len(ids[0])
                self.table[i, start : self.columns[i]] = ids[0]
            request.num_computed_tokens += 1


if __name__ == "__main__":
    init_none_hash(sha256)
    batches = [int(batch) for batch in sys.argv[1].split(",")]
    times = manager_works.measure(VLLMCache, batches, int(sys.argv[2]))
    print(json.dumps({"name": f"vLLM {vllm.__version__}", "times": times}))
