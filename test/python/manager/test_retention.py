"""Tests of hints that keep cached pages longer, compared with a model."""

import gc
import random
from collections import Counter

import kvcache
import pytest
from function_calls import count_calls
from group_histories import GroupHistory
from group_model import KINDS, Groups
from kvcache import Retain, reach
from kvcache.pages import retention
from kvcache.pages.prefixes import Page

SIZE = 2  # tokens per page


class Clock:
    now = 0.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(retention, "time", clock)
    return clock


def make(num_pages=8, share=0.5, **options):
    params = kvcache.KVCacheParams(
        "f32", 1, 4, page_size=SIZE, total_num_layers=1, **{"enable_prefix_caching": True, **options}
    )
    return kvcache.PagedKVCacheManager(
        params, max_batch_size=4, max_seq_len=64, num_pages=num_pages, max_retained_share=share
    )


def serve(manager, pages, retain=(), salt=b"", last=10**6):
    """Processes a prompt of full pages and one more token; returns the pages found."""
    found = manager.claim("r", list_tokens(pages, last), salt=salt, retain=retain)
    manager.step(["r"])
    manager.release("r")
    return found // SIZE


def list_tokens(pages, last=10**6):
    return [token for page in pages for token in (page, page)] + [last]


def count_cached(manager, pages):
    return manager.match(list_tokens(pages)) // SIZE


class Model:
    """Pages as tuples of all page ids up to them, with the time and the number of the last use."""

    def __init__(self, num_pages, most):
        self.num_pages, self.most = num_pages, most
        self.pages, self.number = {}, 0  # page: [number, time, hints]
        self.hinted = []  # pages in the order of their first hints
        self.events = Counter()

    def priority(self, page, now):
        _, since, hints = self.pages[page]
        return max((priority for priority, seconds in hints if since + seconds > now), default=0)

    def displace(self, priority, now):
        """Takes the hints of the last page with the lowest priority, if that is lower."""
        lowest = min((self.priority(page, now) for page in self.hinted), default=priority)
        if lowest >= priority:
            return False
        page = [page for page in self.hinted if self.priority(page, now) == lowest][-1]
        assert not any(other[: len(page)] == page != other for other in self.hinted), "before its children"
        self.hinted.remove(page)
        self.pages[page][2] = []
        self.events["displaced"] += 1
        return True

    def match(self, prompt):
        return next((i for i in range(len(prompt)) if prompt[: i + 1] not in self.pages), len(prompt))

    def serve(self, prompt, retain, now):
        path = [prompt[: i + 1] for i in range(len(prompt))]
        found = self.match(prompt)
        for page in path[:found]:  # a hint that expired before this use is gone
            entry = self.pages[page]
            entry[2] = [(p, s) for p, s in entry[2] if entry[1] + s > now]
            entry[1] = float("inf")
        while len(self.pages) + len(path) - found + 1 > self.num_pages:
            unused = [page for page in self.pages if page not in path]
            victim = min(unused, key=lambda page: (self.priority(page, now), self.pages[page][0]))
            self.events["evicted with a hint"] += self.priority(victim, now) > 0
            self.events["evicted after its hint"] += bool(self.pages[victim][2]) and not self.priority(victim, now)
            assert not any(page[: len(victim)] == victim != page for page in self.pages), "before its children"
            del self.pages[victim]
        for page in path[found:]:
            self.pages[page] = [0, float("inf"), []]
        for page in path:
            hints = [(p, s) for stop, p, s in retain if len(page) * SIZE <= stop]
            if not hints:
                continue
            self.hinted = [other for other in self.hinted if other in self.pages and self.priority(other, now)]
            if page not in self.hinted:
                if len(self.hinted) >= self.most and not self.displace(max(hints)[0], now):
                    self.events["refused"] += 1
                    break
                self.hinted.append(page)
            self.pages[page][2] += hints
        for page in reversed(path):
            self.number += 1
            self.pages[page][:2] = self.number, now


@pytest.mark.parametrize("seed", range(40))
def test_pages_are_evicted_as_in_the_model(clock, seed):
    run_model(clock, seed)


def run_model(clock, seed):
    draw = random.Random(seed)
    num_pages, share = draw.choice((6, 12, 30)), draw.choice((0, 0.3, 1))
    manager, model = make(num_pages, share), Model(num_pages, int(num_pages * share))
    prompts = [tuple(draw.choices(range(3), k=draw.randint(1, 5))) for _ in range(12)]
    for _ in range(150):
        clock.now += draw.choice((0, 1, 5))
        prompt = draw.choice(prompts)
        retain = [
            Retain(draw.randint(1, 2 * len(prompt)), draw.choice((1, 40, 100)), draw.choice((1, 10, 100)))
            for _ in range(draw.choice((0, 0, 1, 2)))
        ]
        assert serve(manager, prompt, retain) == model.match(prompt)
        model.serve(prompt, retain, clock.now)
        for each in prompts:
            assert count_cached(manager, each) == model.match(each)
        expected = sum(model.priority(page, clock.now) > 0 for page in model.pages)
        assert manager.num_retained_pages == manager.stats.pages_retained == expected
    return model.events


def test_model_covers_all_events(clock):
    events = sum((run_model(clock, seed) for seed in range(12)), Counter())
    names = "evicted with a hint", "evicted after its hint", "refused", "displaced"
    assert {*events} == {*names} and all(events.values())


def test_retained_prefix_outlives_later_ones(clock):
    manager = make()
    serve(manager, [1, 2, 3], [Retain(4, 50, 10)])
    for i in range(4, 30):
        serve(manager, [i, i])
    assert count_cached(manager, [1, 2, 3]) == 2
    clock.now = 9
    serve(manager, [1])  # renews the first page
    clock.now = 11
    for i in range(4, 30):
        serve(manager, [i, i])
    assert count_cached(manager, [1, 2, 3]) == 1


@pytest.mark.parametrize("retain", [(), [Retain(100, 50, 1000)]], ids=["without hints", "with hints"])
@pytest.mark.parametrize("is_full", [False, True], ids=["with room", "full"])
def test_work_per_prompt_does_not_grow_with_hinted_pages(clock, retain, is_full):
    """More pages than a prompt has lose their hints before it, while many have theirs."""
    work = []
    for count in (100, 800):
        manager = make(count + (1 if is_full else 40), share=1)
        for i in range(count):
            serve(manager, [i], [Retain(SIZE, 50, 100 + i)])
        clock.now += 100.5
        calls = []
        for i in range(5):
            clock.now += 5
            calls.append(count_calls(lambda i=i: serve(manager, [1000 + i] * 3, retain)))
        work.append(min(calls))
    assert work[1] <= 1.2 * work[0]


def test_dropped_pages_with_hints_leave_no_entries(clock):
    gc.collect()
    before = sum(isinstance(each, Page) for each in gc.get_objects())
    manager = make()
    for _ in range(400):
        clock.now += 1
        serve(manager, [1, 2], [Retain(4, 50, 1000)])
        manager.reset_prefix_cache()
    gc.collect()
    assert sum(isinstance(each, Page) for each in gc.get_objects()) < before + 100
    assert manager.num_retained_pages == 0


def test_page_gets_no_hint_that_its_parent_has_lost(clock):
    manager = make(20, share=0.2)
    manager.claim("a", list_tokens([1, 2, 3, 4], 5), retain=[Retain(100, 10, 60)])
    manager.step(["a"])
    serve(manager, [11, 12], [Retain(4, 50, 1)])  # takes the hints of the last two
    clock.now += 2
    manager.grow("a", [5, 6, 6])
    manager.step(["a"])
    assert manager.num_retained_pages == 2
    manager.release("a")
    for i in range(20, 32):
        serve(manager, [i] * 4)
    assert count_cached(manager, [1, 2, 3, 4, 5, 6]) == 2


def make_groups(num_pages, *kinds):
    layers = [
        kvcache.KVCacheParams(
            "f32", n_kv_heads=1, head_dim=4, page_size=SIZE, layer_ids=[i], reach=each, enable_prefix_caching=True
        )
        for i, each in enumerate(kinds)
    ]
    return kvcache.PagedKVCacheManager(
        kvcache.MultiKVCacheParams(layers), max_batch_size=4, max_seq_len=64, num_pages=num_pages, max_retained_share=0.5
    )


def test_later_hints_cover_the_first_pages_of_all_groups():
    manager = make_groups(24, reach.full, reach.full)
    serve(manager, range(10))
    serve(manager, range(10), [Retain(100, 50, 100)])
    for i in range(20, 32):
        serve(manager, [i] * 5)
    assert manager.num_retained_pages == 12 and count_cached(manager, range(10)) == 6


@pytest.mark.parametrize("retain", [(), [Retain(4, 50, 5)]], ids=["without hints", "with hints"])
def test_use_of_a_state_renews_it(clock, retain):
    manager = make_groups(14, reach.full, reach.state)
    manager.claim("r", [1, 1, 2, 2], retain=retain)
    manager.step(["r"])
    manager.release("r")
    for i in range(10, 40, 2):
        clock.now += 4
        assert serve(manager, [1, 2, i]) == 2
        serve(manager, [i + 1])


def test_hints_cover_tokens_that_are_generated():
    manager = make()
    manager.claim("r", [1, 1], retain=[Retain(6, 50, 100)])
    manager.step(["r"])
    for token in (2, 2, 3, 3, 4, 4):
        manager.grow("r", [token])
        manager.step(["r"])
    assert manager.num_retained_pages == 3
    manager.fork("r", "s")
    manager.release("r")
    manager.release("s")
    serve(manager, range(10, 14))
    assert count_cached(manager, [1, 2, 3, 4]) == 3


def test_equal_pages_of_one_step_keep_the_hints_of_both():
    manager = make()
    for request, priority in (("a", 10), ("b", 20)):
        manager.claim(request, [1, 1, 2, 2, 3], retain=[Retain(4, priority, 100)])
    manager.step(["a", "b"])
    assert manager.num_retained_pages == 2
    manager.release("a")
    manager.release("b")
    serve(manager, [5, 6], [Retain(4, 15, 100)])
    serve(manager, [7, 8, 9, 10])  # evicts those with priority 15
    assert count_cached(manager, [1, 2]) == 2 and count_cached(manager, [5, 6]) < 2


def test_without_a_share_hints_have_no_effect():
    manager = make(share=0)
    serve(manager, [1, 2], [Retain(4, 100, 1000)])
    assert manager.num_retained_pages == 0
    serve(manager, range(3, 10))
    assert count_cached(manager, [1, 2]) == 0


def test_dropped_pages_give_their_share_back():
    manager = make(share=0.25)
    serve(manager, [1, 2], [Retain(4, 100, 1000)])
    serve(manager, [3, 4], [Retain(4, 100, 1000)])
    assert manager.num_retained_pages == 2
    manager.reset_prefix_cache()
    assert manager.num_retained_pages == 0
    serve(manager, [3, 4], [Retain(4, 100, 1000)])
    assert manager.num_retained_pages == 2 and manager.num_free_pages == 8


@pytest.mark.parametrize("kinds", KINDS, ids=str)
def test_histories_with_hints(clock, monkeypatch, kinds):
    """All invariants hold with groups, swaps, tiers and failures."""
    draw = random.Random(0)
    original = kvcache.PagedKVCacheManager

    class Hinted(original):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options, max_retained_share=0.4)

        def claim(self, request, tokens=(), **options):
            clock.now += draw.choice((0, 1))
            retain = [Retain(draw.randint(1, 24), draw.choice((1, 50)), draw.choice((1, 5)))]
            return super().claim(request, tokens, **options, retain=retain)

    monkeypatch.setattr(kvcache, "PagedKVCacheManager", Hinted)
    for seed in range(4):
        groups = Groups(kinds, num_pages=10, host_pages=seed % 2 * 6, disk_pages=seed % 2 * 4)
        history = GroupHistory(seed, groups, has_failures=seed > 1)
        history.run(200)
        assert history.manager.num_retained_pages <= 4
        assert history.events["claim"]


@pytest.mark.parametrize(
    "error, message, hint",
    [
        (TypeError, "'retain' to be a Retain, got 3", [3]),
        (TypeError, "'retain' to be a sequence of Retain, got 3", 3),
        (TypeError, r"'retain' to be a sequence of Retain, got one: Retain\(", Retain(1, 1, 1)),
        (TypeError, "'retain' to be a sequence of Retain, got <class", Retain),
        (TypeError, "'retain' to be a Retain, got <class", [Retain]),
        (ValueError, "'stop' to be positive, got 0", [Retain(0, 1, 1)]),
        (TypeError, "'stop' to be an integer, got None", [Retain(None, 1, 1)]),
        (ValueError, "'priority' to be 1 to 100, got 0", [Retain(1, 0, 1)]),
        (ValueError, "'priority' to be 1 to 100, got 101", [Retain(1, 101, 1)]),
        (TypeError, "'priority' to be an integer, got 1.5", [Retain(1, 1.5, 1)]),
        (ValueError, "'seconds' to be positive and finite, got inf", [Retain(1, 1, float("inf"))]),
    ],
)
def test_claim_rejects_invalid_hints(error, message, hint):
    manager = make()
    with pytest.raises(error, match=message):
        manager.claim("r", [1], retain=hint)
    assert "r" not in manager


def test_hints_without_prefix_caching_are_refused():
    manager = make(enable_prefix_caching=False)
    with pytest.raises(ValueError, match="'retain' needs 'enable_prefix_caching'"):
        manager.claim("r", [1], retain=[Retain(1, 1, 1)])
    assert manager.claim("r", [1], retain=[]) == 0


@pytest.mark.parametrize("error, share", [(ValueError, 1.5), (ValueError, -0.1), (ValueError, 10**400), (TypeError, "1")])
def test_manager_rejects_invalid_shares(error, share):
    with pytest.raises(error, match=f"'max_retained_share' to be .*, got {share!r}"):
        make(share=share)
