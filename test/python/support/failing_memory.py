"""Memory of a page manager that fails on request, and leaves garbage."""

import itertools

from kvcache.pages.memory import NumPyMemory

ERRORS = (MemoryError, KeyboardInterrupt, RuntimeError, OSError, SystemExit, StopIteration)


class FailingMemory(NumPyMemory):
    """Fails at one of its calls, with each kind of error in turn, after half of its work.

    ``fail_at`` is the number of the failing call from now on: 0 is the next one.
    """

    def __init__(self):
        self.fail_at = None
        self.errors = itertools.cycle(ERRORS)
        self.raised = None

    def count(self):
        """Counts a call; returns whether it fails."""
        if self.fail_at is None:
            return False
        self.fail_at -= 1
        return self.fail_at < 0

    def fail(self, spoiled=None):
        if spoiled is not None:
            spoiled.view("u1").reshape(-1)[::2] ^= 0x5A
        self.fail_at = None
        self.raised = next(self.errors)("out of order")
        raise self.raised

    def upload(self, array):
        return self.fail() if self.count() else super().upload(array)

    def read_page(self, tensor, page, into):
        return self.fail(into) if self.count() else super().read_page(tensor, page, into)

    def write_page(self, tensor, page, values):
        return (
            self.fail(tensor[page])
            if self.count()
            else super().write_page(tensor, page, values)
        )

    def copy_page(self, tensor, source, target):
        return (
            self.fail(tensor[target])
            if self.count()
            else super().copy_page(tensor, source, target)
        )

    def fail_in_turn(self, call):
        """Calls until no call of the memory fails any more; yields each error, then the result.

        Other exceptions, such as ``OutOfPagesError``, propagate.
        """
        for fail_at in itertools.count():
            self.fail_at, self.raised = fail_at, None
            try:
                result = call()
            except BaseException as error:
                self.fail_at = None
                if error is not self.raised:
                    raise
                yield error, None
            else:
                self.fail_at = None
                yield None, result
                return
