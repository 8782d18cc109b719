// RUN: kvcache-opt %s --kvcache-lower-launches -split-input-file | FileCheck %s
// RUN: kvcache-opt %s --kvcache-lower-launches -split-input-file | FileCheck %s --check-prefix=BINARY
// RUN: kvcache-opt %s --kvcache-lower-launches=caller-waits=1 -split-input-file | FileCheck %s --check-prefix=CALLER

// A binary is a constant with an image for each chip, PTX with a zero byte at
// its end. The operands of a launch lie in the frame of its function.

// CHECK-NOT:   gpu.container_module
// CHECK-DAG:   llvm.mlir.global internal constant @{{.*}}("sm_90a\00")
// CHECK-DAG:   llvm.mlir.global internal constant @kernels_sm_90a("ptx\00") {{.*}}alignment = 16
// CHECK-DAG:   llvm.mlir.global internal constant @kernels_sm_100a("cubin") {{.*}}alignment = 16
// CHECK-DAG:   llvm.mlir.global internal constant @[[GATHER:.*]]("gather\00")
// CHECK-DAG:   llvm.mlir.global internal constant @[[WHERE:.*]]("{{.*}}launches.mlir:{{[0-9]+}}:3: launch of @kernels::@gather\00")
// CHECK-DAG:   llvm.mlir.global internal constant @[[BYTES:.*]](dense<[8, 8, 4, 2, 1, 128]> : tensor<6xi64>)
// CHECK-DAG:   llvm.func @kvcacheModuleLoad(!llvm.ptr, !llvm.ptr) -> i32
// CHECK-DAG:   llvm.func @kvcacheLaunch(!llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, i64) -> i32
// CHECK-DAG:   llvm.func @kvcacheStreamSynchronize(!llvm.ptr) -> i32
// CHECK-DAG:   llvm.func @kvcacheGetLastError() -> !llvm.ptr
// CHECK-DAG:   llvm.func @kvcacheDeviceFailed(!llvm.ptr, !llvm.ptr)

// BINARY:      llvm.mlir.global internal constant @[[NAME:.*]]("kernels\00")
// BINARY:      llvm.mlir.global internal constant @kernels() {{.*}}: !llvm.struct<(ptr, ptr, i64)> {
// BINARY:        %[[N:.*]] = llvm.mlir.addressof @[[NAME]]
// BINARY:        llvm.insertvalue %[[N]], %{{.*}}[0]
// BINARY:        %[[IMAGES:.*]] = llvm.mlir.addressof @kernels_images
// BINARY:        llvm.insertvalue %[[IMAGES]], %{{.*}}[1]
// BINARY:        %[[TWO:.*]] = llvm.mlir.constant(2 : i64)
// BINARY:        %[[FIELDS:.*]] = llvm.insertvalue %[[TWO]], %{{.*}}[2]
// BINARY:        llvm.return %[[FIELDS]]
// BINARY:      llvm.mlir.global internal constant @kernels_images() {{.*}}: !llvm.array<2 x struct<(ptr, ptr, i64)>> {
// BINARY:        llvm.mlir.addressof @kvcache_message
// BINARY:        llvm.mlir.addressof @kernels_sm_90a
// BINARY:        llvm.mlir.constant(4 : i64)
// BINARY:        llvm.mlir.addressof @kernels_sm_100a
// BINARY:        llvm.mlir.constant(5 : i64)

module attributes {gpu.container_module} {

gpu.binary @kernels [
  #gpu.object<#nvvm.target<chip = "sm_90a">, assembly = "ptx">,
  #gpu.object<#nvvm.target<chip = "sm_100a">, bin = "cubin">
]

// CHECK-LABEL: func.func @launch(
// CHECK-SAME:      %[[POINTER:[^:]*]]: !llvm.ptr, %[[SIZE:[^:]*]]: index, %[[NUMBER:[^:]*]]: f32, %[[HALF:[^:]*]]: bf16, %[[FLAG:[^:]*]]: i1, %[[DESC:[^:]*]]: vector<128xi8>, %[[BLOCKS:[^:]*]]: index, %[[SHARED:[^:]*]]: i32)
// CHECK-DAG:     %[[LAUNCH:.*]] = llvm.alloca %{{.*}} x !llvm.struct<(array<3 x i64>, array<3 x i64>, i64, ptr, array<3 x i64>, i64)>
// CHECK-DAG:     %[[DESC_SLOT:.*]] = llvm.alloca %{{.*}} x vector<128xi8> {alignment = 64 : i64}
// CHECK-DAG:     %[[FLAG_SLOT:.*]] = llvm.alloca %{{.*}} x i8
// CHECK-DAG:     %[[HALF_SLOT:.*]] = llvm.alloca %{{.*}} x i16
// CHECK-DAG:     %[[NUMBER_SLOT:.*]] = llvm.alloca %{{.*}} x i32
// CHECK-DAG:     %[[SIZE_SLOT:.*]] = llvm.alloca %{{.*}} x i64
// CHECK-DAG:     %[[PARAMS:.*]] = llvm.alloca %{{.*}} x !llvm.array<6 x ptr>
// CHECK:       scf.for
// CHECK-NOT:     llvm.alloca
// CHECK:         %[[MODULE:.*]] = llvm.mlir.addressof @kernels
// CHECK:         %[[LOADED:.*]] = llvm.call @kvcacheModuleLoad(%[[MODULE]], %[[HANDLE_SLOT:[^)]*]])
// CHECK:         %[[FAILS:.*]] = arith.cmpi ne, %[[LOADED]], %{{.*}} : i32
// CHECK:         scf.if %[[FAILS]] {
// CHECK-DAG:       %[[W:.*]] = llvm.mlir.addressof @[[WHERE]]
// CHECK-DAG:       %[[MESSAGE:.*]] = llvm.call @kvcacheGetLastError()
// CHECK:           llvm.call @kvcacheDeviceFailed(%[[W]], %[[MESSAGE]])
// CHECK:         }
// CHECK:         %[[HANDLE:.*]] = llvm.load %[[HANDLE_SLOT]]
// CHECK:         %[[STREAM:.*]] = llvm.call @kvcacheScopeStream() : () -> !llvm.ptr
// CHECK:         %[[GRID:.*]] = arith.index_cast %[[BLOCKS]] : index to i64
// CHECK:         llvm.insertvalue %[[GRID]], %{{.*}}[0, 0]
// CHECK:         %[[DYNAMIC:.*]] = arith.extsi %[[SHARED]] : i32 to i64
// CHECK:         llvm.insertvalue %[[DYNAMIC]], %{{.*}}[2]
// CHECK:         %[[SHAPE:.*]] = llvm.insertvalue %[[STREAM]], %{{.*}}[3]
// CHECK:         llvm.insertvalue %{{.*}}, %[[SHAPE]][4, 0]
// CHECK:         %[[FULL:.*]] = llvm.insertvalue %{{.*}}, %{{.*}}[5]
// CHECK:         llvm.store %[[FULL]], %[[LAUNCH]]
// CHECK:         llvm.store %[[POINTER]], %[[POINTER_SLOT:.*]] {alignment = 8 : i64}
// CHECK:         llvm.store %{{.*}}, %[[SIZE_SLOT]]
// CHECK:         llvm.store %{{.*}}, %[[NUMBER_SLOT]]
// CHECK:         llvm.store %{{.*}}, %[[HALF_SLOT]]
// CHECK:         llvm.store %{{.*}}, %[[FLAG_SLOT]]
// CHECK:         llvm.store %[[DESC]], %[[DESC_SLOT]] {alignment = 64 : i64}
// CHECK:         llvm.store %{{.*}}, %[[PARAMS]]
// CHECK-DAG:     %[[SIZES:.*]] = llvm.mlir.addressof @[[BYTES]]
// CHECK-DAG:     %[[COUNT:.*]] = llvm.mlir.constant(6 : i64)
// CHECK-DAG:     %[[KERNEL:.*]] = llvm.mlir.addressof @[[GATHER]]
// CHECK:         llvm.call @kvcacheLaunch(%[[HANDLE]], %[[KERNEL]], %[[LAUNCH]], %[[PARAMS]], %[[SIZES]], %[[COUNT]])
// CHECK:         scf.if
// CHECK:         llvm.call @kvcacheStreamSynchronize(
// CHECK:         scf.if
func.func @launch(%pointer: !llvm.ptr, %size: index, %number: f32, %half: bf16, %flag: i1,
                  %desc: !kvcache.tma_tile<64x1xbf16>, %blocks: index, %shared: i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %size step %c1 {
  gpu.launch_func @kernels::@gather blocks in (%blocks, %c1, %c1) threads in (%c1, %c1, %c1)
      dynamic_shared_memory_size %shared
      args(%pointer : !llvm.ptr, %size : index, %number : f32, %half : bf16, %flag : i1,
           %desc : !kvcache.tma_tile<64x1xbf16>)
  }
  return
}

}

// -----

// An asynchronous launch doesn't wait. Its token is the default stream, which
// keeps the order, and a launch on a given stream is left to its owner.

module attributes {gpu.container_module} {

gpu.binary @kernels [#gpu.object<#nvvm.target<chip = "sm_90a">, "fatbin">]

// CHECK-LABEL: func.func @asynchronous(
// CHECK-SAME:      %[[BEFORE:[^:]*]]: !llvm.ptr
// CHECK-SAME:      -> !llvm.ptr
// CHECK-NOT:     kvcacheStreamSynchronize
// CHECK:         llvm.call @kvcacheLaunch
// CHECK:         %[[TOKEN:.*]] = llvm.call @kvcacheScopeStream() : () -> !llvm.ptr
// CHECK-NEXT:    return %[[TOKEN]] : !llvm.ptr
func.func @asynchronous(%before: !gpu.async.token, %n: index) -> !gpu.async.token {
  %t = gpu.launch_func async [%before] @kernels::@nothing blocks in (%n, %n, %n) threads in (%n, %n, %n)
  return %t : !gpu.async.token
}

// CHECK-LABEL: func.func @wait
// CHECK:         llvm.call @kvcacheStreamSynchronize
// CHECK-NOT:     gpu.wait
// CHECK:         return
func.func @wait(%before: !gpu.async.token) {
  gpu.wait [%before]
  return
}

// The caller waits for launches, if not for 'gpu.wait'.

// CALLER-LABEL: func.func @launch(
// CALLER:         llvm.call @kvcacheLaunch
// CALLER-NOT:     call @kvcacheStreamSynchronize
// CALLER-LABEL: func.func @wait(
// CALLER:         llvm.call @kvcacheStreamSynchronize

// CHECK-LABEL: func.func @on_stream
// CHECK-SAME:      %[[STREAM:[^:]*]]: !llvm.ptr
// CHECK:         llvm.insertvalue %[[STREAM]], %{{.*}}[3]
// CHECK:         llvm.call @kvcacheLaunch
// CHECK-NOT:     kvcacheStreamSynchronize
// CHECK:         return
func.func @on_stream(%stream: !llvm.ptr, %n: i64) {
  gpu.launch_func <%stream : !llvm.ptr> @kernels::@nothing blocks in (%n, %n, %n) threads in (%n, %n, %n) : i64
  return
}

}

// -----

// The module lists what it launches. Attributes are those of a launch.

// CHECK:       llvm.mlir.global internal constant @kvcache_launched_kernels() {{.*}} !llvm.struct<(ptr, i64)> {
// CHECK:         llvm.mlir.addressof @[[TABLE:.*]] :
// CHECK:         llvm.mlir.constant(2 : i64)
// CHECK:       llvm.mlir.global internal constant @[[TABLE]]() {{.*}} !llvm.array<2 x struct<(ptr, ptr, i64)>> {
// CHECK:         llvm.mlir.addressof @kernels
// CHECK:         llvm.mlir.addressof @kvcache_message
// CHECK:         llvm.mlir.constant(0 : i64)
// CHECK:         llvm.mlir.addressof @kernels
// CHECK:         llvm.mlir.addressof @kvcache_message
// CHECK:         llvm.mlir.constant(64 : i64)
module attributes {gpu.container_module} {

gpu.binary @kernels [#gpu.object<#nvvm.target<chip = "sm_90a">, "fatbin">]

// CHECK-LABEL: func.func @attributes
// CHECK-SAME:      %[[N:[^:]*]]: i64
// CHECK:         llvm.insertvalue %[[N]], %{{.*}}[4, 0]
// CHECK:         llvm.insertvalue %[[N]], %{{.*}}[4, 2]
// CHECK:         %[[ONE:.*]] = llvm.mlir.constant(1 : i64)
// CHECK-NEXT:    llvm.insertvalue %[[ONE]], %{{.*}}[5]
func.func @attributes(%n: i64) {
  %bytes = arith.constant 64 : i32
  gpu.launch_func @kernels::@first clusters in (%n, %n, %n) blocks in (%n, %n, %n) threads in (%n, %n, %n) : i64
      {kvcache.programmatic}
  gpu.launch_func @kernels::@second blocks in (%n, %n, %n) threads in (%n, %n, %n) : i64
      dynamic_shared_memory_size %bytes
  gpu.launch_func @kernels::@first blocks in (%n, %n, %n) threads in (%n, %n, %n) : i64
  return
}

}

// -----

// The host does not wait between a launch and a programmatic one after it,
// unless it accesses memory there, or the next launch has another stream.

module attributes {gpu.container_module} {

gpu.binary @kernels [#gpu.object<#nvvm.target<chip = "sm_90a">, "fatbin">]

// CHECK-LABEL: func.func @chain
// CHECK:         llvm.call @kvcacheLaunch
// CHECK-NOT:     llvm.call @kvcacheStreamSynchronize
// CHECK:         llvm.call @kvcacheLaunch
// CHECK:         llvm.call @kvcacheStreamSynchronize
// CHECK:         memref.store
// CHECK:         llvm.call @kvcacheLaunch
// CHECK:         llvm.call @kvcacheStreamSynchronize
// CHECK:         llvm.call @kvcacheLaunch
// CHECK:         llvm.call @kvcacheStreamSynchronize
// CHECK:         return
func.func @chain(%n: i64, %host: memref<i64>) {
  gpu.launch_func @kernels::@first blocks in (%n, %n, %n) threads in (%n, %n, %n) : i64
  %m = arith.addi %n, %n : i64
  gpu.launch_func @kernels::@second blocks in (%m, %n, %n) threads in (%n, %n, %n) : i64 {kvcache.programmatic}
  memref.store %n, %host[] : memref<i64>
  gpu.launch_func @kernels::@first blocks in (%n, %n, %n) threads in (%n, %n, %n) : i64 {kvcache.programmatic}
  gpu.launch_func @kernels::@second blocks in (%n, %n, %n) threads in (%n, %n, %n) : i64
  return
}

// CHECK-LABEL: func.func @other_stream
// CHECK:         llvm.call @kvcacheLaunch
// CHECK:         llvm.call @kvcacheStreamSynchronize
// CHECK:         llvm.call @kvcacheLaunch
func.func @other_stream(%n: i64, %stream: !llvm.ptr) {
  gpu.launch_func @kernels::@first blocks in (%n, %n, %n) threads in (%n, %n, %n) : i64
  gpu.launch_func <%stream : !llvm.ptr> @kernels::@second blocks in (%n, %n, %n) threads in (%n, %n, %n) : i64
      {kvcache.programmatic}
  return
}

}

// -----

module attributes {gpu.container_module} {

gpu.binary @kernels [#gpu.object<#nvvm.target<chip = "sm_90a">, assembly = "ptx">]

// A cast of an operand goes with its launch, also of one that is there twice.

// CHECK-LABEL: func.func @twice
// CHECK-NOT:     unrealized_conversion_cast
// CHECK:         llvm.call @kvcacheLaunch
// CHECK-NOT:     unrealized_conversion_cast
// CHECK:         return
func.func @twice(%descriptor: vector<128xi8>, %n: i64) {
  %address = builtin.unrealized_conversion_cast %descriptor : vector<128xi8> to !llvm.ptr
  gpu.launch_func @kernels::@gather blocks in (%n, %n, %n) threads in (%n, %n, %n) : i64
      args(%address : !llvm.ptr, %n : i64, %address : !llvm.ptr, %address : !llvm.ptr)
  return
}
}
