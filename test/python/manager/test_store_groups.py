"""Tests of a store as a tier of managers with several groups of layers."""

import itertools
import random
from collections import Counter

import pytest
from failing_memory import FailingMemory
from faulty_store import FaultyStore
from group_machine import CompletePages, GroupMachine
from group_model import KINDS, Groups, Modeled
from kvcache import reach
from kvcache.pages.pool import PagePool
from kvcache.pages.records import Records, StoredPage
from kvcache.pages.store_tier import StoreTier
from store_machine import check_end, check_references

FULL_AND_WINDOW = ((reach.full, 1, 2), (reach.window(3), 1, 2))
LATENT_AND_INDEX = ((reach.full, 2, 2, "latent"), (reach.full, 2, 2, "index"))
# Without kinds that reach no token from some borders, and one that shares parts of pages.
REACHED = [*(kinds for kinds in KINDS[:-1] if (reach.window(1), 1, 2) not in kinds), FULL_AND_WINDOW]


def make(kinds, num_pages=40, **options):
    return Groups(kinds, num_pages=num_pages, **options)


def fill(values, groups, tokens, **options):
    """Makes a manager that has put the pages of a prompt into a store."""
    machine = GroupMachine(FaultyStore(values, 0), groups)
    machine.serve(tokens, **options)
    machine.manager.flush()
    return machine


@pytest.mark.parametrize("kinds", REACHED, ids=str)
@pytest.mark.parametrize("options", [{}, {"devices": 2, "quantized": True}], ids=["plain", "quantized"])
def test_a_new_manager_finds_all_that_each_group_needs(kinds, options):
    draw, values, model, groups = random.Random(7), {}, CompletePages(), make(kinds, **options)
    first, found = GroupMachine(FaultyStore(values, 0), groups), Counter()
    prompts = [draw.choices(range(3), k=24) for _ in range(3)]
    for _ in range(12):
        tokens = draw.choice(prompts)[: draw.choice((draw.randint(2, 24), 4 * draw.randint(1, 6)))]
        first.serve(tokens, model, draw.choice((None, draw.randint(1, len(tokens) - 1))))
        first.manager.flush()
        for prompt in prompts:
            tokens = prompt[: draw.randint(1, 24)]
            new = GroupMachine(FaultyStore(dict(values), 1), groups)
            length = model.find_longest(new.slots, tokens)
            assert new.serve(tokens) == length
            found[length] += 1
    assert found[0] and len(found) > 2


def test_only_pages_in_the_window_are_read():
    values, groups = {}, make(FULL_AND_WINDOW)
    fill(values, groups, [*range(13)])
    machine = GroupMachine(FaultyStore(values, 0), groups)
    prefetch = machine.manager.prefetch(range(13))
    assert machine.manager.num_free_pages == groups.num_pages - 6 - 1
    prefetch.wait()
    assert machine.manager.stats.pages_from_store == 6 + 1
    assert machine.manager.stats.tokens_looked_up_in_store == 0
    assert machine.serve([*range(13)]) == 12
    stats = machine.manager.stats
    assert stats.tokens_looked_up_in_store == stats.tokens_found_in_store == 12


def test_only_missing_pages_are_read():
    """Pages that the cache has stay where they are, also if another group lost its own."""
    values, groups = {}, make(FULL_AND_WINDOW)
    machine = fill(values, groups, [*range(13)])
    pool = machine.manager._pool
    for page in [page for page in pool.get_unused() if page.group == 1]:
        pool.forget(page)
    assert machine.manager.match(range(13)) == 0
    assert machine.serve([*range(13)]) == 12
    assert machine.manager.stats.pages_from_store == 1


@pytest.mark.parametrize("kinds", REACHED, ids=str)
def test_a_lost_page_costs_what_needs_it(kinds):
    """Loses each page in turn. The lengths found are those of the model without each page."""
    values, model, groups, tokens = {}, CompletePages(), make(kinds), [*range(13)]
    first = fill(values, groups, tokens, model=model, cut=8)
    assert len(values) == len(model.pages)
    found = Counter(
        GroupMachine(FaultyStore({key: values[key] for key in values if key != lost}, 1), groups).serve(tokens)
        for lost in values
    )
    less = (CompletePages(model.pages - {page}) for page in model.pages)
    assert found == Counter(each.find_longest(first.slots, tokens) for each in less)


class LosingStore(FaultyStore):
    """A store that loses a value after it was found."""

    def find(self, keys):
        return [True] * len(keys)


@pytest.mark.parametrize("kinds", [FULL_AND_WINDOW, LATENT_AND_INDEX], ids=["window", "full"])
def test_pages_lost_after_they_were_found_give_a_prefix_or_nothing(kinds):
    """Groups with full reach keep the prefix that came; with a window, no shorter prefix has its pages."""
    values, model, groups, tokens = {}, CompletePages(), make(kinds), [*range(13)]
    first = fill(values, groups, tokens, model=model)
    found = Counter()
    for lost in values:
        store = LosingStore({key: value for key, value in values.items() if key != lost}, 1)
        machine = GroupMachine(store, groups)
        machine.manager.prefetch(tokens).wait()
        check_references(machine.manager)
        assert machine.manager.num_free_pages == groups.num_pages
        found[machine.manager.match(tokens)] += 1
    if kinds is LATENT_AND_INDEX:
        less = (CompletePages(model.pages - {page}) for page in model.pages)
        assert found == Counter(each.find_longest(first.slots, tokens) for each in less)
    else:
        assert found == {0: 6 + 1, 12: 5}  # the pages that are needed, and others


def test_too_little_room_brings_a_shorter_prefix():
    values, groups = {}, make(FULL_AND_WINDOW)
    fill(values, groups, [*range(13)])
    manager = GroupMachine(FaultyStore(values, 0), make(FULL_AND_WINDOW, num_pages=6)).manager
    manager.claim("busy", [99])
    manager.prefetch(range(13)).wait()
    manager.release("busy")
    assert manager.match(range(7)) == 6 and manager.stats.pages_from_store == 3 + 1


@pytest.mark.parametrize("seed", range(30))
def test_faults_lose_no_page_and_show_no_wrong_one(seed):
    run_history(seed)


ACTIONS = "serve", "prefetch", "cancel", "restart", "reset", "vanish"


def run_history(seed):
    """Two processes with one store of which many calls fail."""
    draw, values, model = random.Random(seed), {}, CompletePages()
    groups = make(draw.choice(REACHED), draw.choice((32, 60)), host_pages=draw.choice((0, 6)))
    stores = [FaultyStore(values, seed + i, draw.choice((0, 0.03, 0.1, 0.3))) for i in range(2)]
    machines, events = [GroupMachine(store, groups) for store in stores], Counter()
    prompts, prefetches = [draw.choices(range(3), k=20) for _ in range(4)], []
    for _ in range(80):
        number = draw.randrange(2)
        machine, tokens = machines[number], draw.choice(prompts)[: draw.randint(2, 20)]
        salt = draw.choices((b"", b"adapter"), (3, 1))[0]
        action = draw.choice((*ACTIONS, "serve", "serve", "serve", "restart", "reset"))
        if action == "serve":
            found = machine.serve(tokens, model, draw.choice((None, len(tokens) // 2)), salt)
            assert found <= model.find_longest(machine.slots, tokens, salt)
            events["found"] += found > 0
        elif action == "prefetch" and not prefetches and machine.manager.num_free_pages > 40:
            prefetches.append(machine.manager.prefetch(tokens, salt=salt))
        elif action == "cancel" and prefetches:
            prefetches[0].cancel()
        elif action == "restart" and not prefetches:
            events["pages from store"] += machine.manager.stats.pages_from_store
            machines[number] = GroupMachine(stores[number], groups)
        elif action == "reset":
            machine.manager.reset_prefix_cache()
        elif values:
            del values[draw.choice([*values])]
        events["prefetched"] += sum(prefetch.poll() for prefetch in prefetches)
        prefetches = [prefetch for prefetch in prefetches if not prefetch.poll()]
        for each in machines:
            check_references(each.manager)
    for prefetch in prefetches:
        prefetch.wait()
    check_end(each.manager for each in machines)
    for store in stores:
        events.update(store.failed)
    return events


@pytest.mark.long
def test_histories_cover_all_events():
    events = sum((run_history(seed) for seed in range(20)), Counter())
    assert set(events) == {"found", "prefetched", "pages from store", "find", "put", "get", "lie"}


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_failing_memory_leaves_the_manager_as_it_was(error):
    values, groups, tokens = {}, make(FULL_AND_WINDOW), [*range(13)]
    fill(values, groups, tokens)
    memory = FailingMemory()
    memory.errors = itertools.repeat(error)
    machine = GroupMachine(FaultyStore(values, 0), groups, memory)
    for failure, found in memory.fail_in_turn(lambda: machine.manager.claim("r", tokens)):
        check_references(machine.manager)
        if failure:
            assert machine.manager.num_free_pages == groups.num_pages
        assert ("r" in machine.manager) == (failure is None)
    sequence = Modeled(b"", tokens)
    sequence.length = found
    machine.finish(sequence)
    machine.manager.release("r")
    assert machine.serve(tokens) == 12


# --- Wrong tiers ------------------------------------------------------------------


def describe_as_one_group(function):
    def changed(self, parent, digest, tokens, group, end):
        key, header, _, _ = function(self, parent, digest, tokens, 0, end)
        return StoredPage(key, header, group, end)

    return changed


def accept_all(function):
    return lambda *arguments: True


def do_nothing(function):
    return lambda *arguments: None


def cache_all(function):
    """Adds pages to the tree that have not come."""
    return lambda self, sequence, wanted, copied: function(self, sequence, wanted, len(wanted))


def refer_to_none(function):
    """Lets others evict cached pages while the missing ones come."""

    def changed(self, page, is_resident):
        page.references -= not is_resident
        function(self, page, is_resident)

    return changed


FAULTS = {
    "writes all groups by one key": (Records, "describe", describe_as_one_group),
    "takes any record for the page": (Records, "has", accept_all),
    "keeps the pages of a prefetch": (StoreTier, "_release", do_nothing),
    "shows pages that have not come": (StoreTier, "end", cache_all),
    "lets cached pages go": (PagePool, "refer", refer_to_none),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_wrong_tiers_are_found(monkeypatch, fault):
    owner, name, change = FAULTS[fault]
    monkeypatch.setattr(owner, name, change(getattr(owner, name)))
    with pytest.raises((AssertionError, IndexError, TypeError)):
        for seed in range(20):
            run_history(seed)
