#!/usr/bin/env python3
"""Processes prompts in some processes and generates tokens in others.

Prefill workers compute the keys and values of prompts; decode workers read their pages,
by NIXL, and continue. Meanwhile one worker of each kind is killed: its requests restart
at another worker from their tokens so far. All tokens are compared with those of one
process without a cache. With --by-prefix, prompts have common beginnings, and NVIDIA
Dynamo's indexer says which worker has them in its cache. Exits with 1 if tokens
disagree, with 2 if it cannot run.
"""

import argparse
import contextlib
import dataclasses
import hashlib
import importlib
import itertools
import math
import multiprocessing
import os
import signal
import sys
import time
from collections import Counter, deque
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait
from typing import Any

from console import IntBetween, fail, fail_to_import, print_table, progress

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("NIXL_LOG_LEVEL", "ERROR")

try:
    from disaggregated_requests import Request, count_right, make_conversations, make_requests
    from disaggregated_routes import PrefixRoutes
    from disaggregated_workers import Plan, run
    from kvcache import transfer
except ImportError as error:
    fail_to_import(error)

from transformer import Sizes

PLAN = Plan(Sizes(), page_size=16, pages=64, batch_size=8, longest=256)
QUICK = Plan(
    Sizes(2, 64, query_heads=4, kv_heads=2, head_size=32, mlp=128, vocabulary=64),
    page_size=8,
    pages=32,
    batch_size=4,
    longest=64,
)
SILENCE = 120.0  # the most seconds without a message

# The faults at each message: it is damaged, or its consequence is sent twice, or a
# worker is killed after it, or stops for a while: a slow one for less than a lease, a
# late one for longer.
FAULTS = (
    ("offer", "cut off"),
    ("offer", "another version"),
    ("offer", "twice"),
    ("arrived", "twice"),
    ("ended", "twice"),
    ("offer", "killed prefill"),
    ("offer", "killed decode"),
    ("arrived", "killed prefill"),
    ("arrived", "killed decode"),
    ("ended", "killed prefill"),
    ("ended", "killed decode"),
    ("here", "killed decode"),
    ("token", "killed decode"),
    ("offer", "slow prefill"),
    ("offer", "slow decode"),
    ("arrived", "slow prefill"),
    ("ended", "slow decode"),
    ("token", "slow decode"),
    ("offer", "late decode"),
    ("arrived", "late prefill"),
)
LEASE_SECONDS = 10.0  # with faults
FOUND_WEIGHT = 4  # of a token in a worker's cache, against one that waits there
STOPS = {"slow": 1.0, "late": LEASE_SECONDS + 1}  # seconds


class Process:
    """The handle of a worker process."""

    def __init__(self, kind: str, number: int, name: str, plan: Plan) -> None:
        context = multiprocessing.get_context("spawn")
        self.kind = kind
        self.number = number
        self.name = name
        self.has_spoken = False
        self.pipe: Connection
        self.pipe, other = context.Pipe()
        self._process = context.Process(
            target=run, args=(kind, name, plan, other), daemon=True
        )
        self._process.start()
        other.close()
        self._wakes = math.inf

    def send(self, *message: object) -> None:
        """Sends a message; the end of a worker is noticed when its pipe is read."""
        try:
            self.pipe.send(message)
        except OSError:
            pass

    def kill(self) -> None:
        self._process.kill()

    def stop(self, seconds: float) -> None:
        """Stops it for a while; ``go_on`` continues it."""
        os.kill(self._process.pid, signal.SIGSTOP)
        self._wakes = time.monotonic() + seconds

    def go_on(self, at_once: bool = False) -> float:
        """Continues it if it is time. Returns the seconds until then."""
        left = max(self._wakes - time.monotonic(), 0.0)
        if self._wakes < math.inf and (at_once or not left):
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGCONT)
            self._wakes = math.inf
        return left

    def end(self) -> None:
        self.pipe.close()
        self.go_on(at_once=True)
        self._process.join(5)
        self._process.kill()


class Router:
    """Distributes requests to workers, and replaces workers that ended."""

    def __init__(
        self,
        plan: Plan,
        workers: int,
        requests: list[Request],
        faults: tuple[tuple[str, str], ...] = (),
        routes: PrefixRoutes | None = None,
        at_once: int = 1000,
    ) -> None:
        self._plan = plan
        self._routes = routes
        self.faults = list(faults)
        self._sent: tuple[Process, tuple[object, ...]] | None = None
        self._stop: dict[str, float] = {}  # seconds, by the kind of the next worker
        self._numbers = itertools.count()
        self._requests = {request.name: request for request in requests}
        self.counts: Counter[str] = Counter()
        self.processes = [
            self._start(kind) for kind in ("prefill", "decode") for _ in range(workers)
        ]
        self._later = deque(requests[at_once:])
        self._first = requests[:at_once]
        self._starting = workers  # prefill workers that begin to publish

    def _start(self, kind: str) -> Process:
        number = next(self._numbers)
        return Process(kind, number, f"{kind} {number}", self._plan)

    def _choose(self, kind: str) -> Process:
        """The worker of a kind with the least to do."""
        candidates = [each for each in self.processes if each.kind == kind]
        load = Counter(getattr(request, kind) for request in self._requests.values())
        return min(candidates, key=lambda process: load[process])

    def _choose_prefill(self, request: Request) -> Process:
        """The worker that computes a prompt first: it may have its prefix."""
        if not self._routes:
            return self._choose("prefill")
        found = self._routes.count_found(request.tokens)
        waiting = Counter[Process | None]()
        for each in self._requests.values():
            if each.prefill and not each.decode:
                waiting[each.prefill] += each.missing
        candidates = [each for each in self.processes if each.kind == "prefill"]
        chosen = min(
            candidates,
            key=lambda each: waiting[each] - FOUND_WEIGHT * found.get(each.number, 0),
        )
        request.missing = len(request.tokens) - found.get(chosen.number, 0)
        return chosen

    def _begin_first(self) -> None:
        for request in self._first:
            self._begin(request)

    def _begin(self, request: Request) -> None:
        request.prefill = request.decode = None
        request.prefill = self._choose_prefill(request)
        request.prefill.send("prefill", request.name, request.tokens)

    def serve(self) -> Iterator[Request]:
        """Yields each request when it has all its tokens."""
        missing = set(self._requests)
        if not self._plan.publishes:
            self._begin_first()
        while missing:
            pipes = {process.pipe: process for process in self.processes}
            stopped = min(process.go_on() for process in self.processes)
            ready = wait(list(pipes), timeout=min(stopped, SILENCE))
            if not ready and stopped > SILENCE:
                fail(f"no worker has said anything for {SILENCE:g} s")
            for pipe in ready:
                process = pipes[pipe]
                try:
                    kind, name, *rest = pipe.recv()
                except (EOFError, OSError):
                    if process in self.processes:
                        if not process.has_spoken:  # another would end as early
                            fail(f"the worker {process.name!r} ended before its first message")
                        self._replace(process)
                    continue
                process.has_spoken = True
                if kind == "publishes":
                    self._register(process, *rest)
                    continue
                request = self._requests[name]
                if process in (request.prefill, request.decode):
                    self._handle(kind, request, rest)
                if request.is_done and name in missing:
                    missing.remove(name)
                    request.prefill = request.decode = None
                    if self._later:
                        self._begin(self._later.popleft())
                    yield request

    def _register(self, process: Process, endpoint: str, replay: str) -> None:
        if self._routes:
            self._routes.register(process.number, endpoint, replay)
        self._starting -= 1
        if not self._starting:
            self._begin_first()

    def _handle(self, kind: str, request: Request, rest: list[Any]) -> None:
        """Handles a message, and injects the next fault of such a message."""
        fault = next((what for at, what in self.faults if at == kind), None)
        ends = {"prefill": request.prefill, "decode": request.decode}
        if fault in ("cut off", "another version"):
            rest[0] = damage(rest[0], fault)
        how, _, end = (fault or "").partition(" ")
        self._sent = None
        self._stop = {end: STOPS[how]} if how in STOPS else {}
        getattr(self, f"_on_{kind}")(request, *rest)
        if end in ends:
            victim = getattr(request, end) or ends[end]
            if victim not in self.processes or request.is_done:
                return  # the next such message has it
            if how == "killed":
                self._kill(victim)
            elif self._stop:  # it got no message
                victim.stop(STOPS[how])
        elif fault == "twice" and self._sent:
            process, message = self._sent
            process.send(*message)
        elif fault is None or not self._sent:
            return
        self.counts["faults"] += 1
        self.faults.remove((kind, fault))

    def _tell(self, process: Process, *message: object) -> None:
        if process in self.processes and process.kind in self._stop:
            process.stop(self._stop.pop(process.kind))  # before it reads the message
        process.send(*message)
        self._sent = process, message

    def _on_offer(self, request: Request, message: bytes, token: int) -> None:
        request.generated.append(token)
        if request.is_done:
            request.prefill.send("end", request.name)
            return  # no fault: it is not fetched
        request.decode = self._choose("decode")
        remaining = request.limit - len(request.generated)
        self._tell(request.decode, "decode", request.name, message, token, remaining)

    def _on_found(self, request: Request, found: int, tokens: int) -> None:
        self.counts["found"] += found
        self.counts["looked up"] += tokens

    def _on_arrived(self, request: Request) -> None:
        self._tell(request.prefill, "end", request.name)

    def _on_ended(self, request: Request, was_held: bool) -> None:
        if request.decode:
            self._tell(request.decode, "ended", request.name, was_held)

    def _on_here(self, request: Request, size: int) -> None:
        request.prefill = None
        self.counts["sequences"] += 1
        self.counts["bytes"] += size

    def _on_token(self, request: Request, token: int) -> None:
        request.generated.append(token)

    def _on_lost(self, request: Request, reason: str) -> None:
        self.counts["begun again"] += 1
        if request.prefill:
            request.prefill.send("end", request.name)  # its pages are useless
        self._begin(request)

    def kill(self, index: int) -> None:
        """Kills a worker. Its unread messages are lost."""
        self._kill(self.processes[index])

    def _kill(self, process: Process) -> None:
        process.kill()
        self._replace(process)

    def _replace(self, process: Process) -> None:
        """Starts another worker, and restarts the requests of the one that ended."""
        self.counts["restarted"] += 1
        i = self.processes.index(process)
        self.processes[i] = self._start(process.kind)
        for request in self._requests.values():
            if request.decode is process or (
                request.prefill is process and not request.decode
            ):
                self.counts["begun again"] += 1
                self._begin(request)
            elif request.prefill is process:
                # The decode worker may have all pages, but no confirmation.
                request.decode.send("lose", request.name)


def damage(message: bytes, how: str) -> bytes:
    """Damages an offer: a digest of 16 bytes, and JSON first."""
    if how == "cut off":
        return message[:-1]
    text = message[16:].replace(b'"version": ', b'"version": 9')
    return hashlib.sha256(text).digest()[:16] + text


def run_all(router: Router, requests: list[Request], deaths: dict[int, int]) -> float:
    """Serves all requests; returns the seconds.

    Meanwhile workers are killed: ``deaths`` has the number of requests, and the worker.
    """
    start = time.perf_counter()
    served = router.serve()
    for i, _ in enumerate(progress("serving", served, total=len(requests))):
        if i in deaths:
            router.kill(deaths[i])
    seconds = time.perf_counter() - start
    for process in router.processes:
        process.end()
    return seconds


def compare(plan: Plan, requests: list[Request]) -> bool:
    """Returns whether served tokens equal those of the model in one process."""
    new_tokens = sum(len(request.generated) for request in requests)
    right = count_right(plan, requests)
    print(
        f"{'agrees' if right == new_tokens else 'DISAGREES'} with one process without a cache: {right} of"
        f" {new_tokens} tokens are the same\n"
    )
    return right == new_tokens


def serve(
    plan: Plan, workers: int, requests: list[Request], has_faults: bool = False
) -> bool:
    """Serves requests and prints the counts; returns whether all is right."""
    router = Router(plan, workers, requests, FAULTS if has_faults else ())
    # One of each kind, at a third and at two thirds of the requests.
    deaths = {len(requests) // 3: 0, 2 * len(requests) // 3: -1}
    seconds = run_all(router, requests, {} if has_faults else deaths)
    counts = router.counts
    new_tokens = sum(len(request.generated) for request in requests)
    print_table(
        ("workers", "killed", "begun again", "sequences moved", "MB moved", "new tokens", "tokens/s"),
        [
            (
                2 * workers,
                counts["restarted"],
                counts["begun again"],
                counts["sequences"],
                round(counts["bytes"] / 1e6, 1),
                new_tokens,
                round(new_tokens / seconds),
            )
        ],
    )
    agrees = compare(plan, requests)
    if has_faults:
        left = "".join(
            f"; not done: {what} at {kind!r}" for kind, what in router.faults
        )
        print(f"{counts['faults']} of {len(FAULTS)} faults{left}")
    return agrees and not (has_faults and router.faults)


def serve_by_prefix(plan: Plan, workers: int, prompts: int) -> bool:
    """Serves prompts with common beginnings, by load and by prefix."""
    rows, agrees = [], True
    plan = dataclasses.replace(plan, publishes=True)
    with contextlib.closing(PrefixRoutes(plan.page_size)) as prefix_routes:
        for name, routes in (("least load", None), ("prefix", prefix_routes)):
            requests = make_conversations(plan, prompts)
            router = Router(plan, workers, requests, routes=routes, at_once=2 * workers)
            seconds = run_all(router, requests, {3 * len(requests) // 4: 0})
            agrees &= compare(plan, requests)
            counts = router.counts
            rate = f"{counts['found'] / counts['looked up']:.0%}"
            killed, again = counts["restarted"], counts["begun again"]
            rows.append((name, counts["looked up"], counts["found"], rate, killed, again, round(seconds, 1)))
    print_table(
        ("routes by", "prompt tokens", "in the cache", "hit rate", "killed", "begun again", "seconds"), rows
    )
    return agrees


def check_extras() -> None:
    """Ends the program if a package of --by-prefix is missing."""
    try:
        for package in ("zmq", "msgspec", "dynamo.indexer"):
            importlib.import_module(package)
    except ImportError as error:
        fail_to_import(error, "extras-venv", "--by-prefix")


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Processes prompts in some processes and generates tokens in others,"
        " which read the pages by NIXL. Kills one of each kind meanwhile, or one prefill"
        " worker with --by-prefix. Compares every token with one process without a cache.",
        epilog="example: disaggregated.py --workers 2 --prompts 20",
        allow_abbrev=False,  # scripts/example looks for --by-prefix
    )
    parser.add_argument(
        "--workers",
        type=IntBetween(1, 8),
        metavar="N",
        help="of each kind, default first 1, then 2; 2 with --by-prefix",
    )
    parser.add_argument(
        "--prompts",
        type=IntBetween(3, 1000),
        metavar="N",
        help="how many there are, default 12, or 100 with --by-prefix",
    )
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument(
        "--by-prefix",
        action="store_true",
        help="prompts with common beginnings, with and without Dynamo's indexer",
    )
    mode.add_argument(
        "--faults",
        action="store_true",
        help="instead of two deaths: messages that are cut off, of another version and"
        " said twice, and workers that die, are slow, or outlast a lease, at each message",
    )
    parser.add_argument("--quick", action="store_true", help="a smaller model")
    options = parser.parse_args()
    if options.by_prefix:
        check_extras()
    try:
        transfer.NIXLTransport("check")
    except (ImportError, transfer.TransferError) as error:
        fail(error)
    plan = QUICK if options.quick else PLAN
    if options.faults:
        plan = dataclasses.replace(plan, lease_seconds=LEASE_SECONDS)
    if options.by_prefix:
        return 0 if serve_by_prefix(plan, options.workers or 2, options.prompts or 100) else 1
    agrees = True
    for workers in [options.workers] if options.workers else [1, 2]:
        requests = make_requests(plan, options.prompts or 12)
        agrees &= serve(plan, workers, requests, options.faults)
    return 0 if agrees else 1


if __name__ == "__main__":
    sys.exit(main())
