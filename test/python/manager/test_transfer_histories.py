"""Random histories of two caches that send each other sequences, and wrong managers."""

import importlib
import itertools
import random

import kvcache
import pytest
from kvcache import transfer
from kvcache.pages.exchange import PageExchange
from kvcache.pages.leases import Lease, Reception
from support.transfers import PAGE, local, make_cache

fetching = importlib.import_module("kvcache.transfer.fetch")


def write(cache, request, length):
    """Fills what a sequence has with bytes that its tokens decide."""
    tokens = cache.tokens(request)
    inputs = cache.inputs([request])
    for position in range(length, len(tokens)):
        seed = hash(tuple(tokens[: position + 1].tolist())) % 97
        page = int(inputs.lut[0, position // PAGE])
        for tensor in cache.blocks:
            tensor[page, :, :, position % PAGE] = seed


def check(cache, request):
    tokens = cache.tokens(request)
    states = {state.request: state for state in cache.snapshot().sequences}
    for position in range(len(tokens)):
        seed = hash(tuple(tokens[: position + 1].tolist())) % 97
        page = states[request].pages[position // PAGE].index
        assert (cache.blocks[0][page, :, :, position % PAGE] == seed).all()


def run_history(seed, prefixes):
    draw = random.Random(seed)
    caches = [
        make_cache(draw.randint(6, 12), enable_prefix_caching=prefixes) for _ in range(2)
    ]
    transports = [local(), local(chunk=200)]
    names = itertools.count()
    leases, moving, live = [], [], [[], []]

    def begin(i):
        request = f"r{next(names)}"
        tokens = [draw.randint(0, 1) for _ in range(draw.randint(1, 14))]
        found = caches[i].claim(request, tokens)
        write(caches[i], request, found)
        caches[i].step([request])
        live[i].append(request)

    def grow(i):
        request = draw.choice(live[i])
        length = len(caches[i].tokens(request))
        caches[i].grow(request, [draw.randint(0, 1)])
        write(caches[i], request, length)
        caches[i].step([request])

    def release(i):
        caches[i].release(live[i].pop(draw.randrange(len(live[i]))))

    def export(i):
        request = draw.choice(live[i])
        lease = caches[i].export(request, seconds=60)
        message = transfer.offer(caches[i], lease, transports[i])
        name = None if prefixes and draw.random() < 0.3 else f"r{next(names)}"
        there, options = caches[1 - i], {"request": name}
        try:
            if draw.random() < 0.5:
                reserved = there.receive(lease.tokens, **options)
                options = {"reception": reserved}
            moved = transfer.fetch(there, message, transports[1 - i], **options)
        except kvcache.OutOfPagesError:
            lease.end()
            return
        leases.append(lease)
        moving.append((1 - i, name, lease, moved))

    def advance(_):
        k = draw.randrange(len(moving))
        i, name, lease, moved = moving[k]
        if draw.random() < 0.1:
            moved.cancel()
        elif draw.random() < 0.05:
            lease.end()
            with pytest.raises(transfer.TransferFailed):
                while not moved.poll():
                    pass
                moved.finish(lease.end())
        elif moved.poll():
            moved.finish(lease.end())
            live[i] += [name] if name else []
        else:
            return
        del moving[k]
        lease.end()

    for _ in range(400):
        i = draw.randrange(2)
        action = draw.choice([begin, begin, grow, grow, release, export, advance, advance])
        if action in (grow, release, export) and not live[i]:
            continue
        if action is advance and not moving:
            continue
        try:
            action(i)
        except kvcache.OutOfPagesError:
            assert action in (begin, grow)
        for cache, requests in zip(caches, live, strict=True):
            for request in requests:
                check(cache, request)
    for _, _, lease, moved in moving:
        moved.cancel()
        lease.end()
    for cache, requests in zip(caches, live, strict=True):
        for request in requests:
            cache.release(request)
        assert cache.num_free_pages == cache.num_pages and len(cache) == 0


@pytest.mark.parametrize("prefixes", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_histories_lose_no_page_and_no_byte(seed, prefixes):
    run_history(seed, prefixes)


# --- Wrong managers -------------------------------------------------------------------


def free_at_once(export):
    def changed(self, request, **options):
        lease = export(self, request, **options)
        for page in self._leases[lease].list_pages():
            self._growth._pool.release(page, True)
        return lease

    return changed


def forget(end):
    def changed(self):
        was_open, self._is_open = self._is_open, False
        return was_open

    return changed


def always_filled(end_reception):
    return lambda self, reception, is_filled: end_reception(self, reception, True)


def always_held(finish):
    return lambda self, was_held: finish(self, True)


def arrive_at_once(poll):
    def changed(self):
        self._has_arrived = True
        return True

    return changed


def pair_by(choose):
    def change(pair):
        def changed(self, lent):
            return choose(lent, *pair(self, lent))

        return changed

    return change


FAULTS = {
    "lends pages and counts them as free": (PageExchange, "export", free_at_once),
    "keeps the pages of a lease": (Lease, "end", forget),
    "keeps the pages of a reception": (Reception, "abort", forget),
    "publishes what was aborted": (PageExchange, "_end_reception", always_filled),
    "begins what was not held": (fetching.Transfer, "finish", always_held),
    "begins what is not there": (fetching.Transfer, "poll", arrive_at_once),
    "reads the first pages for later ones": (
        Reception, "pair", pair_by(lambda lent, chosen, own: (lent[: len(own)], own))
    ),
    "leaves out a page": (
        Reception, "pair", pair_by(lambda lent, chosen, own: (chosen[1:], own[1:]))
    ),
    "mixes pages up": (
        Reception, "pair", pair_by(lambda lent, chosen, own: (chosen[::-1], own))
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_wrong_managers_are_found(monkeypatch, fault):
    owner, name, change = FAULTS[fault]
    monkeypatch.setattr(owner, name, change(getattr(owner, name)))
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        for seed in range(4):
            for prefixes in (False, True):
                run_history(seed, prefixes)
