// RUN: kvcache-opt %s --pass-pipeline="builtin.module(gpu.module(kvcache-kernels-to-nvvm))" | FileCheck %s

// Calls share strings and memory: a call is over before the next one.

// CHECK-LABEL: gpu.module @kernels
// CHECK-DAG:     llvm.mlir.global internal constant @[[FILE:assert_file[_0-9]*]]("{{.*}}kernel-messages.mlir\00")
// CHECK-DAG:     llvm.mlir.global internal constant @[[WHAT:assert_message[_0-9]*]]("row is out of range\00")
// CHECK-DAG:     llvm.mlir.global internal constant @[[FORMAT:printf_format[_0-9]*]]("%lld and %f\0A\00")
// CHECK-DAG:     llvm.mlir.global internal constant @{{.*}}("done\0A\00")
// CHECK-DAG:     llvm.func @__assertfail(!llvm.ptr, !llvm.ptr, i32, !llvm.ptr, i64) attributes {passthrough = ["noreturn"]}
// CHECK-DAG:     llvm.func @vprintf(!llvm.ptr, !llvm.ptr) -> i32

// CHECK:       llvm.func @checked(
// CHECK-COUNT-2: llvm.alloca
// CHECK-NOT:     llvm.alloca
// CHECK:         llvm.fpext %{{.*}} : f32 to f64
// CHECK:         %[[MESSAGE:.*]] = llvm.mlir.addressof @[[FORMAT]]
// CHECK:         llvm.call @vprintf(%[[MESSAGE]], %{{.*}})
// CHECK:         llvm.cond_br %{{.*}}, ^[[AFTER:.*]], ^[[FAILED:.*]]
// CHECK:       ^[[FAILED]]:
// CHECK-DAG:     llvm.mlir.addressof @[[WHAT]]
// CHECK-DAG:     llvm.mlir.addressof @[[FILE]]
// CHECK-DAG:     llvm.mlir.constant([[#@LINE+19]] : i32)
// CHECK:         llvm.call @kvcache_record_failure(%{{.*}}, %{{.*}}, %{{.*}}) : (!llvm.ptr, !llvm.ptr, i32) -> ()
// CHECK-NEXT:    llvm.call @__assertfail
// CHECK-NEXT:    llvm.unreachable
// CHECK:       ^[[AFTER]]:
// CHECK:         llvm.call @vprintf
// CHECK:         llvm.cond_br
// CHECK:         llvm.call @__assertfail
// CHECK-NEXT:    llvm.unreachable
// CHECK:         llvm.call @vprintf
// CHECK:         llvm.return
// CHECK:       llvm.mlir.global weak @kvcache_failure_record(0 : i64) {addr_space = 1 : i32} : i64
// CHECK:       llvm.func internal @kvcache_record_failure(

gpu.module @kernels {
  gpu.func @checked(%i: index, %x: f32, %holds: i1) kernel {

    gpu.printf "%lld and %f\n", %i, %x : index, f32

    cf.assert %holds, "row is out of range"
    gpu.printf "%lld and %f\n", %i, %x : index, f32
    cf.assert %holds, "row is out of range"
    gpu.printf "done\n"
    gpu.return
  }
}
