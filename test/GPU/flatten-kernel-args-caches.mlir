// RUN: kvcache-opt %s --convert-kvcache-to-memref --kvcache-flatten-kernel-args --split-input-file | FileCheck %s

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// The ABI of a cache follows from its type, whatever the kernel does with it.

// CHECK-LABEL: gpu.func @unused_parts_stay(
// CHECK-SAME:      kvcache.parameters = [
// CHECK-SAME:        {name = "keys.blocks", type = !llvm.ptr}, {name = "keys.num_pages", type = i32}, {name = "keys.page_stride", type = index},
// CHECK-SAME:        {name = "keys.cache_lengths", type = !llvm.ptr}, {name = "keys.batch", type = i32},
// CHECK-SAME:        {name = "keys.lookup_table", type = !llvm.ptr}, {name = "keys.table_columns", type = i32}, {name = "keys.table_stride", type = i32},
// CHECK-SAME:        {name = "keys.max_seq_length", type = i32}, {name = "keys.max_cache_length", type = i32},
// CHECK-SAME:        {name = "out", type = !llvm.ptr}, {name = "out.size0", type = index}]
gpu.module @kernels {
  gpu.func @unused_parts_stay(%k: !cache {kvcache.name = "keys"}, %out: memref<?xbf16> {kvcache.name = "out"}) kernel {
    gpu.return
  }
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 64>

// CHECK-LABEL: gpu.func @collection(
// CHECK-SAME:      kvcache.parameters = [
// CHECK-SAME:        {name = "arg0.blocks", type = !llvm.ptr}, {name = "arg0.num_pages", type = i32}, {name = "arg0.num_layers", type = i32}, {name = "arg0.role_stride", type = index}, {name = "arg0.layer_stride", type = index}, {name = "arg0.page_stride", type = index},
// CHECK-SAME:        {name = "arg0.cache_lengths", type = !llvm.ptr}, {name = "arg0.batch", type = i32},
// CHECK-SAME:        {name = "arg0.lookup_table", type = !llvm.ptr}, {name = "arg0.table_columns", type = i32}, {name = "arg0.table_stride", type = i32},
// CHECK-SAME:        {name = "arg0.max_seq_length", type = i32}, {name = "arg0.max_cache_length", type = i32},
// CHECK-SAME:        {name = "arg0.scales", type = !llvm.ptr}, {name = "arg0.scale_pages", type = i32}, {name = "arg0.scale_role_stride", type = index}, {name = "arg0.scale_layer_stride", type = index}, {name = "arg0.scale_page_stride", type = index},
// CHECK-SAME:        {name = "arg0.scale_table", type = !llvm.ptr}, {name = "arg0.scale_columns", type = i32}, {name = "arg0.scale_table_stride", type = i32}]
gpu.module @kernels {
  gpu.func @collection(%c: !collection) kernel {
    gpu.return
  }
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// Keys and values of one collection are one buffer, of which the values are
// stored to. The tables are the same, too, but only read.

module attributes {gpu.container_module} {
  gpu.module @kernels {
    // CHECK-LABEL: gpu.func @keys_to_values(
    // CHECK-SAME:      %{{[^:]*}}: !llvm.ptr {llvm.readonly}, %{{[^:]*}}: i32, %{{[^:]*}}: index, %{{[^:]*}}: !llvm.ptr {llvm.noalias, llvm.readonly}, %{{[^:]*}}: i32, %{{[^:]*}}: !llvm.ptr {llvm.noalias, llvm.readonly}, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: i32,
    // CHECK-SAME:      %{{[^:]*}}: !llvm.ptr, %{{[^:]*}}: i32,
    gpu.func @keys_to_values(%k: !cache, %v: !cache, %i: index) kernel {
      %x = kvcache.load %k[%i, %i, %i, %i] : !cache -> bf16
      kvcache.store %x, %v[%i, %i, %i, %i] : bf16, !cache
      gpu.return
    }
  }
  func.func @launch(%c: !collection, %i: index) {
    %k = kvcache.paged_view key %c[%i] : !collection
    %v = kvcache.paged_view value %c[%i] : !collection
    gpu.launch_func @kernels::@keys_to_values blocks in (%i, %i, %i) threads in (%i, %i, %i)
        args(%k : !cache, %v : !cache, %i : index)
    return
  }
}

// -----

!cache = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 64>
!scales = !kvcache.scales<!cache>

// A view of scales has no blocks, and no table but that of the scales.

// CHECK-LABEL: gpu.func @scales(
// CHECK-SAME:      kvcache.parameters = [
// CHECK-SAME:        {name = "scales.cache_lengths", type = !llvm.ptr}, {name = "scales.batch", type = i32}, {name = "scales.max_cache_length", type = i32},
// CHECK-SAME:        {name = "scales.scales", type = !llvm.ptr}, {name = "scales.scale_pages", type = i32}, {name = "scales.scale_page_stride", type = index},
// CHECK-SAME:        {name = "scales.scale_table", type = !llvm.ptr}, {name = "scales.scale_columns", type = i32}, {name = "scales.scale_table_stride", type = i32},
// CHECK-SAME:        {name = "arg1", type = index}]
gpu.module @kernels {
  gpu.func @scales(%s: !scales {kvcache.name = "scales"}, %i: index) kernel {
    %x = kvcache.load %s[%i, %i, %i, %i] : !scales -> f32
    kvcache.store %x, %s[%i, %i, %i, %i] : f32, !scales
    gpu.return
  }
}

// -----

!cache = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 64>
!scales = !kvcache.scales<!cache>

// A cache and a view of its scales share what is stored to.

module attributes {gpu.container_module} {
  gpu.module @kernels {
    // CHECK-LABEL: gpu.func @cache_and_its_scales(
    // CHECK-SAME:      %{{[^:]*}}: !llvm.ptr {llvm.noalias, llvm.readonly},
    // CHECK-SAME:      %[[OF_CACHE:[^:]*]]: !llvm.ptr {llvm.readonly},
    // CHECK-SAME:      %[[OF_VIEW:[^:]*]]: !llvm.ptr,
    gpu.func @cache_and_its_scales(%k: !cache, %s: !scales, %i: index) kernel {
      %x = kvcache.load %k[%i, %i, %i, %i] : !cache -> f32
      kvcache.store %x, %s[%i, %i, %i, %i] : f32, !scales
      gpu.return
    }
  }
  func.func @launch(%k: !cache, %i: index) {
    %s = kvcache.scales_view %k : !cache
    gpu.launch_func @kernels::@cache_and_its_scales blocks in (%i, %i, %i) threads in (%i, %i, %i)
        args(%k : !cache, %s : !scales, %i : index)
    return
  }
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = ?>

// CHECK-LABEL: gpu.func @page_size_as_a_parameter(
// CHECK-SAME:      kvcache.parameters = [
// CHECK-SAME:        {name = "keys.blocks", type = !llvm.ptr}, {name = "keys.num_pages", type = i32}, {name = "keys.page_stride", type = index}, {name = "keys.page_size", type = i32},
// CHECK-SAME:        {name = "keys.cache_lengths", type = !llvm.ptr},
gpu.module @kernels {
  gpu.func @page_size_as_a_parameter(%k: !cache {kvcache.name = "keys"}) kernel {
    gpu.return
  }
}
