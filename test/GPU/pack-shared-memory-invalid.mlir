// RUN: kvcache-opt %s --kvcache-pack-shared-memory --allow-unregistered-dialect --split-input-file --verify-diagnostics

#wg = #gpu.address_space<workgroup>

gpu.module @kernels [#nvvm.target<chip = "sm_120a">] {
  memref.global "private" @fits : memref<101376xi8, #wg> = uninitialized {alignment = 1024}
  memref.global "private" @more : memref<101377xi8, #wg> = uninitialized {alignment = 1024}
  gpu.func @use_what_fits() kernel {
    %fits = memref.get_global @fits : memref<101376xi8, #wg>
    "test.use"(%fits) : (memref<101376xi8, #wg>) -> ()
    gpu.return
  }
  // expected-error @below {{'gpu.func' op needs 101377 bytes of shared memory, but sm_120a has 101376}}
  gpu.func @use_more() kernel {
    %more = memref.get_global @more : memref<101377xi8, #wg>
    "test.use"(%more) : (memref<101377xi8, #wg>) -> ()
    gpu.return
  }
}

// -----

// What stays static is below, up to the next 1024 bytes.

#wg = #gpu.address_space<workgroup>

gpu.module @kernels [#nvvm.target<chip = "sm_80">] {
  memref.global "private" @tile : memref<166912xi8, #wg> = uninitialized {alignment = 1024}
  // expected-error @below {{'gpu.func' op needs 167936 bytes of shared memory, but sm_80 has 166912}}
  gpu.func @kernel() workgroup(%a: memref<4xf32, #wg>) kernel {
    %tile = memref.get_global @tile : memref<166912xi8, #wg>
    "test.use"(%tile, %a) : (memref<166912xi8, #wg>, memref<4xf32, #wg>) -> ()
    gpu.return
  }
}

// -----

#wg = #gpu.address_space<workgroup>

gpu.module @kernels {
  memref.global "private" @tile : memref<16xi8, #wg> = uninitialized
  // expected-error @below {{'gpu.func' op expects at most 49152 bytes of shared memory in workgroup attributions, mbarriers and globals that aren't private and uninitialized, got 49156}}
  gpu.func @kernel() workgroup(%a: memref<12289xf32, #wg>) kernel {
    %tile = memref.get_global @tile : memref<16xi8, #wg>
    "test.use"(%tile, %a) : (memref<16xi8, #wg>, memref<12289xf32, #wg>) -> ()
    gpu.return
  }
}

// -----

#wg = #gpu.address_space<workgroup>

gpu.module @kernels {
  memref.global "private" @tile : memref<65536xi8, #wg> = uninitialized
  gpu.func @kernel() kernel {
    %tile = memref.get_global @tile : memref<65536xi8, #wg>
    // expected-error @below {{'gpu.dynamic_shared_memory' op expects kernel 'kernel' to have at most 49152 bytes of static shared memory beside this, which begins where the rest would, got 65536; make this a tile or a memref.global of its size}}
    %dynamic = gpu.dynamic_shared_memory : memref<?xi8, #wg>
    "test.use"(%tile, %dynamic) : (memref<65536xi8, #wg>, memref<?xi8, #wg>) -> ()
    gpu.return
  }
}

// -----

#wg = #gpu.address_space<workgroup>

gpu.module @kernels {
  memref.global @dynamic : memref<0xf32, #wg>
  memref.global "private" @tile : memref<65536xi8, #wg> = uninitialized
  gpu.func @kernel() kernel {
    %tile = memref.get_global @tile : memref<65536xi8, #wg>
    // expected-error @below {{'memref.get_global' op expects kernel 'kernel' to have at most 49152 bytes of static shared memory beside this}}
    %dynamic = memref.get_global @dynamic : memref<0xf32, #wg>
    "test.use"(%tile, %dynamic) : (memref<65536xi8, #wg>, memref<0xf32, #wg>) -> ()
    gpu.return
  }
}

// -----

#wg = #gpu.address_space<workgroup>

gpu.module @kernels {
  llvm.mlir.global external @dynamic() {addr_space = 3 : i32} : !llvm.array<0 x i8>
  memref.global "private" @tile : memref<65536xi8, #wg> = uninitialized
  gpu.func @kernel() kernel {
    %tile = memref.get_global @tile : memref<65536xi8, #wg>
    // expected-error @below {{'llvm.mlir.addressof' op expects kernel 'kernel' to have at most 49152 bytes of static shared memory beside this}}
    %dynamic = llvm.mlir.addressof @dynamic : !llvm.ptr<3>
    "test.use"(%tile, %dynamic) : (memref<65536xi8, #wg>, !llvm.ptr<3>) -> ()
    gpu.return
  }
}

// -----

// Two functions up to 48 KB each make a kernel that is beyond.

#wg = #gpu.address_space<workgroup>

gpu.module @kernels {
  memref.global "private" @one : memref<32768xi8, #wg> = uninitialized
  memref.global "private" @other : memref<32768xi8, #wg> = uninitialized
  func.func @f() {
    // expected-error @below {{'memref.get_global' op expects function 'f' to be inlined into kernel 'kernel', whose shared memory is beyond 49152 bytes}}
    %one = memref.get_global @one : memref<32768xi8, #wg>
    "test.use"(%one) : (memref<32768xi8, #wg>) -> ()
    return
  }
  gpu.func @kernel() kernel {
    %other = memref.get_global @other : memref<32768xi8, #wg>
    "test.use"(%other) : (memref<32768xi8, #wg>) -> ()
    func.call @f() : () -> ()
    gpu.return
  }
}

// -----

#wg = #gpu.address_space<workgroup>

gpu.module @kernels {
  // expected-error @below {{'memref.global' op expects elements of shared memory to have a size, got 'memref<4xf32>'}}
  memref.global "private" @memrefs : memref<4xmemref<4xf32>, #wg> = uninitialized
  gpu.func @kernel() kernel {
    %memrefs = memref.get_global @memrefs : memref<4xmemref<4xf32>, #wg>
    gpu.return
  }
}

// -----

#wg = #gpu.address_space<workgroup>

module attributes {gpu.container_module} {
  gpu.module @kernels {
    memref.global "private" @tile : memref<65536xi8, #wg> = uninitialized
    gpu.func @kernel() kernel {
      %tile = memref.get_global @tile : memref<65536xi8, #wg>
      "test.use"(%tile) : (memref<65536xi8, #wg>) -> ()
      gpu.return
    }
  }
  func.func @launch(%n: index) {
    %less = arith.constant 65535 : i32
    // expected-error @below {{'gpu.launch_func' op expects 'dynamicSharedMemorySize' to be a constant of at least 65536, which kernel 'kernel' needs, got 65535}}
    gpu.launch_func @kernels::@kernel blocks in (%n, %n, %n) threads in (%n, %n, %n) dynamic_shared_memory_size %less
    return
  }
}

// -----

#wg = #gpu.address_space<workgroup>

module attributes {gpu.container_module} {
  gpu.module @kernels {
    memref.global "private" @tile : memref<65536xi8, #wg> = uninitialized
    gpu.func @kernel() kernel {
      %tile = memref.get_global @tile : memref<65536xi8, #wg>
      "test.use"(%tile) : (memref<65536xi8, #wg>) -> ()
      gpu.return
    }
  }
  func.func @launch(%n: index, %unknown: i32) {
    // expected-error @below {{'gpu.launch_func' op expects 'dynamicSharedMemorySize' to be a constant of at least 65536, which kernel 'kernel' needs}}
    gpu.launch_func @kernels::@kernel blocks in (%n, %n, %n) threads in (%n, %n, %n) dynamic_shared_memory_size %unknown
    return
  }
}
