"""Tests that the managers of the engines do the works of scripts/bench manager."""

import sys
from functools import partial

import pytest
from forked import run_forked
from places import ROOT

SIZES = {"CONTEXT": 40, "CACHED": 20, "LONG": 64}


def measure(note):
    """The numbers of times of each work, what claims find, and the pages of each sequence after a step."""
    sys.path += [str(ROOT / "benchmarks"), str(ROOT / "benchmarks/peers")]
    import manager_works

    found, steps = [], []
    cache = note(found, steps)  # with a table for the sizes of the benchmark
    for name, size in SIZES.items():
        setattr(manager_works, name, size)
    times = manager_works.measure(cache, [3], 8)
    return [len(each) for each in times.values()], found, steps


def note_sglang(found, steps):
    """SGLang's manager, which notes what claims find, and the indices of tokens after a step."""
    import sglang_manager

    class NotedCache(sglang_manager.SGLangCache):
        def claim(self, name, tokens):
            super().claim(name, tokens)
            found.append((name, self.requests[name].cached, len(tokens)))

        def decode(self, names, tokens):
            super().decode(names, tokens)
            requests = [self.requests[name] for name in names]
            steps.append([self.rows.req_to_token[each.row, : len(each.tokens)].tolist() for each in requests])

    return NotedCache


def note_vllm(found, steps):
    """vLLM's manager, which notes what claims find, and the indices of tokens after a step."""
    import vllm_manager

    vllm_manager.init_none_hash(vllm_manager.sha256)

    class NotedCache(vllm_manager.VLLMCache):
        def claim(self, name, tokens):
            find = self.manager.get_computed_blocks

            def find_noted(request):
                answer = find(request)
                found.append((name, answer[1], len(tokens)))
                return answer

            self.manager.get_computed_blocks = find_noted
            super().claim(name, tokens)
            self.manager.get_computed_blocks = find

        def decode(self, names, tokens):
            super().decode(names, tokens)
            size, indices = vllm_manager.PAGE_SIZE, []
            for name, row, columns in zip(names, self.table.tolist(), self.columns):
                pages, count = self.manager.get_block_ids(name)[0], self.requests[name].num_tokens
                assert columns == len(pages) == -(-count // size)
                first = -(-SIZES["CONTEXT"] // size)  # pages before the steps, which are not timed
                assert row[first:columns] == pages[first:]
                indices.append([pages[i // size] * size + i % size for i in range(count)])
            steps.append(indices)

    return NotedCache


@pytest.mark.parametrize("note", [note_vllm, note_sglang])
def test_engines_manager_does_each_work(tmp_path, note):
    counts, found, steps = run_forked(partial(measure, note), log=tmp_path / "log")
    assert counts == [8, 8, 8, 3, 3]
    after = [tokens for _, tokens, count in found if count == 512 + 17]
    assert after[:1] == [0] and all(tokens == 512 for tokens in after[1:])
    assert [each for each in found if each[0] in ("cold", "again")] == [("cold", 0, 64), ("again", 48, 64)] * 3
    for sequences in steps:
        indices = sum(sequences, [])
        assert len({*indices}) == len(indices) and 0 not in indices
    assert list(map(len, steps[-1])) == [40 + i + 11 for i in range(3)]
