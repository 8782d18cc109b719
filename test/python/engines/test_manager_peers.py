"""Tests that the managers of the engines do the works of scripts/bench manager."""

import sys

from places import ROOT

sys.path += [str(ROOT / "benchmarks"), str(ROOT / "benchmarks/peers")]
import manager_works  # noqa: E402
import sglang_manager  # noqa: E402


class NotedCache(sglang_manager.SGLangCache):
    """Notes the tokens that claims find, and the indices of each sequence after a step."""

    found = []
    steps = []

    def claim(self, name, tokens):
        super().claim(name, tokens)
        self.found.append((name, self.requests[name].cached, len(tokens)))

    def decode(self, names, tokens):
        super().decode(names, tokens)
        requests = [self.requests[name] for name in names]
        self.steps.append([self.rows.req_to_token[each.row, : len(each.tokens)].tolist() for each in requests])


def test_sglang_does_each_work(monkeypatch):
    for name, size in (("CONTEXT", 40), ("CACHED", 20), ("LONG", 64)):
        monkeypatch.setattr(manager_works, name, size)
    times = manager_works.measure(NotedCache, [3], 8)
    assert [len(each) for each in times.values()] == [8, 8, 8, 3, 3]
    after = [found for _, found, count in NotedCache.found if count == 512 + 17]
    assert after[:1] == [0] and all(found == 512 for found in after[1:])
    assert [each for each in NotedCache.found if each[0] in ("cold", "again")] == [("cold", 0, 64), ("again", 48, 64)] * 3
    for sequences in NotedCache.steps:
        indices = sum(sequences, [])
        assert len({*indices}) == len(indices) and 0 not in indices
    assert list(map(len, NotedCache.steps[-1])) == [40 + i + 11 for i in range(3)]
