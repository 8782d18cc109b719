#!/usr/bin/env python3
"""Simulates a cluster in which some nodes process prompts and others generate tokens.

Requests arrive at random. A scheduler gives each a prefill node, which computes keys
and values of its prompt, and a decode node, which reads them by descriptors of pages
and continues. Two numbers are measured with the package: the descriptors of a prompt's
pages in a used cache, and the CPU time of a scheduler's claim. The times of GPUs and
networks are measurements of others: see Model and Network. Prints the effect of page sizes,
layouts, merging of neighbours and sending layer by layer, and the size at which the
cluster stops scaling; --picture draws it.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from console import fail_to_import, print_table, progress

try:
    import kvcache
    import numpy as np
    import simpy
    from kvcache.pages.regions import merge
    from kvcache.pictures.svg import EDGE, INK, MARGIN, RIGHT, Canvas
except ImportError as error:
    fail_to_import(error)


@dataclass(frozen=True)
class Model:
    """The compute of a node: Llama 3.3 70B on eight H100, a cache in bf16.

    NVIDIA measured two of these GPUs with weights in fp8 (NIM 1.8.0, prompts of 5,000
    tokens, docs.nvidia.com/nim/benchmarking/llm/1.0.0/performance): 406.77 ms to the
    first token of one request, and 38.75 ms between tokens of 25 requests. A node is
    four such pairs. The means of prompts and answers are those of the trace of Mooncake
    (arXiv 2407.00079v3, section 4.2).

    ``prefill`` is prompt tokens per second of a node, ``decode`` tokens per second of a
    sequence.
    """

    layers: int = 80
    heads: int = 8
    head_size: int = 128
    prefill: float = 4 * 5_000 / 0.40677
    decode: float = 1 / 0.03875
    slots: int = 4 * 25  # sequences of a decode node
    prompt: float = 7_590  # assumed: half of all prompts are shorter than 0.6 of it
    answer: float = 182

    @property
    def token_bytes(self) -> int:
        return 2 * self.layers * self.heads * self.head_size * 2


@dataclass(frozen=True)
class Network:
    """The network: 400 Gb/s per node, and an engine that processes descriptors.

    ``descriptor`` is the engine's overhead of one descriptor. It was measured for NIXL
    1.5.1 over shared memory, on two shared cores: 16,384 of 4 KiB took 256 ms, and 64
    of 1 MiB, as many bytes, took 65 ms. A network card may be much faster.
    """

    bandwidth: float = 50e9
    latency: float = 20e-6  # of a read, and of a message
    descriptor: float = 10e-6


@dataclass(frozen=True)
class Pages:
    """The form and the transfer of pages.

    ``layout`` is ``"pages"`` if the layers of a page are contiguous, or ``"layers"`` if
    the pages of a layer are.
    """

    size: int = 64
    layout: str = "pages"
    merges: bool = True
    by_layer: bool = False


@dataclass(frozen=True)
class Cluster:
    model: Model = Model()
    network: Network = Network()
    pages: Pages = Pages()
    nodes: int = 256  # a quarter of them for prompts
    schedulers: int = 1
    load: float = 0.7  # of the prefill nodes
    decision: float = 100e-6  # a scheduler's time for a request
    seconds: float = 4.0
    seed: int = 0

    @property
    def rate(self) -> float:
        """The number of requests per second."""
        prefill_nodes = max(self.nodes // 4, 1)
        return self.load * prefill_nodes * self.model.prefill / self.model.prompt


# --- Measured with the package ----------------------------------------------------


def measure_descriptors(pages: Pages, prompt: int, layers: int) -> float:
    """Measures descriptors per page, in a cache after many sequences."""
    order = {"pages": "BLNHC", "layers": "LBNHC"}[pages.layout]
    params = kvcache.KVCacheParams(
        "bf16", n_kv_heads=1, head_dim=16, page_size=pages.size, total_num_layers=layers
    ).with_layout(kvcache.Layout.from_name(order))
    needed = -(-prompt // pages.size)
    cache = kvcache.PagedKVCacheManager(
        params, max_batch_size=64, max_seq_len=8 * prompt, num_pages=16 * needed,
        memory=kvcache.NumPyMemory(),
    )  # fmt: skip
    rng = np.random.default_rng(0)
    alive: list[int] = []
    for name in range(200):
        tokens = np.zeros(int(rng.integers(1, 2 * prompt)), np.int64)
        while not cache.can_claim(tokens):
            cache.release(alive.pop(int(rng.integers(len(alive)))))
        cache.claim(name, tokens)
        cache.step([name])
        alive.append(name)
    counts = []
    for name in alive:
        with cache.export(name, seconds=60) as lease:
            table = cache.descriptors(lease.pages)
            if not pages.merges:
                # As in an engine that lists each page, or each layer of a page, alone.
                table = np.concatenate([cache.descriptors([page]) for page in lease.pages])
            assert table[:, 1].sum() == merge(table)[:, 1].sum()
            counts.append(len(table) / len(lease.pages))
    return statistics.mean(counts)


def measure_decision(prompt: int) -> float:
    """Measures the CPU seconds of a claim with prefix lookup, and its release."""
    params = kvcache.KVCacheParams(
        "bf16", 8, 128, page_size=64, total_num_layers=1, enable_prefix_caching=True
    )
    cache = kvcache.PagedKVCacheManager(
        params, max_batch_size=64, max_seq_len=8 * prompt, num_pages=4096,
        memory=kvcache.NoMemory(),
    )  # fmt: skip
    rng, times = np.random.default_rng(0), []
    for _ in range(200):
        tokens = rng.integers(0, 32_000, prompt)
        start = time.process_time()
        cache.claim("r", tokens)
        cache.step(["r"])
        cache.release("r")
        times.append(time.process_time() - start)
    return statistics.median(times)


# --- The simulation ---------------------------------------------------------------


@dataclass
class Found:
    """The results of a simulation; times in seconds.

    ``handover`` is from the last token of the prompt to the first step of the decode
    node, ``waited`` from the arrival to the scheduler's decision.
    """

    handover: list[float] = field(default_factory=list)
    waited: list[float] = field(default_factory=list)
    arrived: int = 0
    scheduled: int = 0

    def percentile(self, values: list[float], part: float) -> float:
        return float(np.percentile(values, part)) if values else float("nan")


def simulate(cluster: Cluster, per_page: float) -> Found:
    """Simulates a cluster with ``per_page`` descriptors per page."""
    environment = simpy.Environment()
    rng = np.random.default_rng(cluster.seed)
    prefill_nodes = max(cluster.nodes // 4, 1)
    decode_nodes = max(cluster.nodes - prefill_nodes, 1)
    make = simpy.Resource
    schedulers = [make(environment, 1) for _ in range(cluster.schedulers)]
    prefill = [make(environment, 1) for _ in range(prefill_nodes)]
    senders = [make(environment, 1) for _ in range(prefill_nodes)]
    receivers = [make(environment, 1) for _ in range(decode_nodes)]
    slots = [make(environment, cluster.model.slots) for _ in range(decode_nodes)]
    found = Found()

    def choose(resources: list) -> int:
        """Chooses the less busy of two random nodes, as schedulers of many nodes do."""
        one, other = (int(i) for i in rng.integers(len(resources), size=2))
        busy = [len(resources[i].queue) + resources[i].count for i in (one, other)]
        return one if busy[0] <= busy[1] else other

    def request(number: int) -> Iterator:
        begin = environment.now
        with schedulers[number % len(schedulers)].request() as turn:
            yield turn
            yield environment.timeout(cluster.decision)
        found.waited.append(environment.now - begin)
        found.scheduled += environment.now <= cluster.seconds
        tokens = max(int(rng.lognormal(np.log(0.6 * cluster.model.prompt), 1.01)), 16)
        source, target = choose(prefill), choose(slots)
        with prefill[source].request() as turn:
            yield turn
            yield environment.timeout(tokens / cluster.model.prefill)
        end = environment.now
        with slots[target].request() as slot:
            yield slot
            with (
                senders[source].request() as sends,
                receivers[target].request() as receives,
            ):
                yield sends & receives
                yield environment.timeout(send_time(cluster, tokens, per_page))
            found.handover.append(environment.now - end)
            yield environment.timeout(
                rng.exponential(cluster.model.answer) / cluster.model.decode
            )

    def arrive() -> Iterator:
        while True:
            yield environment.timeout(rng.exponential(1 / cluster.rate))
            if environment.now > cluster.seconds:
                return
            environment.process(request(found.arrived))
            found.arrived += 1

    environment.process(arrive())
    # Requests in flight still reach their decode node, if possible.
    environment.run(until=cluster.seconds + 3)
    return found


def send_time(cluster: Cluster, tokens: int, per_page: float) -> float:
    """The seconds that both networks are busy after the last token of a prompt."""
    network, pages = cluster.network, cluster.pages
    count = -(-tokens // pages.size)
    size = count * pages.size * cluster.model.token_bytes
    descriptors = max(count * per_page, 1)
    if pages.by_layer:
        layers = cluster.model.layers
        # Each layer of a page alone, unless the pages of a layer are contiguous.
        descriptors = descriptors if pages.layout == "layers" else max(count, 1) * layers
        each = size / layers / network.bandwidth + descriptors / layers * network.descriptor
        # The part that is not sent when the last layer is done.
        rest = max(
            layers * each - (layers - 1) / layers * tokens / cluster.model.prefill, each
        )
        return network.latency + rest
    return network.latency + size / network.bandwidth + descriptors * network.descriptor


# --- Comparisons ------------------------------------------------------------------

KINDS = [
    *(Pages(size, layout, merges) for size in (16, 64, 256)
      for layout in ("layers", "pages") for merges in (False, True)),
    Pages(64, "pages", True, by_layer=True),
    Pages(64, "layers", True, by_layer=True),
]  # fmt: skip


@dataclass(frozen=True)
class Row:
    """A kind of pages, and its times in milliseconds."""

    pages: Pages
    per_page: float
    median: float
    tail: float


def compare_pages(cluster: Cluster) -> list[Row]:
    rows, prompt, layers = [], int(cluster.model.prompt), cluster.model.layers
    for pages in progress("kinds of pages", KINDS):
        per_page = measure_descriptors(pages, prompt, layers)
        found = simulate(replace(cluster, pages=pages), per_page)
        times = [found.percentile(found.handover, part) * 1e3 for part in (50, 99)]
        rows.append(Row(pages, per_page, *times))
    return rows


@dataclass(frozen=True)
class Point:
    nodes: int
    schedulers: int
    rate: float
    served: float
    waited: float  # milliseconds, of 99 %


def compare_sizes(cluster: Cluster, sizes: list[int]) -> list[Point]:
    points = []
    for schedulers in (1, 4):
        for nodes in progress(f"clusters with {schedulers} schedulers", sizes):
            each = replace(cluster, nodes=nodes, schedulers=schedulers)
            found = simulate(each, 1.0)
            served = found.scheduled / each.seconds
            waited = found.percentile(found.waited, 99) * 1e3
            points.append(
                Point(nodes, schedulers, found.arrived / each.seconds, served, waited)
            )
    return points


def name(pages: Pages) -> str:
    together = "all layers of a page" if pages.layout == "pages" else "all pages of a layer"
    merged = "merged" if pages.merges else "single"
    return f"{pages.size} tokens, {together}, {'by layer' if pages.by_layer else merged}"


_LEFT, _END, _LINE = 330, RIGHT - 110, 17


def draw(rows: list[Row], points: list[Point]):
    canvas = Canvas(
        "A simulated cluster", "Time of a handover by kind of pages, and requests by nodes"
    )
    canvas.heading("Handover of a prompt, milliseconds", "bar: median; line: 99 % of all")
    most = max(row.tail for row in rows)
    for row in rows:
        ends = [_LEFT + value / most * (_END - _LEFT) for value in (row.median, row.tail)]
        canvas.text(MARGIN, canvas.y, name(row.pages), "small")
        canvas.rect(_LEFT, canvas.y - 9, max(ends[0] - _LEFT, 1), 10, fill="#2f7fd6")
        canvas.rect(ends[0], canvas.y - 5, max(ends[1] - ends[0], 1), 2, fill=INK)
        canvas.text(RIGHT, canvas.y, f"{row.median:.1f}, {row.tail:.1f}", "small", "end")
        canvas.y += _LINE
    canvas.y += _LINE
    canvas.heading("Requests a second that are scheduled", "blue: served; grey: that come")
    most = max(point.rate for point in points)
    for point in points:
        title = f"{point.nodes:,} nodes, {point.schedulers} scheduler" + "s" * (
            point.schedulers > 1
        )
        canvas.text(MARGIN, canvas.y, title, "small")
        for value, color in ((point.rate, EDGE), (point.served, "#2f7fd6")):
            width = max(value / most * (_END - _LEFT), 1)
            canvas.rect(_LEFT, canvas.y - 9, width, 10, fill=color)
        canvas.text(
            RIGHT, canvas.y, f"{point.served:,.0f} of {point.rate:,.0f}", "small", "end"
        )
        canvas.y += _LINE
    return canvas.finish()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/example cluster",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--quick", action="store_true", help="a small cluster for a short time"
    )
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw it, as SVG")
    parser.add_argument(
        "--decision",
        type=float,
        metavar="US",
        help="a scheduler's microseconds for a request; measured unless given",
    )
    parser.add_argument(
        "--descriptor",
        type=float,
        metavar="US",
        default=10,
        help="an engine's microseconds for a descriptor (default: %(default)s)",
    )
    options = parser.parse_args(arguments)
    cluster, sizes = Cluster(), [256, 1024, 4096, 8192, 16384]
    if options.quick:
        cluster, sizes = Cluster(nodes=16, seconds=1.0), [16, 64]
    prompt = int(cluster.model.prompt)
    decision = options.decision * 1e-6 if options.decision else measure_decision(prompt)
    network = Network(descriptor=options.descriptor * 1e-6)
    cluster = replace(cluster, decision=decision, network=network)
    print(
        f"A scheduler takes {decision * 1e6:.0f} us of CPU for a prompt of {prompt:,} tokens.\n"
    )
    rows = compare_pages(cluster)
    print_table(
        ("pages", "descriptors a page", "handover ms", "99 %"),
        [
            (name(row.pages), f"{row.per_page:.2f}", f"{row.median:.1f}", f"{row.tail:.1f}")
            for row in rows
        ],
    )
    points = compare_sizes(replace(cluster, seconds=cluster.seconds / 4), sizes)
    print()
    print_table(
        ("nodes", "schedulers", "requests/s", "scheduled/s", "waited ms, 99 %"),
        [
            (p.nodes, p.schedulers, f"{p.rate:.0f}", f"{p.served:.0f}", f"{p.waited:.2f}")
            for p in points
        ],
    )
    if options.picture:
        draw(rows, points).save(options.picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
