"""Tests that the managers of the engines do the works of scripts/bench manager."""

import sys

from forked import run_forked
from places import ROOT

SIZES = {"CONTEXT": 40, "CACHED": 20, "LONG": 64}


def measure():
    """The numbers of times of each work, what claims find, and the indices of each sequence after a step."""
    sys.path += [str(ROOT / "benchmarks"), str(ROOT / "benchmarks/peers")]
    import manager_works
    import sglang_manager

    found, steps = [], []

    class NotedCache(sglang_manager.SGLangCache):
        def claim(self, name, tokens):
            super().claim(name, tokens)
            found.append((name, self.requests[name].cached, len(tokens)))

        def decode(self, names, tokens):
            super().decode(names, tokens)
            requests = [self.requests[name] for name in names]
            steps.append([self.rows.req_to_token[each.row, : len(each.tokens)].tolist() for each in requests])

    for name, size in SIZES.items():
        setattr(manager_works, name, size)
    times = manager_works.measure(NotedCache, [3], 8)
    return [len(each) for each in times.values()], found, steps


def test_sglang_does_each_work(tmp_path):
    counts, found, steps = run_forked(measure, log=tmp_path / "log")
    assert counts == [8, 8, 8, 3, 3]
    after = [tokens for _, tokens, count in found if count == 512 + 17]
    assert after[:1] == [0] and all(tokens == 512 for tokens in after[1:])
    assert [each for each in found if each[0] in ("cold", "again")] == [("cold", 0, 64), ("again", 48, 64)] * 3
    for sequences in steps:
        indices = sum(sequences, [])
        assert len({*indices}) == len(indices) and 0 not in indices
    assert list(map(len, steps[-1])) == [40 + i + 11 for i in range(3)]
