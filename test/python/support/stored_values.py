"""Keys and values of stores, and copies of some of them."""

import hashlib
import random

SIZE = 1000


def make_key(number):
    return hashlib.sha256(str(number).encode()).digest()


def make_value(number, size=40_000):
    return random.Random(number).randbytes(size - number % 7)


def put(store, *numbers, size=SIZE):
    values = [make_value(number, size) for number in numbers]
    copy = store.begin_put([make_key(n) for n in numbers], [memoryview(value) for value in values])
    copy.wait()
    assert copy.poll()
    return copy.done


def get(store, *numbers, size=SIZE):
    """The numbers of the values that are read, all of which must be right."""
    values = [make_value(number, size) for number in numbers]
    buffers = [bytearray(len(value)) for value in values]
    copy = store.begin_get([make_key(n) for n in numbers], [memoryview(buffer) for buffer in buffers])
    copy.wait()
    assert copy.poll()
    assert all(buffer == value for done, buffer, value in zip(copy.done, buffers, values) if done)
    return [number for done, number in zip(copy.done, numbers) if done]
