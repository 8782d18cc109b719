"""Managers that publish their events on this machine, and traffic for them."""

import kvcache
from kvcache import events

LOCAL = "tcp://127.0.0.1:*"
SIZE = 4  # tokens per page


def publish(**options):
    return events.Publisher(LOCAL, replay=LOCAL, **options)


def make_manager(publisher, num_pages=12, **options):
    params = kvcache.KVCacheParams(
        "f32", n_kv_heads=1, head_dim=4, page_size=SIZE, total_num_layers=1, enable_prefix_caching=True, **options
    )
    return kvcache.PagedKVCacheManager(
        params, max_batch_size=4, max_seq_len=64, num_pages=num_pages, memory=kvcache.NoMemory(), events=publisher
    )


def serve(manager, tokens, salt=b""):
    """Processes a prompt, and ends its sequence."""
    manager.claim("r", tokens, salt=salt)
    manager.step(["r"])
    manager.release("r")


def serve_random(manager, draw, count):
    for _ in range(count):
        serve(manager, draw.choices(range(2), k=draw.randint(1, 32)))
