// RUN: kvcache-opt %s --convert-kvcache-to-memref --split-input-file | FileCheck %s --implicit-check-not="{{!kvcache[.]|kvcache[.][a-z_]+ [%a-z]|unrealized}}"

// Caches and row indices expand to their parts wherever values travel.

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>
!rows = !kvcache.row_indices<rows = 128, page_size = 64>

// CHECK-LABEL: func.func private @declaration(
// CHECK-SAME:      memref<bf16, strided<[], offset: ?>>, i32, index, memref<i32, strided<[], offset: ?>>, i32, memref<i32, strided<[], offset: ?>>, i32, i32, i32, i32, index)
// CHECK-SAME:      -> (index, index, memref<i32, strided<[], offset: ?>>, index)
func.func private @declaration(!cache, index) -> !rows

// CHECK-LABEL: func.func @call_passes_and_returns_parts(
// CHECK-SAME:      %[[K0:[^:]*]]: memref<bf16, strided<[], offset: ?>>, %[[K1:[^:]*]]: i32, %[[K2:[^:]*]]: index, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %[[I:[^:]*]]: index)
// CHECK-SAME:      -> (index, index, memref<i32, strided<[], offset: ?>>, index)
// CHECK:         %[[ROWS:.*]]:4 = call @declaration(%[[K0]], %[[K1]], %[[K2]], {{.*}}, %[[I]])
// CHECK:         return %[[ROWS]]#0, %[[ROWS]]#1, %[[ROWS]]#2, %[[ROWS]]#3
func.func @call_passes_and_returns_parts(%k: !cache, %i: index) -> !rows {
  %rows = func.call @declaration(%k, %i) : (!cache, index) -> !rows
  return %rows : !rows
}

// CHECK-LABEL: func.func @cache_result(
// CHECK-SAME:      %[[K0:[^:]*]]: memref<bf16, strided<[], offset: ?>>, %[[K1:[^:]*]]: i32, %[[K2:[^:]*]]: index, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: i32) -> (memref<bf16, strided<[], offset: ?>>, i32, index, memref<i32, strided<[], offset: ?>>, i32, memref<i32, strided<[], offset: ?>>, i32, i32, i32, i32)
// CHECK-NEXT:    return %[[K0]], %[[K1]], %[[K2]],
func.func @cache_result(%k: !cache) -> !cache {
  return %k : !cache
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// Attributes stay on their argument; those of a cache go to its pointers, and
// its name is the prefix of its parts' names.

// CHECK-LABEL: func.func @argument_attributes_follow_their_arguments(
// CHECK-SAME:      %{{[^:]*}}: memref<bf16, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: index, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: i32,
// CHECK-SAME:      %{{[^:]*}}: memref<?xf32> {llvm.noalias},
// CHECK-SAME:      %{{[^:]*}}: memref<bf16, strided<[], offset: ?>> {{[{]}}kvcache.name = "v.blocks", llvm.noalias{{[}]}}, %{{[^:]*}}: i32 {{[{]}}kvcache.name = "v.num_pages"{{[}]}}, %{{[^:]*}}: index {{[{]}}kvcache.name = "v.page_stride"{{[}]}}, %{{[^:]*}}: memref<i32, strided<[], offset: ?>> {{[{]}}kvcache.name = "v.cache_lengths", llvm.noalias{{[}]}}, %{{[^:]*}}: i32 {{[{]}}kvcache.name = "v.batch"{{[}]}}, %{{[^:]*}}: memref<i32, strided<[], offset: ?>> {{[{]}}kvcache.name = "v.lookup_table", llvm.noalias{{[}]}}, %{{[^:]*}}: i32 {{[{]}}kvcache.name = "v.table_columns"{{[}]}}, %{{[^:]*}}: i32 {{[{]}}kvcache.name = "v.table_stride"{{[}]}}, %{{[^:]*}}: i32 {{[{]}}kvcache.name = "v.max_seq_length"{{[}]}}, %{{[^:]*}}: i32 {{[{]}}kvcache.name = "v.max_cache_length"{{[}]}},
// CHECK-SAME:      %{{[^:]*}}: index {{[{]}}kvcache.name = "i"{{[}]}})
// CHECK-SAME:      -> (memref<bf16, strided<[], offset: ?>>, i32, index, memref<i32, strided<[], offset: ?>>, i32, memref<i32, strided<[], offset: ?>>, i32, i32, i32, i32, index {{[{]}}kvcache.name = "last"{{[}]}})
func.func @argument_attributes_follow_their_arguments(
    %k: !cache, %out: memref<?xf32> {llvm.noalias}, %v: !cache {kvcache.name = "v", llvm.noalias},
    %i: index {kvcache.name = "i"}) -> (!cache, index {kvcache.name = "last"}) {
  return %k, %i : !cache, index
}

// A function without caches is left as it is.

// CHECK-LABEL: func.func @no_caches(%{{[^:]*}}: memref<?xf32> {llvm.noalias}, %{{[^:]*}}: index)
func.func @no_caches(%m: memref<?xf32> {llvm.noalias}, %i: index) {
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>
!rows = !kvcache.row_indices<rows = 128, page_size = 64>

// CHECK-LABEL: func.func @select_chooses_every_part(
// CHECK-SAME:      %[[C:[^:]*]]: i1, %[[K0:[^:]*]]: memref<bf16, strided<[], offset: ?>>, %[[K1:[^:]*]]: i32, %[[K2:[^:]*]]: index, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %[[V0:[^:]*]]: memref<bf16, strided<[], offset: ?>>, %[[V1:[^:]*]]: i32, %[[V2:[^:]*]]: index, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: i32)
// CHECK:         %[[R0:.*]] = arith.select %[[C]], %[[K0]], %[[V0]] : memref<bf16, strided<[], offset: ?>>
// CHECK:         %[[R1:.*]] = arith.select %[[C]], %[[K1]], %[[V1]] : i32
// CHECK:         %[[R2:.*]] = arith.select %[[C]], %[[K2]], %[[V2]] : index
// CHECK:         return %[[R0]], %[[R1]], %[[R2]],
func.func @select_chooses_every_part(%c: i1, %k: !cache, %v: !cache) -> !cache {
  %r = arith.select %c, %k, %v : !cache
  return %r : !cache
}

// CHECK-LABEL: func.func @if_yields_parts(
// CHECK-SAME:      %[[C:[^:]*]]: i1, %[[K0:[^:]*]]: memref<bf16, strided<[], offset: ?>>, %[[K1:[^:]*]]: i32, %[[K2:[^:]*]]: index, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %[[V0:[^:]*]]: memref<bf16, strided<[], offset: ?>>, %[[V1:[^:]*]]: i32, %[[V2:[^:]*]]: index, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: i32)
// CHECK:         %[[R:.*]]:10 = scf.if %[[C]] -> (memref<bf16, strided<[], offset: ?>>, i32, index, memref<i32, strided<[], offset: ?>>, i32, memref<i32, strided<[], offset: ?>>, i32, i32, i32, i32)
// CHECK:           scf.yield %[[K0]], %[[K1]], %[[K2]],
// CHECK:         } else {
// CHECK:           scf.yield %[[V0]], %[[V1]], %[[V2]],
// CHECK:         return %[[R]]#0, %[[R]]#1, %[[R]]#2,
func.func @if_yields_parts(%c: i1, %k: !cache, %v: !cache) -> !cache {
  %r = scf.if %c -> !cache {
    scf.yield %k : !cache
  } else {
    scf.yield %v : !cache
  }
  return %r : !cache
}

// CHECK-LABEL: func.func @index_switch_yields_parts(
// CHECK:         %[[R:.*]]:4 = scf.index_switch %{{.*}} -> index, index, memref<i32, strided<[], offset: ?>>, index
// CHECK:         return %[[R]]#0, %[[R]]#1, %[[R]]#2, %[[R]]#3
func.func @index_switch_yields_parts(%i: index, %x: !rows, %y: !rows) -> !rows {
  %r = scf.index_switch %i -> !rows
  case 1 {
    scf.yield %x : !rows
  }
  default {
    scf.yield %y : !rows
  }
  return %r : !rows
}

// Two caches that a loop swaps: parts must not mix.

// CHECK-LABEL: func.func @for_carries_parts(
// CHECK-SAME:      %[[K0:[^:]*]]: memref<bf16, strided<[], offset: ?>>, %[[K1:[^:]*]]: i32, %[[K2:[^:]*]]: index, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %[[V0:[^:]*]]: memref<bf16, strided<[], offset: ?>>, %[[V1:[^:]*]]: i32, %[[V2:[^:]*]]: index, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: index)
// CHECK:         %[[R:.*]]:20 = scf.for {{.*}} iter_args(%[[A0:[^ ]*]] = %[[K0]], %[[A1:[^ ]*]] = %[[K1]], %[[A2:[^ ]*]] = %[[K2]], {{.*}}, %[[B0:[^ ]*]] = %[[V0]], %[[B1:[^ ]*]] = %[[V1]], %[[B2:[^ ]*]] = %[[V2]],
// CHECK:           scf.yield %[[B0]], %[[B1]], %[[B2]], {{.*}}, %[[A0]], %[[A1]], %[[A2]],
// CHECK:         return %[[R]]#0, %[[R]]#1, %[[R]]#2,
func.func @for_carries_parts(%k: !cache, %v: !cache, %n: index) -> !cache {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %k, %b = %v) -> (!cache, !cache) {
    scf.yield %b, %a : !cache, !cache
  }
  return %r#0 : !cache
}

// CHECK-LABEL: func.func @while_carries_parts(
// CHECK-SAME:      %[[C:[^:]*]]: i1, %[[X0:[^:]*]]: index, %[[X1:[^:]*]]: index, %[[X2:[^:]*]]: memref<i32, strided<[], offset: ?>>, %[[X3:[^:]*]]: index,
// CHECK-SAME:      %[[Y0:[^:]*]]: index, %[[Y1:[^:]*]]: index, %[[Y2:[^:]*]]: memref<i32, strided<[], offset: ?>>, %[[Y3:[^:]*]]: index)
// CHECK:         %[[R:.*]]:8 = scf.while (%[[A0:[^ ]*]] = %[[X0]], %[[A1:[^ ]*]] = %[[X1]], %[[A2:[^ ]*]] = %[[X2]], %[[A3:[^ ]*]] = %[[X3]], %[[B0:[^ ]*]] = %[[Y0]],
// CHECK:           scf.condition(%[[C]]) %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %[[A0]], %[[A1]], %[[A2]], %[[A3]] :
// CHECK:         ^bb0(%[[P0:[^:]*]]: index, %{{[^:]*}}: index, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: index, %[[Q0:[^:]*]]: index,
// CHECK:           scf.yield %[[P0]], {{.*}}, %[[Q0]],
// CHECK:         return %[[R]]#4, %[[R]]#5, %[[R]]#6, %[[R]]#7
func.func @while_carries_parts(%c: i1, %x: !rows, %y: !rows) -> !rows {
  %r:2 = scf.while (%a = %x, %b = %y) : (!rows, !rows) -> (!rows, !rows) {
    scf.condition(%c) %b, %a : !rows, !rows
  } do {
  ^bb0(%p: !rows, %q: !rows):
    scf.yield %p, %q : !rows, !rows
  }
  return %r#1 : !rows
}

// CHECK-LABEL: func.func @parallel_and_forall_capture_parts(
// CHECK:         scf.parallel
// CHECK:           memref.load
// CHECK:         scf.forall
// CHECK:           memref.load
func.func @parallel_and_forall_capture_parts(%k: !cache, %n: index, %out: memref<?xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%b) = (%c0) to (%n) step (%c1) {
    %length = kvcache.cache_length %k[%b] : !cache
    memref.store %length, %out[%b] : memref<?xindex>
  }
  scf.forall (%b) in (%n) {
    %length = kvcache.cache_length %k[%b] : !cache
    memref.store %length, %out[%b] : memref<?xindex>
  }
  return
}

// CHECK-LABEL: func.func @branches_carry_parts(
// CHECK-SAME:      %[[C:[^:]*]]: i1, %[[K0:[^:]*]]: memref<bf16, strided<[], offset: ?>>, %[[K1:[^:]*]]: i32, %[[K2:[^:]*]]: index, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %[[V0:[^:]*]]: memref<bf16, strided<[], offset: ?>>, %[[V1:[^:]*]]: i32, %[[V2:[^:]*]]: index, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: i32)
// CHECK:         cf.cond_br %[[C]], ^[[ONE:[^(]*]](%[[K0]], %[[K1]], %[[K2]], {{.*}}), ^[[TWO:[^(]*]](%[[V0]], %[[V1]], %[[V2]],
// CHECK:       ^[[ONE]](%[[A0:[^:]*]]: memref<bf16, strided<[], offset: ?>>, %[[A1:[^:]*]]: i32, %[[A2:[^:]*]]: index,
// CHECK:         cf.br ^[[TWO]](%[[A0]], %[[A1]], %[[A2]],
// CHECK:       ^[[TWO]](%[[R0:[^:]*]]: memref<bf16, strided<[], offset: ?>>, %[[R1:[^:]*]]: i32, %[[R2:[^:]*]]: index,
// CHECK:         return %[[R0]], %[[R1]], %[[R2]],
func.func @branches_carry_parts(%c: i1, %k: !cache, %v: !cache) -> !cache {
  cf.cond_br %c, ^one(%k : !cache), ^two(%v : !cache)
^one(%a: !cache):
  cf.br ^two(%a : !cache)
^two(%r: !cache):
  return %r : !cache
}

// CHECK-LABEL: func.func @row_indices_travel_like_caches(
// CHECK-SAME:      %[[C:[^:]*]]: i1, %[[X0:[^:]*]]: index, %[[X1:[^:]*]]: index, %[[X2:[^:]*]]: memref<i32, strided<[], offset: ?>>, %[[X3:[^:]*]]: index, %[[Y0:[^:]*]]: index,
// CHECK:         %[[S0:.*]] = arith.select %[[C]], %[[X0]], %[[Y0]] : index
// CHECK:         %[[F:.*]]:4 = scf.if %[[C]] -> (index, index, memref<i32, strided<[], offset: ?>>, index)
// CHECK:           scf.yield %[[S0]],
// CHECK:         cf.br ^[[LAST:[^(]*]](%[[F]]#0, %[[F]]#1, %[[F]]#2, %[[F]]#3 :
// CHECK:       ^[[LAST]](%[[R0:[^:]*]]: index, %[[R1:[^:]*]]: index, %[[R2:[^:]*]]: memref<i32, strided<[], offset: ?>>, %[[R3:[^:]*]]: index):
// CHECK:         return %[[R0]], %[[R1]], %[[R2]], %[[R3]]
func.func @row_indices_travel_like_caches(%c: i1, %x: !rows, %y: !rows) -> !rows {
  %s = arith.select %c, %x, %y : !rows
  %f = scf.if %c -> !rows {
    scf.yield %s : !rows
  } else {
    scf.yield %x : !rows
  }
  cf.br ^last(%f : !rows)
^last(%r: !rows):
  return %r : !rows
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>
!shared = memref<16xindex, #gpu.address_space<workgroup>>
!private = memref<4xindex, #gpu.address_space<private>>

// A kernel's attributions stay, and so do their attributes; its arguments get
// names, because callers find its parameters by them.

// CHECK-LABEL: gpu.func @kernel_with_attributions(
// CHECK-SAME:      %[[OUT:[^:]*]]: memref<?xindex> {{[{]}}kvcache.name = "arg0", llvm.noalias{{[}]}}, %{{[^:]*}}: memref<bf16, strided<[], offset: ?>> {{[{]}}kvcache.name = "arg1.blocks"{{[}]}}, %{{[^:]*}}: i32 {{[{]}}kvcache.name = "arg1.num_pages"{{[}]}},
// CHECK-SAME:      %{{[^:]*}}: i32 {{[{]}}kvcache.name = "arg1.max_cache_length"{{[}]}}, %[[B:[^:]*]]: index {{[{]}}kvcache.name = "b"{{[}]}})
// CHECK-SAME:      workgroup(%[[SHARED:[^:]*]] : memref<16xindex, #gpu.address_space<workgroup>> {{[{]}}llvm.align = 16 : i64{{[}]}})
// CHECK-SAME:      private(%[[PRIVATE:[^:]*]] : memref<4xindex, #gpu.address_space<private>>)
// CHECK-SAME:      kernel attributes {{[{]}}known_block_size = array<i32: 32, 1, 1>{{[}]}}
// CHECK:         %[[ENTRY:.*]] = memref.load %{{.*}}[%[[B]]]
// CHECK:         %[[LENGTH:.*]] = arith.index_castui %[[ENTRY]]
// CHECK:         memref.store %[[LENGTH]], %[[SHARED]][%[[B]]]
// CHECK:         memref.store %[[LENGTH]], %[[PRIVATE]][%[[B]]]
// CHECK:         memref.store %[[LENGTH]], %[[OUT]][%[[B]]]
// CHECK:         gpu.return
gpu.module @kernels {
  gpu.func @kernel_with_attributions(%out: memref<?xindex> {llvm.noalias}, %k: !cache,
                                     %b: index {kvcache.name = "b"})
      workgroup(%shared: !shared {llvm.align = 16 : i64}) private(%private: !private)
      kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %length = kvcache.cache_length %k[%b] : !cache
    memref.store %length, %shared[%b] : !shared
    memref.store %length, %private[%b] : !private
    memref.store %length, %out[%b] : memref<?xindex>
    gpu.return
  }

  // CHECK:       func.func @device_function(%{{[^:]*}}: memref<bf16, strided<[], offset: ?>>, %{{[^:]*}}: i32,
  func.func @device_function(%k: !cache, %b: index) -> index {
    %length = kvcache.cache_length %k[%b] : !cache
    return %length : index
  }

  // CHECK:       gpu.func @kernel_that_calls(
  // CHECK:         %[[LENGTH:.*]] = func.call @device_function(
  // CHECK:         memref.store %[[LENGTH]]
  gpu.func @kernel_that_calls(%k: !cache, %b: index, %out: memref<?xindex>) kernel {
    %length = func.call @device_function(%k, %b) : (!cache, index) -> index
    memref.store %length, %out[%b] : memref<?xindex>
    gpu.return
  }
}

// CHECK-LABEL: func.func @launch_captures_parts(
// CHECK-SAME:      %[[K0:[^:]*]]: memref<bf16, strided<[], offset: ?>>, %[[K1:[^:]*]]: i32, %[[K2:[^:]*]]: index, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %[[N:[^:]*]]: index)
// CHECK:         gpu.launch blocks(%[[BX:[^,]*]], {{.*}} workgroup(%{{.*}}) private(%[[PRIVATE:.*]] : memref<4xindex, #gpu.address_space<private>>)
// CHECK:           %[[ENTRY:.*]] = memref.load %{{.*}}[%[[BX]]]
// CHECK:           %[[LENGTH:.*]] = arith.index_castui %[[ENTRY]]
// CHECK:           memref.store %[[LENGTH]], %[[PRIVATE]]
func.func @launch_captures_parts(%k: !cache, %n: index) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %n, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1)
             workgroup(%shared : !shared) private(%private : !private) {
    %length = kvcache.cache_length %k[%bx] : !cache
    memref.store %length, %private[%tx] : !private
    gpu.terminator
  }
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// A launch passes the parts, and its grid may come from a query.

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%i: index, %k: !cache, %out: memref<?xindex>) kernel {
      gpu.return
    }
  }

  // CHECK-LABEL: func.func @launch_func_passes_parts(
  // CHECK-SAME:      %[[K0:[^:]*]]: memref<bf16, strided<[], offset: ?>>, %[[K1:[^:]*]]: i32, %[[K2:[^:]*]]: index, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %[[OUT:[^:]*]]: memref<?xindex>, %[[B:[^:]*]]: index)
  // CHECK:         %[[ENTRY:.*]] = memref.load %{{.*}}[%[[B]]]
  // CHECK:         %[[LENGTH:.*]] = arith.index_castui %[[ENTRY]]
  // CHECK:         %[[START:.*]] = gpu.wait async
  // CHECK:         gpu.launch_func async [%[[START]]] @kernels::@kernel blocks in (%[[LENGTH]], {{[^)]*}}) threads in (%[[LENGTH]], {{[^)]*}})
  // CHECK-SAME:        args(%[[LENGTH]] : index, %[[K0]] : memref<bf16, strided<[], offset: ?>>, %[[K1]] : i32, %[[K2]] : index, {{.*}}, %[[OUT]] : memref<?xindex>)
  func.func @launch_func_passes_parts(%k: !cache, %out: memref<?xindex>, %b: index) {
    %c1 = arith.constant 1 : index
    %length = kvcache.cache_length %k[%b] : !cache
    %start = gpu.wait async
    %done = gpu.launch_func async [%start] @kernels::@kernel
        blocks in (%length, %c1, %c1) threads in (%length, %c1, %c1)
        args(%length : index, %k : !cache, %out : memref<?xindex>)
    gpu.wait [%done]
    return
  }
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// CHECK-LABEL: func.func @execute_region(
// CHECK:         %[[CACHE:.*]]:10 = scf.execute_region -> (memref<bf16, strided<[], offset: ?>>, i32, index,
// CHECK:           scf.yield %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}
// CHECK:         memref.extract_strided_metadata %[[CACHE]]#5
func.func @execute_region(%a: !cache, %b: !cache, %c: i1, %x: index) -> index {
  %k = scf.execute_region -> !cache {
    cf.cond_br %c, ^bb1, ^bb2
  ^bb1:
    scf.yield %a : !cache
  ^bb2:
    scf.yield %b : !cache
  }
  %r = kvcache.row_index %k[%x, %x] : !cache
  return %r : index
}

// CHECK-LABEL: func.func @switch(
// CHECK:         cf.switch %{{.*}} : i32, [
// CHECK-NEXT:      default: ^[[BLOCK:.*]](%{{.*}}, %{{.*}} : memref<bf16, strided<[], offset: ?>>, i32,
// CHECK-NEXT:      7: ^[[BLOCK]](%{{.*}}, %{{.*}} : memref<bf16, strided<[], offset: ?>>, i32,
func.func @switch(%a: !cache, %b: !cache, %f: i32, %x: index) -> index {
  cf.switch %f : i32, [
    default: ^bb1(%a : !cache),
    7: ^bb1(%b : !cache)
  ]
^bb1(%k: !cache):
  %r = kvcache.row_index %k[%x, %x] : !cache
  return %r : index
}
