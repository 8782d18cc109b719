// RUN: kvcache-opt %s --kvcache-emit-tvm-ffi --split-input-file --verify-diagnostics | FileCheck %s
// RUN: kvcache-opt %s --kvcache-emit-tvm-ffi=device=emulator --split-input-file --verify-diagnostics \
// RUN:   | FileCheck %s --check-prefix=EMULATOR
// RUN: kvcache-opt %s --kvcache-emit-tvm-ffi=device=cuda --split-input-file --verify-diagnostics \
// RUN:   | FileCheck %s --check-prefix=CUDA
// RUN: not kvcache-opt %s --kvcache-emit-tvm-ffi=device=tpu --split-input-file 2>&1 | FileCheck %s --check-prefix=DEVICE

// The wrapper passes its arguments on with the constants that describe the
// function, and the entry reads the words of the arguments: 7 of the memref, then
// one of each number, and one of each result.

// CHECK:       llvm.mlir.global internal constant @kvcache_function_compute() {{.*}} !llvm.struct<(ptr, ptr, ptr, ptr, ptr, ptr, ptr, array<4 x i32>)> {
// CHECK:         llvm.mlir.addressof @[[ARGUMENTS:kvcache_arguments.*]] : !llvm.ptr
// CHECK:         llvm.mlir.addressof @[[RESULTS:kvcache_results.*]] : !llvm.ptr
// CHECK:         llvm.mlir.constant(dense<[4, 2, 12, 1]> : tensor<4xi32>)

// CHECK-DAG: llvm.mlir.global internal constant @[[TEXT:.*]]("memref<?x3xbf16, strided<[?, 1], offset: 2>>\00")
// CHECK-DAG: llvm.mlir.global internal constant @[[NAME:.*]]("rows\00")
// CHECK-DAG: llvm.mlir.global internal constant @[[LAYOUT:.*]](dense<[-9223372036854775808, 3, -9223372036854775808, 1]> : tensor<4xi64>)
// CHECK-DAG: llvm.mlir.global internal constant @[[FORMAT:.*]](dense<[3, -6, 1, 1, 126, -1, 127]> : tensor<7xi64>)

// A memref (2) of bfloat (4) in 16 bits and 2 dimensions, aligned to 2 bytes and
// read-only (4); a signless integer (0, 1); a float (1) in 8 bits.
// CHECK:       llvm.mlir.global internal constant @[[ARGUMENTS]]()
// CHECK:         llvm.mlir.addressof @[[TEXT]]
// CHECK:         llvm.mlir.addressof @[[NAME]]
// CHECK:         llvm.mlir.addressof @[[LAYOUT]]
// CHECK:         llvm.mlir.constant(2 : i64)
// CHECK:         llvm.mlir.constant(dense<[2, 4, 16, 2, 2, 4]> : tensor<6xi32>)
// CHECK:         llvm.mlir.constant(dense<[0, 0, 32, 0, 4, 1]> : tensor<6xi32>)
// CHECK:         llvm.mlir.addressof @[[FORMAT]]
// CHECK:         llvm.mlir.constant(dense<[1, 10, 8, 0, 1, 0]> : tensor<6xi32>)
// CHECK:         llvm.mlir.constant(dense<[0, 0, 64, 0, 8, 1]> : tensor<6xi32>)

// CHECK-LABEL: func.func @compute(
func.func @compute(%rows: memref<?x3xbf16, strided<[?, 1], offset: 2>> {llvm.readonly, kvcache.name = "rows"},
                   %number: i32, %scale: f8E4M3FN, %index: index) -> (i32, f8E4M3FN) {
  return %number, %scale : i32, f8E4M3FN
}

func.func private @hidden(%number: i32) { return }
func.func private @declared(i32)

// CHECK-LABEL: llvm.func internal @kvcache_entry_compute(
// CHECK-SAME:      %[[WORDS:.*]]: !llvm.ptr) {
// CHECK:         %[[LOADED:.*]] = llvm.load %{{.*}} : !llvm.ptr -> !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)>
// CHECK:         %[[ROWS:.*]] = builtin.unrealized_conversion_cast %[[LOADED]]
// CHECK:         llvm.getelementptr %[[WORDS]][7]
// CHECK:         %[[NUMBER:.*]] = arith.trunci %{{.*}} : i64 to i32
// CHECK:         llvm.getelementptr %[[WORDS]][8]
// CHECK:         %[[SCALE:.*]] = arith.bitcast %{{.*}} : i8 to f8E4M3FN
// CHECK:         llvm.getelementptr %[[WORDS]][9]
// CHECK:         %[[INDEX:.*]] = arith.index_cast %{{.*}} : i64 to index
// CHECK:         %[[CALL:.*]]:2 = func.call @compute(%[[ROWS]], %[[NUMBER]], %[[SCALE]], %[[INDEX]]) {no_inline}
// CHECK:         %[[FIRST:.*]] = llvm.getelementptr %[[WORDS]][10]
// CHECK:         %[[EXTENDED:.*]] = arith.extui %[[CALL]]#0 : i32 to i64
// CHECK:         llvm.store %[[EXTENDED]], %[[FIRST]]
// CHECK:         llvm.getelementptr %[[WORDS]][11]
// CHECK:         arith.bitcast %[[CALL]]#1 : f8E4M3FN to i8

// CHECK-LABEL: llvm.func @__tvm_ffi_compute(
// CHECK-SAME:      %{{.*}}: !llvm.ptr, %[[ARGS:.*]]: !llvm.ptr, %[[COUNT:.*]]: i32, %[[RESULT:.*]]: !llvm.ptr) -> i32
// CHECK-DAG:     %[[FUNCTION:.*]] = llvm.mlir.addressof @kvcache_function_compute
// CHECK-DAG:     %[[ENTRY:.*]] = llvm.mlir.addressof @kvcache_entry_compute
// CHECK:         %[[STATUS:.*]] = llvm.call @kvcacheCallTVMFFI(%[[FUNCTION]], %[[ENTRY]], %[[ARGS]], %[[COUNT]], %[[RESULT]])
// CHECK-NEXT:    llvm.return %[[STATUS]]
// CHECK-NOT:   llvm.func {{.*}}hidden
// CHECK-NOT:   llvm.func {{.*}}declared

// Kernels on the emulator may access only memory that is registered.
// EMULATOR:       llvm.mlir.global internal constant @kvcache_memory() {{.*}} {
// EMULATOR:         llvm.mlir.addressof @kvcacheEmulatorRegister :
// EMULATOR:         llvm.mlir.addressof @kvcacheEmulatorRegisterConstant :
// EMULATOR:         llvm.mlir.addressof @kvcacheEmulatorUnregister :

// A call chooses the device and the stream of the runtime.
// CUDA:     llvm.mlir.global internal constant @kvcache_function_compute()
// CUDA:       llvm.mlir.addressof @kvcache_scope :
// CUDA:       llvm.mlir.constant(dense<[4, 2, 12, 2]> : tensor<4xi32>)
// CUDA:     llvm.mlir.global internal constant @kvcache_scope() {{.*}} {
// CUDA:       llvm.mlir.addressof @kvcacheScopeEnter :
// CUDA:       llvm.mlir.addressof @kvcacheScopeLeave :
// CUDA:       llvm.mlir.addressof @kvcacheGetLastError :

// DEVICE: error: expects 'device' to be cpu, emulator or cuda, got 'tpu'

// -----

// Memrefs that hold a cache are aligned to 16 bytes (the flag is 8), and so are the
// distances between pages (16 << 8), also where a cast or a call comes between.

!collection = !kvcache.paged_collection<f32, <num_heads = 1, head_size = 4>, page_size = 1>

// CHECK:       llvm.mlir.constant(dense<[2, 2, 32, 6, 16, 4106]> : tensor<6xi32>)
// CHECK:       llvm.mlir.constant(dense<[2, 2, 32, 6, 4, 2]> : tensor<6xi32>)
// CHECK-LABEL: func.func @with_cache(
func.func @with_cache(%blocks: memref<?x2x4x1x1x4xf32>, %other: memref<?x2x4x1x1x4xf32>,
                      %lengths: memref<?xi32>, %table: memref<?x?xi32>) {
  %cast = memref.cast %blocks : memref<?x2x4x1x1x4xf32> to memref<?x2x?x1x1x4xf32>
  call @collect(%cast, %lengths, %table) : (memref<?x2x?x1x1x4xf32>, memref<?xi32>, memref<?x?xi32>) -> ()
  return
}

func.func private @collect(%blocks: memref<?x2x?x1x1x4xf32>, %lengths: memref<?xi32>, %table: memref<?x?xi32>) {
  %zero = arith.constant 0 : i32
  %c = kvcache.paged_collection %blocks, %lengths, %table, %zero, %zero
         : memref<?x2x?x1x1x4xf32>, memref<?xi32>, memref<?x?xi32> -> !collection
  return
}

// -----

// A function that can't be called says why.

// CHECK-DAG: llvm.mlir.global internal constant @{{.*}}("argument 1 is vector<4xf32>, and only memrefs and numbers can be passed\00")
// CHECK-LABEL: llvm.func internal @kvcache_entry_vectors(
// CHECK-NEXT:    llvm.return
func.func @vectors(%number: i32, %vector: vector<4xf32>) { return }

// -----

// CHECK-DAG: llvm.mlir.global internal constant @{{.*}}("argument 0 is memref<8xi4>, and only memrefs and numbers can be passed\00")
func.func @nibbles(%memory: memref<8xi4>) { return }

// -----

// CHECK-DAG: llvm.mlir.global internal constant @{{.*}}("it returns memref<f32>, and only numbers can be returned: write other results to memref arguments\00")
func.func @memory(%memory: memref<f32>) -> memref<f32> { return %memory : memref<f32> }

// -----

// Without a public function there is nothing to add.

// CHECK-LABEL: func.func private @only_private
// CHECK-NOT:     llvm
func.func private @only_private() { return }

// -----

func.func private @__tvm_ffi_taken()
// expected-error @+1 {{expects the module not to define '__tvm_ffi_taken', the name of this function's wrapper}}
func.func @taken() { return }
