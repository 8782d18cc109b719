// RUN: kvcache-opt %s --pass-pipeline="builtin.module(kvcache-annotate-loops)" | FileCheck %s
// RUN: kvcache-opt %s --pass-pipeline="builtin.module(gpu.module(convert-scf-to-cf,convert-gpu-to-nvvm,kvcache-annotate-loops))" | FileCheck %s --check-prefix=LOWERED
// RUN: kvcache-opt %s --kvcache-to-ptx="chip=sm_90a" --emit-ptx | FileCheck %s --check-prefix=PTX

#unroll = #llvm.loop_annotation<unroll = <full = true>>
#keep = #llvm.loop_annotation<unroll = <disable = true>>

// What an author says of a loop arrives at LLVM: one loop is unrolled, the other, which is as long, is not.

// LOWERED-LABEL: llvm.func @loops
// LOWERED-DAG:     llvm.br ^{{.*}}(%{{.*}} : {{.*}}) {loop_annotation = #[[UNROLL:.*]]}
// LOWERED-DAG:     llvm.br ^{{.*}}(%{{.*}} : {{.*}}) {loop_annotation = #[[KEEP:.*]]}
// LOWERED-NOT:     llvm.loop_annotation =
// LOWERED:         llvm.return

// PTX-LABEL: .entry loops
// PTX-COUNT-32: st.volatile.global
// PTX:          bar.sync
// PTX:          st.volatile.global
// PTX-NOT:      st.volatile.global
// PTX:          bra
// PTX-NOT:      st.volatile.global
// PTX:          ret
gpu.module @kernels {
  gpu.func @loops(%out: !llvm.ptr<1>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %zero = arith.constant 0 : i32
    scf.for %i = %c0 to %c32 step %c1 {
      llvm.store volatile %zero, %out : i32, !llvm.ptr<1>
    } {llvm.loop_annotation = #unroll}
    gpu.barrier
    scf.for %i = %c0 to %c32 step %c1 {
      llvm.store volatile %zero, %out : i32, !llvm.ptr<1>
    } {llvm.loop_annotation = #keep}
    gpu.return
  }
}

// Only branches take it; other ops keep theirs.
// CHECK-LABEL: func.func @other
// CHECK:         scf.for
// CHECK:         } {llvm.loop_annotation = #{{.*}}}
func.func @other(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    func.call @body() : () -> ()
  } {llvm.loop_annotation = #llvm.loop_annotation<unroll = <full = true>>}
  return
}
func.func private @body()
