"""Tests that histories find each of several managers with one fault."""

import kvcache
import numpy as np
import pytest
from kvcache.pages import batch_plans
from kvcache.pages.growth import Growth
from kvcache.pages.memory import NumPyMemory
from kvcache.pages.pool import PagePool
from kvcache.pages.prefixes import Prefix
from kvcache.pages.caching import PageCaching
from kvcache.pages.tables import CachedSequence
from kvcache.pages.tokens import count_common
from manager_histories import History
from manager_model import Configuration


def nothing(*arguments, **options):
    pass


def claim_without_salt(claim):
    return lambda self, request, tokens=(), salt=b"": claim(self, request, tokens)


def evict_latest(settle):
    def changed(self, page):
        settle(self, page)
        for cached in self._cached.values():
            if page in cached:
                cached._plain.move_to_end(page, last=False)

    return changed


def forget_only_unused(forget):
    return lambda self, page: None if page.references else forget(self, page)


def find_by_hash(find):
    def compute_hash(tokens):
        return hash(tuple(np.frombuffer(tokens, ">i8").tolist()))

    def changed(self, tokens):
        children = {compute_hash(child.tokens): child for child in self.list_children()}
        return children.get(compute_hash(tokens))

    return changed


def disturb_on_failure(claim):
    def changed(self, *arguments, **options):
        try:
            return claim(self, *arguments, **options)
        except kvcache.OutOfPagesError:
            for cached in self._pool._cached.values():
                if cached.size:
                    page = next(iter(cached))
                    cached.discard(page)
                    cached.add(page)
            raise

    return changed


def forget_on_failure(claim):
    def changed(self, *arguments, **options):
        try:
            return claim(self, *arguments, **options)
        except kvcache.OutOfPagesError:
            self.reset_prefix_cache()
            raise

    return changed


def bring_nothing(provide):
    def changed(self, count, brought=(), **options):
        return provide(self, count, **options)

    return changed


def lose_on_failure(take):
    def changed(self, place, *arguments):
        try:
            return take(self, place, *arguments)
        except BaseException:
            self._free[place].take(1)
            raise

    return changed


def forget_before(provide):
    def changed(self, *arguments, brought=(), **options):
        self.forget_unreferenced()
        return provide(self, *arguments, brought=[], **options)

    return changed


def move_one_by_one(move):
    def changed(self, pages, *arguments, **options):
        for page in pages:
            move(self, [page], *arguments, **options)

    return changed


def reverse_table(inputs):
    def changed(self, requests):
        result = inputs(self, requests)
        result.lut[:] = result.lut[::-1].copy()
        return result

    return changed


def ignore(function):
    return nothing


def find_none(function):
    return lambda *arguments: {}


def copy_all(function):
    def changed(closed, group):
        return {s: w for s in closed if (w := batch_plans.get_written(s, group))}

    return changed


def copy_open(copy):
    def changed(self, sequence):
        (group,) = self._groups
        was_open = group.open[sequence.row]
        new = copy(self, sequence)
        group.open[[sequence.row, new.row]] = was_open
        return new

    return changed


def keep_all(commit):
    def changed(self, sequence, source, length):
        commit(self, sequence, source, len(source.tokens))

    return changed


def without_finish(commit):
    def changed(self, sequence, source, length):
        commit(self, sequence, source, length)
        (pages,) = sequence.pages
        if pages and pages[-1].prefix:
            self._pool.forget(pages[-1])

    return changed


def take_needed(count):
    return lambda self, plan: plan.needed


def find_after(find):
    def changed(self, tokens):
        keys = sorted(child.tokens for child in self.list_children())
        after = [key for key in keys if key >= tokens][:1]
        page = self.find_child(after[0]).page if after else None
        return page, count_common(after[0], tokens) if after else 0

    return changed


def keep_columns(cut):
    def changed(self, length):
        (group,) = self.table.groups
        rows = group.pages.copy()
        pages = cut(self, length)
        group.pages = rows
        return pages

    return changed


def never(function):
    return lambda *arguments: False


Manager = kvcache.PagedKVCacheManager
FAULTS = {
    "writes to shared pages": (Growth, "_is_copied", never),
    "lets a batch write to shared pages": (batch_plans, "_find_copied", find_none),
    "copies pages of one sequence": (batch_plans, "_find_copied", copy_all),
    "takes each page for its sequence's own": (Growth, "_begin_copy", copy_open),
    "leaves pages in the table": (CachedSequence, "cut", keep_columns),
    "finds only longer beginnings": (Prefix, "find_similar", find_after),
    "keeps all of a draft": (Growth, "commit", keep_all),
    "keeps the request of a draft": (CachedSequence, "exchange", ignore),
    "caches nothing that is accepted": (Growth, "commit", without_finish),
    "counts free pages as taken": (Growth, "count_taken", take_needed),
    "copies nothing": (NumPyMemory, "copy_page", ignore),
    "copies nothing to the host": (NumPyMemory, "read_page", ignore),
    "copies nothing from the host": (NumPyMemory, "write_page", ignore),
    "ignores salts": (Manager, "claim", claim_without_salt),
    "finds tokens by hash": (Prefix, "find_child", find_by_hash),
    "counts no second reference": (PagePool, "refer_all", ignore),
    "releases nothing": (PagePool, "release", ignore),
    "merges without a reference": (PagePool, "merge", ignore),
    "forgets nothing that is written": (PagePool, "forget", forget_only_unused),
    "leaves pages on the host": (PagePool, "provide", bring_nothing),
    "evicts the latest": (PagePool, "_settle", evict_latest),
    "caches nothing": (PageCaching, "_cache_all", ignore),
    "forgets prefixes on failure": (Manager, "claim", forget_on_failure),
    "disturbs the order on failure": (Manager, "claim", disturb_on_failure),
    "loses pages when a copy fails": (PagePool, "_take_indices", lose_on_failure),
    "makes room before it is needed": (PagePool, "provide", forget_before),
    "moves pages one by one": (PagePool, "move", move_one_by_one),
    "reverses the table": (Manager, "inputs", reverse_table),
}


def run_some():
    for seed in range(8):
        for host_pages in (0, 4):
            configuration = Configuration(num_pages=7, host_pages=host_pages)
            options = {"has_twin": True, "has_failures": seed % 2 > 0}
            History(seed, configuration, **options).run(150)


def test_the_right_manager_passes():
    run_some()


@pytest.mark.parametrize("fault", FAULTS)
def test_wrong_managers_are_found(monkeypatch, fault):
    owner, name, change = FAULTS[fault]
    monkeypatch.setattr(owner, name, change(getattr(owner, name)))
    with pytest.raises((AssertionError, IndexError)):
        run_some()
