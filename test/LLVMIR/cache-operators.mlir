// RUN: kvcache-opt %s --kvcache-cache-operators | FileCheck %s
// RUN: kvcache-opt %s --kvcache-cache-operators --remarks-filter='kvcache-.*' -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK: [Missed] cache operator | Category:kvcache-cache-operators | Reason="its value does not fill whole registers", Remark="nontemporal access gets no cache operator"
// REMARK: Reason="it is aligned to less than 4 bytes"
// REMARK: Reason="its address may not be in global memory"
// REMARK: Reason="it is volatile or atomic"

// Accesses of global memory as instructions of PTX, and copies with a cache policy.

gpu.module @kernels [#nvvm.target<chip = "sm_90a">] {
  // CHECK-LABEL: llvm.func @copy(
  // CHECK-SAME:      %[[FROM:[a-z0-9]+]]: !llvm.ptr {{.*}}, %[[TO:[a-z0-9]+]]: !llvm.ptr
  // CHECK:         %[[GLOBAL_FROM:.*]] = llvm.addrspacecast %[[FROM]] : !llvm.ptr to !llvm.ptr<1>
  // CHECK-NEXT:    %[[READ:.*]] = llvm.inline_asm "ld.global.cs.nc.v4.b32 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,l" %[[GLOBAL_FROM]]
  // CHECK-SAME:      (!llvm.ptr<1>) -> !llvm.struct<(vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>)>
  // CHECK-NEXT:    %[[PART:.*]] = llvm.extractvalue %[[READ]][0]
  // CHECK-NEXT:    llvm.intr.vector.insert %[[PART]], %{{.*}}[0] : vector<2xbf16> into vector<8xbf16>
  // CHECK:         %[[LAST:.*]] = llvm.extractvalue %[[READ]][3]
  // CHECK-NEXT:    %[[ALL:.*]] = llvm.intr.vector.insert %[[LAST]], %{{.*}}[6] : vector<2xbf16> into vector<8xbf16>
  // CHECK:         %[[GLOBAL_TO:.*]] = llvm.addrspacecast %[[TO]]
  // CHECK-COUNT-4: llvm.intr.vector.extract {{.*}} : vector<2xbf16> from vector<8xbf16>
  // CHECK:         llvm.inline_asm has_side_effects "st.global.cs.v4.b32 [$0], {$1, $2, $3, $4};", "l,r,r,r,r" %[[GLOBAL_TO]]
  // CHECK-NOT:     llvm.load
  // CHECK-NOT:     llvm.store
  llvm.func @copy(%from: !llvm.ptr {llvm.noalias, llvm.readonly}, %to: !llvm.ptr) attributes {nvvm.kernel} {
    %v = llvm.load %from {alignment = 16 : i64, nontemporal} : !llvm.ptr -> vector<8xbf16>
    llvm.store %v, %to {alignment = 16 : i64, nontemporal} : vector<8xbf16>, !llvm.ptr
    llvm.return
  }

  // Memory that is written is not read through the read-only path.

  // CHECK-LABEL: llvm.func @written_memory(
  // CHECK:         llvm.inline_asm has_side_effects "ld.global.cs.b32 $0, [$1];", "=r,l"
  // CHECK-SAME:      -> i32
  llvm.func @written_memory(%p: !llvm.ptr {llvm.noalias}, %i: i64) -> f32 attributes {nvvm.kernel} {
    %q = llvm.getelementptr %p[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %v = llvm.load %q {nontemporal} : !llvm.ptr -> f32
    llvm.return %v : f32
  }

  // CHECK-LABEL: llvm.func @two_instructions_of_16_bytes(
  // CHECK:         llvm.inline_asm "ld.global.cs.nc.v4.b32
  // CHECK:         llvm.getelementptr %{{.*}}[4] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
  // CHECK:         llvm.inline_asm "ld.global.cs.nc.v4.b32
  llvm.func @two_instructions_of_16_bytes(%p: !llvm.ptr<1> {llvm.noalias, llvm.readonly}) -> vector<16xbf16> attributes {nvvm.kernel} {
    %v = llvm.load %p {alignment = 32 : i64, nontemporal} : !llvm.ptr<1> -> vector<16xbf16>
    llvm.return %v : vector<16xbf16>
  }

  // CHECK-LABEL: llvm.func @as_wide_as_aligned(
  // CHECK-COUNT-3: llvm.inline_asm has_side_effects "st.global.cs.v2.b32
  // CHECK-NOT:     llvm.inline_asm
  llvm.func @as_wide_as_aligned(%v: vector<6xf32>, %p: !llvm.ptr<1>) {
    llvm.store %v, %p {alignment = 8 : i64, nontemporal} : vector<6xf32>, !llvm.ptr<1>
    llvm.return
  }

  // CHECK-LABEL: llvm.func @others(
  // CHECK-NOT:     llvm.inline_asm
  // CHECK:         llvm.return
  llvm.func @others(%p: !llvm.ptr, %shared: !llvm.ptr<3>, %value: !llvm.ptr {llvm.byval = i32}, %half: i16,
                    %v: vector<8xbf16>) attributes {nvvm.kernel} {
    // They stay in the caches.
    llvm.store %v, %p {alignment = 16 : i64} : vector<8xbf16>, !llvm.ptr
    // They fill no register, or may not fill one.
    llvm.store %half, %p {nontemporal} : i16, !llvm.ptr
    llvm.store %v, %p {alignment = 2 : i64, nontemporal} : vector<8xbf16>, !llvm.ptr
    // They may be anywhere, or are elsewhere.
    %q = llvm.load %p : !llvm.ptr -> !llvm.ptr
    llvm.store %v, %q {alignment = 16 : i64, nontemporal} : vector<8xbf16>, !llvm.ptr
    llvm.store %v, %shared {alignment = 16 : i64, nontemporal} : vector<8xbf16>, !llvm.ptr<3>
    %word = llvm.load %value {nontemporal} : !llvm.ptr -> i32
    // Their order matters.
    llvm.store volatile %word, %p {nontemporal} : i32, !llvm.ptr
    llvm.store %word, %p atomic monotonic {alignment = 4 : i64, nontemporal} : i32, !llvm.ptr
    llvm.return
  }

  // CHECK-LABEL: llvm.func @copies(
  // CHECK-SAME:      %[[TO:[a-z0-9]+]]: !llvm.ptr<3>, %[[FROM:[a-z0-9]+]]: !llvm.ptr<1>, %[[N:[a-z0-9]+]]: i32
  // CHECK:         %[[FIRST:.*]] = llvm.mlir.constant(1364590687093260288 : i64)
  // CHECK:         %[[PLACE:.*]] = llvm.ptrtoint %[[TO]] : !llvm.ptr<3> to i32
  // CHECK-NEXT:    llvm.inline_asm has_side_effects "cp.async.cg.shared.global.L2::cache_hint [$0], [$1], 16, $2, $3;", "r,l,r,l" %[[PLACE]], %[[FROM]], %[[N]], %[[FIRST]]
  // CHECK:         %[[LAST:.*]] = llvm.mlir.constant(1508705875169116160 : i64)
  // CHECK:         llvm.inline_asm has_side_effects "cp.async.ca.shared.global.L2::cache_hint [$0], [$1], 4, $2;", "r,l,l" %{{.*}}, %[[FROM]], %[[LAST]]
  // CHECK:         nvvm.cp.async.shared.global
  // CHECK-NOT:     nvvm.cp.async.shared.global
  llvm.func @copies(%to: !llvm.ptr<3>, %from: !llvm.ptr<1>, %n: i32) {
    nvvm.cp.async.shared.global %to, %from, 16, cache = cg, %n {kvcache.l2_hint = #kvcache.eviction<evict_first>} : !llvm.ptr<3>, !llvm.ptr<1>, i32
    nvvm.cp.async.shared.global %to, %from, 4, cache = ca {kvcache.l2_hint = #kvcache.eviction<evict_last>} : !llvm.ptr<3>, !llvm.ptr<1>
    nvvm.cp.async.shared.global %to, %from, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
    llvm.return
  }

  // CHECK-LABEL: llvm.func @argument_of_a_function(
  // CHECK-NOT:     llvm.inline_asm
  // CHECK:         llvm.return
  llvm.func @argument_of_a_function(%p: !llvm.ptr, %v: vector<8xbf16>) {
    llvm.store %v, %p {alignment = 16 : i64, nontemporal} : vector<8xbf16>, !llvm.ptr
    llvm.return
  }
}

gpu.module @blackwell [#nvvm.target<chip = "sm_100a">] {
  // CHECK-LABEL: llvm.func @one_instruction_of_32_bytes(
  // CHECK:         llvm.inline_asm "ld.global.cs.nc.v8.b32 {$0, $1, $2, $3, $4, $5, $6, $7}, [$8];"
  // CHECK-NOT:     llvm.inline_asm
  llvm.func @one_instruction_of_32_bytes(%p: !llvm.ptr {llvm.noalias, llvm.readonly}) -> vector<16xbf16> attributes {nvvm.kernel} {
    %v = llvm.load %p {alignment = 32 : i64, nontemporal} : !llvm.ptr -> vector<16xbf16>
    llvm.return %v : vector<16xbf16>
  }
}
