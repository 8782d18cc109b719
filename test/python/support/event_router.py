"""A model of a router: it applies events, and has whole prefixes instead of hashes."""

import struct
from collections import Counter
from contextlib import contextmanager

import msgspec
import zmq

from kvcache import Place

MEDIA = {Place.DEVICE: "GPU", Place.HOST: "CPU", Place.DISK: "STORAGE"}
END = b"\xff" * 8


class Router:
    """The blocks of one worker. Events that a real router would drop are errors.

    Attributes:
        next: The number of the batch that it expects.
        blocks: The prefix of each block, by its hash, medium and group: its salt, adapter and tokens.
    """

    def __init__(self, page_size=None):
        self.page_size = page_size
        self.next = 0
        self.blocks = {}

    def receive(self, topic, number, payload):
        (number,) = struct.unpack(">Q", number)
        self.apply(number, payload)
        self.next = number + 1

    def apply(self, number, payload):
        time, events, rank = msgspec.msgpack.decode(payload)
        assert number >= self.next, "an old batch"
        for event in events:
            getattr(self, event.pop("type"))(**event)

    def AllBlocksCleared(self):
        self.blocks.clear()

    def BlockStored(
        self, block_hashes, parent_block_hash, token_ids, block_size, lora_id, medium, lora_name,
        extra_keys=None, group_idx=None, kv_cache_spec_kind=None, kv_cache_spec_sliding_window=None, cache_salt=None,
    ):  # fmt: skip
        assert len(token_ids) == len(block_hashes) * block_size > 0
        assert (group_idx is None) == (kv_cache_spec_kind is None)
        assert (kv_cache_spec_kind == "sliding_window") == (kv_cache_spec_sliding_window is not None)
        if group_idx is None:
            assert block_size == self.page_size
        names = [name for name in (lora_name, cache_salt) if name is not None]
        if extra_keys is not None:
            is_first = parent_block_hash is None
            assert extra_keys[0] == (names if is_first else names[: lora_name is not None] or None)
        prefix = (cache_salt, lora_name), ()
        if parent_block_hash is not None:
            prefix = self.find(parent_block_hash, group_idx)
        for i, each in enumerate(block_hashes):
            if prefix is not None:
                prefix = prefix[0], (*prefix[1], *token_ids[i * block_size : (i + 1) * block_size])
            key = each, medium, group_idx
            assert key not in self.blocks, "stored twice"
            self.blocks[key] = prefix

    def find(self, parent, group_idx):
        """The prefix of a parent. A page of a window may outlive the page before it."""
        known = [prefix for (each, _, group), prefix in self.blocks.items() if (each, group) == (parent, group_idx)]
        assert known or group_idx is not None, "stored before its parent"
        return known[0] if known else None

    def BlockRemoved(self, block_hashes, medium, group_idx=None):
        for each in block_hashes:
            del self.blocks[each, medium, group_idx]

    def match(self, tokens, salt=None, adapter=None):
        """The number of first tokens in full blocks, of which one is left to compute."""
        prefixes, tokens = set(self.blocks.values()), tuple(tokens)
        length = 0
        while length + self.page_size < len(tokens):
            if ((salt, adapter), tokens[: length + self.page_size]) not in prefixes:
                break
            length += self.page_size
        return length

    def count(self):
        """Counts the blocks of each medium and group."""
        return Counter((medium, group or 0) for _, medium, group in self.blocks)


def count_cached(manager):
    """Counts the cached pages of each medium and group in a manager."""
    pages = manager.snapshot().pages
    return Counter((MEDIA[page.address.place], page.group) for page in pages if page.is_cached)


class Client:
    """The socket on which a router asks for past batches and snapshots."""

    def __init__(self, context, endpoint):
        self.socket = context.socket(zmq.DEALER)
        self.socket.rcvtimeo = 10_000
        self.socket.rcvhwm = 0
        self.socket.connect(endpoint)

    def ask(self, request):
        """Returns the frames of each answer without the empty one."""
        self.socket.send_multipart([b"", request])
        return list(self.read())

    def read(self):
        while True:
            empty, *frames = self.socket.recv_multipart()
            assert empty == b""
            if frames == [b"", END, b""]:
                return
            yield frames

    def update(self, router):
        """Brings a router up to date; returns the number of batches."""
        batches = self.ask(struct.pack(">Q", router.next))
        for frames in batches:
            router.receive(*frames)
        return len(batches)

    def make_router(self, page_size):
        """Makes a router from a snapshot."""
        header, *chunks = self.ask(b"snapshot-v1")
        name, resume, fields = header
        router = Router(page_size)
        fields = msgspec.msgpack.decode(fields)
        (router.next,) = struct.unpack(">Q", resume)
        assert name == b"snapshot-v1" and fields["resume_seq"] == router.next >= fields["epoch"]
        for _, number, payload in chunks:
            assert number == resume
            router.apply(router.next, payload)
        assert len(router.blocks) == fields["blocks"]
        return router


@contextmanager
def connect(publisher):
    """A client of the publisher's replay."""
    context = zmq.Context()
    try:
        yield Client(context, publisher.replay)
    finally:
        context.destroy(linger=0)
