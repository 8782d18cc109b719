// RUN: kvcache-opt %s --kvcache-flatten-kernel-args --canonicalize --split-input-file | FileCheck %s
// RUN: kvcache-opt %s --kvcache-flatten-kernel-args=noalias=false --split-input-file | FileCheck %s --check-prefix=ALIAS

// A memref is its pointer, then the sizes and strides that its type leaves open.

// ALIAS-NOT:     llvm.noalias

// CHECK-LABEL: gpu.func @layouts(
// CHECK-SAME:      %{{[^:]*}}: !llvm.ptr {llvm.noalias, llvm.readonly},
// CHECK-SAME:      %{{[^:]*}}: !llvm.ptr {llvm.noalias, llvm.readonly}, %{{[^:]*}}: index,
// CHECK-SAME:      %{{[^:]*}}: !llvm.ptr {llvm.noalias, llvm.readonly}, %{{[^:]*}}: index, %{{[^:]*}}: index, %{{[^:]*}}: index,
// CHECK-SAME:      %{{[^:]*}}: !llvm.ptr {llvm.noalias, llvm.readonly}, %{{[^:]*}}: index,
// CHECK-SAME:      %{{[^:]*}}: !llvm.ptr {llvm.noalias, llvm.readonly},
// CHECK-SAME:      %{{[^:]*}}: !llvm.ptr {llvm.noalias, llvm.readonly},
// CHECK-SAME:      %{{[^:]*}}: index, %{{[^:]*}}: f32)
// CHECK-SAME:      kernel attributes {kvcache.parameters = [
// CHECK-SAME:        {name = "static", type = !llvm.ptr},
// CHECK-SAME:        {name = "packed", type = !llvm.ptr}, {name = "packed.size1", type = index},
// CHECK-SAME:        {name = "strided", type = !llvm.ptr}, {name = "strided.size0", type = index}, {name = "strided.size1", type = index}, {name = "strided.stride0", type = index},
// CHECK-SAME:        {name = "arg3", type = !llvm.ptr}, {name = "arg3.stride1", type = index},
// CHECK-SAME:        {name = "scalar", type = !llvm.ptr},
// CHECK-SAME:        {name = "pointer", type = !llvm.ptr},
// CHECK-SAME:        {name = "i", type = index}, {name = "arg7", type = f32}]}
gpu.module @kernels {
  gpu.func @layouts(%static: memref<4x8xf32> {kvcache.name = "static"},
                    %packed: memref<2x?x3xbf16> {kvcache.name = "packed"},
                    %strided: memref<?x?xf32, strided<[?, 1], offset: ?>> {kvcache.name = "strided"},
                    %unnamed: memref<4x4xi8, strided<[16, ?]>>,
                    %scalar: memref<f32> {kvcache.name = "scalar"},
                    %pointer: memref<f32, strided<[], offset: ?>> {kvcache.name = "pointer"},
                    %i: index {kvcache.name = "i"}, %f: f32) kernel {
    gpu.return
  }
}

// -----

// The memref is rebuilt; the strides of a packed layout follow from its sizes.

// CHECK-LABEL: gpu.func @packed_strides_follow_from_sizes(
// CHECK-SAME:      %[[PTR:[^:]*]]: !llvm.ptr {{[^%]*}}, %[[SIZE0:[^:]*]]: index, %[[SIZE1:[^:]*]]: index, %[[OUT:[^:]*]]: !llvm.ptr {{[^%]*}}, %[[I:[^:]*]]: index)
// CHECK-DAG:     %[[ZERO:.*]] = llvm.mlir.constant(0 : i64) : i64
// CHECK-DAG:     %[[THREE:.*]] = arith.constant 3 : index
// CHECK:         %[[A:.*]] = llvm.insertvalue %[[PTR]], %{{.*}}[0] : !llvm.struct<(ptr, ptr, i64)>
// CHECK:         %[[B:.*]] = llvm.insertvalue %[[PTR]], %[[A]][1] : !llvm.struct<(ptr, ptr, i64)>
// CHECK:         %[[C:.*]] = llvm.insertvalue %[[ZERO]], %[[B]][2] : !llvm.struct<(ptr, ptr, i64)>
// CHECK:         %[[BASE:.*]] = builtin.unrealized_conversion_cast %[[C]] : !llvm.struct<(ptr, ptr, i64)> to memref<f32>
// CHECK:         %[[STRIDE0:.*]] = arith.muli %[[SIZE1]], %[[THREE]] : index
// CHECK:         %[[MEMREF:.*]] = memref.reinterpret_cast %[[BASE]] to offset: [0], sizes: [%[[SIZE0]], %[[SIZE1]], 3], strides: [%[[STRIDE0]], 3, 1]
// CHECK:         memref.load %[[MEMREF]][%[[I]], %[[I]], %[[I]]]
gpu.module @kernels {
  gpu.func @packed_strides_follow_from_sizes(%m: memref<?x?x3xf32>, %out: memref<f32>, %i: index) kernel {
    %v = memref.load %m[%i, %i, %i] : memref<?x?x3xf32>
    memref.store %v, %out[] : memref<f32>
    gpu.return
  }

  // Functions that are no kernels keep their arguments.

  // CHECK:       gpu.func @no_kernel(%{{.*}}: memref<?xf32>)
  gpu.func @no_kernel(%m: memref<?xf32>) {
    gpu.return
  }
}

// -----

// A pointer that is only read is readonly; one that is stored to, or that goes
// where it can't be followed, is not.

// CHECK-LABEL: gpu.func @readonly(
// CHECK-SAME:      %{{[^:]*}}: !llvm.ptr {llvm.noalias, llvm.readonly}, %{{[^:]*}}: !llvm.ptr {llvm.noalias}, %{{[^:]*}}: !llvm.ptr {llvm.noalias}, %{{[^:]*}}: !llvm.ptr {llvm.noalias}, %{{[^:]*}}: !llvm.ptr {llvm.noalias}, %{{[^:]*}}: !llvm.ptr {llvm.noalias}, %{{[^:]*}}: index)
gpu.module @kernels {
  gpu.func @readonly(%read: memref<16xf32>, %stored: memref<16xf32>, %through_view: memref<16xf32>,
                     %called: memref<16xf32>, %atomic: memref<16xf32>, %address: memref<16xf32>, %i: index) kernel {
    %c1 = arith.constant 1 : index
    %v = memref.load %read[%i] : memref<16xf32>
    %cast = memref.cast %read : memref<16xf32> to memref<?xf32>
    %w = vector.load %cast[%i] : memref<?xf32>, vector<4xf32>
    memref.store %v, %stored[%i] : memref<16xf32>
    %view = memref.subview %through_view[%i] [4] [1] : memref<16xf32> to memref<4xf32, strided<[1], offset: ?>>
    vector.store %w, %view[%i] : memref<4xf32, strided<[1], offset: ?>>, vector<4xf32>
    func.call @use(%called) : (memref<16xf32>) -> ()
    %old = memref.atomic_rmw addf %v, %atomic[%i] : (f32, memref<16xf32>) -> f32
    %pointer = memref.extract_aligned_pointer_as_index %address : memref<16xf32> -> index
    %int = arith.index_cast %pointer : index to i64
    %ptr = llvm.inttoptr %int : i64 to !llvm.ptr
    llvm.store %v, %ptr : f32, !llvm.ptr
    gpu.return
  }
  func.func private @use(memref<16xf32>)
}

// -----

// Attributes of the arguments stay, before and after a memref.

// CHECK-LABEL: gpu.func @argument_attributes(
// CHECK-SAME:      %{{[^:]*}}: !llvm.ptr {llvm.align = 16 : i64, llvm.noalias, llvm.readonly}, %{{[^:]*}}: index, %{{[^:]*}}: i32 {llvm.noundef},
// CHECK-SAME:      %{{[^:]*}}: !llvm.ptr {llvm.noalias, llvm.readonly}, %{{[^:]*}}: index, %{{[^:]*}}: i64 {llvm.noundef})
// CHECK-SAME:      workgroup(%[[SHARED:.*]] : memref<16xf32, #gpu.address_space<workgroup>> {llvm.align = 128 : i64})
// CHECK-SAME:      private(%[[PRIVATE:.*]] : memref<4xf32, #gpu.address_space<private>>)
// CHECK-SAME:      kernel attributes {known_block_size = array<i32: 32, 1, 1>, kvcache.parameters
// CHECK:         memref.store %{{.*}}, %[[SHARED]]
// CHECK:         memref.store %{{.*}}, %[[PRIVATE]]
gpu.module @kernels {
  gpu.func @argument_attributes(%a: memref<?xf32> {llvm.align = 16 : i64}, %i: i32 {llvm.noundef},
                                %b: memref<?xf32>, %j: i64 {llvm.noundef})
      workgroup(%shared: memref<16xf32, #gpu.address_space<workgroup>> {llvm.align = 128 : i64})
      private(%private: memref<4xf32, #gpu.address_space<private>>)
      kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %v = memref.load %a[%c0] : memref<?xf32>
    memref.store %v, %shared[%c0] : memref<16xf32, #gpu.address_space<workgroup>>
    memref.store %v, %private[%c0] : memref<4xf32, #gpu.address_space<private>>
    gpu.return
  }
}

// -----

// A launch passes the address of the first element, and what the type leaves
// open.

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%i: index, %m: memref<?x?xbf16, strided<[?, 1], offset: ?>>, %n: memref<8xbf16>) kernel {
      gpu.return
    }
  }

  // CHECK-LABEL: func.func @launch_passes_address_sizes_and_strides(
  // CHECK-SAME:      %[[M:[^:]*]]: memref<?x?xbf16, strided<[?, 1], offset: ?>>, %[[N:[^:]*]]: memref<8xbf16>, %[[I:[^:]*]]: index)
  // CHECK-DAG:     %[[BYTES:.*]] = arith.constant 2 : index
  // CHECK-DAG:     %{{.*}}, %[[OFFSET:.*]], %[[SIZES:.*]]:2, %[[STRIDES:.*]]:2 = memref.extract_strided_metadata %[[M]]
  // CHECK-DAG:     %[[BASE:.*]] = memref.extract_aligned_pointer_as_index %[[M]]
  // CHECK-DAG:     %[[MOVE:.*]] = arith.muli %[[OFFSET]], %[[BYTES]] : index
  // CHECK-DAG:     %[[FIRST:.*]] = arith.addi %[[BASE]], %[[MOVE]] : index
  // CHECK-DAG:     %[[INT:.*]] = arith.index_cast %[[FIRST]] : index to i64
  // CHECK-DAG:     %[[PTR:.*]] = llvm.inttoptr %[[INT]] : i64 to !llvm.ptr
  // CHECK:         %[[N_BASE:.*]] = memref.extract_aligned_pointer_as_index %[[N]]
  // CHECK:         %[[N_INT:.*]] = arith.index_cast %[[N_BASE]] : index to i64
  // CHECK:         %[[N_PTR:.*]] = llvm.inttoptr %[[N_INT]] : i64 to !llvm.ptr
  // CHECK:         gpu.launch_func @kernels::@kernel
  // CHECK-SAME:        args(%[[I]] : index, %[[PTR]] : !llvm.ptr, %[[SIZES]]#0 : index, %[[SIZES]]#1 : index, %[[STRIDES]]#0 : index, %[[N_PTR]] : !llvm.ptr)
  func.func @launch_passes_address_sizes_and_strides(%m: memref<?x?xbf16, strided<[?, 1], offset: ?>>,
                                                     %n: memref<8xbf16>, %i: index) {
    gpu.launch_func @kernels::@kernel blocks in (%i, %i, %i) threads in (%i, %i, %i)
        args(%i : index, %m : memref<?x?xbf16, strided<[?, 1], offset: ?>>, %n : memref<8xbf16>)
    return
  }
}

// -----

// The same buffer twice, and one of the two is written to: no promise.

module attributes {gpu.container_module} {
  gpu.module @kernels {
    // CHECK-LABEL: gpu.func @copy(
    // CHECK-SAME:      %{{[^:]*}}: !llvm.ptr {llvm.readonly}, %{{[^:]*}}: !llvm.ptr, %{{[^:]*}}: !llvm.ptr {llvm.noalias}, %{{[^:]*}}: index)
    gpu.func @copy(%in: memref<4xf32, strided<[1], offset: ?>>, %out: memref<8xf32>, %other: memref<8xf32>,
                   %i: index) kernel {
      %v = memref.load %in[%i] : memref<4xf32, strided<[1], offset: ?>>
      memref.store %v, %out[%i] : memref<8xf32>
      memref.store %v, %other[%i] : memref<8xf32>
      gpu.return
    }

    // CHECK-LABEL: gpu.func @read_twice(
    // CHECK-SAME:      %{{[^:]*}}: !llvm.ptr {llvm.noalias, llvm.readonly}, %{{[^:]*}}: !llvm.ptr {llvm.noalias, llvm.readonly}, %{{[^:]*}}: !llvm.ptr {llvm.noalias}, %{{[^:]*}}: index)
    gpu.func @read_twice(%in: memref<8xf32>, %in2: memref<8xf32>, %out: memref<8xf32>, %i: index) kernel {
      %v = memref.load %in[%i] : memref<8xf32>
      %w = memref.load %in2[%i] : memref<8xf32>
      %sum = arith.addf %v, %w : f32
      memref.store %sum, %out[%i] : memref<8xf32>
      gpu.return
    }
  }
  func.func @launch(%m: memref<8xf32>, %other: memref<8xf32>, %i: index) {
    %part = memref.subview %m[%i] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1], offset: ?>>
    gpu.launch_func @kernels::@copy blocks in (%i, %i, %i) threads in (%i, %i, %i)
        args(%part : memref<4xf32, strided<[1], offset: ?>>, %m : memref<8xf32>, %other : memref<8xf32>, %i : index)
    gpu.launch_func @kernels::@read_twice blocks in (%i, %i, %i) threads in (%i, %i, %i)
        args(%m : memref<8xf32>, %m : memref<8xf32>, %other : memref<8xf32>, %i : index)
    return
  }
}

// -----

// Two launches, of which one passes a buffer twice.

module attributes {gpu.container_module} {
  gpu.module @kernels {
    // CHECK-LABEL: gpu.func @launched_twice(
    // CHECK-SAME:      %{{[^:]*}}: !llvm.ptr {llvm.readonly}, %{{[^:]*}}: !llvm.ptr, %{{[^:]*}}: index)
    gpu.func @launched_twice(%in: memref<8xf32>, %out: memref<8xf32>, %i: index) kernel {
      %v = memref.load %in[%i] : memref<8xf32>
      memref.store %v, %out[%i] : memref<8xf32>
      gpu.return
    }
  }
  // CHECK-LABEL: func.func @launch(
  // CHECK-COUNT-2: gpu.launch_func @kernels::@launched_twice {{.*}} args(%{{.*}} : !llvm.ptr, %{{.*}} : !llvm.ptr, %{{.*}} : index)
  func.func @launch(%m: memref<8xf32>, %other: memref<8xf32>, %i: index) {
    gpu.launch_func @kernels::@launched_twice blocks in (%i, %i, %i) threads in (%i, %i, %i)
        args(%m : memref<8xf32>, %other : memref<8xf32>, %i : index)
    gpu.launch_func @kernels::@launched_twice blocks in (%i, %i, %i) threads in (%i, %i, %i)
        args(%m : memref<8xf32>, %m : memref<8xf32>, %i : index)
    return
  }
}
