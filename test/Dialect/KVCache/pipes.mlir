// RUN: kvcache-opt %s --verify-roundtrip | FileCheck %s
// RUN: kvcache-opt %s --mlir-print-op-generic | kvcache-opt | FileCheck %s
// RUN: kvcache-opt %s --emit-bytecode | kvcache-opt | FileCheck %s
// RUN: kvcache-opt %s --canonicalize --cse | FileCheck %s --check-prefix=KEPT

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!plain = !kvcache.tile<64x128xbf16>
!ring = !kvcache.pipe<3, !kt, !kt>

// CHECK-LABEL: func.func private @types(
// CHECK-SAME:    !kvcache.pipe<3, !kvcache.tile<64x128xbf16, swizzle_128b>, !kvcache.tile<64x128xbf16>>,
// CHECK-SAME:    !kvcache.pipe<64, !kvcache.tile<64x128xbf16>>,
// CHECK-SAME:    !kvcache.pipe<1, !kvcache.tile<64x128xbf16>, producers = 31>)
func.func private @types(!kvcache.pipe<3, !kt, !plain>, !kvcache.pipe<64, !plain>, !kvcache.pipe<1, !plain, producers = 31>)

// CHECK-LABEL: func.func @register_bound(
// CHECK-NEXT:    kvcache.pipe {consumer_registers = 216 : i64} : !kvcache.pipe<2,
func.func @register_bound() {
  %ring = kvcache.pipe {consumer_registers = 216} : !kvcache.pipe<2, !plain>
  return
}

// CHECK-LABEL: func.func @registers(
// CHECK-NEXT:    kvcache.pipe {consumer_registers = 240 : i64, producer_registers = 24 : i64} : !kvcache.pipe<2,
func.func @registers() {
  %ring = kvcache.pipe {producer_registers = 24, consumer_registers = 240} : !kvcache.pipe<2, !plain, producers = 4>
  return
}

// CHECK-LABEL: func.func @keys_and_values(
// CHECK-SAME:    %[[K:[^:]*]]: !kvcache.paged<bf16, #kv, page_size = 64>, %[[V:[^:]*]]: !kvcache.paged<bf16, #kv, page_size = 64>, %[[B:[^:]*]]: index, %[[H:[^:]*]]: index, %[[T:[^:]*]]: index, %[[D:[^:]*]]: index, %[[N:[^:]*]]: index, %[[I:[^:]*]]: index, %[[X:[^:]*]]: f32)
// CHECK:         %[[RING:.*]] = kvcache.pipe : !kvcache.pipe<3, !kvcache.tile<64x128xbf16, swizzle_128b>, !kvcache.tile<64x128xbf16, swizzle_128b>>
// CHECK-NEXT:    kvcache.produce %[[RING]][%[[I]]] : !kvcache.pipe<{{.*}}> {
// CHECK-NEXT:    ^bb0(%[[KS:.*]]: !kvcache.tile<64x128xbf16, swizzle_128b>, %[[VS:.*]]: !kvcache.tile<64x128xbf16, swizzle_128b>):
// CHECK-NEXT:      kvcache.async_load_tile %[[K]][%[[B]], %[[H]], %[[T]], %[[D]]] valid %[[N]] to %[[KS]] :
// CHECK-NEXT:      kvcache.async_load_tile %[[V]][%[[B]], %[[H]], %[[T]], %[[D]]] valid %[[N]] to %[[VS]] :
// CHECK-NEXT:    }
// CHECK-NEXT:    %[[R:.*]] = kvcache.consume %[[RING]][%[[I]]] : !kvcache.pipe<{{.*}}> -> f32 {
// CHECK-NEXT:    ^bb0(%{{.*}}: !kvcache.tile<64x128xbf16, swizzle_128b>, %{{.*}}: !kvcache.tile<64x128xbf16, swizzle_128b>):
// CHECK-NEXT:      kvcache.yield %[[X]] : f32
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[R]] : f32
func.func @keys_and_values(%k: !cache, %v: !cache, %b: index, %h: index, %t: index, %d: index, %n: index, %i: index, %x: f32) -> f32 {
  %ring = kvcache.pipe : !ring                                                  // stages, then the tiles of a stage; producers = all or n warps
  kvcache.produce %ring[%i] : !ring {                                           // waits for slot i mod 3, sums the bytes, completes it
  ^bb0(%ks: !kt, %vs: !kt):
    kvcache.async_load_tile %k[%b, %h, %t, %d] valid %n to %ks : !cache, !kt
    kvcache.async_load_tile %v[%b, %h, %t, %d] valid %n to %vs : !cache, !kt
  }
  %r = kvcache.consume %ring[%i] : !ring -> (f32) {                             // waits; releases the slot at the end
  ^bb0(%ks: !kt, %vs: !kt):
    kvcache.yield %x : f32
  }
  return %r : f32
}

// CHECK-LABEL: func.func @results(
// CHECK:         kvcache.consume %{{.*}}[%{{.*}}] : !kvcache.pipe<{{.*}}> {
// CHECK-NEXT:    ^bb0(%{{.*}}: !kvcache.tile<64x128xbf16>):
// CHECK-NEXT:    }
// CHECK:         %[[TWO:.*]]:2 = kvcache.consume %{{.*}}[%{{.*}}] : !kvcache.pipe<{{.*}}> -> (f32, vector<8xbf16>) {
// CHECK:           kvcache.yield %{{.*}}, %{{.*}} : f32, vector<8xbf16>
// CHECK:         return %[[TWO]]#0, %[[TWO]]#1
func.func @results(%i: index, %x: f32) -> (f32, vector<8xbf16>) {
  %ring = kvcache.pipe : !kvcache.pipe<2, !plain>
  kvcache.consume %ring[%i] : !kvcache.pipe<2, !plain> {
  ^bb0(%ks: !plain):
    kvcache.yield
  }
  %y:2 = kvcache.consume %ring[%i] : !kvcache.pipe<2, !plain> -> (f32, vector<8xbf16>) {
  ^bb0(%ks: !plain):
    %v = kvcache.tile_load %ks[%i, %i] : !plain -> vector<8xbf16>
    kvcache.yield %x, %v : f32, vector<8xbf16>
  }
  return %y#0, %y#1 : f32, vector<8xbf16>
}

// What a pipe's ops say besides is kept.
// CHECK-LABEL: func.func @attributes(
// CHECK:         kvcache.pipe {note = 1 : i32} :
// CHECK:         kvcache.produce
// CHECK:         } {note = 2 : i32}
// CHECK:         kvcache.consume
// CHECK:         } {note = 3 : i32}
func.func @attributes(%i: index) {
  %ring = kvcache.pipe {note = 1 : i32} : !kvcache.pipe<2, !plain>
  kvcache.produce %ring[%i] : !kvcache.pipe<2, !plain> {
  ^bb0(%ks: !plain):
  } {note = 2 : i32}
  kvcache.consume %ring[%i] : !kvcache.pipe<2, !plain> {
  ^bb0(%ks: !plain):
  } {note = 3 : i32}
  return
}

// Address code may read memory, and branch.
// CHECK-LABEL: func.func @address_code(
// CHECK:         kvcache.produce
// CHECK:           memref.load
// CHECK:           scf.if
// CHECK:           kvcache.async_gather_tile
func.func @address_code(%k: !cache, %tokens: memref<?xindex>, %ids: memref<64xi32>, %i: index, %first: i1) {
  %ring = kvcache.pipe : !kvcache.pipe<2, !kt, !kt>
  kvcache.produce %ring[%i] : !kvcache.pipe<2, !kt, !kt> {
  ^bb0(%ks: !kt, %vs: !kt):
    %t = memref.load %tokens[%i] : memref<?xindex>
    %u = scf.if %first -> index {
      scf.yield %t : index
    } else {
      %n = kvcache.cache_length %k[%t] : !cache
      scf.yield %n : index
    }
    kvcache.async_load_tile %k[%i, %i, %u, %i] to %ks : !cache, !kt
    kvcache.async_gather_tile %k[%i, %i] rows %ids to %vs : !cache, memref<64xi32>, !kt
  }
  return
}

// CHECK-LABEL: func.func @nested(
// CHECK:         %[[RING:.*]] = kvcache.pipe : !kvcache.pipe<2, !kvcache.tile<64x128xbf16, swizzle_128b>, producers = 1>
// CHECK:         scf.for
// CHECK:           scf.if
// CHECK:             kvcache.produce %[[RING]][%{{.*}}] : !kvcache.pipe<{{.*}}> {
// CHECK:           } else {
// CHECK:             %[[NEXT:.*]] = kvcache.consume %[[RING]][%{{.*}}] : !kvcache.pipe<{{.*}}> -> bf16 {
// CHECK:             scf.yield %[[NEXT]]
func.func @nested(%k: !cache, %b: index, %n: index, %produces: i1, %zero: bf16) -> bf16 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = kvcache.pipe : !kvcache.pipe<2, !kt, producers = 1>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> (bf16) {
    %next = scf.if %produces -> bf16 {
      kvcache.produce %ring[%i] : !kvcache.pipe<2, !kt, producers = 1> {
      ^bb0(%ks: !kt):
        kvcache.async_load_tile %k[%b, %c0, %i, %c0] to %ks : !cache, !kt
      }
      scf.yield %s : bf16
    } else {
      %y = kvcache.consume %ring[%i] : !kvcache.pipe<2, !kt, producers = 1> -> (bf16) {
      ^bb0(%ks: !kt):
        %x = scf.for %j = %c0 to %c1 step %c1 iter_args(%a = %s) -> (bf16) {
          %v = kvcache.tile_load %ks[%j, %c0] : !kt -> bf16
          %w = arith.addf %a, %v : bf16
          scf.yield %w : bf16
        }
        kvcache.yield %x : bf16
      }
      scf.yield %y : bf16
    }
    scf.yield %next : bf16
  }
  return %sum : bf16
}

// A pipe in a pipe's region, and one that is set up in a branch.
// CHECK-LABEL: func.func @pipe_in_pipe(
// CHECK:         %[[OUTER:.*]] = kvcache.pipe
// CHECK:         scf.if
// CHECK:           %[[INNER:.*]] = kvcache.pipe
// CHECK:           kvcache.consume %[[OUTER]]
// CHECK:             kvcache.consume %[[INNER]]
func.func @pipe_in_pipe(%i: index, %is_used: i1) {
  %outer = kvcache.pipe : !kvcache.pipe<2, !kt>
  scf.if %is_used {
    %inner = kvcache.pipe : !kvcache.pipe<3, !plain>
    kvcache.consume %outer[%i] : !kvcache.pipe<2, !kt> {
    ^bb0(%ks: !kt):
      kvcache.consume %inner[%i] : !kvcache.pipe<3, !plain> {
      ^bb0(%vs: !plain):
      }
    }
  }
  return
}

// A kernel that is launched in a loop has its pipe in none.
// CHECK-LABEL: func.func @launch_in_a_loop(
// CHECK:         scf.for
// CHECK:           gpu.launch
// CHECK:             kvcache.pipe
func.func @launch_in_a_loop(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%dx = %c1, %dy = %c1, %dz = %c1) {
      %ring = kvcache.pipe : !kvcache.pipe<2, !plain>
      kvcache.consume %ring[%i] : !kvcache.pipe<2, !plain> {
      ^bb0(%ks: !plain):
      }
      gpu.terminator
    }
  }
  return
}

// So has a parallel loop, which becomes a kernel.
// CHECK-LABEL: func.func @parallel_in_a_loop(
// CHECK:         scf.for
// CHECK:           scf.parallel
// CHECK:             kvcache.pipe
func.func @parallel_in_a_loop(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    scf.parallel (%block) = (%c0) to (%n) step (%c1) {
      %ring = kvcache.pipe : !kvcache.pipe<2, !plain>
      kvcache.consume %ring[%i] : !kvcache.pipe<2, !plain> {
      ^bb0(%ks: !plain):
      }
    }
  }
  return
}

// Copies and waits are effects: nothing goes because it has no results, and two
// uses of a slot are not one.
// KEPT-LABEL: func.func @effects(
// KEPT:         kvcache.produce
// KEPT:           kvcache.async_load_tile
// KEPT:         kvcache.consume
// KEPT:         kvcache.consume
func.func @effects(%k: !cache, %i: index) {
  %ring = kvcache.pipe : !kvcache.pipe<2, !kt>
  kvcache.produce %ring[%i] : !kvcache.pipe<2, !kt> {
  ^bb0(%ks: !kt):
    kvcache.async_load_tile %k[%i, %i, %i, %i] to %ks : !cache, !kt
  }
  kvcache.consume %ring[%i] : !kvcache.pipe<2, !kt> {
  ^bb0(%ks: !kt):
  }
  kvcache.consume %ring[%i] : !kvcache.pipe<2, !kt> {
  ^bb0(%ks: !kt):
  }
  return
}

// CHECK-LABEL: func.func @roles(
// CHECK:         kvcache.warp_roles warps [1, 3, 4] registers [40, 40, 232] {
// CHECK-NEXT:      kvcache.produce
// CHECK:         }, {
// CHECK-NEXT:    }, {
// CHECK-NEXT:      kvcache.consume %{{.*}}[%{{.*}}] commit : !kvcache.pipe<2,
// CHECK:         }
// KEPT-LABEL:  func.func @roles(
// KEPT:          kvcache.warp_roles
func.func @roles(%k: !cache, %d: !kvcache.tmem_tile<64x64xf32>, %i: index) {
  %ring = kvcache.pipe : !kvcache.pipe<2, !kt, producers = 1>
  kvcache.warp_roles warps [1, 3, 4] registers [40, 40, 232] {
    kvcache.produce %ring[%i] : !kvcache.pipe<2, !kt, producers = 1> {
    ^bb0(%ks: !kt):
      kvcache.async_load_tile %k[%i, %i, %i, %i] to %ks : !cache, !kt
    }
  }, {
  }, {
    kvcache.consume %ring[%i] commit : !kvcache.pipe<2, !kt, producers = 1> {
    ^bb0(%ks: !kt):
      kvcache.tmem_mma %ks[%i, %i], %ks[%i, %i] into %d : !kt, !kt, !kvcache.tmem_tile<64x64xf32>
    }
  }
  return
}
