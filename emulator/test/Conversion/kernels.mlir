// RUN: kvcache-opt %s --convert-nvvm-to-emulator --split-input-file | FileCheck %s
// RUN: kvcache-opt %s --convert-nvvm-to-emulator="sanitize=false" --split-input-file | FileCheck %s --check-prefix=PLAIN

// A kernel becomes a function of the host that takes its thread first, with an
// entry that reads the parameters from where they are.

// CHECK-LABEL: llvm.mlir.global internal constant @kernels_emulated()
// CHECK-SAME:    !llvm.struct<(ptr, i64, ptr, i64, i64, i64, i32, i32, i64, i64)>
// CHECK:         llvm.mlir.constant(1 : i64)
// CHECK:         llvm.mlir.constant(232448 : i64)
// CHECK-LABEL: llvm.mlir.global internal constant @kvcache_kernels()
// CHECK:         llvm.mlir.addressof @kernels_scale_thread
// CHECK:         llvm.mlir.constant(4 : i64)
// CHECK-LABEL: llvm.mlir.global internal constant @kvcache_parameter_bytes
// CHECK-SAME:    dense<[8, 4, 1, 128]> : tensor<4xi64>
// CHECK-LABEL: llvm.func @kvcacheEmulatorAccess(!llvm.ptr, !llvm.ptr, !llvm.ptr, i64, i64, i32)
// CHECK-LABEL: llvm.func internal @kernels_scale(
// CHECK-SAME:    %[[THREAD:.*]]: !llvm.ptr, %[[DATA:.*]]: !llvm.ptr, %[[FACTOR:.*]]: f32, %{{.*}}: i8, %{{.*}}: !llvm.ptr) {
// CHECK:         %[[SHADOW:.*]] = llvm.alloca %{{.*}} x vector<4xi32>
// CHECK:         %[[FIELD:.*]] = llvm.getelementptr %[[THREAD]][0]
// CHECK-NEXT:    %[[TID:.*]] = llvm.load %[[FIELD]] invariant : !llvm.ptr -> i32
// CHECK-NEXT:    %[[PLACE:.*]] = llvm.getelementptr %[[DATA]][%[[TID]]]
// CHECK:         %[[BYTES:.*]] = llvm.mlir.constant(16 : i64)
// CHECK:         %[[ALIGNMENT:.*]] = llvm.mlir.constant(16 : i64)
// CHECK:         %[[READS:.*]] = llvm.mlir.constant(257 : i32)
// CHECK:         %[[SITE:.*]] = llvm.mlir.addressof @kvcache_site
// CHECK:         llvm.call @kvcacheEmulatorAccess(%[[THREAD]], %[[SITE]], %[[PLACE]], %[[BYTES]], %[[ALIGNMENT]], %[[READS]])
// CHECK-NEXT:    llvm.load %[[PLACE]] {alignment = 1 : i64} : !llvm.ptr -> vector<4xf32>
// The uninitialized bytes of it, and so of each lane of the sum.
// CHECK:         %[[ORIGIN:.*]] = llvm.load %{{.*}} : !llvm.ptr -> i32
// CHECK:         %[[BYTES_OF_POISON:.*]] = llvm.load %{{.*}} : !llvm.ptr -> !llvm.ptr
// CHECK:         %[[POISON:.*]] = llvm.load %[[BYTES_OF_POISON]] {alignment = 1 : i64} : !llvm.ptr -> vector<4xi32>
// CHECK:         %[[LANES:.*]] = llvm.icmp "ne" %[[POISON]], %{{.*}} : vector<4xi32>
// CHECK:         %[[POISON_OF_SUM:.*]] = llvm.sext %{{.*}} : vector<4xi1> to vector<4xi32>
// CHECK:         %[[WRITES:.*]] = llvm.mlir.constant(2 : i32)
// CHECK:         llvm.call @kvcacheEmulatorAccess({{.*}}, %[[WRITES]])
// CHECK-NEXT:    llvm.store {{.*}} {alignment = 1 : i64} : vector<4xf32>, !llvm.ptr
// CHECK:         llvm.store %[[POISON_OF_SUM]], %[[SHADOW]]
// CHECK:         llvm.select %{{.*}}, %[[ORIGIN]], %{{.*}} : i1, i32
// CHECK:         llvm.call @kvcacheEmulatorStorePoison(%[[THREAD]], %{{.*}}, %[[PLACE]], %{{.*}}, %[[SHADOW]],
// CHECK-LABEL: llvm.func internal @kernels_scale_thread(
// CHECK-SAME:    %[[THREAD:.*]]: !llvm.ptr, %[[PARAMS:.*]]: !llvm.ptr) {
// CHECK:         %[[SLOT0:.*]] = llvm.getelementptr %[[PARAMS]][0]
// CHECK-NEXT:    %[[ADDRESS0:.*]] = llvm.load %[[SLOT0]]
// CHECK-NEXT:    %[[VALUE0:.*]] = llvm.load %[[ADDRESS0]] : !llvm.ptr -> !llvm.ptr
// CHECK:         %[[VALUE1:.*]] = llvm.load %{{.*}} : !llvm.ptr -> f32
// CHECK:         %[[VALUE2:.*]] = llvm.load %{{.*}} : !llvm.ptr -> i8
// A descriptor stays where it is.
// CHECK:         %[[SLOT3:.*]] = llvm.getelementptr %[[PARAMS]][3]
// CHECK-NEXT:    %[[ADDRESS3:.*]] = llvm.load %[[SLOT3]]
// CHECK-NEXT:    llvm.call @kernels_scale(%[[THREAD]], %[[VALUE0]], %[[VALUE1]], %[[VALUE2]], %[[ADDRESS3]])
// CHECK:       gpu.binary @kernels
// CHECK-SAME:    #gpu.object<#nvvm.target<chip = "sm_90a">, properties = {kvcache.emulated = @kernels_emulated}, offload = "">

// PLAIN-NOT: kvcacheEmulatorAccess
// PLAIN-NOT: Poison

gpu.module @kernels [#nvvm.target<chip = "sm_90a">] {
  llvm.func @scale(%data: !llvm.ptr {llvm.noalias}, %factor: f32, %flag: i8,
                   %map: !llvm.ptr {llvm.byval = !llvm.array<128 x i8>, llvm.align = 64 : i64, nvvm.grid_constant})
      attributes {gpu.kernel, nvvm.kernel} {
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    %place = llvm.getelementptr %data[%tid] : (!llvm.ptr, i32) -> !llvm.ptr, vector<4xf32>
    %v = llvm.load %place {alignment = 16 : i64} : !llvm.ptr -> vector<4xf32>
    %w = llvm.fadd %v, %v : vector<4xf32>
    llvm.store %w, %place {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr
    llvm.return
  }
}

// -----

// Shared variables follow one another, except those of different kernels;
// dynamic shared memory is the end of what a block has. As a number, the
// address of shared memory is its offset. Where accesses are checked, 1024 bytes
// are between two variables.

// CHECK-LABEL: llvm.mlir.global internal constant @kvcache_kernels()
// First: 96 bytes of its own, and dynamic ones from 1024 on.
// CHECK:         llvm.mlir.addressof @shared_first_thread
// CHECK:         llvm.mlir.constant(96 : i64)
// CHECK:         llvm.mlir.constant(1024 : i64)
// CHECK:         llvm.mlir.addressof @shared_second_thread
// CHECK:         llvm.mlir.constant(40 : i64)
// CHECK-LABEL: llvm.mlir.global internal constant @kvcache_shared_variables()
// Name, offset, bytes, shift.
// CHECK:         llvm.mlir.constant(0 : i64)
// CHECK:         llvm.mlir.constant(40 : i64)
// CHECK:         llvm.mlir.constant(0 : i64)
// CHECK:         llvm.mlir.constant(64 : i64)
// CHECK:         llvm.mlir.constant(32 : i64)
// CHECK:         llvm.mlir.constant(1024 : i64)
// CHECK:         llvm.mlir.constant(1024 : i64)
// CHECK:         llvm.mlir.constant(2147483647 : i64)
// CHECK:         llvm.mlir.constant(2048 : i64)
// CHECK-NOT:   addr_space = 3
// CHECK-LABEL: llvm.func internal @shared_first(
// CHECK:         %[[B:.*]] = llvm.mlir.constant(1088 : i32)
// CHECK-NEXT:    llvm.getelementptr %{{.*}}[%[[B]]]
// PLAIN-LABEL: llvm.func internal @shared_first(
// PLAIN:         %[[B:.*]] = llvm.mlir.constant(64 : i32)
// PLAIN-NEXT:    llvm.getelementptr %{{.*}}[%[[B]]]
// CHECK:         %[[OFFSET:.*]] = llvm.sub %{{.*}}, %{{.*}} : i64
// CHECK:         llvm.trunc %[[OFFSET]] : i64 to i32

gpu.module @shared [#nvvm.target<chip = "sm_90a">] {
  llvm.mlir.global internal @a() {addr_space = 3 : i32, alignment = 8 : i64} : !llvm.array<40 x i8>
  llvm.mlir.global internal @b() {addr_space = 3 : i32, alignment = 32 : i64} : !llvm.array<32 x i8>
  llvm.mlir.global external @dynamic() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
  llvm.func @first(%out: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
    %a = llvm.mlir.addressof @a : !llvm.ptr<3>
    %b = llvm.mlir.addressof @b : !llvm.ptr<3>
    %c = llvm.mlir.addressof @dynamic : !llvm.ptr<3>
    %x = llvm.load %a : !llvm.ptr<3> -> i32
    %y = llvm.load %c : !llvm.ptr<3> -> i32
    %z = llvm.ptrtoint %b : !llvm.ptr<3> to i32
    llvm.store %x, %out : i32, !llvm.ptr
    llvm.store %y, %out : i32, !llvm.ptr
    llvm.store %z, %out : i32, !llvm.ptr
    llvm.return
  }
  llvm.func @second(%out: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
    %a = llvm.mlir.addressof @a : !llvm.ptr<3>
    %x = llvm.load %a : !llvm.ptr<3> -> i32
    llvm.store %x, %out : i32, !llvm.ptr
    llvm.return
  }
}

// -----

// Functions of the device get the thread from who calls them.

// CHECK-LABEL: llvm.func internal @calls_kernel(
// CHECK-SAME:    %[[THREAD:.*]]: !llvm.ptr,
// CHECK:         llvm.call @calls_twice(%[[THREAD]], %{{.*}}) : (!llvm.ptr, i32) -> i32
// CHECK-LABEL: llvm.func internal @calls_twice(
// CHECK-SAME:    %{{.*}}: !llvm.ptr, %{{.*}}: i32) -> i32

gpu.module @calls [#nvvm.target<chip = "sm_80">] {
  llvm.func @kernel(%out: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
    %lane = nvvm.read.ptx.sreg.laneid : i32
    %x = llvm.call @twice(%lane) : (i32) -> i32
    llvm.store %x, %out : i32, !llvm.ptr
    llvm.return
  }
  llvm.func @twice(%x: i32) -> i32 {
    %y = llvm.add %x, %x : i32
    llvm.return %y : i32
  }
}
