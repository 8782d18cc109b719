// RUN: kvcache-opt %s --kvcache-host-memory-spaces --split-input-file --verify-diagnostics | FileCheck %s

// A block is one thread on the CPU: its shared memory is memory like any other.

// CHECK-LABEL: func.func @shared(
// CHECK-SAME:    %[[OUT:.*]]: memref<8xi32>
// CHECK:         %[[TILE:.*]] = memref.alloca() : memref<8xi32>
// CHECK:         memref.copy %[[TILE]], %[[OUT]] : memref<8xi32> to memref<8xi32>
func.func @shared(%out: memref<8xi32, #gpu.address_space<global>>) {
  %tile = memref.alloca() : memref<8xi32, #gpu.address_space<workgroup>>
  memref.copy %tile, %out : memref<8xi32, #gpu.address_space<workgroup>> to memref<8xi32, #gpu.address_space<global>>
  return
}

// -----

func.func @dynamic() -> memref<?xi8, #gpu.address_space<workgroup>> {
  // expected-error @+1 {{'gpu.dynamic_shared_memory' op has no memory on the host}}
  %memory = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
  return %memory : memref<?xi8, #gpu.address_space<workgroup>>
}
