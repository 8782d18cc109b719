// RUN: kvcache-opt %s --kvcache-hoist-lookups --allow-unregistered-dialect --split-input-file | FileCheck %s
// RUN: kvcache-opt %s --kvcache-hoist-lookups --allow-unregistered-dialect --split-input-file --remarks-filter='kvcache-.*' -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK: remark: [Passed] lookup | Category:kvcache-hoist-lookups | Guarded=true, Loops=1, Remark="lookup moved out of its loops"
// REMARK: Guarded=false, Loops=1
// REMARK: [Missed] lookup | Category:kvcache-hoist-lookups | Reason="its indices change in the loop", Remark="lookup stays in its loop"
// REMARK: Reason="the loop holds a check"

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>
!rows = !kvcache.row_indices<rows = 128, page_size = 64>
!tile = memref<16x128xbf16, strided<[1024, 1], offset: ?>>

// A loop that may not run must not read a table entry that need not exist: the
// lookup goes under a guard.

// CHECK-LABEL: func.func @guarded_where_the_trip_count_is_unknown(
// CHECK-SAME:      %[[K:.*]]: !kvcache.paged<{{.*}}>, %[[B:.*]]: index, %[[T:.*]]: index, %[[FROM:.*]]: index, %[[TO:.*]]: index, %{{.*}}: memref
// CHECK:         %[[RUNS:.*]] = arith.cmpi slt, %[[FROM]], %[[TO]] : index
// CHECK:         %[[PAGE:.*]] = scf.if %[[RUNS]] -> (index) {
// CHECK:           %[[LOOKUP:.*]] = kvcache.page_id %[[K]][%[[B]], %[[T]]]
// CHECK:           scf.yield %[[LOOKUP]] : index
// CHECK:         } else {
// CHECK:           %[[POISON:.*]] = ub.poison : index
// CHECK:           scf.yield %[[POISON]] : index
// CHECK:         }
// CHECK:         scf.for %[[H:.*]] = %[[FROM]] to %[[TO]]
// CHECK:           %[[V:.*]] = kvcache.load %[[K]][%[[B]], %[[H]], %[[T]], %{{.*}}] page %[[PAGE]]
// CHECK:           kvcache.store %[[V]], %[[K]][%[[B]], %[[H]], %[[T]], %{{.*}}] page %{{.*}} :
func.func @guarded_where_the_trip_count_is_unknown(%k: !cache, %b: index, %t: index, %from: index, %to: index,
                                                   %out: memref<?xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %h = %from to %to step %c1 {
    %v = kvcache.load %k[%b, %h, %t, %c0] : !cache -> bf16
    kvcache.store %v, %k[%b, %h, %t, %c1] : bf16, !cache
    memref.store %v, %out[%h] : memref<?xbf16>
  }
  return
}

// CHECK-LABEL: func.func @unguarded_where_the_loop_runs(
// CHECK-NOT:     scf.if
// CHECK:         %[[PAGE:.*]] = kvcache.page_id
// CHECK-NEXT:    scf.for
// CHECK:           kvcache.load {{.*}} page %[[PAGE]]
func.func @unguarded_where_the_loop_runs(%k: !cache, %b: index, %t: index, %out: memref<?xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %h = %c0 to %c8 step %c1 {
    %v = kvcache.load %k[%b, %h, %t, %c0] : !cache -> bf16
    memref.store %v, %out[%h] : memref<?xbf16>
  }
  return
}

// CHECK-LABEL: func.func @guarded_where_the_loop_never_runs(
// CHECK:         arith.cmpi slt
// CHECK:         scf.if
// CHECK:           kvcache.page_id
// CHECK:         scf.for
func.func @guarded_where_the_loop_never_runs(%k: !cache, %b: index, %t: index, %out: memref<?xbf16>) {
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %h = %c8 to %c8 step %c1 {
    %v = kvcache.load %k[%b, %h, %t, %h] : !cache -> bf16
    memref.store %v, %out[%h] : memref<?xbf16>
  }
  return
}

// Lookups without memory effects move as a whole.

// CHECK-LABEL: func.func @lookups_move_as_a_whole(
// CHECK:         %[[LENGTH:.*]] = kvcache.cache_length
// CHECK:         %[[ROW:.*]] = kvcache.row_index
// CHECK:         %[[TMA_ROW:.*]], %[[PAGE:.*]] = kvcache.tma_coords
// CHECK:         %[[ROWS:.*]] = kvcache.populate
// CHECK:         %[[TILE:.*]] = kvcache.block_tile
// CHECK:         scf.for
// CHECK-NOT:       kvcache.cache_length
// CHECK:           "test.use"(%[[LENGTH]], %[[ROW]], %[[TMA_ROW]], %[[PAGE]], %[[ROWS]], %[[TILE]])
func.func @lookups_move_as_a_whole(%k: !cache, %b: index, %t: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %c1 step %c1 {
    %length = kvcache.cache_length %k[%b] : !cache
    %row = kvcache.row_index %k[%b, %t] : !cache
    %tma_row, %page = kvcache.tma_coords %k[%b, %t] : !cache
    %rows = kvcache.populate %k[%b, %t] : !cache -> !rows
    %tile = kvcache.block_tile %k[%b, %c0, %t, %c0] : !cache -> !tile
    "test.use"(%length, %row, %tma_row, %page, %rows, %tile) : (index, index, index, index, !rows, !tile) -> ()
  }
  return
}

// Where only the head changes, the page of a tile is looked up before.

// CHECK-LABEL: func.func @page_of_a_tile(
// CHECK:         %[[PAGE:.*]] = kvcache.page_id
// CHECK:         scf.for
// CHECK:           kvcache.block_tile {{.*}} page %[[PAGE]]
func.func @page_of_a_tile(%k: !cache, %b: index, %t: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %h = %c0 to %c8 step %c1 {
    %tile = kvcache.block_tile %k[%b, %h, %t, %c0] : !cache -> !tile
    "test.use"(%tile) : (!tile) -> ()
  }
  return
}

// CHECK-LABEL: func.func @token_of_the_loop_stays(
// CHECK-NOT:     kvcache.page_id
// CHECK:         scf.for
// CHECK:           kvcache.load %{{[^ ]*}}[%{{.*}}] :
func.func @token_of_the_loop_stays(%k: !cache, %b: index, %n: index, %out: memref<?xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    %v = kvcache.load %k[%b, %c0, %t, %c0] : !cache -> bf16
    memref.store %v, %out[%t] : memref<?xbf16>
  }
  return
}

// CHECK-LABEL: func.func @carried_cache_stays(
// CHECK:         scf.for
// CHECK-NOT:       kvcache.page_id
// CHECK:           kvcache.load %{{[^ ]*}}[%{{.*}}] :
func.func @carried_cache_stays(%k: !cache, %v: !cache, %b: index, %t: index, %n: index, %out: memref<?xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %k, %y = %v) -> (!cache, !cache) {
    %e = kvcache.load %x[%b, %c0, %t, %c0] : !cache -> bf16
    memref.store %e, %out[%i] : memref<?xbf16>
    scf.yield %y, %x : !cache, !cache
  }
  return
}

// A page that is known already is left alone.

// CHECK-LABEL: func.func @known_page_stays(
// CHECK-NOT:     kvcache.page_id
// CHECK:         return
func.func @known_page_stays(%k: !cache, %b: index, %t: index, %page: index, %n: index, %out: memref<?xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %h = %c0 to %n step %c1 {
    %v = kvcache.load %k[%b, %h, %t, %c0] page %page : !cache -> bf16
    memref.store %v, %out[%h] : memref<?xbf16>
  }
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// Out of a nest the guard is that all of its loops run.

// CHECK-LABEL: func.func @out_of_three_loops(
// CHECK-SAME:      %[[K:.*]]: !kvcache.paged<{{.*}}>, %[[B:.*]]: index, %[[T:.*]]: index, %[[L:.*]]: index, %[[M:.*]]: index, %[[N:.*]]: index, %{{.*}}: memref
// CHECK-DAG:     %[[RUNS_N:.*]] = arith.cmpi slt, %{{.*}}, %[[N]] : index
// CHECK-DAG:     %[[RUNS_M:.*]] = arith.cmpi slt, %{{.*}}, %[[M]] : index
// CHECK:         %[[RUN_TWO:.*]] = arith.andi %[[RUNS_N]], %[[RUNS_M]] : i1
// CHECK:         %[[RUNS_L:.*]] = arith.cmpi slt, %{{.*}}, %[[L]] : index
// CHECK:         %[[ALL_LOOPS:.*]] = arith.andi %[[RUN_TWO]], %[[RUNS_L]] : i1
// CHECK:         %[[PAGE:.*]] = scf.if %[[ALL_LOOPS]]
// CHECK:           kvcache.page_id
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK:             scf.for
// CHECK:               kvcache.load {{.*}} page %[[PAGE]]
func.func @out_of_three_loops(%k: !cache, %b: index, %t: index, %l: index, %m: index, %n: index,
                              %out: memref<?xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %x = %c0 to %l step %c1 {
    scf.for %y = %c0 to %m step %c1 {
      scf.for %h = %c0 to %n step %c1 {
        %v = kvcache.load %k[%b, %h, %t, %c0] : !cache -> bf16
        memref.store %v, %out[%h] : memref<?xbf16>
      }
    }
  }
  return
}

// Only the loops whose trip count isn't known are in the guard.

// CHECK-LABEL: func.func @out_of_two_loops_one_of_which_runs(
// CHECK:         %[[RUNS:.*]] = arith.cmpi slt
// CHECK-NOT:     arith.andi
// CHECK:         scf.if %[[RUNS]]
func.func @out_of_two_loops_one_of_which_runs(%k: !cache, %b: index, %t: index, %n: index, %out: memref<?xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %x = %c0 to %n step %c1 {
    scf.for %h = %c0 to %c8 step %c1 {
      %v = kvcache.load %k[%b, %h, %t, %c0] : !cache -> bf16
      memref.store %v, %out[%h] : memref<?xbf16>
    }
  }
  return
}

// The token changes with the outer loop: out of the inner one only.

// CHECK-LABEL: func.func @out_of_the_inner_loop(
// CHECK:         scf.for %[[T:.*]] =
// CHECK:           %[[PAGE:.*]] = kvcache.page_id %{{.*}}[%{{.*}}, %[[T]]]
// CHECK-NEXT:      scf.for
// CHECK:             kvcache.load {{.*}} page %[[PAGE]]
func.func @out_of_the_inner_loop(%k: !cache, %b: index, %n: index, %out: memref<?xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %t = %c0 to %n step %c1 {
    scf.for %h = %c0 to %c8 step %c1 {
      %v = kvcache.load %k[%b, %h, %t, %c0] : !cache -> bf16
      memref.store %v, %out[%h] : memref<?xbf16>
    }
  }
  return
}

// The bound of the inner loop is only known inside the outer one, and so is
// whether it runs.

// CHECK-LABEL: func.func @not_past_the_bound_of_the_inner_loop(
// CHECK-NOT:     kvcache.page_id
// CHECK:         scf.for %[[X:.*]] =
// CHECK:           %[[RUNS:.*]] = arith.cmpi slt, %{{.*}}, %[[X]] : index
// CHECK:           scf.if %[[RUNS]]
// CHECK:             kvcache.page_id
// CHECK:           scf.for
func.func @not_past_the_bound_of_the_inner_loop(%k: !cache, %b: index, %t: index, %n: index, %out: memref<?xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %x = %c0 to %n step %c1 {
    scf.for %h = %c0 to %x step %c1 {
      %v = kvcache.load %k[%b, %h, %t, %c0] : !cache -> bf16
      memref.store %v, %out[%h] : memref<?xbf16>
    }
  }
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// A branch may protect the lookup.

// CHECK-LABEL: func.func @not_out_of_a_branch(
// CHECK-NOT:     kvcache.page_id
// CHECK:         scf.for
// CHECK:           scf.if
// CHECK:             kvcache.load %{{[^ ]*}}[%{{.*}}] :
func.func @not_out_of_a_branch(%k: !cache, %b: index, %t: index, %n: index, %c: i1, %out: memref<?xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %h = %c0 to %n step %c1 {
    scf.if %c {
      %v = kvcache.load %k[%b, %h, %t, %c0] : !cache -> bf16
      memref.store %v, %out[%h] : memref<?xbf16>
    }
  }
  return
}

// Parallel loops may become kernels, whose lookups are no business of the host.

// CHECK-LABEL: func.func @not_out_of_a_parallel_loop(
// CHECK-NOT:     kvcache.page_id
// CHECK:         scf.parallel
// CHECK:           %[[PAGE:.*]] = kvcache.page_id
// CHECK:           scf.for
// CHECK:             kvcache.load {{.*}} page %[[PAGE]]
func.func @not_out_of_a_parallel_loop(%k: !cache, %b: index, %t: index, %n: index, %out: memref<?xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    scf.for %h = %c0 to %c8 step %c1 {
      %v = kvcache.load %k[%b, %h, %t, %c0] : !cache -> bf16
      memref.store %v, %out[%i] : memref<?xbf16>
    }
  }
  return
}

// CHECK-LABEL: func.func @not_out_of_a_launch(
// CHECK-NOT:     kvcache.cache_length
// CHECK:         gpu.launch
// CHECK:           kvcache.cache_length
func.func @not_out_of_a_launch(%k: !cache, %b: index, %out: memref<?xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
      %length = kvcache.cache_length %k[%b] : !cache
      memref.store %length, %out[%c0] : memref<?xindex>
      gpu.terminator
    }
  }
  return
}

// How often a while loop runs can't be compared.

// CHECK-LABEL: func.func @not_out_of_a_while_loop(
// CHECK:         scf.while
// CHECK:         do
// CHECK:           kvcache.cache_length
func.func @not_out_of_a_while_loop(%k: !cache, %b: index, %n: index) -> index {
  %r = scf.while (%i = %n) : (index) -> index {
    %c = arith.cmpi ne, %i, %n : index
    scf.condition(%c) %i : index
  } do {
  ^bb0(%i: index):
    %length = kvcache.cache_length %k[%b] : !cache
    scf.yield %length : index
  }
  return %r : index
}

// CHECK-LABEL: func.func @not_out_of_an_unsigned_loop(
// CHECK-NOT:     kvcache.cache_length
// CHECK:         scf.for unsigned
// CHECK:           kvcache.cache_length
func.func @not_out_of_an_unsigned_loop(%k: !cache, %b: index, %n: index, %out: memref<?xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for unsigned %i = %c0 to %n step %c1 {
    %length = kvcache.cache_length %k[%b] : !cache
    memref.store %length, %out[%i] : memref<?xindex>
  }
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// A check stands before what it protects.

// CHECK-LABEL: func.func @not_past_a_check(
// CHECK:         scf.for
// CHECK:           kvcache.check
// CHECK:           kvcache.load %{{[^ ]*}}[%{{.*}}] :
func.func @not_past_a_check(%k: !cache, %b: index, %t: index, %batch: index, %n: index, %out: memref<?xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %h = %c0 to %n step %c1 {
    kvcache.check %b below %batch, "sequence"
    %v = kvcache.load %k[%b, %h, %t, %c0] : !cache -> bf16
    memref.store %v, %out[%h] : memref<?xbf16>
  }
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// An entry that provably exists needs no guard.

// CHECK-LABEL: func.func @unguarded_where_the_entry_exists(
// CHECK-NOT:     scf.if
// CHECK:         kvcache.cache_length
// CHECK-NOT:     scf.if
// CHECK:         kvcache.page_id
// CHECK-NEXT:    scf.for
func.func @unguarded_where_the_entry_exists(%blocks: memref<?x2x?x64x8x128xbf16>, %lengths: memref<4xi32>,
                                            %lut: memref<4x8xi32>, %max: i32, %layer: index, %n: index,
                                            %out: memref<?xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c511 = arith.constant 511 : index
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
      : memref<?x2x?x64x8x128xbf16>, memref<4xi32>, memref<4x8xi32> -> !collection
  %k = kvcache.paged_view key %c[%layer] : !collection
  scf.for %i = %c0 to %n step %c1 {
    %length = kvcache.cache_length %k[%c3] : !cache
    %page = kvcache.page_id %k[%c3, %c511] : !cache
    memref.store %length, %out[%i] : memref<?xindex>
    memref.store %page, %out[%i] : memref<?xindex>
  }
  return
}

// CHECK-LABEL: func.func @guarded_where_the_entry_need_not_exist(
// CHECK:         scf.if
// CHECK:           kvcache.page_id
// CHECK:         scf.for
func.func @guarded_where_the_entry_need_not_exist(%blocks: memref<?x2x?x64x8x128xbf16>, %lengths: memref<4xi32>,
                                                  %lut: memref<4x8xi32>, %max: i32, %layer: index, %n: index,
                                                  %out: memref<?xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c512 = arith.constant 512 : index
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
      : memref<?x2x?x64x8x128xbf16>, memref<4xi32>, memref<4x8xi32> -> !collection
  %k = kvcache.paged_view key %c[%layer] : !collection
  scf.for %i = %c0 to %n step %c1 {
    %page = kvcache.page_id %k[%c0, %c512] : !cache
    memref.store %page, %out[%i] : memref<?xindex>
  }
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// An assertion stands before what it protects, wherever it is in the loop.

// CHECK-LABEL: func.func @not_past_an_assertion(
// CHECK:         scf.for
// CHECK:           cf.assert
// CHECK:           kvcache.row_index
func.func @not_past_an_assertion(%k: !cache, %b: index, %t: index, %n: index, %out: memref<?xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %inside = arith.cmpi ult, %t, %n : index
    cf.assert %inside, "token"
    %r = kvcache.row_index %k[%b, %t] : !cache
    memref.store %r, %out[%i] : memref<?xindex>
  }
  return
}

// -----

// A lookup through the starts or the rows of sequences leaves a loop as one.

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!csr = !kvcache.paged<bf16, #kv, page_size = 64, layout = hnd, table = csr>
!indexed = !kvcache.paged<bf16, #kv, page_size = 64, layout = [token = 256, head = ?], table = rows>

// CHECK-LABEL: func.func @other_tables(
// CHECK-SAME:      %[[CSR:.*]]: !kvcache.paged<{{.*}}>, %[[ROWS:.*]]: !kvcache.paged<{{.*}}>, %[[B:.*]]: index, %[[T:.*]]: index
// CHECK-DAG:     %[[P:.*]] = kvcache.page_id %[[CSR]][%[[B]], %[[T]]]
// CHECK-DAG:     %[[Q:.*]] = kvcache.page_id %[[ROWS]][%[[B]], %[[T]]]
// CHECK:         scf.for
// CHECK-NOT:       kvcache.page_id
// CHECK:           kvcache.load %[[CSR]]{{.*}} page %[[P]]
// CHECK:           kvcache.load %[[ROWS]]{{.*}} page %[[Q]]
func.func @other_tables(%c: !csr, %r: !indexed, %b: index, %t: index, %out: memref<?xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %h = %c0 to %c8 step %c1 {
    %v = kvcache.load %c[%b, %h, %t, %c0] : !csr -> bf16
    %w = kvcache.load %r[%b, %h, %t, %c0] : !indexed -> bf16
    memref.store %v, %out[%h] : memref<?xbf16>
    memref.store %w, %out[%h] : memref<?xbf16>
  }
  return
}
