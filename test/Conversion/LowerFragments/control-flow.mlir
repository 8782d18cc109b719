// RUN: kvcache-opt %s --kvcache-lower-fragments | FileCheck %s

// Functions, branches, selects, loops and pipes pass registers on.

!s = !kvcache.fragment<16x8xf32, mma_acc>
!fly = !kvcache.in_flight<64x8xf32, wgmma_acc>
!tile = !kvcache.tile<64x64xbf16, swizzle_128b>
!ring = !kvcache.pipe<2, !tile>

gpu.module @kernels {
  // CHECK-LABEL: func.func @select(
  // CHECK-SAME:    %[[COND:.*]]: i1, %[[A:[^,]*]]: f32, %{{.*}}: f32, %{{.*}}: f32, %{{.*}}: f32, %[[B:[^,]*]]: f32, %{{.*}}: f32, %{{.*}}: f32, %{{.*}}: f32) -> (f32, f32, f32, f32)
  // CHECK:         arith.select %[[COND]], %[[A]], %[[B]] : f32
  func.func @select(%cond: i1, %a: !s, %b: !s) -> !s {
    %y = arith.select %cond, %a, %b : !s
    return %y : !s
  }

  // CHECK-LABEL: gpu.func @branches(
  // CHECK:         %[[IF:.*]]:4 = scf.if %{{.*}} -> (f32, f32, f32, f32)
  // CHECK:         %[[CALL:.*]]:4 = {{.*}}call @select(%{{.*}}, %[[IF]]#0, %[[IF]]#1, %[[IF]]#2, %[[IF]]#3,
  // CHECK:         cf.br ^[[NEXT:.*]](%[[CALL]]#0, %[[CALL]]#1, %[[CALL]]#2, %[[CALL]]#3 : f32, f32, f32, f32)
  // CHECK:       ^[[NEXT]](%{{.*}}: f32, %{{.*}}: f32, %{{.*}}: f32, %{{.*}}: f32):
  gpu.func @branches(%cond: i1, %x: f32) kernel {
    %a = kvcache.splat %x : !s
    %b = scf.if %cond -> !s {
      %c = kvcache.map arith.addf(%a, %a) : !s, !s -> !s
      scf.yield %c : !s
    } else {
      scf.yield %a : !s
    }
    %d = func.call @select(%cond, %b, %a) : (i1, !s, !s) -> !s
    cf.br ^next(%d : !s)
  ^next(%e: !s):
    gpu.return
  }

  // A product is in flight across a consumption and an iteration.
  // CHECK-LABEL: gpu.func @pipe(
  // CHECK:         scf.for {{.*}} iter_args(%[[CARRIED:.*]] = %{{.*}}) -> (vector<4xf32>)
  // CHECK:           kvcache.consume %{{.*}} -> vector<4xf32> {
  // CHECK:             %[[NEXT:.*]] = kvcache.mma {{.*}} add %[[CARRIED]]
  // CHECK:             kvcache.yield %[[NEXT]] : vector<4xf32>
  gpu.func @pipe(%n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %ring = kvcache.pipe : !ring
    %q = kvcache.alloc_tile : !tile
    %first = kvcache.fragment_mma %q[%c0, %c0], %q[%c0, %c0] : !tile, !tile -> !fly
    %last = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %first) -> !fly {
      %next = kvcache.consume %ring[%i] : !ring -> (!fly) {
      ^bb0(%k: !tile):
        %added = kvcache.fragment_mma %q[%c0, %c0], %q[%c0, %c0] add %sum : !tile, !tile, !fly -> !fly
        kvcache.yield %added : !fly
      }
      scf.yield %next : !fly
    }
    gpu.return
  }
}
