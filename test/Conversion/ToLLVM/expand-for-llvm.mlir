// RUN: kvcache-opt %s --kvcache-expand-for-llvm | FileCheck %s
// RUN: kvcache-opt %s --kvcache-to-ptx=chip=sm_80 --emit-ptx | FileCheck %s --check-prefix=PTX

// Everything here has a lowering to LLVM only once it is expanded.

gpu.module @kernels {
  // A subview is its base, an offset and strides.

  // CHECK-LABEL: gpu.func @subview(
  // CHECK-SAME:      %[[A:.*]]: memref<?x?xf32>, %[[I:.*]]: index)
  // CHECK:         %{{.*}}, %[[OFFSET:.*]], %{{.*}}:2, %[[STRIDES:.*]]:2 = memref.extract_strided_metadata %[[A]]
  // CHECK:         arith.muli %[[I]], %[[STRIDES]]#0
  // CHECK:         memref.reinterpret_cast
  // CHECK-NOT:     memref.subview
  // PTX-LABEL: .entry subview(
  gpu.func @subview(%a: memref<?x?xf32>, %i: index) kernel {
    %view = memref.subview %a[%i, 4] [8, 16] [2, 1] : memref<?x?xf32> to memref<8x16xf32, strided<[?, 1], offset: ?>>
    %x = memref.load %view[%i, %i] : memref<8x16xf32, strided<[?, 1], offset: ?>>
    memref.store %x, %a[%i, %i] : memref<?x?xf32>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @affine(
  // CHECK-NOT:     affine.
  // CHECK:         scf.for
  // CHECK:           scf.if
  // CHECK:         arith.divsi
  // PTX-LABEL: .entry affine(
  gpu.func @affine(%a: memref<?xf32>, %i: index) kernel {
    affine.for %j = 0 to 8 {
      affine.if affine_set<(d0) : (d0 - 3 >= 0)>(%j) {
        %x = memref.load %a[%j] : memref<?xf32>
        memref.store %x, %a[%i] : memref<?xf32>
      }
    }
    %at = affine.apply affine_map<()[s0] -> (s0 floordiv 3)>()[%i]
    %x = memref.load %a[%at] : memref<?xf32>
    memref.store %x, %a[%i] : memref<?xf32>
    gpu.return
  }

  // A transfer of one dimension that may lie outside is a masked access, one of
  // two is a loop.

  // CHECK-LABEL: gpu.func @transfers(
  // CHECK-NOT:     vector.transfer
  // CHECK:         vector.maskedload
  // CHECK:         scf.for
  // PTX-LABEL: .entry transfers(
  gpu.func @transfers(%a: memref<?xf32>, %b: memref<?x?xf32>, %i: index) kernel {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %x = vector.transfer_read %a[%i], %zero : memref<?xf32>, vector<8xf32>
    vector.store %x, %a[%c0] : memref<?xf32>, vector<8xf32>
    %y = vector.transfer_read %b[%i, %i], %zero : memref<?x?xf32>, vector<4x8xf32>
    vector.transfer_write %y, %b[%c0, %c0] {in_bounds = [true, true]} : vector<4x8xf32>, memref<?x?xf32>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @of_several_dimensions(
  // CHECK-NOT:     vector.multi_reduction
  // CHECK-NOT:     vector.scan
  // CHECK-NOT:     vector.transpose
  // PTX-LABEL: .entry of_several_dimensions(
  gpu.func @of_several_dimensions(%a: memref<?xf32>) kernel {
    %c0 = arith.constant 0 : index
    %zero = arith.constant dense<0.0> : vector<2xf32>
    %x = vector.load %a[%c0] : memref<?xf32>, vector<8xf32>
    %tile = vector.shape_cast %x : vector<8xf32> to vector<4x2xf32>
    %sums = vector.multi_reduction <add>, %tile, %zero [0] : vector<4x2xf32> to vector<2xf32>
    %prefix, %last = vector.scan <add>, %tile, %sums {inclusive = false, reduction_dim = 0 : i64} : vector<4x2xf32>, vector<2xf32>
    %turned = vector.transpose %prefix, [1, 0] : vector<4x2xf32> to vector<2x4xf32>
    %y = vector.shape_cast %turned : vector<2x4xf32> to vector<8xf32>
    vector.store %y, %a[%c0] : memref<?xf32>, vector<8xf32>
    gpu.return
  }

  // The first of several rows is where the op says that it is aligned.

  // CHECK-LABEL: gpu.func @rows(
  // CHECK-SAME:      %[[A:.*]]: memref<?x?x?xf32>, %[[I:.*]]: index, %[[J:.*]]: index)
  // CHECK:         %[[FIRST:.*]] = vector.load %[[A]][%[[I]], %[[J]], %[[J]]] {alignment = 16 : i64} : memref<?x?x?xf32>, vector<4xf32>
  // CHECK:         %[[NEXT:.*]] = arith.addi %[[J]], %{{.*}} : index
  // CHECK:         %[[SECOND:.*]] = vector.load %[[A]][%[[I]], %[[NEXT]], %[[J]]] : memref<?x?x?xf32>, vector<4xf32>
  // CHECK:         vector.store %{{.*}}, %[[A]][%[[I]], %[[J]], %[[I]]] {nontemporal = true} : memref<?x?x?xf32>, vector<4xf32>
  // CHECK:         vector.store %{{.*}}, %[[A]][%[[I]], %{{.*}}, %[[I]]] {nontemporal = true} : memref<?x?x?xf32>, vector<4xf32>
  // CHECK-NOT:     vector<2x4xf32>
  // PTX-LABEL: .entry rows(
  gpu.func @rows(%a: memref<?x?x?xf32>, %i: index, %j: index) kernel {
    %x = vector.load %a[%i, %j, %j] {alignment = 16} : memref<?x?x?xf32>, vector<2x4xf32>
    vector.store %x, %a[%i, %j, %i] {nontemporal = true} : memref<?x?x?xf32>, vector<2x4xf32>
    gpu.return
  }

  // So are others, as far as the distance between rows is known.

  // CHECK-LABEL: gpu.func @aligned_rows(
  // CHECK:         vector.load {{.*}} {alignment = 32 : i64} : memref<?x2x10xf32>, vector<8xf32>
  // CHECK:         vector.load {{.*}} {alignment = 8 : i64} : memref<?x2x10xf32>, vector<8xf32>
  // CHECK:         vector.load {{.*}} {alignment = 16 : i64} : memref<?x2x10xf32>, vector<8xf32>
  // CHECK:         vector.load {{.*}} {alignment = 8 : i64} : memref<?x2x10xf32>, vector<8xf32>
  // PTX-LABEL: .entry aligned_rows(
  // PTX-COUNT-2: ld.global.nc.v4.b32
  // PTX-COUNT-4: ld.global.nc.v2.b32
  // PTX-COUNT-2: ld.global.nc.v4.b32
  // PTX-COUNT-4: ld.global.nc.v2.b32
  gpu.func @aligned_rows(%a: memref<?x2x10xf32>, %b: memref<?xf32>, %i: index, %j: index) kernel {
    %c0 = arith.constant 0 : index
    %x = vector.load %a[%i, %c0, %j] {alignment = 32} : memref<?x2x10xf32>, vector<2x2x8xf32>
    %y = vector.shape_cast %x : vector<2x2x8xf32> to vector<32xf32>
    vector.store %y, %b[%i] : memref<?xf32>, vector<32xf32>
    gpu.return
  }

  // More of these in gpu-math.mlir and gpu-math-intrinsics.mlir.

  // CHECK-LABEL: gpu.func @clamp(
  // CHECK-SAME:      %[[X:.*]]: vector<2xf32>, %[[MIN:.*]]: vector<2xf32>, %[[MAX:.*]]: vector<2xf32>,
  // CHECK:         %[[BELOW:.*]] = arith.minimumf %[[X]], %[[MAX]] : vector<2xf32>
  // CHECK:         arith.maximumf %[[BELOW]], %[[MIN]] : vector<2xf32>
  // PTX-LABEL: .entry clamp(
  gpu.func @clamp(%x: vector<2xf32>, %min: vector<2xf32>, %max: vector<2xf32>, %out: memref<2xf32>) kernel {
    %c0 = arith.constant 0 : index
    %y = math.clampf %x to [%min, %max] : vector<2xf32>
    vector.store %y, %out[%c0] : memref<2xf32>, vector<2xf32>
    gpu.return
  }

  // The base is squared for each bit of the exponent. A negative one leaves
  // powers of 1 and -1.

  // CHECK-LABEL: gpu.func @power(
  // CHECK-SAME:      %[[BASE:[^:]*]]: vector<2xi16>, %[[EXPONENT:[^:]*]]: vector<2xi16>
  // CHECK-DAG:     %[[BITS:.*]] = arith.constant 16 : index
  // CHECK-DAG:     %[[NONE:.*]] = arith.constant dense<0> : vector<2xi16>
  // CHECK:         %[[POWER:.*]]:3 = scf.for %{{.*}} to %[[BITS]] {{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %[[BASE]], %{{.*}} = %[[EXPONENT]])
  // CHECK:         %[[UNIT:.*]] = arith.select %{{.*}}, %[[POWER]]#0, %[[NONE]]
  // CHECK:         arith.select %{{.*}}, %[[UNIT]], %[[POWER]]#0
  // PTX-LABEL: .entry power(
  gpu.func @power(%base: vector<2xi16>, %exponent: vector<2xi16>, %out: memref<2xi16>) kernel {
    %c0 = arith.constant 0 : index
    %y = math.ipowi %base, %exponent : vector<2xi16>
    vector.store %y, %out[%c0] : memref<2xi16>, vector<2xi16>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @math(
  // CHECK-NOT:     gpu.subgroup_reduce
  // CHECK:         gpu.shuffle
  // CHECK:         llvm.call_intrinsic "llvm.sqrt"
  // PTX-LABEL: .entry math(
  gpu.func @math(%a: memref<?xf32>, %i: index) kernel {
    %x = memref.load %a[%i] : memref<?xf32>
    %sum = gpu.subgroup_reduce add %x : (f32) -> f32
    %root = math.sqrt %sum : f32
    memref.store %root, %a[%i] : memref<?xf32>
    gpu.return
  }
}

// LLVM would never finish the code for this shuffle on some CPUs.

// CHECK-LABEL: func.func @interleave(
// CHECK-SAME:      %[[LOW:[^:]*]]: vector<20xi8>, %[[HIGH:[^:]*]]: vector<20xi8>
// CHECK:         %[[BITS:.*]] = arith.constant dense<8> : vector<20xi16>
// CHECK:         %[[LOW_WORDS:.*]] = arith.extui %[[LOW]]
// CHECK:         %[[HIGH_WORDS:.*]] = arith.extui %[[HIGH]]
// CHECK:         %[[SHIFTED:.*]] = arith.shli %[[HIGH_WORDS]], %[[BITS]]
// CHECK:         %[[WORDS:.*]] = arith.ori %[[LOW_WORDS]], %[[SHIFTED]]
// CHECK:         vector.bitcast %[[WORDS]] : vector<20xi16> to vector<40xi8>
func.func @interleave(%low: vector<20xi8>, %high: vector<20xi8>) -> vector<40xi8> {
  %joined = vector.interleave %low, %high : vector<20xi8> -> vector<40xi8>
  return %joined : vector<40xi8>
}

// CHECK-LABEL: func.func @interleave_a_power_of_two(
// CHECK-NEXT:    vector.interleave
func.func @interleave_a_power_of_two(%low: vector<32xi8>, %high: vector<32xi8>) -> vector<64xi8> {
  %joined = vector.interleave %low, %high : vector<32xi8> -> vector<64xi8>
  return %joined : vector<64xi8>
}
