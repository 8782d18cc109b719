// RUN: kvcache-opt %s --kvcache-name-kernel-args --split-input-file | FileCheck %s

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!ccollection = !kvcache.continuous_collection<bf16, #kv>
!ccache = !kvcache.continuous<bf16, #kv>

// The name of the function argument that is passed, or the role of the view. A
// name that the kernel gives stays.

module attributes {gpu.container_module} {
  gpu.module @kernels {
    // CHECK-LABEL: gpu.func @named_after_what_is_passed(
    // CHECK-SAME:      %{{[^:]*}}: !{{[^%]*}} {kvcache.name = "pages"},
    // CHECK-SAME:      %{{[^:]*}}: !{{[^%]*}} {kvcache.name = "key"},
    // CHECK-SAME:      %{{[^:]*}}: !{{[^%]*}} {kvcache.name = "value"},
    // CHECK-SAME:      %{{[^:]*}}: !{{[^%]*}} {kvcache.name = "cache"},
    // CHECK-SAME:      %{{[^:]*}}: memref<?xf32> {kvcache.name = "out"},
    // CHECK-SAME:      %{{[^:]*}}: memref<?xf32> {kvcache.name = "own"},
    // CHECK-SAME:      %{{[^:]*}}: index, %{{[^:]*}}: index)
    gpu.func @named_after_what_is_passed(%a: !collection, %b: !cache, %c: !ccache, %d: !cache, %e: memref<?xf32>,
                                         %f: memref<?xf32> {kvcache.name = "own"}, %g: index, %h: index) kernel {
      gpu.return
    }

    // CHECK-LABEL: gpu.func @never_launched(
    // CHECK-NOT:     kvcache.name
    // CHECK:         gpu.return
    gpu.func @never_launched(%a: !collection) kernel {
      gpu.return
    }
  }

  func.func @launch(%c: !collection {kvcache.name = "pages"}, %cc: !ccollection, %other: !cache,
                    %out: memref<?xf32> {kvcache.name = "out"}, %i: index) {
    %c1 = arith.constant 1 : index
    %k = kvcache.paged_view key %c[%i] : !collection
    %v = kvcache.continuous_view value %cc[%i] : !ccollection
    gpu.launch_func @kernels::@named_after_what_is_passed blocks in (%i, %i, %i) threads in (%i, %i, %i)
        args(%c : !collection, %k : !cache, %v : !ccache, %other : !cache, %out : memref<?xf32>,
             %out : memref<?xf32>, %i : index, %c1 : index)
    return
  }
}

// -----

// The first launch names; a second one doesn't rename.

module attributes {gpu.container_module} {
  gpu.module @kernels {
    // CHECK-LABEL: gpu.func @launched_twice(
    // CHECK-SAME:      %{{[^:]*}}: memref<?xf32> {kvcache.name = "first"}, %{{[^:]*}}: memref<?xf32> {kvcache.name = "second"})
    gpu.func @launched_twice(%a: memref<?xf32>, %b: memref<?xf32>) kernel {
      gpu.return
    }
  }
  func.func @launch(%a: memref<?xf32> {kvcache.name = "first"}, %b: memref<?xf32>,
                    %c: memref<?xf32> {kvcache.name = "second"}, %i: index) {
    gpu.launch_func @kernels::@launched_twice blocks in (%i, %i, %i) threads in (%i, %i, %i)
        args(%a : memref<?xf32>, %b : memref<?xf32>)
    gpu.launch_func @kernels::@launched_twice blocks in (%i, %i, %i) threads in (%i, %i, %i)
        args(%c : memref<?xf32>, %c : memref<?xf32>)
    return
  }
}

// -----

!cache = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 128>
!scales = !kvcache.scales<!cache>

// A view of scales is called that.

module attributes {gpu.container_module} {
  gpu.module @kernels {
    // CHECK-LABEL: gpu.func @scales(
    // CHECK-SAME:      %{{[^:]*}}: !kvcache.scales<{{[^%]*}}> {kvcache.name = "scales"},
    // CHECK-SAME:      %{{[^:]*}}: !kvcache.scales<{{[^%]*}}> {kvcache.name = "factors"},
    // CHECK-SAME:      %{{[^:]*}}: !kvcache.scales<{{[^%]*}}> {kvcache.name = "cache"})
    gpu.func @scales(%a: !scales, %b: !scales, %c: !scales) kernel {
      gpu.return
    }
  }
  func.func @launch(%k: !cache, %named: !scales {kvcache.name = "factors"}, %other: !scales, %i: index) {
    %s = kvcache.scales_view %k : !cache
    gpu.launch_func @kernels::@scales blocks in (%i, %i, %i) threads in (%i, %i, %i)
        args(%s : !scales, %named : !scales, %other : !scales)
    return
  }
}
