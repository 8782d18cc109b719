// REQUIRES: ptxas

// ptxas takes dynamic shared memory beyond the 48 KB that it takes of the static
// kind.

// DEFINE: %{chip} =
// DEFINE: %{assemble} = kvcache-opt %S/shared-memory.mlir --kvcache-to-ptx=chip=%{chip} --emit-ptx -o %t.%{chip}.ptx && \
// DEFINE:   ptxas --verbose --gpu-name %{chip} %t.%{chip}.ptx -o %t.cubin 2>&1 | FileCheck %s

// CHECK:     ptxas info    : Compiling entry function 'one'
// CHECK:     32768 bytes smem
// CHECK:     ptxas info    : Compiling entry function 'three'
// CHECK-NOT: bytes smem

// REDEFINE: %{chip} = sm_80
// RUN: %{assemble}
// REDEFINE: %{chip} = sm_90a
// RUN: %{assemble}
// REDEFINE: %{chip} = sm_100a
// RUN: %{assemble}
// REDEFINE: %{chip} = sm_120a
// RUN: %{assemble}
