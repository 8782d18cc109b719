// RUN: kvcache-opt %s --allow-unregistered-dialect --kvcache-schedule-attention | FileCheck %s
// RUN: kvcache-opt %s --allow-unregistered-dialect --kvcache-schedule-attention --remarks-filter='kvcache-schedule.*' -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

!tile = !kvcache.tile<64x64xbf16, swizzle_128b>
!ring = !kvcache.pipe<2, !tile, producers = 4>
!s = !kvcache.fragment<64x64xf32, wgmma_acc>
!p = !kvcache.fragment<64x64xbf16, wgmma_a16>
!share = !kvcache.fragment<64xf32, wgmma_acc, partial>
!fly = !kvcache.in_flight<64x64xf32, wgmma_acc>

!pair = !kvcache.pipe<2, !tile>
!st = !kvcache.fragment<64x64xf32, wgmma_acc_t>
!row = !kvcache.fragment<64xf32, wgmma_acc_t>
!flyt = !kvcache.in_flight<64x64xf32, wgmma_acc_t>
!scratch = !kvcache.tile<4x64xf32>

gpu.module @kernels [#nvvm.target<chip = "sm_90a">] {
  // CHECK-LABEL: gpu.func @ping_pong(
  // CHECK-SAME:    %[[N:.*]]: index)
  // CHECK-DAG:     %[[Q:.*]] = kvcache.alloc_tile
  // CHECK-DAG:     %[[K:.*]] = kvcache.pipe
  // CHECK-DAG:     %[[V:.*]] = kvcache.pipe
  // CHECK:         %[[SOME:.*]] = arith.cmpi sgt, %[[N]], %{{.*}} : index
  // CHECK:         scf.if %[[SOME]] -> (!kvcache.fragment<64xf32, wgmma_acc, partial>, !kvcache.fragment<64x64xf32, wgmma_acc>)
  // The second warpgroup gives the first turn away.
  // CHECK:           %[[FIRST:.*]] = arith.cmpi eq
  // CHECK:           %[[MINE:.*]] = arith.select %[[FIRST]], %[[B1:.*]], %[[B2:.*]] : i32
  // CHECK:           %[[OTHER:.*]] = arith.select %[[FIRST]], %[[B2]], %[[B1]] : i32
  // CHECK:           scf.if %[[FIRST]] {
  // CHECK-NEXT:      } else {
  // CHECK-NEXT:        nvvm.barrier.arrive id = %[[OTHER]]
  // CHECK:           %[[S0:.*]] = kvcache.consume %[[K]][%{{.*}}]
  // CHECK:             nvvm.barrier id = %[[MINE]]
  // CHECK-NEXT:        %[[STARTED:.*]] = kvcache.fragment_mma %[[Q]]
  // CHECK-NEXT:        nvvm.barrier.arrive id = %[[OTHER]]
  // CHECK-NEXT:        kvcache.fragment_wait %[[STARTED]]
  // CHECK:           %[[W0:.*]] = kvcache.to_operand
  // CHECK:           %[[O0:.*]] = kvcache.map arith.addf
  // CHECK:           %[[LOOP:.*]]:3 = scf.for %[[J:.*]] = %{{.*}} to %[[N]] step %{{.*}} iter_args(%[[L:.*]] = %{{.*}}, %[[O:.*]] = %[[O0]], %[[P:.*]] = %[[W0]])
  // CHECK:             %[[I:.*]] = arith.subi %[[J]], %{{.*}} : index
  // CHECK:             kvcache.consume %[[V]][%[[I]]]
  // CHECK-NEXT:        ^bb0(%[[VT:.*]]: !kvcache.tile<64x64xbf16, swizzle_128b>):
  // CHECK:               %[[BOTH:.*]]:2 = kvcache.consume %[[K]][%[[J]]]
  // CHECK:                 nvvm.barrier id = %[[MINE]]
  // CHECK-NEXT:            %[[QK:.*]] = kvcache.fragment_mma %[[Q]]
  // CHECK-NEXT:            %[[PV:.*]] = kvcache.fragment_mma %[[P]], %[[VT]][%{{.*}}, %{{.*}}] add %[[O]]
  // CHECK-NEXT:            nvvm.barrier.arrive id = %[[OTHER]]
  // CHECK-NEXT:            %[[S:.*]] = kvcache.fragment_wait %[[QK]] pending 1
  // CHECK-NEXT:            kvcache.yield %[[S]], %[[PV]]
  // CHECK:               math.exp2
  // CHECK:               %[[SUM:.*]] = kvcache.reduce addf
  // CHECK:               %[[NEXT:.*]] = kvcache.to_operand
  // CHECK-NEXT:          kvcache.schedule_fence %[[SUM]]
  // CHECK-NEXT:          %[[DONE:.*]] = kvcache.fragment_wait %[[BOTH]]#1
  // CHECK-NEXT:          %[[SCALED:.*]] = kvcache.map arith.addf(%[[DONE]], %[[DONE]])
  // CHECK-NEXT:          kvcache.yield %[[SUM]], %[[SCALED]], %[[NEXT]]
  // CHECK:           %[[LAST:.*]] = kvcache.consume %[[V]][%{{.*}}]
  // CHECK:             kvcache.fragment_mma %[[LOOP]]#2, %{{.*}} add %[[LOOP]]#1
  // CHECK:           scf.if %[[FIRST]] {
  // CHECK-NEXT:        nvvm.barrier id = %[[MINE]]
  // CHECK:           scf.yield %[[LOOP]]#0, %[[LAST]]
  // CHECK-NOT:     kvcache.schedule =
  // REMARK: remark: [Passed] schedule | Category:kvcache-schedule-attention | Remark="products overlap, in turns"
  gpu.func @ping_pong(%n: index) kernel attributes {known_block_size = array<i32: 384, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %q = kvcache.alloc_tile : !tile
    %k = kvcache.pipe : !ring
    %v = kvcache.pipe : !ring
    %l0 = kvcache.splat %zero : !share
    %o0 = kvcache.splat %zero : !s
    %l, %o = scf.for %j = %c0 to %n step %c1 iter_args(%lj = %l0, %oj = %o0) -> (!share, !s) {
      %s = kvcache.consume %k[%j] : !ring -> !s {
      ^bb0(%kt: !tile):
        %started = kvcache.fragment_mma %q[%c0, %c0], %kt[%c0, %c0] : !tile, !tile -> !fly
        %done = kvcache.fragment_wait %started : !fly
        kvcache.yield %done : !s
      }
      %probs = kvcache.map %s : !s -> !s {
      ^bb0(%e: f32):
        %y = math.exp2 %e : f32
        kvcache.yield %y : f32
      }
      %ln = kvcache.reduce addf %probs from %lj : !s -> !share
      %p = kvcache.to_operand %probs : !s -> !p
      %os = kvcache.map arith.addf(%oj, %oj) : !s, !s -> !s
      %on = kvcache.consume %v[%j] : !ring -> !s {
      ^bb0(%vt: !tile):
        %started = kvcache.fragment_mma %p, %vt[%c0, %c0] add %os {major_b = #kvcache.major<mn_major>} : !p, !tile, !s -> !fly
        %done = kvcache.fragment_wait %started : !fly
        kvcache.yield %done : !s
      }
      scf.yield %ln, %on : !share, !s
    } {kvcache.schedule = #kvcache.schedule<ping_pong>}
    "test.use"(%l, %o) : (!share, !s) -> ()
    gpu.return
  }

  // Tiles of a branch on their number have loops of their own: those before the first bound and from the second one on.
  // CHECK-LABEL: gpu.func @masks(
  // CHECK-SAME:    %[[N:.*]]: index, %[[FROM:.*]]: index, %[[TO:.*]]: index)
  // CHECK:         kvcache.consume
  // CHECK:         scf.if %{{.*}} -> (!kvcache.fragment<64x64xf32, wgmma_acc>)
  // CHECK:         %[[LEAST:.*]] = arith.maxsi %[[FROM]], %{{.*}} : index
  // CHECK:         %[[B0:.*]] = arith.minsi %[[LEAST]], %[[N]] : index
  // CHECK:         scf.for %{{.*}} = %{{.*}} to %[[B0]] step
  // CHECK:           scf.if %{{.*}} -> (!kvcache.fragment<64x64xf32, wgmma_acc>)
  // CHECK:         %[[MOST:.*]] = arith.maxsi %[[TO]], %[[B0]] : index
  // CHECK:         %[[B1:.*]] = arith.minsi %[[MOST]], %[[N]] : index
  // CHECK:         scf.for %{{.*}} = %[[B0]] to %[[B1]] step
  // CHECK-NOT:       scf.if
  // CHECK:           math.exp2
  // CHECK:         scf.for %{{.*}} = %[[B1]] to %[[N]] step
  // CHECK:           scf.if %{{.*}} -> (!kvcache.fragment<64x64xf32, wgmma_acc>)
  // REMARK: remark: [Passed] schedule | {{.*}}"products overlap"
  gpu.func @masks(%n: index, %from: index, %to: index) kernel attributes {known_block_size = array<i32: 384, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %q = kvcache.alloc_tile : !tile
    %k = kvcache.pipe : !ring
    %v = kvcache.pipe : !ring
    %l0 = kvcache.splat %zero : !share
    %o0 = kvcache.splat %zero : !s
    %l, %o = scf.for %j = %c0 to %n step %c1 iter_args(%lj = %l0, %oj = %o0) -> (!share, !s) {
      %products = kvcache.consume %k[%j] : !ring -> !s {
      ^bb0(%kt: !tile):
        %started = kvcache.fragment_mma %q[%c0, %c0], %kt[%c0, %c0] : !tile, !tile -> !fly
        %done = kvcache.fragment_wait %started : !fly
        kvcache.yield %done : !s
      }
      %is_first = arith.cmpi slt, %j, %from : index
      %is_last = arith.cmpi sge, %j, %to : index
      %is_masked = arith.ori %is_first, %is_last : i1
      %s = scf.if %is_masked -> (!s) {
        %masked = kvcache.map arith.negf(%products) : !s -> !s
        scf.yield %masked : !s
      } else {
        scf.yield %products : !s
      }
      %probs = kvcache.map %s : !s -> !s {
      ^bb0(%e: f32):
        %y = math.exp2 %e : f32
        kvcache.yield %y : f32
      }
      %ln = kvcache.reduce addf %probs from %lj : !s -> !share
      %p = kvcache.to_operand %probs : !s -> !p
      %os = kvcache.map arith.addf(%oj, %oj) : !s, !s -> !s
      %on = kvcache.consume %v[%j] : !ring -> !s {
      ^bb0(%vt: !tile):
        %started = kvcache.fragment_mma %p, %vt[%c0, %c0] add %os {major_b = #kvcache.major<mn_major>} : !p, !tile, !s -> !fly
        %done = kvcache.fragment_wait %started : !fly
        kvcache.yield %done : !s
      }
      scf.yield %ln, %on : !share, !s
    } {kvcache.schedule = #kvcache.schedule<pipelined>}
    "test.use"(%l, %o) : (!share, !s) -> ()
    gpu.return
  }

  // One warpgroup of consumers has no turns, and a loop without a sum of exponentials no fence.
  // CHECK-LABEL: gpu.func @alone(
  // CHECK-NOT:     nvvm.barrier
  // CHECK-NOT:     kvcache.schedule_fence
  // CHECK:         kvcache.fragment_wait %{{.*}} pending 1
  // REMARK: remark: [Missed] schedule | {{.*}}Reason="the loop carries no sum of exponentials", Remark="exponentials may not overlap"
  // REMARK: remark: [Missed] schedule | {{.*}}Reason="the kernel has no two warpgroups of consumers", Remark="no turns"
  // REMARK: remark: [Passed] schedule | {{.*}}"products overlap"
  gpu.func @alone(%n: index) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %q = kvcache.alloc_tile : !tile
    %k = kvcache.pipe : !ring
    %v = kvcache.pipe : !ring
    %o0 = kvcache.splat %zero : !s
    %o = scf.for %j = %c0 to %n step %c1 iter_args(%oj = %o0) -> (!s) {
      %s = kvcache.consume %k[%j] : !ring -> !s {
      ^bb0(%kt: !tile):
        %started = kvcache.fragment_mma %q[%c0, %c0], %kt[%c0, %c0] : !tile, !tile -> !fly
        %done = kvcache.fragment_wait %started : !fly
        kvcache.yield %done : !s
      }
      %p = kvcache.to_operand %s : !s -> !p
      %on = kvcache.consume %v[%j] : !ring -> !s {
      ^bb0(%vt: !tile):
        %started = kvcache.fragment_mma %p, %vt[%c0, %c0] add %oj {major_b = #kvcache.major<mn_major>} : !p, !tile, !s -> !fly
        %done = kvcache.fragment_wait %started : !fly
        kvcache.yield %done : !s
      }
      scf.yield %on : !s
    } {kvcache.schedule = #kvcache.schedule<ping_pong>}
    "test.use"(%o) : (!s) -> ()
    gpu.return
  }

  // The loop stays where scores use the accumulator.
  // CHECK-LABEL: gpu.func @used(
  // CHECK:         scf.for
  // CHECK-NOT:     pending
  // CHECK:         gpu.return
  // REMARK: remark: [Missed] schedule | {{.*}}Reason="something else than PV uses the accumulator", Remark="no products overlap"
  gpu.func @used(%n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %q = kvcache.alloc_tile : !tile
    %k = kvcache.pipe : !ring
    %v = kvcache.pipe : !ring
    %o0 = kvcache.splat %zero : !s
    %o = scf.for %j = %c0 to %n step %c1 iter_args(%oj = %o0) -> (!s) {
      %s = kvcache.consume %k[%j] : !ring -> !s {
      ^bb0(%kt: !tile):
        %started = kvcache.fragment_mma %q[%c0, %c0], %kt[%c0, %c0] : !tile, !tile -> !fly
        %done = kvcache.fragment_wait %started : !fly
        kvcache.yield %done : !s
      }
      %mixed = kvcache.map arith.addf(%s, %oj) : !s, !s -> !s
      %p = kvcache.to_operand %mixed : !s -> !p
      %on = kvcache.consume %v[%j] : !ring -> !s {
      ^bb0(%vt: !tile):
        %started = kvcache.fragment_mma %p, %vt[%c0, %c0] add %oj {major_b = #kvcache.major<mn_major>} : !p, !tile, !s -> !fly
        %done = kvcache.fragment_wait %started : !fly
        kvcache.yield %done : !s
      }
      scf.yield %on : !s
    } {kvcache.schedule = #kvcache.schedule<pipelined>}
    "test.use"(%o) : (!s) -> ()
    gpu.return
  }

  // The loop stays where it writes a tile that sums in flight would still read.
  // CHECK-LABEL: gpu.func @stored(
  // CHECK-NOT:     pending
  // CHECK:         gpu.return
  // REMARK: remark: [Missed] schedule | {{.*}}Reason="'kvcache.fragment_store' writes a tile that a product reads", Remark="no products overlap"
  gpu.func @stored(%n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %q = kvcache.alloc_tile : !tile
    %w = kvcache.alloc_tile : !tile
    %k = kvcache.pipe : !ring
    %v = kvcache.pipe : !ring
    %o0 = kvcache.splat %zero : !s
    %o = scf.for %j = %c0 to %n step %c1 iter_args(%oj = %o0) -> (!s) {
      %s = kvcache.consume %k[%j] : !ring -> !s {
      ^bb0(%kt: !tile):
        %started = kvcache.fragment_mma %q[%c0, %c0], %kt[%c0, %c0] : !tile, !tile -> !fly
        %done = kvcache.fragment_wait %started : !fly
        kvcache.yield %done : !s
      }
      %p = kvcache.to_operand %s : !s -> !p
      kvcache.fragment_store %p, %w[%c0, %c0] : !p, !tile
      %on = kvcache.consume %v[%j] : !ring -> !s {
      ^bb0(%vt: !tile):
        %started = kvcache.fragment_mma %w[%c0, %c0], %vt[%c0, %c0] add %oj {major_b = #kvcache.major<mn_major>} : !tile, !tile, !s -> !fly
        %done = kvcache.fragment_wait %started : !fly
        kvcache.yield %done : !s
      }
      scf.yield %on : !s
    } {kvcache.schedule = #kvcache.schedule<pipelined>}
    "test.use"(%o) : (!s) -> ()
    gpu.return
  }

  // The loop stays where its warps exchange, which is a barrier of the block.
  // REMARK: remark: [Missed] schedule | {{.*}}Reason="the loop has 'kvcache.reduce'", Remark="no products overlap"
  gpu.func @exchanged(%n: index) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %q = kvcache.alloc_tile : !tile
    %p = kvcache.alloc_tile : !tile
    %scratch = kvcache.alloc_tile : !scratch
    %k = kvcache.pipe : !pair
    %v = kvcache.pipe : !pair
    %o0 = kvcache.splat %zero : !st
    %m0 = kvcache.splat %zero : !row
    %m, %o = scf.for %j = %c0 to %n step %c1 iter_args(%mj = %m0, %oj = %o0) -> (!row, !st) {
      %s = kvcache.consume %k[%j] : !pair -> !st {
      ^bb0(%kt: !tile):
        %started = kvcache.fragment_mma %q[%c0, %c0], %kt[%c0, %c0] : !tile, !tile -> !flyt
        %done = kvcache.fragment_wait %started : !flyt
        kvcache.yield %done : !st
      }
      %mn = kvcache.reduce maxnumf %s from %mj across %scratch : !st, !scratch -> !row
      %on = kvcache.consume %v[%j] : !pair -> !st {
      ^bb0(%vt: !tile):
        %started = kvcache.fragment_mma %p[%c0, %c0], %vt[%c0, %c0] add %oj {major_b = #kvcache.major<mn_major>} : !tile, !tile, !st -> !flyt
        %done = kvcache.fragment_wait %started : !flyt
        kvcache.yield %done : !st
      }
      scf.yield %mn, %on : !row, !st
    } {kvcache.schedule = #kvcache.schedule<pipelined>}
    "test.use"(%m, %o) : (!row, !st) -> ()
    gpu.return
  }

  // The loop stays where it copies tiles, or has no products.
  // REMARK: remark: [Missed] schedule | {{.*}}Reason="there are no products QK and PV", Remark="no products overlap"
  gpu.func @without_products(%n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %j = %c0 to %n step %c1 {
    } {kvcache.schedule = #kvcache.schedule<pipelined>}
    gpu.return
  }
}
