"""Tests of random histories of caches that send each other sequences, and of wrong managers."""

import importlib
from collections import Counter

import kvcache
import pytest
from kvcache import reach, transfer
from kvcache.pages.exchange import PageExchange
from kvcache.pages.leases import Lease, Reception
from kvcache.pages.group_tables import GroupTable
from kvcache.transfer import staging
from transfer_histories import QUANTIZED, Ends, TransferHistory

fetching = importlib.import_module("kvcache.transfer.fetch")

HND = kvcache.Layout.from_name("HND")
OUTSIDE = kvcache.Layout.from_name("LBNHC")
LATENT = {"is_mla": True, "n_kv_heads": 1}
ENDS = {
    "equal": Ends(),
    "equal, prefixes": Ends(prefixes=True),
    "equal, chunks": Ends(prefixes=True, kind=reach.chunk(6), formats=({"page_size": 3},) * 2),
    "dtypes and layouts": Ends(({"dtype": "f32", "layout": HND}, {}), prefixes=True),
    "page sizes": Ends(({"page_size": 3}, {"page_size": 2}), (12, 18), prefixes=True),
    "page sizes with a window": Ends(
        ({"page_size": 1}, {"page_size": 4}, {"page_size": 8}),
        (60, 16, 8), True, reach.window(5, sinks=2),
    ),
    "a window of one token": Ends(({"page_size": 8}, {}), kind=reach.window(1)),
    "devices": Ends(({"n_devices": 2}, {"n_devices": 4, "page_size": 8}), prefixes=True),
    "scales": Ends((QUANTIZED, {"dtype": "f32"}), kind=reach.window(4), prefixes=True),
    "latent rows, layers outside": Ends(
        ({"layout": OUTSIDE}, {"page_size": 1}), (9, 36), True, common=LATENT
    ),
}  # fmt: skip


@pytest.mark.parametrize("ends", ENDS)
def test_histories_lose_no_page_and_no_value(ends):
    for seed in range(2):
        TransferHistory(seed, ENDS[ends]).run(200)


def test_histories_cover_all_events():
    events = Counter()
    for ends in ("page sizes with a window", "a window of one token"):
        events += TransferHistory(1, ENDS[ends]).run(800)
    assert set(events) == {
        *("begun by a prefix", "arrived", "cancelled", "ran out", "out of pages"),
        *("no room to receive", "nothing to read", "found by the receiver"),
        *("gaps in pages", "gaps sent on", "truncated", "not truncated"),
    }


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


def say_no(function):
    return lambda *arguments: False


def do_nothing(convert):
    return lambda self: None


def first_program(compile_programs):
    return lambda self: compile_programs(self)[:1]


def heads_from_zero(list_heads):
    return lambda params, device: range(params.n_kv_heads_per_device)


FAULTS = {
    "lends pages and counts them as free": (PageExchange, "export", free_at_once),
    "keeps the pages of a lease": (Lease, "end", forget),
    "keeps the pages of a reception": (Reception, "abort", forget),
    "caches what was aborted": (PageExchange, "_end_reception", always_filled),
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
    "converts nothing": (staging.Staging, "convert", do_nothing),
    "converts for one pair of devices": (staging.Staging, "_compile", first_program),
    "takes each device for the first": (staging, "_list_heads", heads_from_zero),
    "caches pages with gaps": (GroupTable, "has_gap", say_no),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_wrong_managers_are_found(monkeypatch, fault):
    owner, name, change = FAULTS[fault]
    monkeypatch.setattr(owner, name, change(getattr(owner, name)))
    with pytest.raises(
        (AssertionError, AttributeError, transfer.TransferError, pytest.fail.Exception)
    ):
        for seed in range(4):
            for ends in ENDS.values():
                TransferHistory(seed, ends).run(300)
