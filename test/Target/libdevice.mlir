// RUN: split-file %s %t
// RUN: mkdir -p %t/toolkit/nvvm/libdevice %t/toolkit/bin %t/empty
// RUN: cp %t/kernel.mlir %t/toolkit/nvvm/libdevice/libdevice.10.bc

// libdevice is read where a kernel calls it, and only there. This one is none.

// RUN: kvcache-opt %t/kernel.mlir "--kvcache-to-ptx=chip=sm_90a toolkit=%t/toolkit" --emit-ptx | FileCheck %s
// RUN: env CUDA_HOME=%t/toolkit CUDA_ROOT=%t/toolkit kvcache-opt %t/kernel.mlir --kvcache-to-ptx=chip=sm_90a --emit-ptx | FileCheck %s

// It is in the given toolkit, in those of the environment, or beside ptxas.

// RUN: not kvcache-opt %t/call.mlir "--kvcache-to-ptx=chip=sm_90a toolkit=%t/toolkit" 2>&1 | FileCheck %s --check-prefix=CALL
// RUN: not env -u PTXAS CUDA_HOME=%t/toolkit kvcache-opt %t/call.mlir "--kvcache-to-ptx=chip=sm_90a" 2>&1 | FileCheck %s --check-prefix=CALL
// RUN: touch %t/toolkit/bin/ptxas
// RUN: not env PTXAS=%t/toolkit/bin/ptxas CUDA_HOME=%t/empty kvcache-opt %t/call.mlir --kvcache-to-ptx=chip=sm_90a 2>&1 | FileCheck %s --check-prefix=CALL
// RUN: not env CUDA_HOME=%t/toolkit kvcache-opt %t/call.mlir "--kvcache-to-ptx=chip=sm_90a toolkit=%t/empty" 2>&1 | FileCheck %s --check-prefix=NONE

// CHECK: .visible .entry kernel(
// CALL:  call.mlir:[[#]]:[[#]]: error: {{.*}}toolkit/nvvm/libdevice/libdevice.10.bc
// NONE:  call.mlir:[[#]]:[[#]]: error: needs '__nv_sinhf' of CUDA's libdevice, which was not found

// Functions of chips and polynomials need none. (PTX ISA, cvt, rsqrt)

// RUN: kvcache-opt %t/native.mlir "--kvcache-to-ptx=chip=sm_80,sm_90a,sm_100a toolkit=%t/empty" --emit-ptx --emit-ptx-chip=* | FileCheck %s --check-prefix=NATIVE

// NATIVE-DAG: cvt.rni.f32.f32
// NATIVE-DAG: cvt.rzi.f32.f32
// NATIVE-DAG: cvt.rmi.f32.f32
// NATIVE-DAG: cvt.rpi.f32.f32
// NATIVE-DAG: rsqrt.approx.f32

// One instruction each where an approximation is allowed.

// RUN: kvcache-opt %t/approximate.mlir "--kvcache-to-ptx=chip=sm_80 toolkit=%t/empty" --emit-ptx | FileCheck %s --check-prefix=APPROXIMATE

// APPROXIMATE: tanh.approx.f32
// APPROXIMATE: sin.approx.f32
// APPROXIMATE: cos.approx.f32
// APPROXIMATE: lg2.approx.f32
// APPROXIMATE: lg2.approx.f32
// APPROXIMATE: mul.{{.*}}f32 {{.*}} 0f3F317218
// APPROXIMATE: ex2.approx.ftz.f32

//--- kernel.mlir
gpu.module @kernels {
  gpu.func @kernel(%m: memref<f32>) kernel {
    gpu.return
  }
}

//--- call.mlir
gpu.module @kernels {
  gpu.func @kernel(%m: memref<f32>) kernel {
    %x = memref.load %m[] : memref<f32>
    %y = math.sinh %x : f32
    memref.store %y, %m[] : memref<f32>
    gpu.return
  }
}

//--- native.mlir
gpu.module @kernels {
  gpu.func @kernel(%m: memref<8xf32>, %v: memref<4xf16>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %c6 = arith.constant 6 : index
    %w0 = vector.load %v[%c0] : memref<4xf16>, vector<2xf16>
    %w1 = math.sin %w0 : vector<2xf16>
    %w2 = math.roundeven %w1 : vector<2xf16>
    vector.store %w2, %v[%c0] : memref<4xf16>, vector<2xf16>
    %x0 = memref.load %m[%c0] : memref<8xf32>
    %x1 = math.roundeven %x0 : f32
    memref.store %x1, %m[%c1] : memref<8xf32>
    %x2 = math.trunc %x0 : f32
    memref.store %x2, %m[%c2] : memref<8xf32>
    %x3 = math.floor %x0 : f32
    memref.store %x3, %m[%c3] : memref<8xf32>
    %x4 = math.ceil %x0 : f32
    memref.store %x4, %m[%c4] : memref<8xf32>
    %x5 = math.rsqrt %x0 : f32
    memref.store %x5, %m[%c5] : memref<8xf32>
    %y0 = math.round %x0 : f32
    %y1 = math.tanh %y0 : f32
    %y2 = math.log %y1 : f32
    %y3 = math.log2 %y2 : f32
    %y4 = math.log10 %y3 : f32
    %y5 = math.log1p %y4 : f32
    %y6 = math.erf %y5 : f32
    %y7 = math.expm1 %y6 : f32
    %y8 = math.cos %y7 : f32
    %y9 = math.tan %y8 : f32
    %s, %c = math.sincos %y9 : f32
    %y10 = arith.addf %s, %c : f32
    %y11 = math.clampf %y10 to [%x0, %x1] : f32
    memref.store %y11, %m[%c6] : memref<8xf32>
    gpu.return
  }
}

//--- approximate.mlir
gpu.module @kernels {
  gpu.func @kernel(%m: memref<f32>) kernel {
    %x0 = memref.load %m[] : memref<f32>
    %x1 = math.tanh %x0 fastmath<afn> : f32
    %x2 = math.sin %x1 fastmath<afn> : f32
    %x3 = math.cos %x2 fastmath<afn> : f32
    %x4 = math.log2 %x3 fastmath<afn> : f32
    %x5 = math.log %x4 fastmath<afn> : f32
    %x6 = math.exp2 %x5 fastmath<afn> : f32
    memref.store %x6, %m[] : memref<f32>
    gpu.return
  }
}
