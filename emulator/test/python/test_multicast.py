"""Tile copies that blocks of a cluster do for each other, on the emulator."""

import re

import multicast
import numpy as np
import pytest
from compiled import check_assembled, needs_ptxas
from mutants import check, to_nvvm

import kvcache


def jit(text, chip="sm_90a", **options):
    return kvcache.jit(text, target=f"emulator:{chip}", opt_level=0, **options)


@pytest.mark.parametrize("chip", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize("kind", multicast.BODIES)
@pytest.mark.parametrize(
    ("blocks", "page"),
    # Two copies of a tile for two blocks; eight for four; two for eight, six of which copy nothing.
    [(2, 64), (4, 16), (8, 64)],
)
def test_sums(kind, blocks, page, chip):
    got, want = multicast.run(jit(multicast.write(kind, blocks, page), chip), blocks, page)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(("blocks", "chip"), [(None, "sm_90a"), (1, "sm_100a"), (None, "sm_80")])
@pytest.mark.parametrize("kind", multicast.BODIES)
def test_blocks_that_copy_for_themselves(kind, blocks, chip):
    """A kernel without clusters of several blocks, and a chip without any."""
    got, want = multicast.run(jit(multicast.write(kind, blocks), chip), blocks)
    np.testing.assert_array_equal(got, want)


def count_bytes(blocks, attribute):
    """Counts the bytes of global memory that tensor copies read."""
    program = jit(multicast.write("pipe", blocks, attribute=attribute), meter=True)
    multicast.run(program, blocks)
    (launch,) = program.launches
    return launch.copies["tensor_load"].global_bytes


def test_each_row_is_read_once():
    assert count_bytes(4, "multicast") * 4 == count_bytes(4, "")


@pytest.mark.parametrize(
    ("kind", "at_least", "benign"),
    [
        ("pipe", 10, []),
        ("producer", 10, []),
        # The blocks write each other's tiles only, for which they have waited at the end.
        ("tile", 8, ["drop nvvm.cluster.wait 3"]),
    ],
)
def test_mistakes(kind, at_least, benign):
    def run(program):
        return multicast.run(program, 2)[0]

    check(multicast.write(kind, 2), "sum_kernel", "sm_90a", run, at_least, benign)


# Changes of the NVVM-level module


def own_arrivals(text):
    """Redirects all arrivals to the block of the warp itself."""
    return re.sub(
        r"%(\w+) = nvvm\.mapa (%\w+), %\w+ :",
        r"%own\1 = nvvm.read.ptx.sreg.cluster.ctarank : i32\n    %\1 = nvvm.mapa \2, %own\1 :",
        text,
    )


def arrivals_of_a_block(text):
    return text.replace("{scope = #nvvm.mem_scope<cluster>} : !llvm.ptr<7>", ": !llvm.ptr<7>")


def waits_of_a_block(text):
    return text.replace(" {scope = #nvvm.mem_scope<cluster>} : !llvm.ptr<3>, i32 -> i1", " : !llvm.ptr<3>, i32 -> i1")


def masks_of_eight(text):
    return text.replace("llvm.mlir.constant(3 : i16)", "llvm.mlir.constant(255 : i16)")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (own_arrivals, r"of block \(1, 2, 0\) issues a copy that writes .* of block \(0, 2, 0\), .* has not waited"),
        (arrivals_of_a_block, r"of block \(1, 2, 0\) issues a copy that writes .* of block \(0, 2, 0\), .* has not waited"),
        (waits_of_a_block, "only synchronization with the scope of the cluster orders threads of different blocks"),
        (masks_of_eight, "a multicast mask that has bit 7: the cluster has 2 blocks"),
    ],
)
def test_mistakes_between_blocks(change, message):
    text = to_nvvm(multicast.write("pipe", 2), "sm_90a")
    assert change(text) != text
    with pytest.raises(kvcache.CheckError) as error:
        multicast.run(jit(change(text)), 2)
    assert re.search(message, str(error.value)), error.value


def test_blocks_that_copy_another_number_of_tiles():
    source = multicast.write("pipe", 2).replace(
        "%tiles = arith.ceildivui %length, %c64 : index",
        "%all = arith.ceildivui %length, %c64 : index\n    %tiles = arith.addi %all, %b : index",
    )
    with pytest.raises(kvcache.CheckError, match="deadlock"):
        multicast.run(jit(source), 2)


@needs_ptxas
@pytest.mark.parametrize("chip", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize("kind", multicast.BODIES)
def test_ptxas_takes_what_the_emulator_takes(kind, chip, tmp_path):
    check_assembled(multicast.write(kind, 4, page=16), chip, tmp_path)
