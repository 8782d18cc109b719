; RUN: llc %s -mtriple=nvptx64 -mcpu=sm_90 -mattr=+ptx86 -o - | FileCheck %s

; NVPTX: atomicrmw loses its memory order
;
; llc 22.1 writes the order of cmpxchg, and drops that of atomicrmw. Without it,
; the stores before a release may become visible after it. Expected: .acq_rel,
; or fences around a relaxed update. Mended for LLVM 23 by llvm-project#179553.

; CHECK-LABEL: add(
; CHECK-NOT: {{acq_rel|fence}}
; CHECK: atom.global.add.u32
define i32 @add(ptr addrspace(1) %counter) {
  %old = atomicrmw add ptr addrspace(1) %counter, i32 1 syncscope("device") acq_rel
  ret i32 %old
}

; CHECK-LABEL: exchange(
; CHECK: atom.acq_rel.gpu.global.cas.b32
define i32 @exchange(ptr addrspace(1) %counter) {
  %pair = cmpxchg ptr addrspace(1) %counter, i32 0, i32 1 syncscope("device") acq_rel acquire
  %old = extractvalue { i32, i1 } %pair, 0
  ret i32 %old
}
