// RUN: kvcache-opt %s --convert-kvcache-to-memref --split-input-file | FileCheck %s --implicit-check-not="{{!kvcache[.]|kvcache[.][a-z_]+ [%a-z]|unrealized}}"

// A view of scales expands to its parts wherever values travel.

!cache = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 128>
!scales = !kvcache.scales<!cache>

// CHECK-LABEL: func.func private @declaration(
// CHECK-SAME:      memref<i32, strided<[], offset: ?>>, i32, i32, memref<f32, strided<[], offset: ?>>, i32, index, memref<i32, strided<[], offset: ?>>, i32, i32)
// CHECK-SAME:      -> (memref<i32, strided<[], offset: ?>>, i32, i32, memref<f32, strided<[], offset: ?>>, i32, index, memref<i32, strided<[], offset: ?>>, i32, i32)
func.func private @declaration(!scales) -> !scales

// CHECK-LABEL: func.func @call_passes_and_returns_parts(
// CHECK-SAME:      %[[S0:[^:]*]]: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %[[S3:[^:]*]]: memref<f32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: index, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %[[S8:[^:]*]]: i32)
// CHECK:         %[[R:.*]]:9 = call @declaration(%[[S0]], {{.*}}, %[[S3]], {{.*}}, %[[S8]])
// CHECK:         return %[[R]]#0, %[[R]]#1, %[[R]]#2, %[[R]]#3, %[[R]]#4, %[[R]]#5, %[[R]]#6, %[[R]]#7, %[[R]]#8
func.func @call_passes_and_returns_parts(%s: !scales) -> !scales {
  %r = func.call @declaration(%s) : (!scales) -> !scales
  return %r : !scales
}

// CHECK-LABEL: func.func @select_chooses_every_part(
// CHECK-SAME:      %[[C:[^:]*]]: i1, %[[X0:[^:]*]]: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %[[X3:[^:]*]]: memref<f32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: index, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %[[X8:[^:]*]]: i32,
// CHECK-SAME:      %[[Y0:[^:]*]]: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %[[Y3:[^:]*]]: memref<f32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: index, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %[[Y8:[^:]*]]: i32)
// CHECK:         %[[R0:.*]] = arith.select %[[C]], %[[X0]], %[[Y0]]
// CHECK:         %[[R3:.*]] = arith.select %[[C]], %[[X3]], %[[Y3]]
// CHECK:         %[[R8:.*]] = arith.select %[[C]], %[[X8]], %[[Y8]]
// CHECK:         return %[[R0]], {{.*}}, %[[R3]], {{.*}}, %[[R8]]
func.func @select_chooses_every_part(%c: i1, %x: !scales, %y: !scales) -> !scales {
  %r = arith.select %c, %x, %y : !scales
  return %r : !scales
}

// CHECK-LABEL: func.func @if_yields_parts(
// CHECK-SAME:      %[[C:[^:]*]]: i1, %[[X0:[^:]*]]: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %[[X3:[^:]*]]: memref<f32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: index, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %[[X8:[^:]*]]: i32,
// CHECK-SAME:      %[[Y0:[^:]*]]: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %[[Y3:[^:]*]]: memref<f32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: index, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %[[Y8:[^:]*]]: i32)
// CHECK:         %[[R:.*]]:9 = scf.if %[[C]]
// CHECK:           scf.yield %[[X0]], {{.*}}, %[[X3]], {{.*}}, %[[X8]] :
// CHECK:           scf.yield %[[Y0]], {{.*}}, %[[Y3]], {{.*}}, %[[Y8]] :
// CHECK:         return %[[R]]#0,
func.func @if_yields_parts(%c: i1, %x: !scales, %y: !scales) -> !scales {
  %r = scf.if %c -> !scales {
    scf.yield %x : !scales
  } else {
    scf.yield %y : !scales
  }
  return %r : !scales
}

// CHECK-LABEL: func.func @for_carries_parts(
// CHECK-SAME:      %[[X0:[^:]*]]: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %[[X3:[^:]*]]: memref<f32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: index, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %[[X8:[^:]*]]: i32,
// CHECK-SAME:      %[[Y0:[^:]*]]: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %[[Y3:[^:]*]]: memref<f32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: index, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %[[Y8:[^:]*]]: i32,
// CHECK:         %[[R:.*]]:18 = scf.for {{.*}} iter_args(%[[A0:[^ ]*]] = %[[X0]], {{.*}}, %[[B0:[^ ]*]] = %[[Y0]],
// CHECK:           scf.yield %[[B0]], {{.*}}, %[[A0]],
// CHECK:         return %[[R]]#0,
func.func @for_carries_parts(%x: !scales, %y: !scales, %n: index) -> !scales {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x, %b = %y) -> (!scales, !scales) {
    scf.yield %b, %a : !scales, !scales
  }
  return %r#0 : !scales
}

// CHECK-LABEL: func.func @branches_carry_parts(
// CHECK:         cf.cond_br %{{.*}}, ^[[ONE:[^(]*]](%{{.*}}), ^[[TWO:[^(]*]](%{{.*}})
// CHECK:       ^[[ONE]](%[[A0:[^:]*]]: memref<i32, strided<[], offset: ?>>,
// CHECK:         cf.br ^[[TWO]](%[[A0]],
// CHECK:       ^[[TWO]](%[[R0:[^:]*]]: memref<i32, strided<[], offset: ?>>,
// CHECK:         return %[[R0]],
func.func @branches_carry_parts(%c: i1, %x: !scales, %y: !scales) -> !scales {
  cf.cond_br %c, ^one(%x : !scales), ^two(%y : !scales)
^one(%a: !scales):
  cf.br ^two(%a : !scales)
^two(%r: !scales):
  return %r : !scales
}

// -----

!cache = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 128>
!scales = !kvcache.scales<!cache>

// A launch passes the parts, whose names in a kernel are those of the argument.

module attributes {gpu.container_module} {
  gpu.module @kernels {
    // CHECK-LABEL: gpu.func @kernel(
    // CHECK-SAME:      %{{[^:]*}}: memref<i32, strided<[], offset: ?>> {{[{]}}kvcache.name = "scales.cache_lengths"{{[}]}}, %{{[^:]*}}: i32 {{[{]}}kvcache.name = "scales.batch"{{[}]}}, %{{[^:]*}}: i32 {{[{]}}kvcache.name = "scales.max_cache_length"{{[}]}},
    // CHECK-SAME:      %{{[^:]*}}: memref<f32, strided<[], offset: ?>> {{[{]}}kvcache.name = "scales.scales"{{[}]}}, %{{[^:]*}}: i32 {{[{]}}kvcache.name = "scales.scale_pages"{{[}]}}, %{{[^:]*}}: index {{[{]}}kvcache.name = "scales.scale_page_stride"{{[}]}},
    // CHECK-SAME:      %{{[^:]*}}: memref<i32, strided<[], offset: ?>> {{[{]}}kvcache.name = "scales.scale_table"{{[}]}}, %{{[^:]*}}: i32 {{[{]}}kvcache.name = "scales.scale_columns"{{[}]}}, %{{[^:]*}}: i32 {{[{]}}kvcache.name = "scales.scale_table_stride"{{[}]}},
    // CHECK:         memref.load %{{.*}} : memref<?xf32,
    gpu.func @kernel(%s: !scales {kvcache.name = "scales"}, %i: index, %out: memref<?xf32>) kernel {
      %x = kvcache.load %s[%i, %i, %i, %i] : !scales -> f32
      memref.store %x, %out[%i] : memref<?xf32>
      gpu.return
    }
  }

  // CHECK-LABEL: func.func @launch_passes_parts(
  // CHECK-SAME:      %{{[^:]*}}: memref<f8E4M3FN, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: index, %[[LENGTHS:[^:]*]]: memref<i32, strided<[], offset: ?>>, %[[BATCH:[^:]*]]: i32, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %[[MAX_CACHE:[^:]*]]: i32, %[[SCALES:[^:]*]]: memref<f32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: index, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: i32,
  // CHECK:         gpu.launch_func @kernels::@kernel
  // CHECK-SAME:        args(%[[LENGTHS]] : memref<i32, strided<[], offset: ?>>, %[[BATCH]] : i32, %[[MAX_CACHE]] : i32, %[[SCALES]] : memref<f32, strided<[], offset: ?>>,
  func.func @launch_passes_parts(%k: !cache, %i: index, %out: memref<?xf32>) {
    %s = kvcache.scales_view %k : !cache
    gpu.launch_func @kernels::@kernel blocks in (%i, %i, %i) threads in (%i, %i, %i)
        args(%s : !scales, %i : index, %out : memref<?xf32>)
    return
  }
}
