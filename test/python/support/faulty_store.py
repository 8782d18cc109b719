"""A store in memory, of which each copy may stall, fail, or lie."""

import random


class FaultyCopy:
    """A copy that ends after some polls."""

    def __init__(self, polls, copy):
        self.polls, self.copy, self.done = polls, copy, []

    def poll(self):
        self.polls -= 1
        if self.polls < 0 and self.copy:
            copy, self.copy = self.copy, None
            self.done = copy()
        return self.copy is None

    def wait(self):
        while not self.poll():
            pass


class FaultyStore:
    """A store whose values vanish, and whose copies fail, with a probability.

    Attributes:
        values: The values, which managers share.
        counts: The calls of each kind that failed.
    """

    def __init__(self, values, seed, share=0.0, most=10**9):
        self.values, self.random, self.share, self.most = values, random.Random(seed), share, most
        self.failed = {"find": 0, "put": 0, "get": 0, "lie": 0}

    def fails(self, kind):
        has_failed = self.random.random() < self.share
        self.failed[kind] += has_failed
        return has_failed

    def find(self, keys):
        # Half of the faults are keys that are not there.
        return [self.random.random() < 0.5 if self.fails("find") else key in self.values for key in keys]

    def begin_put(self, keys, buffers):
        def copy():
            return [self.put(key, buffer) for key, buffer in zip(keys, buffers)]

        return FaultyCopy(self.random.randint(0, 3), copy)

    def put(self, key, buffer):
        if self.fails("put") or len(self.values) >= self.most:
            return False
        self.values[key] = bytes(buffer)
        return True

    def begin_get(self, keys, buffers):
        def copy():
            return [self.get(key, buffer) for key, buffer in zip(keys, buffers)]

        return FaultyCopy(self.random.randint(0, 3), copy)

    def get(self, key, buffer):
        if self.fails("lie") and self.values:  # the value of another key
            key = self.random.choice([*self.values])
        value = self.values.get(key)
        if value is None or self.fails("get"):
            buffer[:] = b"\x5a" * len(buffer)
            return False
        buffer[:] = value
        return True

    def remove(self, keys):
        for key in keys:
            self.values.pop(key, None)

    def close(self):
        pass
