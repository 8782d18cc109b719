"""Loads and stores of tensor memory, word by word, against the figures of the PTX ISA."""

import functools

import numpy as np
import pytest
import tensor_memory
from tensor_memory import REGISTERS, WIDTHS, list_places

import kvcache

# The words of the tests: 128 columns of all lanes.
COLUMNS = 128
WORDS = f"memref<128x{COLUMNS}xi32>"
SPLIT = 40  # columns between both halves of 16x32bx2

FILL = """
    %tm = llvm.inttoptr %warp_address : i32 to !llvm.ptr<6>
    %all = vector.load %words[%t, %c0] : memref<128x128xi32>, vector<128xi32>
    nvvm.tcgen05.st %tm, %all {shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>} : vector<128xi32>
    nvvm.tcgen05.wait #nvvm.tcgen05_wait<store>
"""
ADDRESS = """
    %offset = arith.constant {offset} : i32
    %place = arith.addi %warp_address, %offset : i32
    %tensor_place = llvm.inttoptr %place : i32 to !llvm.ptr<6>
    %split = llvm.mlir.constant({split} : i64) : i64
"""
LOAD = """
    %v = nvvm.tcgen05.ld %tensor_place{split} {pack} {{shape = #nvvm.tcgen05_ldst_shape<shape_{shape}>}} : {type}
    {vector}
    nvvm.tcgen05.wait #nvvm.tcgen05_wait<load>
    vector.store %r, %registers[%t, %c0] : memref<128x128xi32>, vector<{count}xi32>
"""
STORE = """
    %r = vector.load %registers[%t, %c0] : memref<128x128xi32>, vector<{count}xi32>
    {vector}
    nvvm.tcgen05.st %tensor_place, %v{split} {pack} {{shape = #nvvm.tcgen05_ldst_shape<shape_{shape}>}} : {type}
    nvvm.tcgen05.wait #nvvm.tcgen05_wait<store>
    %after = nvvm.tcgen05.ld %tm {{shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>}} : vector<128xi32>
    nvvm.tcgen05.wait #nvvm.tcgen05_wait<load>
    vector.store %after, %words[%t, %c0] : memref<128x128xi32>, vector<128xi32>
"""


def list_cases():
    """Shape, repetitions, and whether 16-bit words are packed."""
    for shape, registers in REGISTERS.items():
        for number in (1, 4, 16):
            for packed in (False, True):
                yield shape, number * registers, packed


def get_name(kind, case, first):
    shape, count, packed = case
    return f"{kind}_{shape}_{count}_{'packed' if packed else 'whole'}_{first}"


def write_kernel(kind, case, first):
    shape, count, packed = case
    # A single register is an i32, not a vector.
    single = count == 1
    to_vector = "%r = vector.broadcast %v : i32 to vector<1xi32>"
    to_scalar = "%v = vector.extract %r[0] : i32 from vector<1xi32>"
    cast = f"%{'r' if kind == 'load' else 'v'} = arith.bitcast %{'v' if kind == 'load' else 'r'} : vector<{count}xi32> to vector<{count}xi32>"
    template = LOAD if kind == "load" else STORE
    text = template.format(
        split=", %split" if shape == "16x32bx2" else "",
        pack="" if not packed else "pack" if kind == "load" else "unpack",
        shape=shape,
        type="i32" if single else f"vector<{count}xi32>",
        vector=(to_vector if kind == "load" else to_scalar) if single else cast,
        count=count,
    )
    address = ADDRESS.format(offset=(first << 16) + 3, split=SPLIT)
    return tensor_memory.write_kernel(
        name=get_name(kind, case, first),
        parameters=f"%words: {WORDS}, %registers: {WORDS}",
        columns=COLUMNS,
        body=FILL + address + text,
    )


def get_firsts(case):
    return (0,) if case[0] == "32x32b" else (0, 16)


def write_program(kind):
    kernels, functions = [], []
    for case in list_cases():
        for first in get_firsts(case):
            kernels.append(write_kernel(kind, case, first))
            functions.append(
                tensor_memory.write_function(
                    get_name(kind, case, first), f"%words: {WORDS}, %registers: {WORDS}"
                )
            )
    return tensor_memory.write_module(kernels, functions)


@functools.cache
def compile(kind):
    return kvcache.jit(write_program(kind), target="emulator:sm_100a", opt_level=0)


def list_words(case, first):
    """The words of each register of all warps: lane, column, and of packed ones the next."""
    shape, count, packed = case
    scale = 2 if packed else 1
    places = list_places(shape, count)
    warps = 32 * np.arange(4)[:, None, None]
    lanes = warps + first + places[None, :, :, 0]
    columns = 3 + scale * places[None, :, :, 1]
    if shape == "16x32bx2":
        columns = columns + SPLIT * (np.arange(32) >= 16)[None, :, None]
    columns = np.broadcast_to(columns, lanes.shape)
    return lanes.reshape(128, count), columns.reshape(128, count)


def fits(case):
    shape, count, packed = case
    columns = count // REGISTERS[shape] * WIDTHS[shape] * (2 if packed else 1)
    return 3 + columns + (SPLIT if shape == "16x32bx2" else 0) <= COLUMNS


def make_words(seed):
    return np.random.default_rng(seed).integers(0, 1 << 31, (128, COLUMNS), dtype=np.int32)


@pytest.mark.parametrize("case", [c for c in list_cases() if fits(c)], ids=str)
def test_loads(case):
    for first in get_firsts(case):
        words, registers = make_words(1), np.zeros((128, COLUMNS), np.int32)
        compile("load").call(get_name("load", case, first), words, registers)
        lanes, columns = list_words(case, first)
        expected = words[lanes, columns]
        if case[2]:
            expected = expected & 0xFFFF | words[lanes, columns + 1] << 16
        np.testing.assert_array_equal(registers[:, : case[1]], expected)


@pytest.mark.parametrize("case", [c for c in list_cases() if fits(c)], ids=str)
def test_stores(case):
    for first in get_firsts(case):
        words, registers = make_words(1), make_words(2)
        expected = words.copy()
        lanes, columns = list_words(case, first)
        values = registers[:, : case[1]]
        expected[lanes, columns] = values & 0xFFFF if case[2] else values
        if case[2]:
            expected[lanes, columns + 1] = values >> 16 & 0xFFFF
        compile("store").call(get_name("store", case, first), words, registers)
        np.testing.assert_array_equal(words, expected)
