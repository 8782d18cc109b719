"""Tests that the simulation of a cluster agrees with formulas of its model."""

import os
import subprocess
import sys
from dataclasses import replace

import pytest
from places import ROOT

simpy = pytest.importorskip("simpy")
sys.path.append(str(ROOT / "examples"))
from cluster import (
    Cluster,
    Network,
    Pages,
    measure_descriptors,
    send_time,
    simulate,
)  # noqa: E402

CALM = Cluster(nodes=64, load=0.01, seconds=30.0)


def test_a_handover_in_a_calm_cluster_takes_the_time_of_its_bytes():
    found = simulate(CALM, per_page=1.0)
    assert found.arrived > 10 and len(found.waited) == found.arrived
    shortest = send_time(CALM, 16, 1.0)
    assert min(found.handover) >= shortest - 1e-9
    assert max(found.waited) < 3 * CALM.decision
    bytes_ = 64 * CALM.model.token_bytes
    network = CALM.network
    expected = network.latency + bytes_ / network.bandwidth + network.descriptor
    assert send_time(CALM, 64, 1.0) == pytest.approx(expected)


def test_scheduler_stays_within_its_decisions():
    busy = replace(CALM, nodes=1024, load=0.7, seconds=1.0, decision=5e-3)
    found = simulate(busy, per_page=1.0)
    assert found.arrived > 600 and 195 <= found.scheduled <= 200
    twice = simulate(replace(busy, schedulers=2), per_page=1.0)
    assert 390 <= twice.scheduled <= 400


def test_the_same_seed_gives_the_same_cluster():
    one, other = (simulate(CALM, per_page=1.0) for _ in "12")
    assert one == other
    assert simulate(replace(CALM, seed=1), per_page=1.0) != one


def test_layers_sent_early_leave_only_the_last_one():
    by_layer = replace(CALM, pages=Pages(layout="layers", by_layer=True))
    network = Network(descriptor=0.0)
    whole, last = (
        send_time(replace(each, network=network), 4096, 80.0) for each in (CALM, by_layer)
    )
    rest = last - network.latency
    assert rest == pytest.approx((whole - network.latency) / CALM.model.layers)


@pytest.mark.parametrize(
    "pages, least, most",
    [
        (Pages(layout="pages", merges=False), 1, 1),
        (Pages(layout="layers", merges=False), 6, 6),
        (Pages(layout="pages"), 0.01, 0.99),
        (Pages(layout="layers"), 0.06, 5.9),
    ],
)
def test_number_of_descriptors_is_within_bounds(pages, least, most):
    assert least <= measure_descriptors(pages, 1000, layers=6) <= most


def test_program_draws_its_picture(tmp_path):
    picture = tmp_path / "cluster.svg"
    done = subprocess.run(
        [sys.executable, ROOT / "examples/cluster.py", "--quick", "--picture", picture],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    assert "descriptors a page" in done.stdout and "requests/s" in done.stdout
    assert "Handover of a prompt" in picture.read_text()
