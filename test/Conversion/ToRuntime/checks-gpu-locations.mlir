// RUN: kvcache-opt %s --convert-kvcache-checks --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// CHECK:         gpu.printf "fused.mlir:3:4: error: head is out of range: %lld is not in [0, %lld)\0A"
// CHECK:         cf.assert %{{.*}}, "head is out of range" loc("fused.mlir":3:4)
gpu.module @kernels {
  gpu.func @check(%value: index, %bound: index) kernel {
    kvcache.check %value below %bound, "head" loc(fused["fused.mlir":3:4, "other.mlir":9:9])
    gpu.return
  }
}
