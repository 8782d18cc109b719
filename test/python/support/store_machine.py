"""A manager with a store, and kernels that write values which identify their tokens.

As a program, it serves random prompts from a folder, until it is killed.
"""

import random
import sys
from collections import Counter

import kvcache
from manager_model import Configuration, Contents, prefix_values

PROMPTS = [random.Random(i).choices(range(3), k=24) for i in range(6)]


class Machine:
    """A manager of a process, and the values that its kernels write."""

    def __init__(self, store, configuration=None, memory=None, name="model", **options):
        configuration = configuration or Configuration(max_seq_len=64)
        self.manager = kvcache.PagedKVCacheManager(
            configuration.params,
            max_batch_size=4,
            max_seq_len=64,
            num_pages=configuration.num_pages,
            memory=memory,
            store=store,
            store_name=name,
            **options,
        )
        self.contents = Contents(self.manager)
        self.size = configuration.page_size

    def serve(self, tokens, salt=b"", flush=True):
        """Processes a prompt, and checks each token of it; returns how many were found."""
        found = self.manager.claim("r", tokens, salt=salt)
        self.finish(tokens, found, salt)
        if flush:
            self.manager.flush()
        return found

    def finish(self, tokens, found, salt=b""):
        """Writes the tokens that a claim has not found, as kernels do."""
        values = prefix_values(salt, tokens)
        (state,) = [each for each in self.manager.snapshot().sequences if each.request == "r"]
        pages = [state.pages[i // self.size].index for i in range(len(tokens))]
        offsets = [i % self.size for i in range(len(tokens))]
        self.contents.write(pages[found:], offsets[found:], values[found:])
        assert not self.contents.find_wrong(pages, offsets, values)
        assert self.contents.is_zero(self.manager.null_page)
        self.manager.step(["r"])
        self.manager.release("r")


def check_references(manager):
    """Checks that every page is used by what a snapshot shows, and no other."""
    snapshot = manager.snapshot()
    references = Counter(address for sequence in snapshot.sequences for address in sequence.pages)
    assert {page.address: page.references for page in snapshot.pages if page.references} == references
    assert all(page.references or page.is_cached for page in snapshot.pages)
    assert manager.num_free_pages >= manager.num_pages - len(references)


def check_end(managers):
    """Checks that managers whose requests have ended have all pages, after what they write."""
    for manager in managers:
        manager.flush()
        check_references(manager)
        assert manager.num_free_pages == manager.num_pages


def start(path, max_bytes=10**6):
    """Makes a machine whose store is a folder."""
    return Machine(kvcache.stores.Folder(path, max_bytes, deadline=20))


def serve_forever(path, seed):
    """Serves random prompts, and checks the contents of what is found."""
    draw, machine = random.Random(seed), start(path, 10_000)
    print("ready", flush=True)
    while True:
        prompt = draw.choice(PROMPTS)
        machine.serve(prompt[: draw.randint(1, 14)], flush=draw.random() < 0.5)
        print("from store", machine.manager.stats.pages_from_store, flush=True)


if __name__ == "__main__":
    serve_forever(sys.argv[1], int(sys.argv[2]))
