// RUN: kvcache-opt %s --convert-nvvm-to-emulator="sanitize=false" | FileCheck %s --implicit-check-not=bf16

// No bf16 is left: moves are moves of i16, and arithmetic is on f32.

// CHECK-LABEL: llvm.mlir.global internal constant @kernels_table(dense<[16256, -16512]> : vector<2xi16>)

// CHECK-LABEL: llvm.func internal @kernels_moves(
// CHECK-SAME: %[[THREAD:.*]]: !llvm.ptr, %[[P:.*]]: !llvm.ptr, %[[PAIR:.*]]: !llvm.struct<(i16, vector<2xi16>)>)
// CHECK-DAG: %[[ONE:.*]] = llvm.mlir.constant(16256 : i16) : i16
// CHECK-DAG: %[[X:.*]] = llvm.load %[[P]] {{.*}} -> i16
// CHECK-DAG: %[[V:.*]] = llvm.extractvalue %[[PAIR]][0] : !llvm.struct<(i16, vector<2xi16>)>
// CHECK: %[[IS:.*]] = llvm.icmp "eq" %[[X]], %[[ONE]] : i16
// CHECK: llvm.cond_br %[[IS]], ^[[END:.*]](%[[X]] : i16), ^[[END]](%[[V]] : i16)
// CHECK: ^[[END]](%[[Y:.*]]: i16):
// CHECK: %[[AT:.*]] = llvm.getelementptr %[[P]][1] : (!llvm.ptr) -> !llvm.ptr, i16
// CHECK: llvm.store %[[Y]], %[[AT]] {{.*}} : i16

// CHECK-LABEL: llvm.func internal @kernels_adds(
// CHECK: %[[WIDE:.*]] = llvm.zext %{{.*}} : vector<2xi16> to vector<2xi32>
// CHECK: %[[BITS:.*]] = llvm.shl %[[WIDE]], %{{.*}} : vector<2xi32>
// CHECK: %[[A:.*]] = llvm.bitcast %[[BITS]] : vector<2xi32> to vector<2xf32>
// CHECK: %[[SUM:.*]] = llvm.fadd %[[A]], %{{.*}} {fastmathFlags = #llvm.fastmath<nnan>} : vector<2xf32>
// CHECK: %[[NARROW:.*]] = llvm.trunc %{{.*}} : vector<2xi32> to vector<2xi16>
// CHECK: llvm.store %[[NARROW]]

// CHECK-LABEL: llvm.func internal @kernels_signs(
// CHECK-NOT: zext
// CHECK: llvm.xor
// CHECK-NOT: zext

gpu.module @kernels [#nvvm.target<chip = "sm_90a">] {
  llvm.mlir.global constant @table(dense<[1.0, -1.0]> : vector<2xbf16>) {addr_space = 1 : i32} : vector<2xbf16>

  llvm.func @moves(%p: !llvm.ptr, %pair: !llvm.struct<(bf16, vector<2xbf16>)>) attributes {nvvm.kernel} {
    %one = llvm.mlir.constant(1.0 : bf16) : bf16
    %x = llvm.load %p : !llvm.ptr -> bf16
    %v = llvm.extractvalue %pair[0] : !llvm.struct<(bf16, vector<2xbf16>)>
    %xBits = llvm.bitcast %x : bf16 to i16
    %oneBits = llvm.bitcast %one : bf16 to i16
    %is = llvm.icmp "eq" %xBits, %oneBits : i16
    llvm.cond_br %is, ^end(%x : bf16), ^end(%v : bf16)
  ^end(%y: bf16):
    %at = llvm.getelementptr %p[1] : (!llvm.ptr) -> !llvm.ptr, bf16
    llvm.store %y, %at : bf16, !llvm.ptr
    llvm.return
  }

  llvm.func @adds(%p: !llvm.ptr) attributes {nvvm.kernel} {
    %x = llvm.load %p : !llvm.ptr -> vector<2xbf16>
    %table = llvm.mlir.addressof @table : !llvm.ptr<1>
    %y = llvm.load %table : !llvm.ptr<1> -> vector<2xbf16>
    %sum = llvm.fadd %x, %y {fastmathFlags = #llvm.fastmath<nnan>} : vector<2xbf16>
    llvm.store %sum, %p : vector<2xbf16>, !llvm.ptr
    llvm.return
  }

  llvm.func @signs(%p: !llvm.ptr) attributes {nvvm.kernel} {
    %x = llvm.load %p : !llvm.ptr -> !llvm.struct<"named", (bf16, i16)>
    %v = llvm.extractvalue %x[0] : !llvm.struct<"named", (bf16, i16)>
    %y = llvm.fneg %v : bf16
    llvm.store %y, %p : bf16, !llvm.ptr
    llvm.return
  }
}
