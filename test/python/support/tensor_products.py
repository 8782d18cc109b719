"""Kernels of MMAs in tensor memory: one thread block or a pair, with block scales or without."""

import dataclasses
from string import Template

import tensor_memory
from tensor_operands import ELEMENTS, MEMORY, RESULTS

# Words of scales per row, and bytes of the scales of a factor: of 256 rows for each word.
WORDS = 4
SCALES = WORDS * 1024


@dataclasses.dataclass(frozen=True)
class Case:
    kind: str
    a: str
    b: str
    d: str
    m: int
    n: int
    swizzle: str = "none"
    transposed: tuple[bool, bool] = (False, False)
    tensor_a: bool = False
    accumulates: bool = True
    negated: tuple[bool, bool] = (False, False)
    saturates: bool = False
    scale: int = 0
    lane: int = 0
    steps: int = 2
    blocks: int = 1
    # Elements of K that share a scale, and the format of scales.
    block: int = 0
    format: str = "ue8m0"

    @property
    def k(self):
        """The elements of K of one instruction: 32 bytes."""
        return 64 if self.a == "packed e2m1" else 256 // max(ELEMENTS[self.a][1], 8)

    @property
    def is_folded(self):
        """Whether the upper lanes have the second half of N ("Layout B")."""
        return self.blocks == 2 and self.m == 128

    @property
    def num_scales(self):
        """The number of scales of a row, for one instruction."""
        return self.k // self.block if self.block else 0

    def get_scale_place(self, step):
        """The word of the scales of a step, and its first byte."""
        return divmod(step * self.num_scales, 4)

    def get_instruction(self, step=0):
        """The instruction descriptor."""
        bits = ELEMENTS[self.a][2] << 7 | ELEMENTS[self.b][2] << 10
        bits |= self.saturates << 3 | self.negated[0] << 13 | self.negated[1] << 14
        bits |= self.transposed[0] << 15 | self.transposed[1] << 16
        if self.block:
            scale = self.get_scale_place(step)[1]
            bits |= scale << 4 | (self.format == "ue8m0") << 23 | scale << 29
        else:
            bits |= RESULTS[self.d] << 4
        return bits | self.n >> 3 << 17 | self.m >> 4 << 24

    @property
    def kernel(self):
        return Kernel(self.kind, self.tensor_a, self.scale, self.blocks, self.block, self.is_folded)


SHARED = Template("""
  memref.global "private" @a : memref<${memory}xi8, #gpu.address_space<workgroup>> = uninitialized {alignment = 1024}
  memref.global "private" @b : memref<${memory}xi8, #gpu.address_space<workgroup>> = uninitialized {alignment = 1024}
  memref.global "private" @scales : memref<${scales}xi8, #gpu.address_space<workgroup>> = uninitialized {alignment = 1024}
  llvm.mlir.global internal @bar() {addr_space = 3 : i32, alignment = 8 : i64} : !llvm.array<2 x i64>
  // Fills shared memory with bytes from one place on, by 128 threads. Returns the place in units of
  // 16 bytes, as descriptors have it.
  func.func private @fill(%from: memref<?xi8>, %first: index, %to_index: index, %size: index) -> i64 {
    %to_i64 = arith.index_cast %to_index : index to i64
    %to = llvm.inttoptr %to_i64 : i64 to !llvm.ptr<3>
    %c16 = arith.constant 16 : index
    %c2048 = arith.constant 2048 : index
    %t = gpu.thread_id x
    %byte = arith.muli %t, %c16 : index
    scf.for %i = %byte to %size step %c2048 {
      %i_i32 = arith.index_cast %i : index to i32
      %source = arith.addi %first, %i : index
      %bytes = vector.load %from[%source] : memref<?xi8>, vector<16xi8>
      %place = llvm.getelementptr %to[%i_i32] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
      llvm.store %bytes, %place {alignment = 16 : i64} : vector<16xi8>, !llvm.ptr<3>
    }
    %window = arith.constant 0x3ffff : i64
    %four = arith.constant 4 : i64
    %in_window = arith.andi %to_i64, %window : i64
    %units = arith.shrui %in_window, %four : i64
    return %units : i64
  }
""").substitute(memory=MEMORY, scales=2 * SCALES)

PARAMETERS = Template(
    "%a: memref<?xi8>, %b: memref<?xi8>, %scales: memref<?xi8>, %descriptors_a: memref<8xi64>, "
    "%descriptors_b: memref<8xi64>, %words_a: memref<${blocks}x128x32xi32>, "
    "%d: memref<${blocks}x128x256xi32>, %place: i32, %instructions: memref<8xi32>, "
    "%accumulates: i32, %steps: index, %mask: memref<4xi32>"
)

# D is in the first 256 columns, A in the next 32. Scales of A are from column 320 on, four
# columns of each word; those of B from 352 on, eight of each.
PRODUCT = Template("""
    %a_tile = memref.get_global @a : memref<${memory}xi8, #gpu.address_space<workgroup>>
    %b_tile = memref.get_global @b : memref<${memory}xi8, #gpu.address_space<workgroup>>
    %scales_tile = memref.get_global @scales : memref<${scales}xi8, #gpu.address_space<workgroup>>
    %a_index = memref.extract_aligned_pointer_as_index %a_tile : memref<${memory}xi8, #gpu.address_space<workgroup>> -> index
    %b_index = memref.extract_aligned_pointer_as_index %b_tile : memref<${memory}xi8, #gpu.address_space<workgroup>> -> index
    %scales_index = memref.extract_aligned_pointer_as_index %scales_tile : memref<${scales}xi8, #gpu.address_space<workgroup>> -> index
    %bar = llvm.mlir.addressof @bar : !llvm.ptr<3>
    %size = arith.constant ${memory} : index
    %scales_size = arith.constant ${scales} : index
    %first = arith.muli %rank, %size : index
    %first_scale = arith.muli %rank, %scales_size : index
    %a_units = func.call @fill(%a, %first, %a_index, %size) : (memref<?xi8>, index, index, index) -> i64
    %b_units = func.call @fill(%b, %first, %b_index, %size) : (memref<?xi8>, index, index, index) -> i64
    %scales_units = func.call @fill(%scales, %first_scale, %scales_index, %scales_size) : (memref<?xi8>, index, index, index) -> i64
    %tensor_d = llvm.inttoptr %warp_address : i32 to !llvm.ptr<6>
    %tensor_words = llvm.getelementptr %tensor_d[256] : (!llvm.ptr<6>) -> !llvm.ptr<6>, i8
    %c64 = arith.constant 64 : index
    %all_columns = arith.constant 256 : index
    scf.for %i = %c0 to %all_columns step %c64 {
      %i_i32 = arith.index_cast %i : index to i32
      %part = llvm.getelementptr %tensor_d[%i_i32] : (!llvm.ptr<6>, i32) -> !llvm.ptr<6>, i8
      %before = vector.load %d[%rank, %t, %i] : memref<${blocks}x128x256xi32>, vector<64xi32>
      nvvm.tcgen05.st %part, %before {shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>} : vector<64xi32>
    }
    %words = vector.load %words_a[%rank, %t, %c0] : memref<${blocks}x128x32xi32>, vector<32xi32>
    nvvm.tcgen05.st %tensor_words, %words {shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>} : vector<32xi32>
    nvvm.tcgen05.wait #nvvm.tcgen05_wait<store>
    $ready
    scf.if %is_issuer {
      %d_address = arith.addi %base, %place : i32
      %to = llvm.inttoptr %d_address : i32 to !llvm.ptr<6>
      %tensor_scales_a = llvm.getelementptr %tensor[320] : (!llvm.ptr<6>) -> !llvm.ptr<6>, i8
      %tensor_scales_b = llvm.getelementptr %tensor[352] : (!llvm.ptr<6>) -> !llvm.ptr<6>, i8
      %lane_bits = arith.constant -65536 : i32
      %lanes = arith.andi %place, %lane_bits : i32
      %disabled = vector.load %mask[%c0] : memref<4xi32>, vector<4xi32>
      %two = arith.constant 2 : i32
      %four = arith.constant 4 : i32
      %eight = arith.constant 8 : i32
      $copies
      scf.for %i = %c0 to %steps step %c1 {
        %da = memref.load %descriptors_a[%i] : memref<8xi64>
        %db = memref.load %descriptors_b[%i] : memref<8xi64>
        %instruction = memref.load %instructions[%i] : memref<8xi32>
        %at_a = llvm.add %da, %a_units : i64
        %at_b = llvm.add %db, %b_units : i64
        %is_later = arith.cmpi ne, %i, %c0 : index
        %is_added = arith.cmpi ne, %accumulates, %zero : i32
        %adds = arith.ori %is_later, %is_added : i1
        %i_i32 = arith.index_cast %i : index to i32
        %c256 = arith.constant 256 : i32
        %column = arith.muli %i_i32, %eight : i32
        %words_column = arith.addi %column, %c256 : i32
        %words_base = arith.addi %base, %words_column : i32
        %words_address = arith.addi %words_base, %lanes : i32
        %at_words = llvm.inttoptr %words_address : i32 to !llvm.ptr<6>
        %per_step = arith.constant $num_scales : i32
        %scale_bytes = arith.muli %i_i32, %per_step : i32
        %scale_word = arith.shrui %scale_bytes, %two : i32
        %column_a = arith.muli %scale_word, %four : i32
        %column_b = arith.muli %scale_word, %eight : i32
        %at_scales_a = llvm.getelementptr %tensor_scales_a[%column_a] : (!llvm.ptr<6>, i32) -> !llvm.ptr<6>, i8
        %at_scales_b = llvm.getelementptr %tensor_scales_b[%column_b] : (!llvm.ptr<6>, i32) -> !llvm.ptr<6>, i8
        %s = llvm.mlir.constant($scale : i64) : i64
        $product
      }
      $commit
    }
    nvvm.mbarrier.try_wait.parity %bar, %zero, %zero : !llvm.ptr<3>, i32, i32
    nvvm.tcgen05.fence #nvvm.tcgen05_fence<after>
    scf.for %i = %c0 to %all_columns step %c64 {
      %i_i32 = arith.index_cast %i : index to i32
      %part = llvm.getelementptr %tensor_d[%i_i32] : (!llvm.ptr<6>, i32) -> !llvm.ptr<6>, i8
      %after = nvvm.tcgen05.ld %part {shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>} : vector<64xi32>
      nvvm.tcgen05.wait #nvvm.tcgen05_wait<load>
      vector.store %after, %d[%rank, %t, %i] : memref<${blocks}x128x256xi32>, vector<64xi32>
    }
""")

# The scales of a word: of A, then all of B, each an image of 32 lanes of 16 bytes for 128 rows. If
# D is folded, an image of 64 lanes has those of both halves of N.
COPIES = Template("""
      %bits = llvm.mlir.constant(0x0000400800000000 : i64) : i64
      %descriptor = arith.addi %bits, %scales_units : i64
      %units_of_word = arith.constant 64 : i64
      %units_of_image = arith.constant 32 : i64
      %units_of_factor = arith.constant 256 : i64
      %numWords = arith.constant $words : index
      scf.for %i = %c0 to %numWords step %c1 {
        %i_i64 = arith.index_cast %i : index to i64
        %i_i32 = arith.index_cast %i : index to i32
        %word_units = arith.muli %i_i64, %units_of_word : i64
        %from_a = arith.addi %descriptor, %word_units : i64
        %from_b = arith.addi %from_a, %units_of_factor : i64
        %from_b2 = arith.addi %from_b, %units_of_image : i64
        %column_a = arith.muli %i_i32, %four : i32
        %column_b = arith.muli %i_i32, %eight : i32
        %to_a = llvm.getelementptr %tensor_scales_a[%column_a] : (!llvm.ptr<6>, i32) -> !llvm.ptr<6>, i8
        %to_b = llvm.getelementptr %tensor_scales_b[%column_b] : (!llvm.ptr<6>, i32) -> !llvm.ptr<6>, i8
        %to_b2 = llvm.getelementptr %to_b[4] : (!llvm.ptr<6>) -> !llvm.ptr<6>, i8
        nvvm.tcgen05.cp %to_a, %from_a {shape = #nvvm.tcgen05_cp_shape<shape_32x128b>, multicast = #nvvm.tcgen05_cp_multicast<warpx4>, $group}
        $copies_of_b
      }
""")
COPIES_OF_B = {
    False: Template("""
        nvvm.tcgen05.cp %to_b, %from_b {shape = #nvvm.tcgen05_cp_shape<shape_32x128b>, multicast = #nvvm.tcgen05_cp_multicast<warpx4>, $group}
        nvvm.tcgen05.cp %to_b2, %from_b2 {shape = #nvvm.tcgen05_cp_shape<shape_32x128b>, multicast = #nvvm.tcgen05_cp_multicast<warpx4>, $group}
"""),
    True: Template("""
        nvvm.tcgen05.cp %to_b, %from_b {shape = #nvvm.tcgen05_cp_shape<shape_64x128b>, multicast = #nvvm.tcgen05_cp_multicast<warpx2_01_23>, $group}
"""),
}
COMMITS = {
    1: "nvvm.tcgen05.commit %bar : !llvm.ptr<3>",
    2: """
      %both = llvm.mlir.constant(3 : i16) : i16
      nvvm.tcgen05.commit %bar, multicast_mask = %both {group = #nvvm.cta_group<cta_2>} : !llvm.ptr<3>, i16
""",
}


@dataclasses.dataclass(frozen=True)
class Kernel:
    """The common properties of the cases of one kernel."""

    kind: str
    tensor_a: bool
    scale: int
    blocks: int
    block: int
    is_folded: bool

    @property
    def name(self):
        operand = "tensor" if self.tensor_a else "shared"
        name = f"{self.kind}_{operand}_{self.scale}_by_{self.blocks}_scales_{self.block}"
        return name + ("_folded" if self.is_folded else "")

    @property
    def parameters(self):
        return PARAMETERS.substitute(blocks=self.blocks)

    def write_product(self):
        group = f"ctaGroup = #nvvm.cta_group<cta_{self.blocks}>"
        a, type_a = ("%at_words", "!llvm.ptr<6>") if self.tensor_a else ("%at_a", "i64")
        operands, types = f"%to, {a}, %at_b, %instruction, %adds", f"!llvm.ptr<6>, {type_a}, i64, i32, i1"
        if self.block:
            block = f"blockScale = #nvvm.tcgen05_mma_block_scale<block{self.block}>"
            return (
                f"nvvm.tcgen05.mma.block_scale {operands}, %at_scales_a, %at_scales_b "
                f"{{kind = #nvvm.block_scale_kind<{self.kind}>, {group}, {block}}} : ({types}, !llvm.ptr<6>, !llvm.ptr<6>)"
            )
        options = ""
        if self.scale:
            options, types = options + "scale = %s ", types + ", i64"
        if self.blocks == 1:
            options, types = options + "mask = %disabled", types + ", vector<4xi32>"
        return f"nvvm.tcgen05.mma {operands} {options} {{kind = #nvvm.tcgen05_mma_kind<{self.kind}>, {group}}} : ({types})"

    def write(self):
        group = f"group = #nvvm.cta_group<cta_{self.blocks}>"
        k = 64 if self.kind.startswith("mxf4") else 32
        copies_of_b = COPIES_OF_B[self.is_folded].substitute(group=group)
        body = PRODUCT.substitute(
            memory=MEMORY,
            scales=2 * SCALES,
            blocks=self.blocks,
            ready=tensor_memory.make_ready(self.blocks),
            scale=self.scale,
            num_scales=k // self.block if self.block else 0,
            product=self.write_product(),
            copies=COPIES.substitute(words=WORDS, group=group, copies_of_b=copies_of_b) if self.block else "",
            commit=COMMITS[self.blocks],
        )
        return tensor_memory.write_kernel(self.name, self.parameters, 512, body, self.blocks)

    def write_function(self):
        return tensor_memory.write_function(self.name, self.parameters, blocks=self.blocks)


def write_program(kernels):
    """Writes a module with the kernels, and a function for each."""
    return tensor_memory.write_module(
        [SHARED, *(kernel.write() for kernel in kernels)], [kernel.write_function() for kernel in kernels]
    )
