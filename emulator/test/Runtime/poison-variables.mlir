// Reports where a value is used that depends on bytes of a
// thread's own variable which are uninitialized.

// RUN: kvcache-opt %s --kvcache-to-emulator="chip=sm_90a" -o %t.mlir
// RUN: %emulator_tests/kvcache-run-cases %t.mlir --right=right --shared-libs=%kvcache_emulator,%kvcache_runtime | FileCheck %s -DFILE=%s

module attributes {gpu.container_module} {
gpu.module @kernels {
  gpu.func @array(%out: memref<64xi32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %one = arith.constant 1 : i32
    %t = gpu.thread_id x
    %mine = memref.alloca() : memref<4xi32>
    %i = arith.addi %t, %c1 : index
    memref.store %one, %mine[%c0] : memref<4xi32>
    memref.store %one, %mine[%i] : memref<4xi32>
    %c2 = arith.constant 2 : index
    %j = arith.addi %t, %c2 : index
    %a = memref.load %mine[%t] : memref<4xi32>
    memref.store %a, %out[%c0] : memref<64xi32>
    // CHECK-LABEL: run @array:
    // CHECK: [[FILE]]:[[#@LINE+2]]:5: llvm.store: thread (0, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which were uninitialized when llvm.load at [[FILE]]:[[#@LINE+1]]:{{[0-9]+}} read them; the first is byte 8 of a variable of its own of 16 bytes
    %b = memref.load %mine[%j] : memref<4xi32>
    memref.store %b, %out[%c1] : memref<64xi32>
    gpu.return
  }
  gpu.func @loop(%out: memref<64xi32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %one = arith.constant 1 : i32
    %t = gpu.thread_id x
    scf.for %i = %c0 to %c2 step %c1 {
      %mine = memref.alloca() : memref<4xi32>
      %first = arith.cmpi eq, %i, %c0 : index
      scf.if %first {
        memref.store %one, %mine[%t] : memref<4xi32>
      }
      // CHECK-LABEL: run @loop:
      // CHECK: [[FILE]]:[[#@LINE+2]]:7: llvm.store: thread (0, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which were uninitialized when llvm.load at [[FILE]]:[[#@LINE+1]]:{{[0-9]+}} read them; the first is byte 0 of a variable of its own of 16 bytes
      %a = memref.load %mine[%t] : memref<4xi32>
      memref.store %a, %out[%i] : memref<64xi32>
    }
    gpu.return
  }
  llvm.func @callee(%p: !llvm.ptr) -> i32 attributes {no_inline} {
    // CHECK-LABEL: run @call:
    // CHECK: [[FILE]]:[[#@LINE+2]]:5: llvm.return: thread (0, 0, 0) of block (0, 0, 0) passes to a function a value that depends on bytes which were uninitialized when llvm.load at [[FILE]]:[[#@LINE+1]]:{{[0-9]+}} read them; the first is byte 8 of a variable of its own of 16 bytes
    %v = llvm.load %p : !llvm.ptr -> i32
    llvm.return %v : i32
  }
  gpu.func @call(%out: memref<64xi32>) kernel {
    %c0 = arith.constant 0 : index
    %n = llvm.mlir.constant(4 : i32) : i32
    %mine = llvm.alloca %n x i32 : (i32) -> !llvm.ptr
    llvm.store %n, %mine : i32, !llvm.ptr
    %ok = llvm.call @callee(%mine) : (!llvm.ptr) -> i32
    memref.store %ok, %out[%c0] : memref<64xi32>
    %p = llvm.getelementptr %mine[2] : (!llvm.ptr) -> !llvm.ptr, i32
    %bad = llvm.call @callee(%p) : (!llvm.ptr) -> i32
    memref.store %bad, %out[%c0] : memref<64xi32>
    gpu.return
  }
  gpu.func @scalar(%out: memref<64xi32>) kernel {
    %c0 = arith.constant 0 : index
    %n = llvm.mlir.constant(1 : i32) : i32
    %mine = llvm.alloca %n x i1 : (i32) -> !llvm.ptr
    // CHECK-LABEL: run @scalar:
    // CHECK: [[FILE]]:[[#@LINE+2]]:5: llvm.cond_br: thread (0, 0, 0) of block (0, 0, 0) branches on a value that depends on bytes which were uninitialized when llvm.load at [[FILE]]:[[#@LINE+1]]:{{[0-9]+}} read them; the first is byte 0 of a variable of its own of 1 bytes
    %v = llvm.load volatile %mine : !llvm.ptr -> i1
    scf.if %v {
      memref.store %n, %out[%c0] : memref<64xi32>
    }
    gpu.return
  }
  // Uninitialized bytes that a copy copies stay uninitialized.
  gpu.func @copy(%out: memref<64xi32>) kernel {
    %c0 = arith.constant 0 : index
    %n = llvm.mlir.constant(4 : i32) : i32
    %bytes = llvm.mlir.constant(16 : i64) : i64
    %mine = llvm.alloca %n x i32 : (i32) -> !llvm.ptr
    %other = llvm.alloca %n x i32 : (i32) -> !llvm.ptr
    llvm.store %n, %mine : i32, !llvm.ptr
    "llvm.intr.memcpy"(%other, %mine, %bytes) <{isVolatile = false}> : (!llvm.ptr, !llvm.ptr, i64) -> ()
    %ok = llvm.load %other : !llvm.ptr -> i32
    memref.store %ok, %out[%c0] : memref<64xi32>
    %p = llvm.getelementptr %other[1] : (!llvm.ptr) -> !llvm.ptr, i32
    // CHECK-LABEL: run @copy:
    // CHECK: [[FILE]]:[[#@LINE+2]]:5: llvm.store: thread (0, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which were uninitialized when llvm.load at [[FILE]]:[[#@LINE+1]]:{{[0-9]+}} read them; the first is byte 4 of a variable of its own of 16 bytes
    %bad = llvm.load %p : !llvm.ptr -> i32
    memref.store %bad, %out[%c0] : memref<64xi32>
    gpu.return
  }

  // Uninitialized bytes are read and discarded; a loop, a fill, a
  // copy and the math library write others.
  gpu.func @right(%out: memref<64xi32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %one = arith.constant 1 : i32
    %f = arith.constant 1.0 : f32
    %n = llvm.mlir.constant(4 : i32) : i32
    %byte = llvm.mlir.constant(7 : i8) : i8
    %bytes = llvm.mlir.constant(16 : i64) : i64
    %t = gpu.thread_id x
    %partly = memref.alloca() : memref<4xi32>
    memref.store %one, %partly[%t] : memref<4xi32>
    %all = vector.load %partly[%t] : memref<4xi32>, vector<4xi32>
    %first = vector.extract %all[0] : i32 from vector<4xi32>
    memref.store %first, %out[%c0] : memref<64xi32>
    %looped = memref.alloca() : memref<4xi32>
    scf.for %i = %c0 to %c4 step %c1 {
      memref.store %one, %looped[%i] : memref<4xi32>
    }
    %whole = vector.load %looped[%t] : memref<4xi32>, vector<4xi32>
    vector.store %whole, %out[%c0] : memref<64xi32>, vector<4xi32>
    %filled = llvm.alloca %n x i32 : (i32) -> !llvm.ptr
    %copied = llvm.alloca %n x i32 : (i32) -> !llvm.ptr
    "llvm.intr.memset"(%filled, %byte, %bytes) <{isVolatile = false}> : (!llvm.ptr, i8, i64) -> ()
    "llvm.intr.memcpy"(%copied, %filled, %bytes) <{isVolatile = false}> : (!llvm.ptr, !llvm.ptr, i64) -> ()
    %last = llvm.getelementptr %copied[3] : (!llvm.ptr) -> !llvm.ptr, i32
    %word = llvm.load %last : !llvm.ptr -> i32
    memref.store %word, %out[%c0] : memref<64xi32>
    %sin, %cos = math.sincos %f : f32
    %sum = arith.addf %sin, %cos : f32
    %bits = arith.bitcast %sum : f32 to i32
    memref.store %bits, %out[%c0] : memref<64xi32>
    gpu.return
  }
}

func.func @array() {
  %c1 = arith.constant 1 : index
  %out = gpu.alloc host_shared () : memref<64xi32>
  gpu.launch_func @kernels::@array blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%out : memref<64xi32>)
  return
}

func.func @loop() {
  %c1 = arith.constant 1 : index
  %out = gpu.alloc host_shared () : memref<64xi32>
  gpu.launch_func @kernels::@loop blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%out : memref<64xi32>)
  return
}

func.func @call() {
  %c1 = arith.constant 1 : index
  %out = gpu.alloc host_shared () : memref<64xi32>
  gpu.launch_func @kernels::@call blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%out : memref<64xi32>)
  return
}

func.func @scalar() {
  %c1 = arith.constant 1 : index
  %out = gpu.alloc host_shared () : memref<64xi32>
  gpu.launch_func @kernels::@scalar blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%out : memref<64xi32>)
  return
}

func.func @copy() {
  %c1 = arith.constant 1 : index
  %out = gpu.alloc host_shared () : memref<64xi32>
  gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%out : memref<64xi32>)
  return
}

func.func @right() {
  %c1 = arith.constant 1 : index
  %out = gpu.alloc host_shared () : memref<64xi32>
  gpu.launch_func @kernels::@right blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%out : memref<64xi32>)
  return
}
}
