// RUN: kvcache-opt %s --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" \
// RUN:   | FileCheck %s

// Where queries are a slice of the tensor that keys are read from, they are copied unless both are apart for certain.

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// A projection of which the heads are columns is made in each iteration, and its slices are apart: no copy.
// CHECK-LABEL: func.func @loop(
// CHECK:         scf.for
// CHECK:           memref.alloc() {{.*}} : memref<4x6144xbf16>
// CHECK-NOT:       memref.alloc
// CHECK-NOT:       memref.copy
// CHECK:           kvcache.append
// CHECK-NOT:       memref.copy
func.func @loop(%x: tensor<4x6144xbf16>, %cache: !cache, %layers: index, %offsets: tensor<?xi32>, %table: tensor<?x64xf32>,
                %out: tensor<4x32x128xbf16> {bufferization.writable = true}) -> tensor<4x32x128xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %last = scf.for %i = %c0 to %layers step %c1 iter_args(%o = %out) -> tensor<4x32x128xbf16> {
    %empty = tensor.empty() : tensor<4x6144xbf16>
    %qkv = linalg.copy ins(%x : tensor<4x6144xbf16>) outs(%empty : tensor<4x6144xbf16>) -> tensor<4x6144xbf16>
    %qs = tensor.extract_slice %qkv[0, 0] [4, 4096] [1, 1] : tensor<4x6144xbf16> to tensor<4x4096xbf16>
    %ks = tensor.extract_slice %qkv[0, 4096] [4, 1024] [1, 1] : tensor<4x6144xbf16> to tensor<4x1024xbf16>
    %vs = tensor.extract_slice %qkv[0, 5120] [4, 1024] [1, 1] : tensor<4x6144xbf16> to tensor<4x1024xbf16>
    %q = tensor.expand_shape %qs [[0], [1, 2]] output_shape [4, 32, 128] : tensor<4x4096xbf16> into tensor<4x32x128xbf16>
    %k = tensor.expand_shape %ks [[0], [1, 2]] output_shape [4, 8, 128] : tensor<4x1024xbf16> into tensor<4x8x128xbf16>
    %v = tensor.expand_shape %vs [[0], [1, 2]] output_shape [4, 8, 128] : tensor<4x1024xbf16> into tensor<4x8x128xbf16>
    %r = kvcache.append %k, %v to %cache, %cache rows %offsets rope %table queries %q
        : tensor<4x8x128xbf16>, tensor<4x8x128xbf16>, !cache, !cache, tensor<?xi32>, tensor<?x64xf32>, tensor<4x32x128xbf16>
        -> tensor<4x32x128xbf16>
    %sum = linalg.add ins(%r, %o : tensor<4x32x128xbf16>, tensor<4x32x128xbf16>)
        outs(%o : tensor<4x32x128xbf16>) -> tensor<4x32x128xbf16>
    scf.yield %sum : tensor<4x32x128xbf16>
  }
  return %last : tensor<4x32x128xbf16>
}

// The last head of the queries is the first one of the keys.
// CHECK-LABEL: func.func @overlap(
// CHECK:         %[[ROPED:.*]] = memref.alloc
// CHECK:         memref.copy %{{.*}}, %[[ROPED]]
// CHECK:         kvcache.append {{.*}} queries %[[ROPED]]
func.func @overlap(%qkv: tensor<4x48x128xbf16> {bufferization.writable = true}, %cache: !cache, %offsets: tensor<?xi32>,
                   %table: tensor<?x64xf32>) -> tensor<4x32x128xbf16> {
  %q = tensor.extract_slice %qkv[0, 0, 0] [4, 32, 128] [1, 1, 1] : tensor<4x48x128xbf16> to tensor<4x32x128xbf16>
  %k = tensor.extract_slice %qkv[0, 31, 0] [4, 8, 128] [1, 1, 1] : tensor<4x48x128xbf16> to tensor<4x8x128xbf16>
  %r = kvcache.append %k, %k to %cache, %cache rows %offsets rope %table queries %q
      : tensor<4x8x128xbf16>, tensor<4x8x128xbf16>, !cache, !cache, tensor<?xi32>, tensor<?x64xf32>, tensor<4x32x128xbf16>
      -> tensor<4x32x128xbf16>
  return %r : tensor<4x32x128xbf16>
}

// It is not known where the keys begin.
// CHECK-LABEL: func.func @unknown(
// CHECK:         memref.copy
// CHECK:         kvcache.append
func.func @unknown(%qkv: tensor<4x48x128xbf16> {bufferization.writable = true}, %first: index, %cache: !cache,
                   %offsets: tensor<?xi32>, %table: tensor<?x64xf32>) -> tensor<4x32x128xbf16> {
  %q = tensor.extract_slice %qkv[0, 0, 0] [4, 32, 128] [1, 1, 1] : tensor<4x48x128xbf16> to tensor<4x32x128xbf16>
  %k = tensor.extract_slice %qkv[0, %first, 0] [4, 8, 128] [1, 1, 1] : tensor<4x48x128xbf16> to tensor<4x8x128xbf16>
  %r = kvcache.append %k, %k to %cache, %cache rows %offsets rope %table queries %q
      : tensor<4x8x128xbf16>, tensor<4x8x128xbf16>, !cache, !cache, tensor<?xi32>, tensor<?x64xf32>, tensor<4x32x128xbf16>
      -> tensor<4x32x128xbf16>
  return %r : tensor<4x32x128xbf16>
}

// An iteration reads rows that the one before has written: the slices of an iteration are apart, those of several are not.
// CHECK-LABEL: func.func @iterations(
// CHECK:         scf.for
// CHECK:           memref.copy
// CHECK:           kvcache.append
func.func @iterations(%qkv: tensor<64x8x128xbf16> {bufferization.writable = true}, %cache: !cache, %n: index,
                      %offsets: tensor<?xi32>, %table: tensor<?x64xf32>) {
  %c1 = arith.constant 1 : index
  scf.for %i = %c1 to %n step %c1 {
    %before = arith.subi %i, %c1 : index
    %q = tensor.extract_slice %qkv[%i, 0, 0] [1, 8, 128] [1, 1, 1] : tensor<64x8x128xbf16> to tensor<1x8x128xbf16>
    %k = tensor.extract_slice %qkv[%before, 0, 0] [1, 8, 128] [1, 1, 1] : tensor<64x8x128xbf16> to tensor<1x8x128xbf16>
    %r = kvcache.append %k, %k to %cache, %cache rows %offsets rope %table queries %q
        : tensor<1x8x128xbf16>, tensor<1x8x128xbf16>, !cache, !cache, tensor<?xi32>, tensor<?x64xf32>, tensor<1x8x128xbf16>
        -> tensor<1x8x128xbf16>
  }
  return
}
