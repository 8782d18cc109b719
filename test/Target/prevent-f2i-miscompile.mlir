// RUN: kvcache-opt %s --kvcache-to-ptx=chip=sm_90a --emit-ptx | FileCheck %s

// ptxas converts a float to an integer where a store takes the low bits of the
// register that an instruction of floats wrote. A move keeps the bits.

gpu.module @kernels {
  // CHECK-LABEL: .entry byte_of_f32(
  // CHECK:         add.rn.f32 [[SUM:%r[0-9]+]]
  // CHECK:         mov.b32 [[BITS:%r[0-9]+]], [[SUM]];
  // CHECK:         st.global.b8 [{{.*}}], [[BITS]];
  llvm.func @byte_of_f32(%p: !llvm.ptr<1>, %x: f32) attributes {nvvm.kernel} {
    %shifter = llvm.mlir.constant(1.2582912E+7 : f32) : f32
    %sum = llvm.fadd %x, %shifter : f32
    %bits = llvm.bitcast %sum : f32 to i32
    %low = llvm.trunc %bits : i32 to i8
    llvm.store %low, %p : i8, !llvm.ptr<1>
    llvm.return
  }

  // The back end leaves out what changes other bits only.

  // CHECK-LABEL: .entry half_of_f32(
  // CHECK:         mov.b32 [[BITS:%r[0-9]+]], %r{{[0-9]+}};
  // CHECK:         st.shared.b16 [{{.*}}], [[BITS]];
  llvm.func @half_of_f32(%p: !llvm.ptr<3>, %x: f32) attributes {nvvm.kernel} {
    %bit = llvm.mlir.constant(65536 : i32) : i32
    %sum = llvm.fadd %x, %x : f32
    %bits = llvm.bitcast %sum : f32 to i32
    %or = llvm.or %bits, %bit : i32
    %low = llvm.trunc %or : i32 to i16
    llvm.store %low, %p : i16, !llvm.ptr<3>
    llvm.return
  }

  // CHECK-LABEL: .entry half_of_f64(
  // CHECK:         mov.b64 [[BITS:%rd[0-9]+]], %rd{{[0-9]+}};
  // CHECK:         st.global.b32 [{{.*}}], [[BITS]];
  llvm.func @half_of_f64(%p: !llvm.ptr, %x: f64, %is_left: i1, %other: i64) attributes {nvvm.kernel} {
    %sum = llvm.fadd %x, %x : f64
    %bits = llvm.bitcast %sum : f64 to i64
    %selected = llvm.select %is_left, %bits, %other : i1, i64
    %low = llvm.trunc %bits : i64 to i32
    llvm.store %low, %p : i32, !llvm.ptr
    %next = llvm.getelementptr %p[1] : (!llvm.ptr) -> !llvm.ptr, i32
    %low_selected = llvm.trunc %selected : i64 to i32
    llvm.store %low_selected, %next : i32, !llvm.ptr
    llvm.return
  }

  // CHECK-LABEL: .entry byte_of_f16(
  // CHECK:         mov.b16 [[BITS:%rs[0-9]+]], %rs{{[0-9]+}};
  // CHECK:         st.global.b8 [{{.*}}], [[BITS]];
  llvm.func @byte_of_f16(%p: !llvm.ptr<1>, %x: f32) attributes {nvvm.kernel} {
    %half = llvm.fptrunc %x : f32 to f16
    %bits = llvm.bitcast %half : f16 to i16
    %low = llvm.trunc %bits : i16 to i8
    llvm.store %low, %p : i8, !llvm.ptr<1>
    llvm.return
  }

  // CHECK-LABEL: .entry lane_of_bytes(
  // CHECK:         mov.b32 [[BITS:%r[0-9]+]], %r{{[0-9]+}};
  // CHECK:         st.global.b8 [{{.*}}], [[BITS]];
  llvm.func @lane_of_bytes(%p: !llvm.ptr<1>, %x: f32) attributes {nvvm.kernel} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %sum = llvm.fadd %x, %x : f32
    %bytes = llvm.bitcast %sum : f32 to vector<4xi8>
    %low = llvm.extractelement %bytes[%c0 : i32] : vector<4xi8>
    llvm.store %low, %p : i8, !llvm.ptr<1>
    llvm.return
  }

  // CHECK-LABEL: .entry two_bytes(
  // CHECK-COUNT-2: begin inline asm
  // CHECK:         st.global.v2.b8
  llvm.func @two_bytes(%p: !llvm.ptr<1>, %x: vector<2xf32>) attributes {nvvm.kernel} {
    %sum = llvm.fadd %x, %x : vector<2xf32>
    %bits = llvm.bitcast %sum : vector<2xf32> to vector<2xi32>
    %low = llvm.trunc %bits : vector<2xi32> to vector<2xi8>
    llvm.store %low, %p {alignment = 2 : i64} : vector<2xi8>, !llvm.ptr<1>
    llvm.return
  }

  // The back end stores unaligned values byte by byte.

  // CHECK-LABEL: .entry unaligned(
  // CHECK:         mov.b32 [[BITS:%r[0-9]+]], %r{{[0-9]+}};
  // CHECK:         st.global.b8 [{{.*}}], [[BITS]];
  llvm.func @unaligned(%p: !llvm.ptr<1>, %x: f32) attributes {nvvm.kernel} {
    %sum = llvm.fadd %x, %x : f32
    llvm.store %sum, %p {alignment = 1 : i64} : f32, !llvm.ptr<1>
    llvm.return
  }

  // LLVM forwards the stored value to the load.

  // CHECK-LABEL: .entry forwarded(
  // CHECK:         mov.b32 [[BITS:%r[0-9]+]], %r{{[0-9]+}};
  // CHECK:         st.global.b8 [{{.*}}], [[BITS]];
  llvm.func @forwarded(%p: !llvm.ptr<1>, %q: !llvm.ptr<1>, %x: f32) attributes {nvvm.kernel} {
    %sum = llvm.fadd %x, %x : f32
    llvm.store %sum, %p : f32, !llvm.ptr<1>
    %low = llvm.load %p : !llvm.ptr<1> -> i8
    llvm.store %low, %q : i8, !llvm.ptr<1>
    llvm.return
  }

  // CHECK-LABEL: .entry low_byte_of_four(
  // CHECK:         mov.b32 [[BITS:%r[0-9]+]], %r{{[0-9]+}};
  // CHECK:         st.global.b8 [{{.*}}], [[BITS]];
  llvm.func @low_byte_of_four(%p: !llvm.ptr<1>, %x: vector<4xf32>) attributes {nvvm.kernel} {
    %sum = llvm.fadd %x, %x : vector<4xf32>
    %bits = llvm.bitcast %sum : vector<4xf32> to vector<4xi32>
    %bytes = llvm.trunc %bits : vector<4xi32> to vector<4xi8>
    %word = llvm.bitcast %bytes : vector<4xi8> to i32
    %low = llvm.trunc %word : i32 to i8
    llvm.store %low, %p : i8, !llvm.ptr<1>
    llvm.return
  }

  // Whole registers, bits that other instructions write, and conditions need no
  // move.

  // CHECK-LABEL: .entry others(
  // CHECK-NOT:     inline asm
  // CHECK:         ret;
  llvm.func @others(%p: !llvm.ptr<1>, %x: vector<4xf32>) attributes {nvvm.kernel} {
    %c16 = llvm.mlir.constant(16 : i32) : i32
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %sum = llvm.fadd %x, %x : vector<4xf32>
    %bits = llvm.bitcast %sum : vector<4xf32> to vector<4xi32>
    %bytes = llvm.trunc %bits : vector<4xi32> to vector<4xi8>
    llvm.store volatile %bytes, %p : vector<4xi8>, !llvm.ptr<1>
    %lane = llvm.extractelement %bits[%c0 : i32] : vector<4xi32>
    llvm.store volatile %lane, %p : i32, !llvm.ptr<1>
    %shifted = llvm.lshr %lane, %c16 : i32
    %high = llvm.trunc %shifted : i32 to i16
    llvm.store volatile %high, %p : i16, !llvm.ptr<1>
    %bit = llvm.trunc %lane : i32 to i1
    llvm.cond_br %bit, ^odd, ^exit
  ^odd:
    llvm.store volatile %lane, %p : i32, !llvm.ptr<1>
    llvm.br ^exit
  ^exit:
    llvm.return
  }
}
