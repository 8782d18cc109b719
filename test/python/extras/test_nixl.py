"""Pages that NIXL brings from another process."""

import base64
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import kvcache
from kvcache import transfer

TOKENS = range(2, 43)
MARK = "sender: "


def make_cache(num_pages):
    params = kvcache.KVCacheParams(
        "bf16", n_kv_heads=4, head_dim=64, page_size=16, total_num_layers=4
    )
    return kvcache.PagedKVCacheManager(
        params, max_batch_size=2, max_seq_len=128, num_pages=num_pages
    )


def send():
    """The other process: offers a sequence, and ends its lease when it is told to."""
    cache = make_cache(8)
    blocks = cache.blocks[0].view(np.uint8)
    blocks[...] = np.random.default_rng(0).integers(0, 256, blocks.shape)
    cache.claim("gap", range(20))
    cache.step(["gap"])
    cache.claim("r", TOKENS)
    cache.step(["r"])
    transport = transfer.NIXLTransport("sender")
    lease = cache.export("r", seconds=60)
    message = transfer.offer(cache, lease, transport)
    parts = message, blocks[lease.pages].tobytes()
    print(
        MARK + json.dumps([base64.b64encode(part).decode() for part in parts]), flush=True
    )
    sys.stdin.readline()
    print(MARK + json.dumps(lease.end()), flush=True)
    sys.stdin.readline()


class Sender:
    """The other process."""

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def read(self):
        for line in self.process.stdout:
            if line.startswith(MARK):  # the other lines are NIXL's
                return json.loads(line.removeprefix(MARK))
        raise EOFError

    def tell(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()


@pytest.fixture(params=["tcp,self", "tcp,shm,self"])
def sender(request, monkeypatch):
    pytest.importorskip("nixl_cu12")
    monkeypatch.setenv("UCX_TLS", request.param)
    started = Sender()
    yield started
    started.process.kill()
    started.process.wait()


@pytest.mark.parametrize("progress_thread", [True, False])
def test_a_sequence_comes_from_another_process(sender, progress_thread):
    message, wanted = map(base64.b64decode, sender.read())
    cache = make_cache(5)
    transport = transfer.NIXLTransport("receiver", progress_thread=progress_thread)
    moved = transfer.fetch(cache, message, transport, request="r")
    deadline = time.monotonic() + 60
    while not moved.poll():
        assert time.monotonic() < deadline
        time.sleep(0.001)
    assert "r" not in cache
    sender.tell()
    moved.finish(sender.read())
    assert cache.tokens("r").tolist() == list(TOKENS)
    got = cache.blocks[0].view(np.uint8)[moved.reception.pages]
    assert got.tobytes() == wanted
    transport.close()


def test_a_process_that_is_gone_is_named(sender):
    message, _ = map(base64.b64decode, sender.read())
    sender.process.kill()
    sender.process.wait()
    cache = make_cache(5)
    transport = transfer.NIXLTransport("receiver")
    with pytest.raises(transfer.TransferError) as error:
        moved = transfer.fetch(cache, message, transport, request="r")
        deadline = time.monotonic() + 60
        while not moved.poll():
            assert time.monotonic() < deadline
            time.sleep(0.001)
    assert (error.value.peer, error.value.request) == ("sender", "r")
    assert "r" not in cache and cache.num_free_pages == 5


def test_an_address_of_something_else_is_refused(sender):
    message, _ = map(base64.b64decode, sender.read())
    fields = transfer.Offer.from_bytes(message)
    forged = transfer.Offer(**{**vars(fields), "address": b"nonsense"}).to_bytes()
    cache = make_cache(5)
    transport = transfer.NIXLTransport("receiver")
    with pytest.raises(
        transfer.TransferRefused, match="NIXL does not take the peer's address"
    ):
        transfer.fetch(cache, forged, transport, request="r")
    assert cache.num_free_pages == 5


def test_the_example_survives_the_death_of_workers():
    pytest.importorskip("nixl_cu12")
    example = Path(__file__).resolve().parents[3] / "examples" / "disaggregated.py"
    command = [sys.executable, example, "--quick", "--workers", "1", "--prompts", "6"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    assert "agrees with one process" in result.stdout
    counts = result.stdout.splitlines()[1].split()
    assert counts[:2] == ["2", "2"] and int(counts[3]) > 0


def test_the_example_survives_a_fault_at_every_message():
    pytest.importorskip("nixl_cu12")
    example = Path(__file__).resolve().parents[3] / "examples" / "disaggregated.py"
    command = [sys.executable, example, "--quick", "--workers", "1", "--faults"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "20 of 20 faults" in result.stdout and "agrees with" in result.stdout


if __name__ == "__main__":
    send()
