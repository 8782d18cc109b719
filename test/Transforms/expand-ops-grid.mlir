// RUN: kvcache-opt %s --kvcache-expand-ops=for-gpu --canonicalize | FileCheck %s

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// Blocks of eight tokens of all sequences are along x. Kernels divide their number
// by the blocks d of a sequence: they multiply 2n by m = ceil(2^(31 + s) / d), and
// shift the high half by s = ceil(log2 d). The host computes m and s.

// CHECK-LABEL: func.func @open(
// CHECK:         %[[BLOCKS:.*]] = arith.divui %{{.*}}, %c8 : index
// CHECK:         %[[LEAST:.*]] = arith.maxsi %[[BLOCKS]], %c1 : index
// CHECK:         %[[D:.*]] = arith.index_castui %[[LEAST]] : index to i32
// CHECK:         math.ctlz
// CHECK:         %[[S:.*]] = arith.subi %c32_i32, %
// CHECK:         arith.divui %{{.*}}, %{{.*}} : index
// CHECK:         %[[M:.*]] = arith.index_castui %{{.*}} : index to i32
// CHECK:         scf.parallel (%[[X:[^,]*]],
// CHECK:           %[[N:.*]] = arith.index_castui %[[X]] : index to i32
// CHECK:           %[[TWICE:.*]] = arith.addi %[[N]], %[[N]] : i32
// CHECK:           %{{.*}}, %[[HIGH:.*]] = arith.mului_extended %[[TWICE]], %[[M]] : i32
// CHECK:           %[[Q:.*]] = arith.shrui %[[HIGH]], %[[S]] : i32
// CHECK:           %[[WHOLE:.*]] = arith.muli %[[Q]], %[[D]] : i32
// CHECK:           arith.subi %[[N]], %[[WHOLE]] : i32
func.func @open(%keys: !cache, %out: memref<?x?x8x128xbf16>) {
  kvcache.gather %keys outs(%out) : !cache, memref<?x?x8x128xbf16>
  return
}

// For one block, m is 2^31 and s is 0.
// CHECK-LABEL: func.func @one_block(
// CHECK-DAG:     %[[M:.*]] = arith.constant -2147483648 : i32
// CHECK:         %{{.*}}, %[[Q:.*]] = arith.mului_extended %{{.*}}, %[[M]] : i32
// CHECK-NEXT:    arith.subi %{{.*}}, %[[Q]] : i32
func.func @one_block(%keys: !cache, %out: memref<?x8x8x128xbf16>) {
  kvcache.gather %keys outs(%out) : !cache, memref<?x8x8x128xbf16>
  return
}

// 2^34 / 5 rounds to 3,435,973,837.
// CHECK-LABEL: func.func @five_blocks(
// CHECK-DAG:     %[[M:.*]] = arith.constant -858993459 : i32
// CHECK-DAG:     %[[S:.*]] = arith.constant 3 : i32
// CHECK:         %{{.*}}, %[[HIGH:.*]] = arith.mului_extended %{{.*}}, %[[M]] : i32
// CHECK:         arith.shrui %[[HIGH]], %[[S]] : i32
func.func @five_blocks(%keys: !cache, %out: memref<?x33x8x128xbf16>) {
  kvcache.gather %keys outs(%out) : !cache, memref<?x33x8x128xbf16>
  return
}

// 2^(31 + 31) / (2^31 - 1) rounds to 2^31 + 2.
// CHECK-LABEL: func.func @most_blocks(
// CHECK-DAG:     %[[M:.*]] = arith.constant -2147483646 : i32
// CHECK-DAG:     %[[S:.*]] = arith.constant 31 : i32
// CHECK:         %{{.*}}, %[[HIGH:.*]] = arith.mului_extended %{{.*}}, %[[M]] : i32
// CHECK:         arith.shrui %[[HIGH]], %[[S]] : i32
func.func @most_blocks(%keys: !cache, %out: memref<?x17179869176x8x128xbf16>) {
  kvcache.gather %keys outs(%out) : !cache, memref<?x17179869176x8x128xbf16>
  return
}
