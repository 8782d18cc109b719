"""Memory whose asynchronous copies end late, out of order, or fail."""

import random

from failing_memory import FailingMemory


class DelayedCopy:
    """Copies a page at some of its polls; with ``fails``, it fails within the last."""

    def __init__(self, memory, moves, fails):
        self.memory, self.moves, self.fails = memory, moves, fails
        memory.random.shuffle(self.moves)
        memory.under_way.append(self)
        for _, target in self.moves:
            target.view("u1").reshape(-1)[...] ^= 0x3C
        self.targets = [target for _, target in self.moves]

    def poll(self):
        if self.memory.random.random() < 0.5:
            return False
        if self.moves:
            source, target = self.moves.pop()
            if not self.moves and self.fails:
                self.memory.under_way.remove(self)
                raise OSError("the copy is out of order")
            target[...] = source
            return False
        self.memory.under_way.remove(self)
        return True


class DelayedMemory(FailingMemory):
    """A ``FailingMemory`` with asynchronous copies.

    Checks that the manager does not access pages that copies write. ``chance`` is the probability
    that a copy fails.
    """

    def __init__(self, seed, chance=0.4):
        super().__init__()
        self.random = random.Random(seed)
        self.chance = chance
        self.under_way, self.begun = [], []

    def allocate_host(self, shape, dtype):
        return self.allocate(shape, dtype)

    def begin_read(self, tensor, pages, host, places):
        return self.begin(
            [(tensor[a], host[b]) for a, b in zip(pages, places, strict=True)]
        )

    def begin_write(self, tensor, pages, host, places):
        return self.begin(
            [(host[b], tensor[a]) for a, b in zip(pages, places, strict=True)]
        )

    def begin(self, moves):
        if self.count():
            self.fail()
        for _, target in moves:
            self.check_free(target)
        self.begun.append(len(moves))
        return DelayedCopy(self, moves, self.random.random() < self.chance)

    def check_free(self, page):
        address = page.ctypes.data
        taken = {t.ctypes.data for copy in self.under_way for t in copy.targets}
        assert address not in taken, "written before a copy has ended"

    def read_page(self, tensor, page, into):
        self.check_free(into)
        super().read_page(tensor, page, into)

    def write_page(self, tensor, page, values):
        self.check_free(tensor[page])
        super().write_page(tensor, page, values)

    def copy_page(self, tensor, source, target):
        self.check_free(tensor[target])
        super().copy_page(tensor, source, target)
