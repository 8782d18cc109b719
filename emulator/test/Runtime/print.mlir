// Printing from a kernel: arguments are packed as C promotes them, a call is
// printed at once, and threads print in their order.

// DEFINE: %{libs} = %kvcache_emulator,%kvcache_runtime,%mlir_lib_dir/libmlir_c_runner_utils.so
// RUN: kvcache-opt %s --kvcache-to-emulator="chip=sm_90a" | mlir-runner -e main -entry-point-result=void -shared-libs=%{libs} | FileCheck %s --match-full-lines

// CHECK:      thread 0 of 3: 1.500000
// CHECK-NEXT: thread 1 of 3: 2.500000
// CHECK-NEXT: thread 2 of 3: 3.500000
// CHECK-NEXT: -7 is fffffff9; 50%, [   42] [2.50] [hello] %y
// CHECK-NEXT: 8589934592
// CHECK-NEXT: 3 printed
// CHECK-NOT:  {{.+}}

module attributes {gpu.container_module} {

gpu.module @kernels {
  llvm.func @vprintf(!llvm.ptr, !llvm.ptr) -> i32
  llvm.mlir.global internal constant @format("%d is %x; 50%%, [%*d] [%.2f] [%s] %y\0A\00")
  llvm.mlir.global internal constant @hello("hello\00")

  gpu.func @by_op() kernel {
    %t = gpu.thread_id x
    %n = gpu.block_dim x
    %i = arith.index_cast %t : index to i32
    %f = arith.sitofp %i : i32 to f32
    %c = arith.constant 1.5 : f32
    %x = arith.addf %f, %c : f32
    gpu.printf "thread %lld of %lld: %f\n", %t, %n, %x : index, index, f32
    gpu.return
  }

  // A conversion that C does not have is printed as it is.
  gpu.func @by_call() kernel {
    %one = llvm.mlir.constant(1 : i64) : i64
    %minus = llvm.mlir.constant(-7 : i32) : i32
    %width = llvm.mlir.constant(5 : i32) : i32
    %number = llvm.mlir.constant(42 : i32) : i32
    %double = llvm.mlir.constant(2.5 : f64) : f64
    %buffer = llvm.alloca %one x !llvm.struct<(i32, i32, i32, i32, f64, ptr)> : (i64) -> !llvm.ptr
    %format = llvm.mlir.addressof @format : !llvm.ptr
    %hello = llvm.mlir.addressof @hello : !llvm.ptr
    %p1 = llvm.getelementptr %buffer[0, 1] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(i32, i32, i32, i32, f64, ptr)>
    %p2 = llvm.getelementptr %buffer[0, 2] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(i32, i32, i32, i32, f64, ptr)>
    %p3 = llvm.getelementptr %buffer[0, 3] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(i32, i32, i32, i32, f64, ptr)>
    %p4 = llvm.getelementptr %buffer[0, 4] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(i32, i32, i32, i32, f64, ptr)>
    %p5 = llvm.getelementptr %buffer[0, 5] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(i32, i32, i32, i32, f64, ptr)>
    llvm.store %minus, %buffer : i32, !llvm.ptr
    llvm.store %minus, %p1 : i32, !llvm.ptr
    llvm.store %width, %p2 : i32, !llvm.ptr
    llvm.store %number, %p3 : i32, !llvm.ptr
    llvm.store %double, %p4 : f64, !llvm.ptr
    llvm.store %hello, %p5 : !llvm.ptr, !llvm.ptr
    %count = llvm.call @vprintf(%format, %buffer) : (!llvm.ptr, !llvm.ptr) -> i32
    gpu.return
  }

  gpu.func @count() kernel {
    %wide = arith.constant 8589934592 : i64
    gpu.printf "%ld\n", %wide : i64
    %three = arith.constant 3 : i32
    gpu.printf "%d printed\n", %three : i32
    gpu.return
  }
}

func.func @main() {
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  gpu.launch_func @kernels::@by_op blocks in (%c1, %c1, %c1) threads in (%c3, %c1, %c1)
  gpu.launch_func @kernels::@by_call blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
  gpu.launch_func @kernels::@count blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
  return
}

}
