"""A process that writes, reads and removes values of a folder at random, until it is killed."""

import random
import sys
import time

from kvcache.stores import Folder
from stored_values import make_key, make_value


def main(path, max_bytes, seed):
    draw = random.Random(seed)
    folder = Folder(path, max_bytes, deadline=30)
    print("ready", flush=True)
    hits = 0
    while True:
        numbers = draw.sample(range(60), 4)
        keys, values = [make_key(n) for n in numbers], [make_value(n) for n in numbers]
        action = draw.choice(("put", "put", "get", "get", "get", "remove"))
        if action == "put":
            folder.begin_put(keys, [memoryview(value) for value in values]).wait()
        elif action == "get":
            buffers = [bytearray(len(value)) for value in values]
            copy = folder.begin_get(keys, [memoryview(buffer) for buffer in buffers])
            copy.wait()
            for is_done, buffer, value in zip(copy.done, buffers, values):
                if is_done and buffer != value:
                    print("wrong", flush=True)
                    return
                hits += is_done
            print("hits", hits, flush=True)
        elif draw.random() < 0.1:
            folder.remove(keys[:1])
        time.sleep(0)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
