// What a user gets wrong is a message with a location, and a non-zero exit.

// RUN: split-file %s %t

//--- kernel.mlir
// RUN: not kvcache-opt %t/kernel.mlir --kvcache-to-ptx=chip=sm_99 2>&1 | FileCheck %s --check-prefix=UNKNOWN-CHIP
// RUN: not kvcache-opt %t/kernel.mlir --kvcache-to-ptx=chip=sm_75 2>&1 | FileCheck %s --check-prefix=OLD-CHIP
// RUN: not kvcache-opt %t/kernel.mlir --kvcache-to-ptx=chip=sm_90a,h100 2>&1 | FileCheck %s --check-prefix=SECOND-CHIP
// RUN: not kvcache-opt %t/kernel.mlir --kvcache-to-ptx 2>&1 | FileCheck %s --check-prefix=NO-CHIP
// RUN: not kvcache-opt %t/kernel.mlir "--kvcache-to-ptx=chip=sm_90a format=elf" 2>&1 | FileCheck %s --check-prefix=UNKNOWN-FORMAT
// RUN: not kvcache-opt %t/kernel.mlir "--kvcache-to-ptx=chip=sm_90a opt-level=7" 2>&1 | FileCheck %s --check-prefix=OPT-LEVEL
// RUN: not kvcache-opt %t/kernel.mlir "--kvcache-to-ptx=chip=sm_90a opt-level=-1" 2>&1 | FileCheck %s --check-prefix=OPT-LEVEL
// RUN: not kvcache-opt %t/kernel.mlir "--kvcache-to-ptx=chip=sm_90a speed=high" 2>&1 | FileCheck %s --check-prefix=UNKNOWN-OPTION
// RUN: not %python %S/Inputs/without_path.py kvcache-opt %t/kernel.mlir "--kvcache-to-ptx=chip=sm_90a format=cubin" 2>&1 | FileCheck %s --check-prefix=NO-PTXAS
// RUN: not kvcache-opt %t/kernel.mlir "--kvcache-to-ptx=chip=sm_90a format=cubin toolkit=%t/nowhere" 2>&1 | FileCheck %s --check-prefix=NO-TOOLKIT
// UNKNOWN-CHIP:   kernel.mlir:[[#]]:[[#]]: error: 'gpu.module' op unknown chip 'sm_99'; known are sm_80, {{.*}}sm_121f
// OLD-CHIP:       kernel.mlir:[[#]]:[[#]]: error: 'gpu.module' op unknown chip 'sm_75'; known are sm_80,
// SECOND-CHIP:    kernel.mlir:[[#]]:[[#]]: error: 'gpu.module' op unknown chip 'h100'; known are sm_80,
// NO-CHIP:        kernel.mlir:[[#]]:[[#]]: error: 'gpu.module' op expects a target: '#nvvm.target' on the module, or the pipeline option 'chip'
// UNKNOWN-FORMAT: error: unknown format 'elf'; known are ptx, cubin and fatbin
// OPT-LEVEL:      error: expects opt-level to be 0 to 3, got {{7|-1}}{{$}}
// NO-TOOLKIT:     kernel.mlir:[[#]]:[[#]]: error: expects the toolkit to have '{{.*}}nowhere/bin/ptxas'
// UNKNOWN-OPTION: no such option speed
// NO-PTXAS:       kernel.mlir:[[#]]:[[#]]: error: 'ptxas' was not found: pass the pipeline option 'toolkit', set PTXAS
gpu.module @kernels {
  gpu.func @kernel(%m: memref<8xf32>) kernel {
    gpu.return
  }
}

//--- host-only.mlir
// RUN: not kvcache-opt %t/host-only.mlir --kvcache-to-ptx=chip=sm_90a --emit-ptx 2>&1 | FileCheck %s --check-prefix=NO-KERNELS
// RUN: not kvcache-opt %t/host-only.mlir --emit-ptx 2>&1 | FileCheck %s --check-prefix=NO-KERNELS
// RUN: not kvcache-opt %t/host-only.mlir --kvcache-to-cpu --emit-ptx 2>&1 | FileCheck %s --check-prefix=NO-KERNELS
// NO-KERNELS: host-only.mlir:[[#]]:[[#]]: error: expects kernels, found none: nested 'scf.parallel' loops or a 'gpu.func' with 'kernel' become one
func.func @nothing() {
  return
}

//--- binary.mlir
// RUN: not kvcache-opt %t/binary.mlir --emit-ptx 2>&1 | FileCheck %s --check-prefix=NOT-PTX
// NOT-PTX: binary.mlir:[[#]]:[[#]]: error: 'gpu.binary' op expects PTX, which format=ptx gives
gpu.binary @kernels [#gpu.object<#nvvm.target<chip = "sm_90a">, bin = "cubin">]

//--- files.mlir
// RUN: not kvcache-opt %t/missing.mlir --kvcache-to-cpu 2>&1 | FileCheck %s --check-prefix=NO-INPUT
// RUN: not kvcache-opt %t/missing.mlir --kvcache-to-ptx=chip=sm_90a --emit-ptx 2>&1 | FileCheck %s --check-prefix=NO-INPUT
// RUN: not kvcache-opt %t/kernel.mlir --kvcache-to-ptx=chip=sm_90a --emit-ptx -o %t/nowhere/out.ptx 2>&1 | FileCheck %s --check-prefix=NO-OUTPUT
// NO-INPUT:  cannot open input file '{{.*}}missing.mlir': No such file or directory
// NO-OUTPUT: cannot open output file '{{.*}}out.ptx': No such file or directory

// A failure leaves no half-written file.

// RUN: rm -f %t/out.ptx
// RUN: not kvcache-opt %t/host-only.mlir --kvcache-to-ptx=chip=sm_90a --emit-ptx -o %t/out.ptx
// RUN: not ls %t/out.ptx

//--- large-block.mlir
// RUN: not kvcache-opt %t/large-block.mlir --kvcache-to-ptx=chip=sm_90a 2>&1 | FileCheck %s --check-prefix=LARGE-BLOCK
// LARGE-BLOCK: large-block.mlir:[[#]]:[[#]]: error: 'gpu.func' op expects at most 1024 threads in a block, got 1040
gpu.module @kernels {
  gpu.func @kernel(%m: memref<8xf32>) kernel attributes {known_block_size = array<i32: 65, 16, 1>} {
    gpu.return
  }
}

//--- large-parallel-block.mlir
// RUN: not kvcache-opt %t/large-parallel-block.mlir --kvcache-to-ptx=chip=sm_90a 2>&1 | FileCheck %s --check-prefix=LARGE-PARALLEL
// LARGE-PARALLEL: large-parallel-block.mlir:[[#]]:[[#]]: error: {{.*}}expects at most 1024 threads in a block, got 2048
func.func @fill(%m: memref<?x2048xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2048 = arith.constant 2048 : index
  %zero = arith.constant 0.0 : f32
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    scf.parallel (%j) = (%c0) to (%c2048) step (%c1) {
      memref.store %zero, %m[%i, %j] : memref<?x2048xf32>
    }
  }
  return
}

//--- other-target.mlir
// RUN: not kvcache-opt %t/other-target.mlir --kvcache-to-ptx=chip=sm_90a 2>&1 | FileCheck %s --check-prefix=OTHER-TARGET
// OTHER-TARGET: other-target.mlir:[[#]]:[[#]]: error: 'gpu.module' op expects targets of #nvvm.target, got #rocdl.target
gpu.module @kernels [#rocdl.target] {
  gpu.func @kernel(%m: memref<8xf32>) kernel {
    gpu.return
  }
}

//--- launch-on-cpu.mlir
// RUN: not kvcache-opt %t/launch-on-cpu.mlir --kvcache-to-cpu 2>&1 | FileCheck %s --check-prefix=LAUNCH-ON-CPU
// LAUNCH-ON-CPU: launch-on-cpu.mlir:[[#]]:[[#]]: error: 'gpu.launch' op can't run on the CPU: write the kernel as nested 'scf.parallel' loops
func.func @launch(%i: index) {
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %i, %gy = %i, %gz = %i)
             threads(%tx, %ty, %tz) in (%sx = %i, %sy = %i, %sz = %i) {
    gpu.terminator
  }
  return
}

//--- alloc-on-cpu.mlir
// RUN: not kvcache-opt %t/alloc-on-cpu.mlir --kvcache-to-cpu 2>&1 | FileCheck %s --check-prefix=ALLOC-ON-CPU
// ALLOC-ON-CPU: alloc-on-cpu.mlir:[[#]]:[[#]]: error: 'gpu.alloc' op can't run on the CPU: use 'memref.alloc' and 'memref.dealloc'
func.func @alloc(%n: index) {
  %m = gpu.alloc(%n) : memref<?xf32>
  gpu.dealloc %m : memref<?xf32>
  return
}

//--- copy-on-cpu.mlir
// RUN: not kvcache-opt %t/copy-on-cpu.mlir --kvcache-to-cpu 2>&1 | FileCheck %s --check-prefix=COPY-ON-CPU
// COPY-ON-CPU: copy-on-cpu.mlir:[[#]]:[[#]]: error: 'gpu.memcpy' op can't run on the CPU: use 'memref.copy'
func.func @copy(%a: memref<4xf32>, %b: memref<4xf32>) {
  gpu.memcpy %a, %b : memref<4xf32>, memref<4xf32>
  return
}

//--- product-on-cpu.mlir
// RUN: not kvcache-opt %t/product-on-cpu.mlir --kvcache-to-cpu 2>&1 | FileCheck %s --check-prefix=PRODUCT-ON-CPU
// PRODUCT-ON-CPU: product-on-cpu.mlir:[[#]]:[[#]]: error: 'kvcache.mma' op can't run on the CPU: multiply elements that 'kvcache.tile_load' reads
!tile = !kvcache.tile<64x64xbf16, swizzle_128b>
func.func @multiply(%i: index) -> vector<4xf32> {
  %tile = kvcache.alloc_tile : !tile
  %d = kvcache.mma %tile[%i, %i], %tile[%i, %i] : !tile, !tile -> vector<4xf32>
  %e = kvcache.mma_wait %d : vector<4xf32>
  return %e : vector<4xf32>
}

//--- tensor-memory-on-cpu.mlir
// RUN: not kvcache-opt %t/tensor-memory-on-cpu.mlir --kvcache-to-cpu 2>&1 | FileCheck %s --check-prefix=TENSOR-MEMORY-ON-CPU
// TENSOR-MEMORY-ON-CPU: tensor-memory-on-cpu.mlir:[[#]]:[[#]]: error: 'kvcache.tmem_alloc' op can't run on the CPU: multiply elements that 'kvcache.tile_load' reads
func.func @allocate() {
  %t = kvcache.tmem_alloc : !kvcache.tmem_tile<64x64xf32>
  return
}

//--- instruction-on-cpu.mlir
// RUN: not kvcache-opt %t/instruction-on-cpu.mlir --kvcache-to-cpu 2>&1 | FileCheck %s --check-prefix=INSTRUCTION-ON-CPU
// RUN: not kvcache-opt %t/instruction-on-cpu.mlir --kvcache-to-emulator=chip=sm_90a 2>&1 | FileCheck %s --check-prefix=INSTRUCTION-ON-CPU
// INSTRUCTION-ON-CPU: instruction-on-cpu.mlir:[[#]]:[[#]]: error: 'nvvm.read.ptx.sreg.tid.x' op can't run on the CPU: only a kernel in a 'gpu.module' has instructions of a GPU
func.func @read_thread() -> i32 {
  %t = nvvm.read.ptx.sreg.tid.x : i32
  return %t : i32
}

//--- launch-func-on-cpu.mlir
// RUN: not kvcache-opt %t/launch-func-on-cpu.mlir --kvcache-to-cpu 2>&1 | FileCheck %s --check-prefix=LAUNCH-FUNC-ON-CPU
// LAUNCH-FUNC-ON-CPU: launch-func-on-cpu.mlir:[[#]]:[[#]]: error: 'gpu.launch_func' op can't run on the CPU: write the kernel as nested 'scf.parallel' loops
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%m: memref<8xf32>) kernel {
      gpu.return
    }
  }
  func.func @launch(%m: memref<8xf32>, %i: index) {
    gpu.launch_func @kernels::@kernel blocks in (%i, %i, %i) threads in (%i, %i, %i) args(%m : memref<8xf32>)
    return
  }
}

//--- shared-memory.mlir
// RUN: not kvcache-opt %t/shared-memory.mlir --kvcache-to-ptx=chip=sm_89 2>&1 | FileCheck %s --check-prefix=SHARED-89
// RUN: not kvcache-opt %t/shared-memory.mlir --kvcache-to-ptx=chip=sm_80,sm_120a 2>&1 | FileCheck %s --check-prefix=SHARED-120
// RUN: kvcache-opt %t/shared-memory.mlir --kvcache-to-ptx=chip=sm_80,sm_90a,sm_100a
// SHARED-89:  shared-memory.mlir:[[#]]:[[#]]: error: 'gpu.func' op needs 131072 bytes of shared memory, but sm_89 has 101376
// SHARED-120: shared-memory.mlir:[[#]]:[[#]]: error: 'gpu.func' op needs 131072 bytes of shared memory, but sm_120a has 101376
!tile = !kvcache.tile<512x128xbf16, swizzle_128b>
gpu.module @kernels {
  gpu.func @kernel(%m: memref<8xbf16>) kernel {
    %c0 = arith.constant 0 : index
    %tile = kvcache.alloc_tile : !tile
    %row = gpu.thread_id x
    %v = kvcache.tile_load %tile[%row, %c0] : !tile -> vector<8xbf16>
    vector.store %v, %m[%c0] : memref<8xbf16>, vector<8xbf16>
    gpu.return
  }
}

//--- libdevice.mlir
// RUN: not kvcache-opt %t/libdevice.mlir "--kvcache-to-ptx=chip=sm_90a toolkit=%t" 2>&1 | FileCheck %s --check-prefix=LIBDEVICE
// LIBDEVICE: libdevice.mlir:[[#]]:[[#]]: error: needs '__nv_sinhf' of CUDA's libdevice, which was not found: pass the option 'toolkit'
gpu.module @kernels {
  gpu.func @kernel(%m: memref<f32>) kernel {
    %x = memref.load %m[] : memref<f32>
    %y = math.sinh %x : f32
    memref.store %y, %m[] : memref<f32>
    gpu.return
  }
}

//--- unranked.mlir
// RUN: not kvcache-opt %t/unranked.mlir --kvcache-to-ptx=chip=sm_90a 2>&1 | FileCheck %s --check-prefix=UNRANKED
// UNRANKED: unranked.mlir:[[#]]:[[#]]: error: 'gpu.func' op expects argument 0 to be a ranked memref, got 'memref<*xf32>'
gpu.module @kernels {
  gpu.func @kernel(%m: memref<*xf32>) kernel {
    gpu.return
  }
}

//--- old-ptx.mlir
// RUN: not kvcache-opt %t/old-ptx.mlir --kvcache-to-ptx 2>&1 | FileCheck %s --check-prefix=OLD-PTX
// OLD-PTX: old-ptx.mlir:[[#]]:[[#]]: error: 'gpu.module' op expects a PTX version from +ptx88 to +ptx90 for sm_100a, got '+ptx60'
gpu.module @kernels [#nvvm.target<chip = "sm_100a", features = "+ptx60">] {
  gpu.func @kernel(%m: memref<8xf32>) kernel {
    gpu.return
  }
}

//--- deep-block.mlir
// RUN: not kvcache-opt %t/deep-block.mlir --kvcache-to-ptx=chip=sm_90a 2>&1 | FileCheck %s --check-prefix=DEEP-BLOCK
// DEEP-BLOCK: deep-block.mlir:[[#]]:[[#]]: error: 'gpu.func' op expects a block size of at most 64 along z, got 128
gpu.module @kernels {
  gpu.func @kernel(%m: memref<8xf32>) kernel attributes {known_block_size = array<i32: 1, 1, 128>} {
    gpu.return
  }
}

//--- empty-block.mlir
// RUN: not kvcache-opt %t/empty-block.mlir --kvcache-to-ptx=chip=sm_90a 2>&1 | FileCheck %s --check-prefix=EMPTY-BLOCK
// EMPTY-BLOCK: empty-block.mlir:[[#]]:[[#]]: error: 'gpu.func' op expects block sizes of at least 1, got 0
gpu.module @kernels {
  gpu.func @kernel(%m: memref<8xf32>) kernel attributes {known_block_size = array<i32: 0, 1, 1>} {
    gpu.return
  }
}

//--- kernel-name.mlir
// RUN: not kvcache-opt %t/kernel-name.mlir --kvcache-to-ptx=chip=sm_90a 2>&1 | FileCheck %s --check-prefix=KERNEL-NAME
// KERNEL-NAME: kernel-name.mlir:[[#]]:[[#]]: error: 'gpu.func' op expects a name of letters, digits, '_' and '$', not starting with a digit
gpu.module @kernels {
  gpu.func @"a.b"(%m: memref<8xf32>) kernel {
    gpu.return
  }
}

//--- memory-space.mlir
// RUN: not kvcache-opt %t/memory-space.mlir --kvcache-to-ptx=chip=sm_90a 2>&1 | FileCheck %s --check-prefix=MEMORY-SPACE
// MEMORY-SPACE: memory-space.mlir:[[#]]:[[#]]: error: 'gpu.func' op expects argument 0 in the default or global memory space, got 'memref<8xf32, 3>'
gpu.module @kernels {
  gpu.func @kernel(%m: memref<8xf32, 3>) kernel {
    gpu.return
  }
}

//--- unmapped-loop.mlir
// RUN: not kvcache-opt %t/unmapped-loop.mlir --kvcache-to-ptx=chip=sm_90a 2>&1 | FileCheck %s --check-prefix=UNMAPPED-LOOP
// UNMAPPED-LOOP: unmapped-loop.mlir:[[#]]:[[#]]: error: 'scf.parallel' op can't become a kernel: nothing but plain loads, stores and arithmetic may stand beside it
func.func @fill(%m: memref<?x32xf32>, %n: index, %ok: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0.0 : f32
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    cf.assert %ok, "not ok"
    scf.parallel (%j) = (%c0) to (%c32) step (%c1) {
      memref.store %zero, %m[%i, %j] : memref<?x32xf32>
    }
  }
  return
}

//--- leftover-in-kernel.mlir
// RUN: not kvcache-opt %t/leftover-in-kernel.mlir --kvcache-to-ptx=chip=sm_90a 2>&1 | FileCheck %s --check-prefix=LEFTOVER
// LEFTOVER: leftover-in-kernel.mlir:[[#]]:[[#]]: error: {{.*}}async.runtime.num_worker_threads
gpu.module @kernels {
  gpu.func @kernel(%m: memref<8xindex>) kernel {
    %n = async.runtime.num_worker_threads : index
    %c0 = arith.constant 0 : index
    memref.store %n, %m[%c0] : memref<8xindex>
    gpu.return
  }
}

//--- unregistered.mlir
// RUN: not kvcache-opt %t/unregistered.mlir --allow-unregistered-dialect --kvcache-to-cpu 2>&1 | FileCheck %s --check-prefix=UNREGISTERED
// UNREGISTERED: unregistered.mlir:[[#]]:[[#]]: error: unregistered operation 'my.op' has no lowering
func.func @host() {
  "my.op"() : () -> ()
  return
}

//--- fp8-arithmetic.mlir
// RUN: not kvcache-opt %t/fp8-arithmetic.mlir --kvcache-to-cpu 2>&1 | FileCheck %s --check-prefix=FP8-ARITHMETIC
// FP8-ARITHMETIC: fp8-arithmetic.mlir:[[#]]:[[#]]: error: 'arith.addf' op computes on 'f8E4M3FN', which has no lowering: extend to f32 first
func.func @add(%x: f8E4M3FN) -> f8E4M3FN {
  %y = arith.addf %x, %x : f8E4M3FN
  return %y : f8E4M3FN
}
