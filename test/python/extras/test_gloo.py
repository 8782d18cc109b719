"""Tests of pages that torch.distributed reads from another process, over loopback."""

import base64
import datetime
import json
import socket
import subprocess
import sys
import time

import kvcache
import numpy as np
import pytest
import torch.distributed
from kvcache import reach, transfer

TOKENS = range(2, 43)
SECONDS = 20


def make_cache(kind, num_pages):
    fields = {"dtype": "bf16", "n_kv_heads": 4, "head_dim": 64, "page_size": 16}
    if kind == "groups":
        params = kvcache.MultiKVCacheParams(
            [
                kvcache.KVCacheParams(**fields, layer_ids=[0, 1]),
                kvcache.KVCacheParams(**fields, layer_ids=[2], reach=reach.window(16)),
                kvcache.KVCacheParams(**fields, layer_ids=[3], reach=reach.state),
            ]
        )
    else:
        kinds = {"one group": reach.full, "nothing": reach.window(1)}
        params = kvcache.KVCacheParams(**fields, total_num_layers=4, reach=kinds[kind])
    return kvcache.PagedKVCacheManager(
        params, max_batch_size=2, max_seq_len=128, num_pages=num_pages
    )


def list_tokens(kind):
    """The tokens of the sequence; if there is nothing to send, they end with a page."""
    return range(2, 50) if kind == "nothing" else TOKENS


def join(rank, port):
    torch.distributed.init_process_group(
        "gloo",
        init_method=f"tcp://127.0.0.1:{port}",
        rank=rank,
        world_size=2,
        timeout=datetime.timedelta(seconds=SECONDS),
    )


def send(kind, port):
    """The other process: offers a sequence, and follows commands."""
    join(1, port)
    cache = make_cache(kind, 20)
    blocks = cache.blocks[0].view(np.uint8)
    blocks[...] = np.random.default_rng(0).integers(0, 256, blocks.shape)
    cache.claim("gap", range(20))
    cache.step(["gap"])
    cache.claim("r", list_tokens(kind))
    cache.step(["r"])
    transport = transfer.TorchTransport("sender")
    lease = cache.export("r", seconds=60)
    message = transfer.offer(cache, lease, transport)
    parts = message, blocks[lease.pages[lease.pages >= 0]].tobytes()
    print(json.dumps([base64.b64encode(part).decode() for part in parts]), flush=True)
    sys.stdin.readline()
    print(json.dumps(lease.end()), flush=True)
    sys.stdin.readline()
    transport.close()


def main(kind, port):
    """The receiving process, which prints its progress."""
    sender = subprocess.Popen(
        [sys.executable, __file__, "send", kind, port],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    join(0, port)
    message, pages = map(base64.b64decode, json.loads(sender.stdout.readline()))
    cache = make_cache(kind, 8)
    transport = transfer.TorchTransport("receiver", chunk=1000)

    def fetch(message=message):
        return transfer.fetch(cache, message, transport, request="r")

    def wait(moved):
        end = time.monotonic() + SECONDS
        while not moved.poll():
            assert time.monotonic() < end
            time.sleep(1e-3)

    # A cancelled transfer, and its repetition.
    given_up = fetch()
    given_up.cancel()
    assert cache.num_free_pages == 8
    moved = fetch()
    wait(moved)
    sender.stdin.write("\n")
    sender.stdin.flush()
    moved.finish(json.loads(sender.stdout.readline()))
    (state,) = cache.snapshot().sequences
    received = cache.blocks[0].view(np.uint8)[[page.index for page in state.pages]]
    assert received.tobytes() == pages
    assert cache.tokens("r").tolist() == list(list_tokens(kind))
    cache.release("r")

    # Memory that the sender has not registered.
    region, *_ = cache.regions()
    table = np.array([[region.address, 16, 0]])
    wrong = transport.post("sender", np.array([[16, 16, 0]]), table)
    with pytest.raises(transfer.TransferFailed, match="'sender'.*does not lend"):
        end = time.monotonic() + SECONDS
        while not transport.poll(wrong):
            assert time.monotonic() < end

    # A sender that is killed.
    sender.kill()
    sender.wait()
    moved = fetch()
    if kind == "nothing":  # no request is sent; the end of the lease fails
        assert moved.poll() and not pages
        moved.cancel()
    else:
        with pytest.raises(transfer.TransferFailed, match="request 'r' of peer 'sender'"):
            wait(moved)
    assert cache.num_free_pages == 8 and "r" not in cache
    print("all is well", flush=True)


@pytest.mark.parametrize("kind", ["one group", "groups", "nothing"])
def test_pages_between_two_processes(kind):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    done = subprocess.run(
        [sys.executable, __file__, "receive", kind, port],
        capture_output=True,
        text=True,
        timeout=6 * SECONDS,
    )
    assert "all is well" in done.stdout, done.stderr
    assert done.returncode == 0, done.stderr


def test_a_transport_needs_a_group():
    with pytest.raises(transfer.TransferRefused, match="no process group"):
        transfer.TorchTransport("alone")


if __name__ == "__main__":
    {"send": send, "receive": main}[sys.argv[1]](*sys.argv[2:])
