"""Tests of pages that NIXL reads from another process."""

import base64
import json
import os
import re
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


KINDS = {
    "whole pages": {},
    "scales, two devices": {
        "dtype": "f8E4M3FN",
        "n_devices": 2,
        "kvcache_quant_config": kvcache.KVCacheQuantizationConfig("f32", 8),
    },
    "layers apart": {"layout": kvcache.Layout.from_name("LBNHC")},
    "a window of one token": {"reach": kvcache.reach.window(1)},
}


def make_cache(num_pages, kind="whole pages"):
    fields = {"dtype": "bf16", **KINDS[kind]}
    params = kvcache.KVCacheParams(
        n_kv_heads=4, head_dim=64, page_size=16, total_num_layers=4, **fields
    )
    return kvcache.PagedKVCacheManager(
        params, max_batch_size=2, max_seq_len=128, num_pages=num_pages
    )


def join(cache, pages):
    """The bytes of pages in all tensors."""
    tensors = [each.view(np.uint8)[pages] for each in (*cache.blocks, *cache.scales)]
    return b"".join(each.tobytes() for each in tensors)


def send(kind, count):
    """The other process: offers a sequence, and ends its lease on command."""
    cache = make_cache(8, kind)
    for tensor in (*cache.blocks, *cache.scales):
        values = tensor.view(np.uint8)
        values[...] = np.random.default_rng(0).integers(0, 256, values.shape)
    cache.claim("gap", range(20))
    cache.step(["gap"])
    cache.claim("r", range(2, 2 + count))
    cache.step(["r"])
    transport = transfer.NIXLTransport("sender")
    lease = cache.export("r", seconds=60)
    message = transfer.offer(cache, lease, transport)
    parts = message, join(cache, lease.pages[lease.pages >= 0])
    print(
        MARK + json.dumps([base64.b64encode(part).decode() for part in parts]), flush=True
    )
    sys.stdin.readline()
    print(MARK + json.dumps(lease.end()), flush=True)
    sys.stdin.readline()


class Sender:
    """The other process."""

    def __init__(self, kind="whole pages", count=len(TOKENS)):
        self.process = subprocess.Popen(
            [sys.executable, __file__, kind, str(count)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def read(self):
        for line in self.process.stdout:
            if line.startswith(MARK):  # the other lines are NIXL's
                return json.loads(line.removeprefix(MARK))
        raise EOFError

    def notify(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def kill(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture(params=["tcp,self", "tcp,shm,self"])
def start(request, monkeypatch):
    """Starts senders."""
    pytest.importorskip("nixl_cu12")
    monkeypatch.setenv("UCX_TLS", request.param)
    started = []

    def start_one(*arguments):
        started.append(Sender(*arguments))
        return started[-1]

    yield start_one
    for each in started:
        each.kill()


@pytest.fixture
def sender(start):
    return start()


def fetch(cache, message, transport, request):
    moved = transfer.fetch(cache, message, transport, request=request)
    deadline = time.monotonic() + 60
    while not moved.poll():
        assert time.monotonic() < deadline
        time.sleep(0.001)
    return moved


@pytest.mark.parametrize(
    ("kind", "progress_thread"),
    [("whole pages", True), *((kind, False) for kind in list(KINDS)[:3])],
)
def test_a_sequence_comes_from_another_process(start, kind, progress_thread):
    sender = start(kind)
    message, wanted = map(base64.b64decode, sender.read())
    cache = make_cache(7, kind)
    transport = transfer.NIXLTransport("receiver", progress_thread=progress_thread)
    first, second = (fetch(cache, message, transport, name) for name in "rs")
    assert not {"r", "s"} & {state.request for state in cache.snapshot().sequences}
    sender.notify()
    first.finish(sender.read())
    second.finish(True)
    assert cache.tokens("r").tolist() == cache.tokens("s").tolist() == list(TOKENS)
    for moved in first, second:
        assert moved.bytes == len(wanted)
        assert join(cache, moved.reception.pages) == wanted
    transport.close()


@pytest.mark.parametrize(("count", "pages"), [(48, 0), (49, 1)])
def test_window_without_pages_to_send_ends_at_once(start, count, pages):
    """No later token reaches the whole pages; a partial page follows them."""
    kind = "a window of one token"
    sender = start(kind, count)
    message, wanted = map(base64.b64decode, sender.read())
    cache = make_cache(4, kind)
    moved = fetch(cache, message, transfer.NIXLTransport("receiver"), "r")
    sender.notify()
    moved.finish(sender.read())
    assert moved.bytes == len(wanted) == pages * cache.params.bytes_per_block
    (state,) = cache.snapshot().sequences
    assert join(cache, [page.index for page in state.pages]) == wanted
    assert cache.tokens("r").tolist() == list(range(2, 2 + count))


def test_missing_pages_are_refused(start):
    kind = "scales, two devices"
    message, _ = map(base64.b64decode, start(kind).read())
    fields = transfer.Offer.from_bytes(message)
    forged = fields._replace(pages=fields.pages + 8).to_bytes()
    cache = make_cache(5, kind)
    transport = transfer.NIXLTransport("receiver")
    with pytest.raises(transfer.TransferRefused, match="it has no page 1"):
        transfer.fetch(cache, forged, transport, request="r")
    assert cache.num_free_pages == 5


def test_ended_process_is_named(sender):
    message, _ = map(base64.b64decode, sender.read())
    sender.kill()
    cache = make_cache(5)
    transport = transfer.NIXLTransport("receiver")
    with pytest.raises(transfer.TransferError) as error:
        fetch(cache, message, transport, "r")
    assert (error.value.peer, error.value.request) == ("sender", "r")
    assert "r" not in cache and cache.num_free_pages == 5


def test_restarted_process_is_read_again(start):
    """Another process of the same name, with other memory."""
    transport, cache = transfer.NIXLTransport("receiver"), make_cache(10)
    for name in "ab":
        sender = start()
        message, wanted = map(base64.b64decode, sender.read())
        moved = fetch(cache, message, transport, name)
        moved.finish(True)
        assert join(cache, moved.reception.pages) == wanted
        sender.kill()


def test_address_of_another_kind_is_refused(sender):
    message, _ = map(base64.b64decode, sender.read())
    fields = transfer.Offer.from_bytes(message)
    forged = fields._replace(address=b"nonsense").to_bytes()
    cache = make_cache(5)
    transport = transfer.NIXLTransport("receiver")
    with pytest.raises(
        transfer.TransferRefused, match="NIXL rejects the peer's address"
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


@pytest.mark.parametrize(
    "module, error",
    [
        ("raise ImportError('no zmq')", "no zmq.*build/extras-venv/bin/python examples/disaggregated.py --by-prefix"),
        ("", "error: the worker 'prefill 0' ended before its first message"),
    ],
)
def test_the_example_by_prefix_ends_without_pyzmq(tmp_path, module, error):
    pytest.importorskip("dynamo.indexer")
    (tmp_path / "zmq.py").write_text(module)
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    example = Path(__file__).resolve().parents[3] / "examples" / "disaggregated.py"
    command = [sys.executable, example, "--quick", "--by-prefix", "--workers", "1"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=100, env=environment)
    assert result.returncode == 2
    assert re.search(error, result.stderr, re.DOTALL), result.stderr


@pytest.mark.parametrize(
    "arguments, error",
    [
        (["--prompts", "2"], "expects 3 to 1000, got '2'"),
        (["--by-prefix", "--faults"], "not allowed with"),
        (["--by"], "unrecognized arguments: --by"),
    ],
)
def test_the_example_refuses_arguments(arguments, error):
    example = Path(__file__).resolve().parents[3] / "examples" / "disaggregated.py"
    result = subprocess.run([sys.executable, example, *arguments], capture_output=True, text=True, timeout=60)
    assert result.returncode == 2 and error in result.stderr and len(result.stderr) < 400


@pytest.mark.slow
def test_the_example_finds_more_by_prefix_than_by_load():
    example = Path(__file__).resolve().parents[3] / "examples" / "disaggregated.py"
    command = [sys.executable, example, "--quick", "--by-prefix"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.count("agrees with one process") == 2
    rows = [line.rsplit(None, 6) for line in result.stdout.splitlines()[-2:]]
    assert [name for name, *_ in rows] == ["least load", "prefix"]
    by_load, by_prefix = (int(row[3].rstrip("%")) for row in rows)
    assert by_prefix > by_load and all(int(row[4]) == 1 for row in rows)


if __name__ == "__main__":
    send(sys.argv[1], int(sys.argv[2]))
