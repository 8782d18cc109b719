// RUN: kvcache-opt %s --kvcache-to-cpu -o %t.mlir
// RUN: mlir-runner %t.mlir -e main -entry-point-result=void -shared-libs=%mlir_lib_dir/libmlir_runner_utils.so,%mlir_lib_dir/libmlir_c_runner_utils.so,%kvcache_runtime | FileCheck %s

// The same with checks, which all hold.

// RUN: kvcache-opt %s --kvcache-bounds-checks --kvcache-to-cpu -o %t.checked.mlir
// RUN: mlir-runner %t.checked.mlir -e main -entry-point-result=void -shared-libs=%mlir_lib_dir/libmlir_runner_utils.so,%mlir_lib_dir/libmlir_c_runner_utils.so,%kvcache_runtime | FileCheck %s

// And after other people's passes.

// RUN: kvcache-opt %s --canonicalize --cse --loop-invariant-code-motion --inline --kvcache-to-cpu -o %t.moved.mlir
// RUN: mlir-runner %t.moved.mlir -e main -entry-point-result=void -shared-libs=%mlir_lib_dir/libmlir_runner_utils.so,%mlir_lib_dir/libmlir_c_runner_utils.so,%kvcache_runtime | FileCheck %s

// Heads of 10 elements in groups of 4, the last one of 2. Scales have a table
// of their own.

#kv = #kvcache.params<num_heads = 1, head_size = 10>
!collection = !kvcache.paged_collection<i8, #kv, page_size = 3, scale = f32, granularity = 4>
!cache = !kvcache.paged<i8, #kv, page_size = 3, scale = f32, granularity = 4>
!scales = !kvcache.scales<!cache>
!blocks = memref<3x2x2x3x1x10xi8>
!values = memref<2x2x2x3x1x3xf32>

memref.global "private" constant @table : memref<1x2xi32> = dense<[[2, 0]]>
memref.global "private" constant @scale_table : memref<1x2xi32> = dense<[[1, 0]]>
memref.global "private" constant @lengths : memref<1xi32> = dense<[4]>

func.func private @print_cache(%v: !cache, %t: index) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %w = kvcache.load_quantized %v[%c0, %c0, %t, %c0] : !cache -> vector<10xi8>
  vector.print %w : vector<10xi8>
  %s = kvcache.load_scale %v[%c0, %c0, %t, %c0] : !cache -> vector<3xf32>
  vector.print %s : vector<3xf32>
  %all = kvcache.load %v[%c0, %c0, %t, %c0] : !cache -> vector<10xf32>
  vector.print %all : vector<10xf32>
  %two = kvcache.load %v[%c0, %c0, %t, %c4] : !cache -> vector<2xbf16>
  %wide = arith.extf %two : vector<2xbf16> to vector<2xf32>
  vector.print %wide : vector<2xf32>
  %view = kvcache.scales_view %v : !cache
  %one = kvcache.load %view[%c0, %c0, %t, %c4] : !scales -> f32
  vector.print %one : f32
  return
}

func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %max = arith.constant 4 : i32
  %blocks = memref.alloc() {alignment = 64} : !blocks
  %values = memref.alloc() {alignment = 64} : !values
  %lut = memref.get_global @table : memref<1x2xi32>
  %slut = memref.get_global @scale_table : memref<1x2xi32>
  %lengths = memref.get_global @lengths : memref<1xi32>
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max scales %values lookup %slut
      : !blocks, memref<1xi32>, memref<1x2xi32>, !values, memref<1x2xi32> -> !collection
  %v = kvcache.paged_view value %c[%c1] : !collection
  %x = arith.constant dense<[1.0, -2.0, 63.5, 127.0, 254.0, -254.0, 3.0, 5.0, 0.0, 0.0]> : vector<10xf32>

  // Halves round to even, and zeros have the scale 1.

  // CHECK:      ( 1, -2, 64, 127, 127, -127, 2, 2, 0, 0 )
  // CHECK-NEXT: ( 1, 2, 1 )
  // CHECK-NEXT: ( 1, -2, 64, 127, 254, -254, 4, 4, 0, 0 )
  // CHECK-NEXT: ( 254, -254 )
  // CHECK-NEXT: {{^}}2{{$}}
  kvcache.store_quantized %x, %v[%c0, %c0, %c1, %c0] : vector<10xf32>, !cache
  func.call @print_cache(%v, %c1) : (!cache, index) -> ()

  // Token 1 is row 1 of page 2, and its scales are in page 1.

  // CHECK-NEXT: {{^}}127{{$}}
  // CHECK-NEXT: {{^}}2{{$}}
  %c2 = arith.constant 2 : index
  %stored = memref.load %blocks[%c2, %c1, %c1, %c1, %c0, %c4] : !blocks
  vector.print %stored : i8
  %scale = memref.load %values[%c1, %c1, %c1, %c1, %c0, %c1] : !values
  vector.print %scale : f32

  // Token 3 is in the second page of both. A scale of its own alone changes
  // what a load gives.

  // CHECK-NEXT: ( 1, -2, 64, 127, 127, -127, 2, 2, 0, 0 )
  // CHECK-NEXT: ( 1, 0.5, 1 )
  // CHECK-NEXT: ( 1, -2, 64, 127, 63.5, -63.5, 1, 1, 0, 0 )
  // CHECK-NEXT: ( 63.5, -63.5 )
  // CHECK-NEXT: {{^}}0.5{{$}}
  %half = arith.constant 0.5 : f32
  kvcache.store_quantized %x, %v[%c0, %c0, %c3, %c0] : vector<10xf32>, !cache
  kvcache.store_scale %half, %v[%c0, %c0, %c3, %c4] : f32, !cache
  func.call @print_cache(%v, %c3) : (!cache, index) -> ()

  // Pages of scales are 12 rows apart, of which the values of layer 1 are the
  // last three.

  // CHECK-NEXT: {{^}}13{{$}}
  // CHECK-NEXT: {{^}}15{{$}}
  %row = kvcache.scale_row_index %v[%c0, %c1] : !cache
  vector.print %row : index
  %rows = kvcache.num_scale_rows %v : !cache
  vector.print %rows : index
  %base = kvcache.scales_base %v : !cache
  // CHECK-NEXT: {{^}}2{{$}}
  %of_base = memref.load %base[%c1, %c1, %c0, %c1] : memref<?x3x1x3xf32, strided<[?, 3, 3, 1], offset: ?>>
  vector.print %of_base : f32

  // A group with an infinity has a NaN for scale; the other one saturates.

  // CHECK-NEXT: ( nan, nan, 352, 448 )
  // CHECK-NEXT: ( nan, 0.00891113 )
  %infinite = arith.constant dense<[1.0, 0x7F800000, 3.0, 4.0]> : vector<4xf32>
  %w0, %s0 = kvcache.quantize %infinite : vector<4xf32> -> vector<4xf8E4M3FN>, vector<2xbf16>
  %wide_w0 = arith.extf %w0 : vector<4xf8E4M3FN> to vector<4xf32>
  %wide_s0 = arith.extf %s0 : vector<2xbf16> to vector<2xf32>
  vector.print %wide_w0 : vector<4xf32>
  vector.print %wide_s0 : vector<2xf32>

  // The largest scale of f16.

  // CHECK-NEXT: {{^}}65504{{$}}
  // CHECK-NEXT: ( 448, -448, 0, 0 )
  %huge = arith.constant dense<[3.0e38, -3.4e38, 1.0, 0.0]> : vector<4xf32>
  %w1, %s1 = kvcache.quantize %huge : vector<4xf32> -> vector<4xf8E4M3FN>, f16
  %wide_w1 = arith.extf %w1 : vector<4xf8E4M3FN> to vector<4xf32>
  %wide_s1 = arith.extf %s1 : f16 to f32
  vector.print %wide_s1 : f32
  vector.print %wide_w1 : vector<4xf32>
  memref.dealloc %blocks : !blocks
  memref.dealloc %values : !values
  return
}
