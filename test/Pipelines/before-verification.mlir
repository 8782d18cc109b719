// What upstream's verifiers end the process on is an error before they see it. Each part is a file, as a process that
// ends says nothing of what follows.

// RUN: split-file %s %t

//--- types.mlir
// RUN: not kvcache-opt %t/types.mlir 2>&1 | FileCheck %s --check-prefix=TYPES
// TYPES: types.mlir:[[#]]:[[#]]: error: 'nvvm.mma.sync' op expects 'multiplicandAPtxType'
func.func @product(%a: vector<2xf16>, %c: f32) {
  %d = "nvvm.mma.sync"(%a, %a, %a, %a, %a, %a, %c, %c, %c, %c) <{layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, operandSegmentSizes = array<i32: 4, 2, 4>, shape = #nvvm.shape<m = 16, n = 8, k = 16>}> : (vector<2xf16>, vector<2xf16>, vector<2xf16>, vector<2xf16>, vector<2xf16>, vector<2xf16>, f32, f32, f32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
  return
}

//--- registers.mlir
// RUN: not kvcache-opt %t/registers.mlir 2>&1 | FileCheck %s --check-prefix=REGISTERS
// REGISTERS: registers.mlir:[[#]]:[[#]]: error: 'nvvm.mma.sync' op expects registers of B
func.func @product(%a: vector<2xf16>, %c: f32) {
  %d = "nvvm.mma.sync"(%a, %c) <{layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, multiplicandAPtxType = #nvvm.mma_type<f16>, multiplicandBPtxType = #nvvm.mma_type<f16>, operandSegmentSizes = array<i32: 1, 0, 1>, shape = #nvvm.shape<m = 16, n = 8, k = 16>}> : (vector<2xf16>, f32) -> !llvm.struct<(f32, f32, f32, f32)>
  return
}

//--- accumulators.mlir
// RUN: not kvcache-opt %t/accumulators.mlir 2>&1 | FileCheck %s --check-prefix=ACCUMULATORS
// ACCUMULATORS: accumulators.mlir:[[#]]:[[#]]: error: 'nvvm.mma.sync' op has no accumulators of '!llvm.struct<()>'
func.func @product(%a: vector<2xf16>, %c: f32) {
  %d = "nvvm.mma.sync"(%a, %a, %c) <{layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, multiplicandAPtxType = #nvvm.mma_type<f16>, multiplicandBPtxType = #nvvm.mma_type<f16>, operandSegmentSizes = array<i32: 1, 1, 1>, shape = #nvvm.shape<m = 16, n = 8, k = 16>}> : (vector<2xf16>, vector<2xf16>, f32) -> !llvm.struct<()>
  return
}

//--- attributions.mlir
// RUN: not kvcache-opt %t/attributions.mlir 2>&1 | FileCheck %s --check-prefix=ATTRIBUTIONS
// ATTRIBUTIONS: attributions.mlir:[[#]]:[[#]]: error: 'gpu.func' op expects 'workgroup_attributions' to be at most the number of arguments of its body (1), got -1
gpu.module @kernels {
  "gpu.func"() <{function_type = (i32) -> ()}> ({
  ^bb0(%a: i32):
    "gpu.return"() : () -> ()
  }) {sym_name = "kernel", workgroup_attributions = -1 : i64} : () -> ()
}

//--- launch.mlir
// The second part fails, at its line in the file.
// RUN: not kvcache-opt %t/launch.mlir --split-input-file 2>&1 | FileCheck %s --check-prefix=LAUNCH
// LAUNCH: launch.mlir:7:3: error: 'gpu.launch' op expects a body
func.func private @first()
// -----
func.func @launch(%n: index) {
  "gpu.launch"(%n, %n, %n, %n, %n, %n) <{operandSegmentSizes = array<i32: 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0>}> ({
  }) : (index, index, index, index, index, index) -> ()
  return
}

//--- segments.mlir
// RUN: not kvcache-opt %t/segments.mlir 2>&1 | FileCheck %s --check-prefix=SEGMENTS
// SEGMENTS: segments.mlir:[[#]]:[[#]]: error: 'gpu.launch_func' op operand count (6) does not match with the total size (1030)
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%n: i32, %m: i32, %k: i32) kernel {
      gpu.return
    }
  }
  func.func @launch(%n: index) {
    "gpu.launch_func"(%n, %n, %n, %n, %n, %n) <{kernel = @kernels::@kernel, operandSegmentSizes = array<i32: 0, 1, 1, 1, 1, 1, 1, 0, 0, 1023, 0, 1, 0>}> : (index, index, index, index, index, index) -> ()
    return
  }
}

//--- generic.mlir
// RUN: kvcache-opt %t/generic.mlir | FileCheck %s --check-prefix=GENERIC
// GENERIC: gpu.func @kernel(%{{.*}}: i32) workgroup(%{{.*}} : memref<8xf32, #gpu.address_space<workgroup>>)
gpu.module @kernels {
  "gpu.func"() <{function_type = (i32) -> ()}> ({
  ^bb0(%a: i32, %shared: memref<8xf32, #gpu.address_space<workgroup>>):
    "gpu.return"() : () -> ()
  }) {sym_name = "kernel", workgroup_attributions = 1 : i64} : () -> ()
}

//--- indices.mlir
// RUN: not kvcache-opt %t/indices.mlir 2>&1 | FileCheck %s --check-prefix=INDICES
// INDICES: indices.mlir:4:30: error: an array attribute has no elements of type 'index': write it with 'i64'
// array<index: 1> in a comment is none.
module attributes {x.array = array< index : 1>, x.text = "array<index: 1>"} {}

//--- cases.mlir
// RUN: not kvcache-opt %t/cases.mlir 2>&1 | FileCheck %s --check-prefix=CASES
// CASES: cases.mlir:[[#]]:[[#]]: error: 'cf.switch' op expects 'case_values'
func.func @switch(%flag: i32) {
  "cf.switch"(%flag)[^first, ^second] <{case_operand_segments = array<i32: 0>, operandSegmentSizes = array<i32: 1, 0, 0>}> : (i32) -> ()
^first:
  return
^second:
  return
}

//--- type.mlir
// RUN: not kvcache-opt %t/type.mlir 2>&1 | FileCheck %s --check-prefix=TYPE
// TYPE: type.mlir:[[#]]:[[#]]: error: 'gpu.func' op expects a type as 'function_type'
module attributes {gpu.container_module} {
  gpu.module @kernels {
    "gpu.func"() ({
    ^bb0:
      "gpu.return"() : () -> ()
    }) {gpu.kernel, sym_name = "kernel"} : () -> ()
  }
  func.func @launch(%n: index) {
    gpu.launch_func @kernels::@kernel blocks in (%n, %n, %n) threads in (%n, %n, %n)
    return
  }
}

//--- llvm-type.mlir
// RUN: not kvcache-opt %t/llvm-type.mlir 2>&1 | FileCheck %s --check-prefix=LLVM-TYPE
// LLVM-TYPE: llvm-type.mlir:[[#]]:[[#]]: error: 'llvm.func' op expects a type as 'function_type'
module attributes {gpu.container_module} {
  gpu.module @kernels {
    "llvm.func"() ({
    }) {gpu.kernel, sym_name = "kernel"} : () -> ()
  }
  func.func @launch(%n: index) {
    gpu.launch_func @kernels::@kernel blocks in (%n, %n, %n) threads in (%n, %n, %n)
    return
  }
}

//--- position.mlir
// RUN: not kvcache-opt %t/position.mlir 2>&1 | FileCheck %s --check-prefix=POSITION
// POSITION: position.mlir:[[#]]:[[#]]: error: 'llvm.extractvalue' op expects indices from 0 to 2^31 - 1 as 'position', got array<i64: 4294967296>
llvm.func @extract(%pair: !llvm.struct<(i32, i32)>) -> i32 {
  %0 = "llvm.extractvalue"(%pair) <{position = array<i64: 4294967296>}> : (!llvm.struct<(i32, i32)>) -> i32
  llvm.return %0 : i32
}

//--- position-of-text.mlir
// RUN: not kvcache-opt %t/position-of-text.mlir 2>&1 | FileCheck %s --check-prefix=TEXT
// TEXT: position-of-text.mlir:5:39: error: a position in a struct or an array is from 0 to 2^31 - 1
llvm.func @insert(%pair: !llvm.struct<(i32, array<3 x i32>)>, %value: i32) -> !llvm.struct<(i32, array<3 x i32>)> {
  %0 = llvm.insertvalue %value, %pair[1, 2] : !llvm.struct<(i32, array<3 x i32>)>
  %1 = llvm.insertvalue %value, %0[1, 0x100000000] : !llvm.struct<(i32, array<3 x i32>)>
  llvm.return %1 : !llvm.struct<(i32, array<3 x i32>)>
}

//--- transfer.mlir
// RUN: not kvcache-opt %t/transfer.mlir 2>&1 | FileCheck %s --check-prefix=TRANSFER
// TRANSFER: transfer.mlir:[[#]]:[[#]]: error: 'affine.dma_start' op expects an affine map as 'src_map'
func.func @transfer(%m: memref<4xf32>, %tag: memref<1xi32>, %n: index) {
  "affine.dma_start"(%m, %n, %m, %n, %tag, %n, %n) : (memref<4xf32>, index, memref<4xf32>, index, memref<1xi32>, index, index) -> ()
  return
}

//--- transfer-operands.mlir
// RUN: not kvcache-opt %t/transfer-operands.mlir --split-input-file 2>&1 | FileCheck %s --check-prefix=OPERANDS
// OPERANDS: transfer-operands.mlir:[[#]]:[[#]]: error: 'affine.dma_wait' op expects a memref as operand 0
// OPERANDS: transfer-operands.mlir:[[#]]:[[#]]: error: 'affine.dma_wait' op expects more than 2 operands
func.func @wait(%n: index) {
  "affine.dma_wait"(%n, %n, %n) {tag_map = affine_map<(d0) -> (d0)>} : (index, index, index) -> ()
  return
}
// -----
func.func @wait(%tag: memref<1xi32>, %n: index) {
  "affine.dma_wait"(%tag, %n) {tag_map = affine_map<(d0) -> (d0)>} : (memref<1xi32>, index) -> ()
  return
}

//--- outputs.mlir
// RUN: not kvcache-opt %t/outputs.mlir 2>&1 | FileCheck %s --check-prefix=OUTPUTS
// OUTPUTS: outputs.mlir:[[#]]:[[#]]: error: 'linalg.exp' op expects an operand as 'outputs'
func.func @exp(%a: memref<4xf32>) {
  "linalg.exp"(%a) <{operandSegmentSizes = array<i32: 1, 0>}> ({
  ^bb0(%in: f32, %out: f32):
    "linalg.yield"(%in) : (f32) -> ()
  }) : (memref<4xf32>) -> ()
  return
}

//--- invoke.mlir
// RUN: not kvcache-opt %t/invoke.mlir 2>&1 | FileCheck %s --check-prefix=INVOKE
// INVOKE: invoke.mlir:[[#]]:[[#]]: error: 'llvm.invoke' op calls no function: it has neither the name of one nor an operand
llvm.func @personality(...) -> i32
llvm.func @invoke() attributes {personality = @personality} {
  "llvm.invoke"()[^normal, ^unwind] <{operandSegmentSizes = array<i32: 0, 0, 0, 0>, op_bundle_sizes = array<i32>}> : () -> ()
^normal:
  llvm.return
^unwind:
  %0 = llvm.landingpad cleanup : !llvm.struct<(ptr, i32)>
  llvm.return
}

//--- reduction.mlir
// RUN: not kvcache-opt %t/reduction.mlir 2>&1 | FileCheck %s --check-prefix=REDUCTION
// REDUCTION: reduction.mlir:[[#]]:[[#]]: error: 'scf.reduce.return' op expects arguments of its block
func.func @last(%n: index) -> index {
  %last = scf.parallel (%i) = (%n) to (%n) step (%n) init (%n) -> index {
    scf.reduce(%i : index) {
      scf.reduce.return %n : index
    }
  }
  return %last : index
}

//--- global.mlir
// RUN: not kvcache-opt %t/global.mlir 2>&1 | FileCheck %s --check-prefix=GLOBAL
// GLOBAL: global.mlir:[[#]]:[[#]]: error: 'memref.global' op expects a tensor as 'initial_value', got 'vector<4xf32>'
"memref.global"() <{initial_value = dense<1.0> : vector<4xf32>, sym_name = "table", type = memref<1x2xi32>}> : () -> ()

//--- shape.mlir
// RUN: not kvcache-opt %t/shape.mlir 2>&1 | FileCheck %s --check-prefix=SHAPE
// SHAPE: shape.mlir:[[#]]:[[#]]: error: 'tensor.expand_shape' op expects a dimension in each group of 'reassociation'
func.func @expand(%x: tensor<4xf32>) {
  %0 = tensor.expand_shape %x [[]] output_shape [4, 1] : tensor<4xf32> into tensor<4x1xf32>
  return
}
