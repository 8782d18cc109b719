"""Schedules of loops over tiles, which change no result."""

import re
import subprocess

import pytest
from edits import edit
from places import OPT

LOOP = """
!tile = !kvcache.tile<64x64xbf16, swizzle_128b>
!ring = !kvcache.pipe<2, !tile, producers = 4>
!s = !kvcache.fragment<64x64xf32, wgmma_acc>
!p = !kvcache.fragment<64x64xbf16, wgmma_a16>
!share = !kvcache.fragment<64xf32, wgmma_acc, partial>
!fly = !kvcache.in_flight<64x64xf32, wgmma_acc>
gpu.module @kernels [#nvvm.target<chip = "sm_90a">] {
  gpu.func @kernel(%n: index) kernel attributes {known_block_size = array<i32: 384, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %q = kvcache.alloc_tile : !tile
    %k = kvcache.pipe : !ring
    %v = kvcache.pipe : !ring
    %l0 = kvcache.splat %zero : !share
    %o0 = kvcache.splat %zero : !s
    %thread = gpu.thread_id x
    %l, %o = scf.for %j = %c0 to %n step %c1 iter_args(%lj = %l0, %oj = %o0) -> (!share, !s) {
      %next = arith.addi %j, %c1 : index
      %s = kvcache.consume %k[%j] : !ring -> !s {
      ^bb0(%kt: !tile):
        %started = kvcache.fragment_mma %q[%c0, %c0], %kt[%c0, %c0] : !tile, !tile -> !fly
        %done = kvcache.fragment_wait %started : !fly
        kvcache.yield %done : !s
      }
      %probs = kvcache.map %s : !s -> !s {
      ^bb0(%e: f32):
        %y = math.exp2 %e : f32
        kvcache.yield %y : f32
      }
      %ln = kvcache.reduce addf %probs from %lj : !s -> !share
      %p = kvcache.to_operand %probs : !s -> !p
      %on = kvcache.consume %v[%j] : !ring -> !s {
      ^bb0(%vt: !tile):
        %added = kvcache.fragment_mma %p, %vt[%c0, %c0] add %oj {major_b = #kvcache.major<mn_major>} : !p, !tile, !s -> !fly
        %sums = kvcache.fragment_wait %added : !fly
        kvcache.yield %sums : !s
      }
      scf.yield %ln, %on : !share, !s
    } {kvcache.schedule = #kvcache.schedule<ping_pong>}
    %all = kvcache.fragment_mma %q[%c0, %c0], %q[%c0, %c0] add %o : !tile, !tile, !s -> !fly
    gpu.return
  }
}
"""


# Stores into a tile before the product.
CLEAR = """
        %one = arith.constant 1 : i32
        %zero32 = arith.constant 0 : i32
        %count = arith.constant 256 : i32
        %other = arith.index_cast %n : index to i32
        %is_first = arith.cmpi eq, %j, %c0 : index
        scf.if %is_first {{
          %none = arith.constant 0.0 : bf16
          kvcache.tile_store %none, {tile}[%thread, %c0] : bf16, !tile
          nvvm.fence.proxy {{kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}}
          nvvm.barrier id = {id} number_of_threads = {threads}
        }}
        %added ="""


FOR = """
    %m = scf.for %i = %c0 to {end} step %c1 iter_args(%x = %c1) -> (index) {{
      %y = arith.addi %x, {added} : index
      scf.yield %y : index
    }}
"""
WHILE = """
    %m = scf.while (%x = %c1) : (index) -> index {{
      %goes_on = arith.cmpi ult, %x, {end} : index
      scf.condition(%goes_on) %x : index
    }} do {{
    ^bb0(%x: index):
      %y = arith.addi %x, {added} : index
      scf.yield %y : index
    }}
"""
IF = """
    %is_first = arith.cmpi eq, {left}, %c0 : index
    %m = scf.if %is_first -> (index) {{
      scf.yield {yielded} : index
    }} else {{
      scf.yield %c1 : index
    }}
"""


# Numbers of tiles, and whether they surely are the same in all threads of a block.
BOUNDS = {
    "block": ("%m = gpu.block_id x", True),
    "branch": (IF.format(left="%n", yielded="%n"), True),
    "loop": (FOR.format(end="%n", added="%i"), True),
    "while": (WHILE.format(end="%n", added="%n"), True),
    "while_of_threads": (WHILE.format(end="%thread", added="%c1"), False),
    "while_over_threads": (WHILE.format(end="%n", added="%thread"), False),
    "global_id": ("%m = gpu.global_id x", False),
    "opaque_thread": ("%m = kvcache.opaque_thread : index", False),
    "register": ("%t = nvvm.read.ptx.sreg.tid.x : i32\n%m = arith.index_cast %t : i32 to index", False),
    "branch_of_threads": (IF.format(left="%thread", yielded="%n"), False),
    "branch_to_threads": (IF.format(left="%n", yielded="%thread"), False),
    "loop_of_threads": (FOR.format(end="%thread", added="%c1"), False),
    "loop_over_threads": (FOR.format(end="%n", added="%thread"), False),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_turns_need_the_same_number_of_tiles_in_all_threads(name):
    code, is_same = BOUNDS[name]
    text = edit(LOOP, ("%l, %o = scf.for", f"{code}\n%l, %o = scf.for"), ("to %n step %c1 iter_args(%lj", "to %m step %c1 iter_args(%lj"))
    command = [OPT, "-", "--kvcache-schedule-attention", "--remarks-filter=kvcache-schedule.*", "-o", "/dev/null"]
    result = subprocess.run(command, input=text, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert ("products overlap, in turns" in result.stderr) == is_same
    assert ("warpgroups may have other numbers of tiles" in result.stderr) != is_same


def test_loops_may_store_into_a_tile_before_its_product():
    text = edit(LOOP, ("%added =", CLEAR.format(tile="%vt", id="%one", threads="%count")))
    command = [OPT, "-", "--kvcache-schedule-attention", "--remarks-filter=kvcache-schedule.*"]
    result = subprocess.run(command, input=text, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "products overlap, in turns" in result.stderr
    # The loop stores into the tile of values before its turn, and begins a turn by another barrier.
    loop = result.stdout.split("scf.for")[1]
    assert re.search(r"kvcache.tile_store.*nvvm.barrier.*nvvm.barrier.*fragment_mma.*fragment_mma", loop, re.DOTALL)


@pytest.mark.parametrize(
    "reason, old, new",
    [
        ("the loop is not from 0 by steps of 1", "%j = %c0 to", "%j = %c1 to"),
        ("the index of a pipe is not that of the loop", "%v[%j]", "%v[%next]"),
        ("keys and values have one pipe", "%v[%j]", "%k[%j]"),
        ("a pipe has one stage", "pipe<2", "pipe<1"),
        ("the loop has 'gpu.barrier'", "%next = ", "gpu.barrier\n%next = "),
        (
            "the loop has 'kvcache.produce'",
            "%next = ",
            "kvcache.produce %k[%j] : !ring {\n^bb0(%x: !tile):\n}\n%next = ",
        ),
        ("something else than PV uses the accumulator", "%probs = kvcache.map %s :", "%probs = kvcache.map %oj :"),
        (
            "the region of PV makes its accumulator",
            "%added = kvcache.fragment_mma %p, %vt[%c0, %c0] add %oj",
            "%empty = kvcache.splat %zero : !s\n%added = kvcache.fragment_mma %p, %vt[%c0, %c0] add %empty",
        ),
        ("PV is not carried to the next tile", "scf.yield %ln, %on", "scf.yield %ln, %probs"),
        (
            "there are more than two products",
            "add %oj {major_b = #kvcache.major<mn_major>} : !p, !tile, !s ->",
            "{major_b = #kvcache.major<mn_major>} : !p, !tile ->",
        ),
        ("there are no products QK and PV", "", ""),
        ("a tile has other uses than its product", "%added =", "gpu.printf \"\"\n%added ="),
        # A region may only store into its own tile, and synchronize by a barrier of known threads.
        ("a tile has other uses than its product", "%added =", CLEAR.format(tile="%q", id="%one", threads="%count")),
        ("a tile has other uses than its product", "%added =", CLEAR.format(tile="%vt", id="%one", threads="%other")),
        ("a tile has other uses than its product", "%added =", CLEAR.format(tile="%vt", id="%zero32", threads="%count")),
        ("a tile has other uses than its product", "%sums =", CLEAR.replace("%added", "%sums").format(tile="%vt", id="%one", threads="%count")),
        (
            "a tile's region is no product, its wait and its yield",
            "kvcache.yield %done : !s",
            "kvcache.yield %o0 : !s",
        ),
        ("the kernel has no two warpgroups of consumers", "array<i32: 384", "array<i32: 512"),
        ("warpgroups may have other numbers of tiles", "to %n step", "to %thread step"),
        ("no two named barriers are free", "", ""),
        ("the loop carries no sum of exponentials", "math.exp2", "math.absf"),
    ],
)
def test_loops_without_a_schedule_have_a_reason(reason, old, new):
    text = LOOP
    if reason == "there are no products QK and PV":
        start = text.index("      %on = "), text.index("      scf.yield")
        text = edit(text[: start[0]] + text[start[1] :], ("scf.yield %ln, %on", "scf.yield %ln, %oj"))
    elif reason == "no two named barriers are free":
        barriers = [f"%id{i} = arith.constant {i} : i32\nnvvm.barrier id = %id{i}\n" for i in range(2, 16, 2)]
        text = edit(text, ("%thread =", "".join(barriers) + "%thread ="))
    else:
        text = edit(text, (old, new))
    command = [OPT, "-", "--kvcache-schedule-attention", "--remarks-filter=kvcache-schedule.*", "-o", "/dev/null"]
    result = subprocess.run(command, input=text, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert f'Reason="{reason}"' in result.stderr


@pytest.mark.parametrize(
    "changes",
    [
        [("%vt[%c0, %c0] add", "%vt[%ij, %c0] add")],
        [("%ln = ", "%unused = "), ("scf.yield %ln,", "scf.yield %l1,"), ("%thread =", "%l1 = kvcache.reduce addf %e0 from %l0 : !s -> !share\n%thread =")],
    ],
    ids=["of an iteration", "of no iteration"],
)
def test_rotated_loops_carry_values(changes):
    """Regions take what the loop carries, and sums may be those of exponentials before the loop."""
    exponentials = """%e0 = kvcache.map %o0 : !s -> !s {
    ^bb0(%e: f32):
      %y = math.exp2 %e : f32
      kvcache.yield %y : f32
    }
    %thread ="""
    text = edit(
        LOOP,
        ("%thread =", exponentials),
        ("%l, %o =", "%l, %o, %i ="),
        ("%oj = %o0) -> (!share, !s)", "%oj = %o0, %ij = %c0) -> (!share, !s, index)"),
        ("scf.yield %ln, %on : !share, !s", "scf.yield %ln, %on, %ij : !share, !s, index"),
        *changes,
    )
    result = subprocess.run([OPT, "-", "--kvcache-schedule-attention"], input=text, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "pending 1" in result.stdout and "kvcache.schedule_fence" in result.stdout
