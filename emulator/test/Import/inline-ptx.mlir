// Instructions of inline PTX, by family, as ops of NVVM and LLVM.

// RUN: kvcache-opt %s --pass-pipeline="builtin.module(gpu.module(kvcache-expand-inline-ptx))" | FileCheck %s

gpu.module @kernels {

// A predicate is a branch around the instruction.
// CHECK-LABEL: llvm.func @guarded_load(
// CHECK-SAME: %[[P:.*]]: !llvm.ptr<1>, %[[IS:.*]]: i1
llvm.func @guarded_load(%p: !llvm.ptr<1>, %is: i1) -> i32 {
  // CHECK: %[[ZERO:.*]] = llvm.mlir.constant(0 : i32) : i32
  // CHECK: llvm.cond_br %[[IS]], ^[[THEN:.*]], ^[[JOIN:.*]](%[[ZERO]]
  // CHECK: ^[[THEN]]:
  // CHECK: %[[AT:.*]] = llvm.getelementptr %[[P]][%{{.*}}] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  // CHECK: %[[LOADED:.*]] = llvm.load %[[AT]] {alignment = 4 : i64} : !llvm.ptr<1> -> i32
  // CHECK: llvm.br ^[[JOIN]](%[[LOADED]]
  // CHECK: ^[[JOIN]](%[[RESULT:.*]]: i32
  %x = llvm.inline_asm has_side_effects "mov.u32 $0, 0x0;\0A\09@$2 ld.global.b32 { $0 }, [ $1 + 8 ];", "=r,l,b" %p, %is : (!llvm.ptr<1>, i1) -> i32
  // CHECK: llvm.return %[[RESULT]]
  llvm.return %x : i32
}

// A loop around a wait; names are of one scope.
// CHECK-LABEL: llvm.func @wait(
llvm.func @wait(%bar: i32, %parity: i32) {
  // CHECK: llvm.br ^[[LOOP:bb[0-9]+]](%{{.*}} : i1
  // CHECK: ^[[LOOP]](
  // CHECK: %[[BAR:.*]] = llvm.inttoptr %{{.*}} : i64 to !llvm.ptr<3>
  // CHECK: %[[DONE:.*]] = nvvm.mbarrier.try_wait %[[BAR]], %{{.*}} {scope = #nvvm.mem_scope<cluster>} : !llvm.ptr<3>, i32 -> i1
  // CHECK: %[[NOT:.*]] = llvm.xor %[[DONE]]
  // CHECK: llvm.cond_br %[[NOT]], ^[[LOOP]](%[[DONE]]{{.*}}), ^{{.*}}
  llvm.inline_asm has_side_effects "{ .reg .pred p; L: mbarrier.try_wait.parity.shared::cta.b64 p, [$0], $1; @!p bra.uni L; }", "r,r" %bar, %parity : (i32, i32) -> ()
  llvm.return
}

// A branch forward skips what is between.
// CHECK-LABEL: llvm.func @skip(
llvm.func @skip(%p: !llvm.ptr<3>, %is: i1, %x: i32) {
  // CHECK: llvm.cond_br %{{.*}}, ^[[END:.*]], ^[[NEXT:.*]]
  // CHECK: ^[[NEXT]]:
  // CHECK: llvm.store %{{.*}}, %{{.*}} {alignment = 4 : i64} : i32, !llvm.ptr<3>
  // CHECK: llvm.br ^[[END]]
  // CHECK: ^[[END]]:
  // CHECK-NEXT: llvm.return
  llvm.inline_asm has_side_effects "@$1 bra DONE${:uid}; st.shared.b32 [$0], $2; DONE${:uid}:", "r,b,r" %p, %is, %x : (!llvm.ptr<3>, i1, i32) -> ()
  llvm.return
}

// CHECK-LABEL: llvm.func @memory(
llvm.func @memory(%p: !llvm.ptr<1>, %s: !llvm.ptr<3>, %policy: i64) -> !llvm.struct<(i32, i32, i32, i32)> {
  // CHECK: llvm.load %{{.*}} invariant {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
  %v = llvm.inline_asm has_side_effects "ld.global.nc.L1::no_allocate.L2::cache_hint.L2::128B.v4.u32 {$0, $1, $2, $3}, [$4], $5;", "=r,=r,=r,=r,l,l" %p, %policy : (!llvm.ptr<1>, i64) -> !llvm.struct<(i32, i32, i32, i32)>
  %x = llvm.extractvalue %v[0] : !llvm.struct<(i32, i32, i32, i32)>
  // CHECK: llvm.load %{{.*}} atomic syncscope("device") acquire {alignment = 4 : i64}
  %flag = llvm.inline_asm has_side_effects "ld.acquire.gpu.global.u32 $0, [$1];", "=r,l" %p : (!llvm.ptr<1>) -> i32
  // CHECK: llvm.store %{{.*}} atomic release {alignment = 4 : i64}
  llvm.inline_asm has_side_effects "st.release.sys.global.u32 [$0], $1;", "l,r" %p, %x : (!llvm.ptr<1>, i32) -> ()
  // CHECK: llvm.store volatile %{{.*}} : i16, !llvm.ptr<3>
  llvm.inline_asm has_side_effects "st.volatile.shared.u16 [$0], $1;", "r,r" %s, %x : (!llvm.ptr<3>, i32) -> ()
  // CHECK: llvm.atomicrmw add %{{.*}}, %{{.*}} syncscope("device") monotonic : !llvm.ptr<1>, i32
  llvm.inline_asm has_side_effects "red.global.add.u32 [$0], $1;", "l,r" %p, %x : (!llvm.ptr<1>, i32) -> ()
  // CHECK: llvm.cmpxchg %{{.*}}, %{{.*}}, %{{.*}} syncscope("device") acq_rel acquire : !llvm.ptr<1>, i32
  %old = llvm.inline_asm has_side_effects "atom.global.acq_rel.gpu.cas.b32 $0, [$1], $2, $3;", "=r,l,r,r" %p, %x, %flag : (!llvm.ptr<1>, i32, i32) -> i32
  // CHECK: llvm.atomicrmw umax %{{.*}} syncscope("block") monotonic
  llvm.inline_asm has_side_effects "red.relaxed.cta.shared::cta.max.u32 [$0], $1;", "r,r" %s, %old : (!llvm.ptr<3>, i32) -> ()
  // CHECK: llvm.atomicrmw fadd %{{.*}} vector<2xbf16>
  llvm.inline_asm has_side_effects "red.global.add.noftz.bf16x2 [$0], $1;", "l,r" %p, %x : (!llvm.ptr<1>, i32) -> ()
  llvm.return %v : !llvm.struct<(i32, i32, i32, i32)>
}

// CHECK-LABEL: llvm.func @copies(
llvm.func @copies(%to: !llvm.ptr<3>, %from: !llvm.ptr<1>, %n: i32, %map: !llvm.ptr, %is: i1, %policy: i64) {
  // CHECK: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 16, cache = cg, %{{.*}}
  llvm.inline_asm has_side_effects "cp.async.cg.shared.global.L2::128B [$0], [$1], 16, $2;", "r,l,r" %to, %from, %n : (!llvm.ptr<3>, !llvm.ptr<1>, i32) -> ()
  // CHECK: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 16, cache = cg, %{{.*}}
  llvm.inline_asm has_side_effects "cp.async.cg.shared.global.L2::cache_hint [$0], [$1], 16, $2, $3;", "r,l,r,l" %to, %from, %n, %policy : (!llvm.ptr<3>, !llvm.ptr<1>, i32, i64) -> ()
  // CHECK: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 8, cache = ca : !llvm.ptr<3>, !llvm.ptr<1>
  llvm.inline_asm has_side_effects "cp.async.ca.shared.global.L2::cache_hint [$0], [$1], 8, $2;", "r,l,l" %to, %from, %policy : (!llvm.ptr<3>, !llvm.ptr<1>, i64) -> ()
  // CHECK: nvvm.cp.async.commit.group
  // CHECK: nvvm.cp.async.wait.group 1
  llvm.inline_asm has_side_effects "cp.async.commit_group; cp.async.wait_group 1;", "" : () -> ()
  // CHECK: nvvm.mbarrier.init
  // CHECK: nvvm.fence.mbarrier.init
  llvm.inline_asm has_side_effects "mbarrier.init.shared::cta.b64 [$0], 1; fence.mbarrier_init.release.cluster;", "r" %to : (!llvm.ptr<3>) -> ()
  // CHECK: nvvm.mbarrier.arrive.expect_tx
  llvm.inline_asm has_side_effects "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], 8192;", "r" %to : (!llvm.ptr<3>) -> ()
  // CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %{{.*}}, %{{.*}}, box[%{{.*}}, %{{.*}}]
  llvm.inline_asm has_side_effects "@$0 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [$1], [$2, {$3, $4}], [$5];", "b,r,l,r,r,r" %is, %to, %map, %n, %n, %to : (i1, !llvm.ptr<3>, !llvm.ptr, i32, i32, !llvm.ptr<3>) -> ()
  // CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}}mode = #nvvm.tma_load_mode<tile_gather4>
  llvm.inline_asm has_side_effects "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [$0], [$1, {$2,$2,$2,$2,$2}], [$3];", "r,l,r,r" %to, %map, %n, %to : (!llvm.ptr<3>, !llvm.ptr, i32, !llvm.ptr<3>) -> ()
  // CHECK: nvvm.cp.async.bulk.tensor.global.shared.cta
  // CHECK: nvvm.cp.async.bulk.commit.group
  // CHECK: nvvm.cp.async.bulk.wait_group 0 {read}
  llvm.inline_asm has_side_effects "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [$0, {$1}], [$2]; cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;", "l,r,r" %map, %n, %to : (!llvm.ptr, i32, !llvm.ptr<3>) -> ()
  // CHECK: nvvm.cp.async.bulk.shared.cluster.global
  llvm.inline_asm has_side_effects "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [$0], [$1], $2, [$0];", "r,l,r" %to, %from, %n : (!llvm.ptr<3>, !llvm.ptr<1>, i32) -> ()
  // CHECK: nvvm.cp.async.bulk.global.shared.cta
  llvm.inline_asm has_side_effects "cp.async.bulk.global.shared::cta.bulk_group [$0], [$1], $2;", "l,r,r" %from, %to, %n : (!llvm.ptr<1>, !llvm.ptr<3>, i32) -> ()
  // CHECK: nvvm.cp.async.bulk.shared.cluster.shared.cta
  llvm.inline_asm has_side_effects "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [$0], [$0], $1, [$0];", "r,r" %to, %n : (!llvm.ptr<3>, i32) -> ()
  llvm.return
}

// CHECK-LABEL: llvm.func @barriers(
llvm.func @barriers(%a: i32, %is: i1) -> i32 {
  // CHECK: nvvm.barrier id = %{{.*}}
  // CHECK: nvvm.barrier id = %{{.*}} number_of_threads = %{{.*}}
  // CHECK: nvvm.barrier.arrive
  llvm.inline_asm has_side_effects "bar.sync 0; barrier.cta.sync.aligned 1, 64; bar.arrive 2, 128;", "" : () -> ()
  // CHECK: nvvm.bar.warp.sync
  // CHECK: nvvm.cluster.arrive.relaxed {aligned}
  // CHECK: nvvm.cluster.wait {aligned}
  llvm.inline_asm has_side_effects "bar.warp.sync 0xffffffff; barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.acquire.aligned;", "" : () -> ()
  // CHECK: nvvm.memory.barrier <gpu>
  // CHECK: nvvm.memory.barrier <cta>
  // CHECK: nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
  llvm.inline_asm has_side_effects "fence.acq_rel.gpu; membar.cta; fence.proxy.async.shared::cta;", "" : () -> ()
  // CHECK: nvvm.barrier #nvvm.reduction<popc>
  %r = llvm.inline_asm has_side_effects "bar.red.popc.u32 $0, 0, $1;", "=r,b" %is : (i1) -> i32
  // CHECK: nvvm.griddepcontrol wait
  // CHECK: nvvm.setmaxregister increase 240
  llvm.inline_asm has_side_effects "griddepcontrol.wait; setmaxnreg.inc.sync.aligned.u32 240;", "" : () -> ()
  llvm.return %r : i32
}

// CHECK-LABEL: llvm.func @warps(
llvm.func @warps(%a: i32) -> i32 {
  // CHECK: nvvm.shfl.sync bfly
  %x = llvm.inline_asm has_side_effects "shfl.sync.bfly.b32 $0, $1, 1, 31, -1;", "=r,r" %a : (i32) -> i32
  // CHECK: nvvm.shfl.sync up {{.*}} {return_value_and_is_valid}
  %y = llvm.inline_asm has_side_effects "{ .reg .pred p; .reg .b32 t; shfl.sync.up.b32 t|p, $1, 1, 0, -1; selp.b32 $0, t, 0, p; }", "=r,r" %x : (i32) -> i32
  // CHECK: nvvm.elect.sync
  %is = llvm.inline_asm has_side_effects "{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.b32 $0, 1, 0, p; }", "=r" : () -> i32
  // CHECK: nvvm.vote.sync ballot
  %b = llvm.inline_asm has_side_effects "{ .reg .pred p; setp.ne.s32 p, $1, 0; vote.sync.ballot.b32 $0, p, -1; }", "=r,r" %y : (i32) -> i32
  // CHECK: nvvm.redux.sync umax
  %m = llvm.inline_asm has_side_effects "redux.sync.max.u32 $0, $1, -1;", "=r,r" %b : (i32) -> i32
  llvm.return %m : i32
}

// CHECK-LABEL: llvm.func @matrices(
llvm.func @matrices(%s: !llvm.ptr<3>, %c: f32, %d: i64) -> f32 {
  // CHECK: nvvm.ldmatrix %{{.*}} {{{.*}}num = 4 : i32
  %a = llvm.inline_asm has_side_effects "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,r" %s : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
  %a0 = llvm.extractvalue %a[0] : !llvm.struct<(i32, i32, i32, i32)>
  // CHECK: llvm.call_intrinsic "llvm.nvvm.mma.m16n8k16.row.col.f32.bf16.bf16.f32"
  %r = llvm.inline_asm has_side_effects "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 { $0, $1, $2, $3 }, { $8, $8, $8, $8 }, { $8, $8 }, { $4, $5, $6, $7 };", "=f,=f,=f,=f,0,1,2,3,r" %c, %c, %c, %c, %a0 : (f32, f32, f32, f32, i32) -> !llvm.struct<(f32, f32, f32, f32)>
  %r0 = llvm.extractvalue %r[0] : !llvm.struct<(f32, f32, f32, f32)>
  // CHECK: nvvm.stmatrix
  llvm.inline_asm has_side_effects "stmatrix.sync.aligned.m8n8.x1.shared.b16 [$0], {$1};", "r,r" %s, %a0 : (!llvm.ptr<3>, i32) -> ()
  // CHECK: nvvm.wgmma.fence.aligned
  // CHECK: nvvm.wgmma.mma_async {{.*}} <m = 64, n = 8, k = 16>, D[<f32>, <one>], A[<bf16>, <one>, <row>], B[<bf16>, <one>, <col>]
  // CHECK: nvvm.wgmma.commit.group.sync.aligned
  // CHECK: nvvm.wgmma.wait.group.sync.aligned 0
  %w = llvm.inline_asm has_side_effects "{ .reg .pred p; setp.ne.b32 p, 1, 0; wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {$0,$1,$2,$3}, $4, $4, p, 1, 1, 0, 0; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; }", "=f,=f,=f,=f,l,0,1,2,3" %d, %c, %c, %c, %c : (i64, f32, f32, f32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
  %w0 = llvm.extractvalue %w[0] : !llvm.struct<(f32, f32, f32, f32)>
  %sum = llvm.fadd %r0, %w0 : f32
  llvm.return %sum : f32
}

// The scale of D is an attribute of the op.
// CHECK-LABEL: llvm.func @scale(
// CHECK-SAME: %{{.*}}: i64, %[[ADDS:.*]]: i1
llvm.func @scale(%d: i64, %adds: i1, %c: f32) -> f32 {
  // CHECK: llvm.cond_br %[[ADDS]], ^[[ONE:.*]], ^[[ZERO:.*]]
  // CHECK: ^[[ZERO]]:
  // CHECK: nvvm.wgmma.mma_async {{.*}}D[<f32>, <zero>]
  // CHECK: ^[[ONE]]:
  // CHECK: nvvm.wgmma.mma_async {{.*}}D[<f32>, <one>]
  %w = llvm.inline_asm has_side_effects "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {$0,$1,$2,$3}, $4, $4, $5, 1, 1, 0, 0;", "=f,=f,=f,=f,l,b,0,1,2,3" %d, %adds, %c, %c, %c, %c : (i64, i1, f32, f32, f32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
  %w0 = llvm.extractvalue %w[0] : !llvm.struct<(f32, f32, f32, f32)>
  llvm.return %w0 : f32
}

// CHECK-LABEL: llvm.func @tensor_memory(
llvm.func @tensor_memory(%s: !llvm.ptr<3>, %t: i32, %d: i64, %is: i1) {
  // CHECK: nvvm.tcgen05.alloc
  // CHECK: nvvm.tcgen05.relinquish_alloc_permit
  llvm.inline_asm has_side_effects "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [$0], 64; tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;", "r" %s : (!llvm.ptr<3>) -> ()
  // CHECK: nvvm.tcgen05.mma
  llvm.inline_asm has_side_effects "tcgen05.mma.cta_group::1.kind::f16 [$0 + 0], $1, $1, $0, $2;", "r,l,b" %t, %d, %is : (i32, i64, i1) -> ()
  // CHECK: nvvm.tcgen05.commit
  llvm.inline_asm has_side_effects "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [$0];", "r" %s : (!llvm.ptr<3>) -> ()
  // CHECK: nvvm.tcgen05.ld {{.*}} : vector<2xi32>
  // CHECK: nvvm.tcgen05.wait <load>
  // CHECK: nvvm.tcgen05.st {{.*}} : vector<2xi32>
  llvm.inline_asm has_side_effects "{ .reg .b32 r<2>; tcgen05.ld.sync.aligned.32x32b.x2.b32 {r0, r1}, [$0]; tcgen05.wait::ld.sync.aligned; tcgen05.st.sync.aligned.32x32b.x2.b32 [$0], {r1, r0}; tcgen05.fence::before_thread_sync; }", "r" %t : (i32) -> ()
  llvm.return
}

// A barrier of the compiler, and instructions that the emulator supports as they are.
// CHECK-LABEL: llvm.func @kept(
llvm.func @kept(%a: f32) -> f32 {
  // CHECK-NOT: llvm.inline_asm {{.*}} "", "~{memory}"
  llvm.inline_asm has_side_effects "", "~{memory}" : () -> ()
  // CHECK: llvm.inline_asm has_side_effects "", "=f,0"
  %b = llvm.inline_asm has_side_effects "", "=f,0" %a : (f32) -> f32
  llvm.return %b : f32
}

}
