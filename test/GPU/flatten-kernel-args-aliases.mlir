// RUN: kvcache-opt %s --kvcache-flatten-kernel-args --split-input-file | FileCheck %s

// Facts from launches of a kernel hold for its clone for another chip, too.

module attributes {gpu.container_module} {
  // CHECK-LABEL: gpu.module @kernels
  // CHECK:         gpu.func @copy(%{{[^:]*}}: !llvm.ptr {llvm.readonly}, %{{[^:]*}}: !llvm.ptr)
  gpu.module @kernels {
    gpu.func @copy(%from: memref<8xf32>, %to: memref<8xf32>) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %x = memref.load %from[%c0] : memref<8xf32>
      memref.store %x, %to[%c1] : memref<8xf32>
      gpu.return
    }
  }
  // CHECK-LABEL: gpu.module @kernels_0
  // CHECK:         gpu.func @copy(%{{[^:]*}}: !llvm.ptr {llvm.readonly}, %{{[^:]*}}: !llvm.ptr)
  gpu.module @kernels_0 attributes {kvcache.clone_of = @kernels} {
    gpu.func @copy(%from: memref<8xf32>, %to: memref<8xf32>) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %x = memref.load %from[%c0] : memref<8xf32>
      memref.store %x, %to[%c1] : memref<8xf32>
      gpu.return
    }
  }
  func.func @launch_on_one_buffer(%m: memref<8xf32>) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
        args(%m : memref<8xf32>, %m : memref<8xf32>)
    return
  }
}

// -----

// A buffer that can't be distinguished from others may be any of them.

module attributes {gpu.container_module} {
  // CHECK-LABEL: gpu.module @kernels
  // CHECK:         gpu.func @copy(%{{[^:]*}}: !llvm.ptr {llvm.readonly}, %{{[^:]*}}: !llvm.ptr)
  gpu.module @kernels {
    gpu.func @copy(%from: memref<8xf32>, %to: memref<8xf32>) kernel {
      %c0 = arith.constant 0 : index
      %x = memref.load %from[%c0] : memref<8xf32>
      memref.store %x, %to[%c0] : memref<8xf32>
      gpu.return
    }
  }
  func.func @launch_on_a_selected_buffer(%c: i1, %m: memref<8xf32>, %n: memref<8xf32>) {
    %c1 = arith.constant 1 : index
    %s = arith.select %c, %m, %n : memref<8xf32>
    gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
        args(%m : memref<8xf32>, %s : memref<8xf32>)
    return
  }
}

// -----

// A pointer that is written through after casts is not read-only, and one to
// global memory keeps its memory space inside of the kernel.

// CHECK-LABEL: gpu.module @kernels
gpu.module @kernels {
  // CHECK: gpu.func @write_after_casts(%{{[^:]*}}: !llvm.ptr {llvm.noalias})
  gpu.func @write_after_casts(%m: memref<8xf32>) kernel {
    %c0 = arith.constant 0 : index
    %x = arith.constant 1.0 : f32
    %unranked = memref.cast %m : memref<8xf32> to memref<*xf32>
    %ranked = memref.cast %unranked : memref<*xf32> to memref<?xf32>
    memref.store %x, %ranked[%c0] : memref<?xf32>
    gpu.return
  }

  // CHECK: gpu.func @global_memory(%{{[^:]*}}: !llvm.ptr {llvm.noalias})
  // CHECK:   memref.memory_space_cast %{{.*}} : memref<8xf32{{.*}}> to memref<8xf32, strided<[1], offset: 5>, 1>
  gpu.func @global_memory(%m: memref<8xf32, strided<[1], offset: 5>, 1>) kernel {
    %c0 = arith.constant 0 : index
    %x = arith.constant 1.0 : f32
    memref.store %x, %m[%c0] : memref<8xf32, strided<[1], offset: 5>, 1>
    gpu.return
  }
}

// -----

// An earlier launch may write what a kernel only reads that waits for it.

module attributes {gpu.container_module} {
  // CHECK-LABEL: gpu.module @kernels
  // CHECK:         gpu.func @wait(%{{[^:]*}}: !llvm.ptr, %{{[^:]*}}: !llvm.ptr {llvm.noalias})
  // CHECK:         gpu.func @start(%{{[^:]*}}: !llvm.ptr {llvm.noalias, llvm.readonly}, %{{[^:]*}}: !llvm.ptr {llvm.noalias})
  gpu.module @kernels {
    gpu.func @wait(%from: memref<8xf32>, %to: memref<8xf32>) kernel {
      %c0 = arith.constant 0 : index
      nvvm.griddepcontrol wait
      %x = memref.load %from[%c0] : memref<8xf32>
      memref.store %x, %to[%c0] : memref<8xf32>
      gpu.return
    }
    gpu.func @start(%from: memref<8xf32>, %to: memref<8xf32>) kernel {
      %c0 = arith.constant 0 : index
      nvvm.griddepcontrol launch_dependents
      %x = memref.load %from[%c0] : memref<8xf32>
      memref.store %x, %to[%c0] : memref<8xf32>
      gpu.return
    }
  }
}
