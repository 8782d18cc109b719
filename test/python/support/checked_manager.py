"""A page manager that is compared with its model after each operation."""

from collections import Counter
from typing import NamedTuple

import pytest
from failing_memory import FailingMemory
from manager_checks import (
    check_inputs,
    check_pages,
    check_sequences,
    collect_written,
    find_origins,
)
from manager_model import Configuration, Contents, Sequence

from kvcache import OutOfPagesError, Place


class Room(NamedTuple):
    """The expected result of adding tokens to a sequence.

    Attributes:
        needed: Pages that are not in use.
        available: Pages that are available for it.
        least: The fewest pending tokens that are shared.
        most: The most pending tokens that are shared.
        kept: Whole pages of the tokens on the device.
        used: Pages of these that other sequences use.
        is_copied: Whether the last page is copied before it is written.
    """

    needed: int
    available: int
    least: int
    most: int
    kept: int
    used: int
    is_copied: bool


class CheckedManager:
    """A manager, its expected contents, and counts of events.

    With a twin, another manager does the changes only, without failing and read-only calls: it must
    have equal pages. With ``has_failures``, each change is first tried with each call of the memory
    failing.
    """

    def __init__(
        self, configuration, manager=None, memory=None, has_twin=False, has_failures=False
    ):
        self.memory = memory = FailingMemory() if has_failures else memory
        self.has_failures = has_failures
        self.page_size = configuration.page_size
        self.can_swap = configuration.host_pages > 0
        self.shares = configuration.prefix_caching
        self.manager = configuration.make(manager, memory)
        self.twin = configuration.make(manager) if has_twin else None
        self.contents = Contents(self.manager)
        self.sequences = {}  # request: Sequence
        self.kept = {}  # address of a cached page: the values of its tokens
        self.ever_kept = set()  # the values of all tokens in pages that were ever cached
        self.events = Counter()
        self.snapshot = None
        self.check()

    # --- Operations ---------------------------------------------------------------
    # Operations that need pages return None if there are not enough.

    def claim(self, request, tokens=(), salt=b""):
        """Returns how many tokens are shared."""
        sequence, free = Sequence(salt, tokens), self.manager.num_free_pages
        can_claim, match, needed = (
            getattr(self.manager, name)(tokens, salt=salt)
            for name in ("can_claim", "match", "pages_needed")
        )
        self.check_unchanged()
        shared = self.add_tokens("claim", sequence, request, tokens, salt=salt)
        assert can_claim == (shared is not None) == (needed <= free)
        # An earlier failing call may drop cached pages.
        if can_claim and not self.has_failures:
            assert match == shared
            taken = free - self.manager.num_free_pages
            # Pages that move back from the host leave room there for waiting pages.
            assert taken <= needed if self.can_swap else taken == needed
        return shared

    def grow(self, request, tokens):
        """Returns how many tokens are shared."""
        sequence = self.sequences[request].copy()
        sequence.grow(tokens)
        return self.add_tokens("grow", sequence, request, tokens)

    def add_tokens(self, name, sequence, request, tokens, **options):
        """Claims or grows a request, which becomes the ``sequence``."""
        room = self.predict_room(sequence, self.get_pages(request), len(tokens))
        done, shared = self.attempt(
            name, request, tokens, needed=room.needed, available=room.available, **options
        )
        if not done:
            return None
        assert room.least <= shared <= room.most, f"{shared} tokens shared"
        before, is_cut = self.kept, sequence.length % self.page_size > 0
        self.events["tokens looked up"] += len(tokens) * self.shares
        self.events["tokens found"] += shared
        sequence.length += shared
        self.sequences[request] = sequence
        self.events["pages in use shared"] += room.used
        self.events["pages kept found"] += room.kept - room.used
        self.events["pages of the host found"] += shared // self.page_size - room.kept
        self.events["pages begun by copies"] += shared % self.page_size > 0
        self.events["pages copied before a write"] += room.is_copied
        self.check()
        if room.is_copied or not is_cut:  # otherwise its own page leaves the cache, to be written
            self.check_evicted(before)
        return shared

    def grow_batch(self, requests, tokens):
        """Returns whether there was room for all."""
        needed, writers = 0, Counter()
        grown = [self.sequences[request].copy() for request in requests]
        for request, sequence, more in zip(requests, grown, tokens, strict=True):
            if len(more) and sequence.length % self.page_size:
                writers[self.get_pages(request)[sequence.length // self.page_size]] += 1
            needed -= self.count_pages(len(sequence.tokens))
            sequence.grow([int(token) for token in more])
            needed += self.count_pages(len(sequence.tokens))
        # The last user of a page writes to it; all before it copy it.
        copies = sum(n - (n == self.pages[a].references) for a, n in writers.items())
        room = {"needed": needed + copies, "available": self.count_available()}
        done, _ = self.attempt("grow_batch", requests, tokens, **room)
        if done:
            self.sequences |= zip(requests, grown)
            self.events["pages copied before a batch writes"] += copies
            self.check()
        return done

    def commit(self, requests, tokens, drafts):
        """Writes the pending tokens, and keeps ``tokens`` of each request."""
        for request in (*requests, *sum(drafts, ())):
            if self.sequences[request].pending:
                self.write([request])
        if len(requests) == 1:
            self.attempt("commit", requests[0], tokens[0], drafts[0])
        else:
            self.attempt("commit_batch", requests, tokens, drafts)
        for request, accepted, group in zip(requests, tokens, drafts):
            sequence = self.sequences[request]
            sequence.truncate(sequence.length)
            sequence.grow(accepted)
            sequence.length = len(sequence.tokens)
            for draft in group:
                del self.sequences[draft]
        self.check(moves=False)  # a request may have pages that were a draft's

    def step(self, requests):
        """Writes the pending tokens, as a kernel would, and calls ``step``."""
        sequences = self.write(requests)
        self.attempt("step", requests)
        for sequence in sequences:
            sequence.length = len(sequence.tokens)
        self.check()

    def write(self, requests):
        """Writes the pending tokens of some sequences; returns these."""
        inputs = self.call("inputs", requests)
        sequences = [self.sequences[request] for request in requests]
        pages = [self.get_pages(request) for request in requests]
        assert inputs.requests == tuple(requests)
        check_inputs(inputs, sequences, pages, self.manager.null_page)
        self.write_pending(inputs, sequences)
        return sequences

    def fork(self, request, *new_requests):
        self.attempt("fork", request, *new_requests)
        for new_request in new_requests:
            self.sequences[new_request] = self.sequences[request].copy()
        self.check()

    def truncate(self, request, length):
        self.attempt("truncate", request, length)
        self.sequences[request].truncate(length)
        self.check()

    def release(self, request):
        self.attempt("release", request)
        del self.sequences[request]
        self.check()

    def swap_out(self, request):
        """Returns how many pages move."""
        needed = sum(self.users[address] == 1 for address in self.get_pages(request))
        done, _ = self.attempt("swap_out", request, needed=needed, available=self.host_room)
        if not done:
            return None
        self.sequences[request].is_resident = False
        self.check()
        pages = self.get_pages(request)
        assert [a.place for a in pages if not self.users[a]] == [Place.HOST] * needed
        return needed

    def swap_in(self, request):
        """Returns how many pages move."""
        pages = self.get_pages(request)
        needed = sum(address.place is Place.HOST for address in pages)
        waiting = len(pages) - needed - sum(self.users[a] > 0 for a in pages)
        available = self.count_available(waiting)
        done, _ = self.attempt("swap_in", request, needed=needed, available=available)
        if not done:
            return None
        before = self.kept
        self.sequences[request].is_resident = True
        self.check()
        self.check_evicted(before)
        return needed

    def reset_prefix_cache(self):
        self.attempt("reset_prefix_cache")
        self.check()
        assert all(page.references for page in self.snapshot.pages)

    def misuse(self, error, message, name, *args, **options):
        """Checks that an invalid call raises, and changes nothing."""
        with pytest.raises(error, match=message):
            getattr(self.manager, name)(*args, **options)
        self.events["misuse"] += 1
        self.check_unchanged()

    def attempt(self, name, *args, needed=0, available=0, **options):
        """Calls the manager, which must succeed if enough pages are available.

        Returns whether it did, and the result.
        """
        try:
            result = self.call(name, *args, needed=needed, **options)
        except OutOfPagesError as error:
            assert needed > available, f"{name}: {error}, but {needed} of {available} do"
            assert error.needed > error.available
            self.events[f"{name} out of pages"] += 1
            self.check_unchanged()
            return False, None
        assert needed <= available, f"{name} found {needed} of {available} pages"
        self.events[name] += 1
        if self.twin:
            assert getattr(self.twin, name)(*args, **options) == result
            assert self.twin.snapshot() == self.manager.snapshot()
        return True, result

    def call(self, name, *args, needed=0, **options):
        """Calls the manager, first with each call of its memory failing in turn."""
        method = getattr(self.manager, name)
        if not self.has_failures:
            return method(*args, **options)
        attempts = self.memory.fail_in_turn(lambda: method(*args, **options))
        for failure, result in attempts:
            if failure:
                self.events[f"{name} failed in the memory"] += 1
                self.check_failed(name, needed)
        return result

    def check_failed(self, name, needed):
        """Checks the state after a failed call that needed ``needed`` pages.

        Nothing changed, except unused pages if none was free.
        """
        before = self.snapshot
        is_on_host = [page.address.place is Place.HOST for page in before.pages]
        free = self.manager.num_pages - is_on_host.count(False)
        if name == "swap_out":
            free = self.manager.num_host_pages - sum(is_on_host)
        if needed <= free:
            assert self.manager.snapshot() == before
            return
        available, users = self.manager.num_free_pages, self.users
        self.check()
        assert (self.users, available) == (users, self.manager.num_free_pages)
        lost = {page for page in before.pages if users[page.address]}
        lost -= set(self.snapshot.pages)
        assert not lost, "pages in use are elsewhere, or gone"
        self.events["evicted for a call that failed"] += self.snapshot != before

    def check_unchanged(self):
        assert self.manager.snapshot() == self.snapshot
        self.check()

    # --- Predictions --------------------------------------------------------------

    def count_pages(self, tokens):
        return -(-tokens // self.page_size)

    def get_pages(self, request):
        return next((s.pages for s in self.snapshot.sequences if s.request == request), ())

    def count_available(self, kept=0):
        """Counts the available pages of the device, if ``kept`` pages that wait for the host stay."""
        held = [a for a, page in self.pages.items() if page.references]
        held = [a for a in held if a.place is Place.DEVICE]
        waiting = sum(not self.users[a] for a in held)
        free = self.manager.num_pages - len(held)
        return free + min(waiting - kept, self.host_room)

    @property
    def host_room(self):
        """Counts the pages of the host that no sequence uses."""
        held = [page for page in self.snapshot.pages if page.references]
        on_host = sum(page.address.place is Place.HOST for page in held)
        return self.manager.num_host_pages - on_host

    def find_kept(self, sequence):
        """The pages on the device that hold a sequence's next tokens, except the last."""
        kept = {v[-1]: a for a, v in self.kept.items() if a.place is Place.DEVICE}
        pages, end = [], sequence.length + self.page_size
        while end < len(sequence.tokens) and sequence.values[end - 1] in kept:
            pages.append(kept[sequence.values[end - 1]])
            end += self.page_size
        return pages

    def predict_room(self, sequence, pages, count):
        """Predicts the need of a sequence with ``pages``, of which ``count`` tokens are new.

        They are looked up if they begin a page and nothing was pending.
        """
        is_cut = sequence.length % self.page_size > 0
        is_looked_up = sequence.pending == count and not is_cut
        kept = self.find_kept(sequence) if is_looked_up else []
        used = sum(self.users[address] > 0 for address in kept)
        waiting = sum(not self.users[a] and self.pages[a].references > 0 for a in kept)
        is_copied = False
        if is_cut and count:
            written = pages[sequence.length // self.page_size]
            is_copied = self.pages[written].references > 1
        needed = self.count_pages(len(sequence.tokens)) - len(pages) + is_copied - used
        available = self.count_available(waiting)
        has_more_room = is_looked_up and needed < available
        least, most = self.count_shareable(sequence, len(kept), has_more_room)
        return Room(needed - waiting, available, least, most, len(kept), used, is_copied)

    def count_shareable(self, sequence, kept, has_more_room):
        """Counts the fewest and the most pending tokens that may be shared.

        Pages on the device must be found. With one more page than needed, for a copy, the beginning
        of a page must be, too. Tokens that were never cached can't be found.
        """
        least = most = sequence.length + kept * self.page_size
        last = len(sequence.tokens) - 1
        begun = {value for values in self.kept.values() for value in values}
        if has_more_room and not self.can_swap:
            while least < last and sequence.values[least] in begun:
                least += 1
        while most < last and sequence.values[most] in self.ever_kept:
            most += 1
        return least - sequence.length, most - sequence.length

    # --- Contents -----------------------------------------------------------------

    def write_pending(self, inputs, sequences):
        pages, offsets, values = [], [], []
        for sequence, row in zip(sequences, inputs.lut.tolist()):
            for t in range(sequence.length, len(sequence.tokens)):
                pages.append(row[t // self.page_size])
                offsets.append(t % self.page_size)
            values += sequence.values[sequence.length :]
        self.contents.write(pages, offsets, values)

    # --- Invariants ---------------------------------------------------------------

    def check_stats(self):
        """Checks that counts equal the events, except evictions of failed calls."""
        stats, events = self.manager.stats, self.events
        assert stats.tokens_looked_up == events["tokens looked up"]
        assert stats.tokens_found == events["tokens found"]

    def check(self, moves=True):
        """Checks all invariants. ``moves``: whether pages of a request may have moved."""
        self.check_stats()
        before, self.snapshot = self.snapshot, self.manager.snapshot()
        self.pages = {page.address: page for page in self.snapshot.pages}
        check_pages(self.snapshot, self.shares)
        check_sequences(self.manager, self.snapshot, self.sequences)
        self.check_references()
        written = collect_written(self.snapshot, self.sequences)
        origins = find_origins(before, self.snapshot) if moves else {}
        self.check_kept(written, origins)
        self.check_contents(written)

    def check_references(self):
        references, self.users = Counter(), Counter()
        for state in self.snapshot.sequences:
            references.update(state.pages)
            if state.is_resident:
                self.users.update(state.pages)
        held = {a: page.references for a, page in self.pages.items() if page.references}
        assert held == references
        assert self.manager.num_free_pages == self.count_available()

    def check_kept(self, written, origins):
        """Checks that full pages are cached, once for equal tokens, and keep their contents."""
        kept, places = {}, {}
        for address, page in self.pages.items():
            values = written.get(address, [])
            is_full = len(values) == self.page_size
            if self.shares and is_full:
                assert page.is_cached, "full, and can't be shared"
                assert places.setdefault(values[-1], address) == address, "kept twice"
            assert page.tokens == (self.page_size if page.is_cached else len(values))
            if page.is_cached and (page.references or address.place is Place.DEVICE):
                origin = origins.get(address, address)
                kept[address] = values if is_full else self.kept[origin]
                self.ever_kept.update(kept[address])
        self.kept = kept

    def check_contents(self, written):
        pages, offsets, expected = [], [], []
        for address, values in (written | self.kept).items():
            if address.place is Place.DEVICE:
                pages += [address.index] * len(values)
                offsets += range(len(values))
                expected += values
        wrong = self.contents.find_wrong(pages, offsets, expected)
        assert not wrong, f"(page, offset) pairs with other contents: {sorted(wrong)}"
        assert self.contents.is_zero(self.manager.null_page), "the null page was written"

    def check_evicted(self, before):
        """Checks that cached pages leave the device only when no other is free."""
        places = {values[-1] for a, values in self.kept.items() if a.place is Place.DEVICE}
        lost = {v[-1] for a, v in before.items() if a.place is Place.DEVICE} - places
        if lost:
            self.events["pages evicted"] += len(lost)
            used = sum(address.place is Place.DEVICE for address in self.pages)
            assert used == self.manager.num_pages, "evicted while others are free"


def make(**options):
    """Makes a manager with a twin; the options are those of a configuration."""
    return CheckedManager(Configuration(**options), has_twin=True)


def fill(checked, request, tokens, salt=b""):
    """Claims a sequence and calls ``step``; returns how many tokens were shared."""
    shared = checked.claim(request, tokens, salt)
    checked.step([request])
    return shared


def find_pages(checked, request):
    """The addresses of a sequence's pages."""
    return [address.index for address in checked.get_pages(request)]
