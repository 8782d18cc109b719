"""The benchmarks: how they read machine code."""

import json
from dataclasses import asdict

import pytest
from kvcache.compilation import sass


def listing(text):
    """A listing as nvdisasm writes it, of lines that are labels or instructions."""
    lines = []
    for line in map(str.strip, text.strip().splitlines()):
        label = line.endswith(":")
        lines.append(line if label else f"        /*{16 * len(lines):04x}*/                   {line} ;")
    return "\n".join(lines)


def test_padding_is_not_counted():
    code = sass.read(
        listing("""
        .text.kernel:
        S2R R0, SR_TID.X
        NOP
        EXIT
        .L_x_0:
        BRA `(.L_x_0)
        NOP
        NOP
        """)
    )
    assert code.instructions == 2
    assert code.main_loop is None and code.inner_loop is None
    assert code.accesses == {} and code.bulk_copies == {}


def test_loops_inside_another_are_the_inner_ones():
    code = sass.read(
        listing("""
        MOV R1, RZ
        .L_outer:
        LDG.E.128 R4, desc[UR4][R2.64]
        .L_short:
        LDS R8, [R9]
        @P0 BRA `(.L_short)
        .L_long:
        LDS.64 R8, [R9]
        LDS.128 R12, [R9+0x10]
        @!P1 BRA `(.L_long)
        BRA P2, `(.L_outer)
        EXIT
        """)
    )
    assert code.instructions == 9
    assert code.main_loop == sass.Loop(instructions=7, global_bytes=16, shared_bytes=4 + 8 + 16)
    assert code.inner_loop == sass.Loop(instructions=3, global_bytes=0, shared_bytes=8 + 16)


def test_a_loop_holds_blocks_that_lie_after_the_end():
    code = sass.read(
        listing("""
        .L_loop:
        IADD3 R0, R0, 0x1, RZ
        @P0 BRA `(.L_rare)
        .L_back:
        BRA.U UP0, `(.L_loop)
        EXIT
        .L_rare:
        IADD3 R1, R1, 0x1, RZ
        BRA `(.L_back)
        """)
    )
    assert code.inner_loop == sass.Loop(5, 0, 0)
    assert code.instructions == 6


def test_jumps_forward_and_into_a_subroutine_are_no_loops():
    code = sass.read(
        listing("""
        @P0 BRA `(.L_end)
        CALL.REL.NOINC `($kernel$divide)
        .L_end:
        EXIT
        $kernel$divide:
        MUFU.RCP R4, R5
        RET.REL.NODEC R2 `(kernel)
        """)
    )
    assert code.main_loop is None
    assert code.instructions == 5


def test_waiting_for_a_barrier_is_no_loop():
    waiting = """
        .L_wait:
        SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R2
        @!P0 BRA `(.L_wait)
        """
    assert sass.read(listing(waiting + "EXIT")).main_loop is None
    tile = sass.read(listing(f".L_tile:\n{waiting}\nLDS R4, [R5]\n@P1 BRA `(.L_tile)\nEXIT"))
    assert tile.main_loop == tile.inner_loop == sass.Loop(4, 0, 4)


@pytest.mark.parametrize(
    ("name", "kind", "width"),
    [
        ("LDG.E", "global load", 4),
        ("LDG.E.U8.CONSTANT", "global load", 1),
        ("LDG.E.S16", "global load", 2),
        ("LDG.E.EF.128", "global load", 16),
        ("LDG.E.NA.EFL2.256.CONSTANT", "global load", 32),
        ("LDG.E.LTC128B.64.CONSTANT", "global load", 8),
        ("STG.E.EF.ENL2.256", "global store", 32),
        ("LDGSTS.E.BYPASS.LTC128B.128", "global to shared", 16),
        ("LDGSTS.E.LTC128B", "global to shared", 4),
        ("ATOMG.E.ADD.STRONG.GPU", "global atomic", 4),
        ("LDSM.16.M88.4", "shared load", 16),
        ("LDSM.16.MT88.2", "shared load", 8),
        ("LDSM.16.M88", "shared load", 4),
        ("STS.U16", "shared store", 2),
        ("LDL.64", "local load", 8),
    ],
)
def test_an_access_has_the_width_in_its_name(name, kind, width):
    code = sass.read(listing(f"{name} R4, [R2]\nEXIT"))
    assert code.accesses == {kind: {width: 1}}


def test_accesses_are_counted_by_width():
    code = sass.read(
        listing("""
        LDG.E R4, desc[UR4][R2.64]
        @!P0 LDG.E.128 R8, desc[UR4][R2.64]
        LDG.E.128 R12, desc[UR4][R2.64]
        UTMALDG.2D.GATHER4 [UR8], [UR6]
        STG.E.64 desc[UR4][R2.64], R8
        EXIT
        """)
    )
    assert code.accesses == {"global load": {4: 1, 16: 2}, "global store": {8: 1}}
    assert code.bulk_copies == {"UTMALDG.2D.GATHER4": 1}


@pytest.mark.parametrize(
    ("lines", "most"),
    [
        (["LDG.E.128 R4, [R2]", "LDG.E.128 R8, [R2]", "FADD R0, R4, R8"], 32),
        (["LDG.E.128 R4, [R2]", "FADD R0, R7, R7", "LDG.E.128 R8, [R2]"], 16),
        (["LDG.E R2, [R2]", "LDG.E.128 R4, [R2]"], 16),
        (["LDG.E.ENL2.256 R12, R8, [R2]", "FADD R0, R16, R3", "LDG.E.64 R4, [R2]", "FADD R0, R15, R1"], 40),
        (["LDS.128 R4, [R2]"], 0),
    ],
)
def test_bytes_in_flight_end_where_a_register_is_touched(lines, most):
    assert sass.read(listing("\n".join([*lines, "EXIT"]))).bytes_in_flight == most


def test_loop_becomes_json():
    """``asdict`` of Python 3.11 loses what a Counter counts."""
    loop = sass.Loop(2, 16, 0, 16, {"LDG": 1, "HMMA": 1})
    assert json.loads(json.dumps(asdict(loop)))["by_name"] == {"LDG": 1, "HMMA": 1}
    assert loop.matrix_instructions == 1
    (measured,) = [sass._describe([])]
    assert type(measured.by_name) is dict
