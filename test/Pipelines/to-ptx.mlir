// RUN: kvcache-opt %examples/gather.mlir --kvcache-to-ptx=chip=sm_90a --emit-ptx -o %t.ptx
// RUN: FileCheck %s --input-file %t.ptx --implicit-check-not=.local --implicit-check-not=ld.local
// RUN: grep -c '\.param \.[ub]' %t.ptx | FileCheck %s --check-prefix=COUNT
// RUN: kvcache-opt %examples/gather.mlir --kvcache-to-ptx=chip=sm_90a | FileCheck %s --check-prefix=BINARY

// The gather: four reads of 16 bytes in flight before any is stored, through
// the read-only path; tables, too. Nothing spills.

// CHECK:         .version 8.6
// CHECK:         .target sm_90a
// CHECK:         .address_size 64
// CHECK:         .visible .entry gather_keys_kernel(
// CHECK:         .maxntid 16, 2, 8
// CHECK-COUNT-2: ld.global.nc.b32
// CHECK-NOT:     st.global
// CHECK-COUNT-4: ld.global.nc.v4.b32
// CHECK-NOT:     ld.global
// CHECK-COUNT-4: st.global.v4.b32
// CHECK-NOT:     st.global

// A stock kernel has 41 parameters.

// COUNT:         {{^([0-9]|1[0-9]|2[0-4])$}}

// The host's function stays, and the binary says how to launch its kernel.

// BINARY:        func.func @gather_keys(
// BINARY:          gpu.launch_func @gather_keys_kernel::@gather_keys_kernel
// BINARY:        gpu.binary @gather_keys_kernel [#gpu.object<#nvvm.target<O = 3, chip = "sm_90a", features = "+ptx86">
// BINARY-SAME:     kvcache.kernels = [{block_size = array<i32: 16, 2, 8>, name = "gather_keys_kernel", parameters = [
// BINARY-SAME:       {name = "{{[a-z0-9_.]*}}blocks", offset = {{[0-9]+}} : i64, size = 8 : i64, type = !llvm.ptr}
// BINARY-SAME:     assembly = "
