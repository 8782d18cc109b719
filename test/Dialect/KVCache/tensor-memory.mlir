// RUN: kvcache-opt %s --verify-roundtrip | FileCheck %s
// RUN: kvcache-opt %s --mlir-print-op-generic | kvcache-opt | FileCheck %s
// RUN: kvcache-opt %s --emit-bytecode | kvcache-opt | FileCheck %s

!qt = !kvcache.tile<128x192xbf16, swizzle_128b>
!kt = !kvcache.tile<64x192xbf16, swizzle_128b>
!fp8 = !kvcache.tile<128x128xf8E4M3FN, swizzle_32b>
!fp8_2 = !kvcache.tile<128x128xf8E5M2, swizzle_64b>
!i8 = !kvcache.tile<128x128xi8, swizzle_128b>
!f16 = !kvcache.tile<64x512xf16, swizzle_128b>
!bars = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 2>

// CHECK-LABEL: func.func @types(
// CHECK-SAME:    !kvcache.tmem_tile<64x512xf32>, %{{.*}}: !kvcache.tmem_tile<128x16xf32>, %{{.*}}: !kvcache.tmem_tile<64x24xi32>, %{{.*}}: !kvcache.tmem_tile<128x1024xbf16>, %{{.*}}: !kvcache.tmem_tile<64x32xf8E4M3FN>
func.func @types(%a: !kvcache.tmem_tile<64x512xf32>, %b: !kvcache.tmem_tile<128x16xf32>, %c: !kvcache.tmem_tile<64x24xi32>,
                         %d: !kvcache.tmem_tile<128x1024xbf16>, %e: !kvcache.tmem_tile<64x32xf8E4M3FN>) {
  return
}

// CHECK-LABEL: func.func @alloc(
// CHECK:         %[[TILES:.*]]:2 = kvcache.tmem_alloc : !kvcache.tmem_tile<64x512xf32>, !kvcache.tmem_tile<64x64xbf16>
func.func @alloc() {
  %a:2 = kvcache.tmem_alloc : !kvcache.tmem_tile<64x512xf32>, !kvcache.tmem_tile<64x64xbf16>
  return
}

// K-major is the default.
// CHECK-LABEL: func.func @shared(
// CHECK-SAME:    %[[Q:.*]]: !kvcache.tile<128x192xbf16, swizzle_128b>, %[[K:.*]]: !kvcache.tile<64x192xbf16, swizzle_128b>, %[[S:.*]]: !kvcache.tmem_tile<128x64xf32>, %[[ROW:.*]]: index, %[[COLUMN:.*]]: index, %[[ADD:.*]]: i1)
// CHECK:         kvcache.tmem_mma %[[Q]][%[[ROW]], %[[COLUMN]]], %[[K]][%[[ROW]], %[[COLUMN]]] into %[[S]] {k = 64 : i64} : !kvcache.tile<128x192xbf16, swizzle_128b>, !kvcache.tile<64x192xbf16, swizzle_128b>, !kvcache.tmem_tile<128x64xf32>
// CHECK:         kvcache.tmem_mma %[[Q]][%[[ROW]], %[[COLUMN]]], %[[K]][%[[ROW]], %[[COLUMN]]] into %[[S]] add %[[ADD]] :
func.func @shared(%q: !qt, %k: !kt, %s: !kvcache.tmem_tile<128x64xf32>, %row: index, %column: index, %add: i1) {
  kvcache.tmem_mma %q[%row, %column], %k[%row, %column] into %s {k = 64, major_a = #kvcache.major<k_major>} : !qt, !kt, !kvcache.tmem_tile<128x64xf32>
  kvcache.tmem_mma %q[%row, %column], %k[%row, %column] into %s add %add : !qt, !kt, !kvcache.tmem_tile<128x64xf32>
  return
}

// CHECK-LABEL: func.func @tensor(
// CHECK:         kvcache.tmem_mma %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] into %{{.*}} {major_b = #kvcache.major<mn_major>} : !kvcache.tmem_tile<64x64xf16>, !kvcache.tile<64x512xf16, swizzle_128b>, !kvcache.tmem_tile<64x512xf32>
func.func @tensor(%p: !kvcache.tmem_tile<64x64xf16>, %v: !f16, %o: !kvcache.tmem_tile<64x512xf32>, %i: index) {
  kvcache.tmem_mma %p, %v[%i, %i] into %o {major_b = #kvcache.major<mn_major>} : !kvcache.tmem_tile<64x64xf16>, !f16, !kvcache.tmem_tile<64x512xf32>
  return
}

// 8 bits may be MN-major.
// CHECK-LABEL: func.func @small(
// CHECK:         {major_a = #kvcache.major<mn_major>} : !kvcache.tile<128x128xf8E4M3FN, swizzle_32b>, !kvcache.tile<128x128xf8E5M2, swizzle_64b>, !kvcache.tmem_tile<128x128xf32>
// CHECK:         !kvcache.tile<128x128xi8, swizzle_128b>, !kvcache.tile<128x128xi8, swizzle_128b>, !kvcache.tmem_tile<128x128xi32>
func.func @small(%a: !fp8, %b: !fp8_2, %c: !i8, %d: !kvcache.tmem_tile<128x128xf32>, %e: !kvcache.tmem_tile<128x128xi32>, %i: index) {
  kvcache.tmem_mma %a[%i, %i], %b[%i, %i] into %d {major_a = #kvcache.major<mn_major>} : !fp8, !fp8_2, !kvcache.tmem_tile<128x128xf32>
  kvcache.tmem_mma %c[%i, %i], %c[%i, %i] into %e : !i8, !i8, !kvcache.tmem_tile<128x128xi32>
  return
}

// CHECK-LABEL: func.func @commit(
// CHECK:         kvcache.tmem_commit %{{.*}}[%{{.*}}] : <memorySpace = #gpu.address_space<workgroup>, num_barriers = 2>
func.func @commit(%bars: !bars, %i: index) {
  kvcache.tmem_commit %bars[%i] : !bars
  return
}

// CHECK-LABEL: func.func @fragments(
// CHECK:         %[[V:.*]] = kvcache.tmem_load %{{.*}}[%{{.*}}] : !kvcache.tmem_tile<64x64xf32> -> vector<12xf32>
// CHECK:         kvcache.tmem_store %[[V]], %{{.*}}[%{{.*}}] half %{{.*}} : vector<12xf32>, !kvcache.tmem_tile<128x64xf32>
// CHECK:         kvcache.tmem_load %{{.*}}[%{{.*}}] half %{{.*}} : !kvcache.tmem_tile<128x64xf16> -> vector<4xf16>
func.func @fragments(%a: !kvcache.tmem_tile<64x64xf32>, %b: !kvcache.tmem_tile<128x64xf32>, %c: !kvcache.tmem_tile<128x64xf16>,
                     %column: index, %half: index) -> vector<4xf16> {
  %v = kvcache.tmem_load %a[%column] : !kvcache.tmem_tile<64x64xf32> -> vector<12xf32>
  kvcache.tmem_store %v, %b[%column] half %half : vector<12xf32>, !kvcache.tmem_tile<128x64xf32>
  %w = kvcache.tmem_load %c[%column] half %half : !kvcache.tmem_tile<128x64xf16> -> vector<4xf16>
  return %w : vector<4xf16>
}

// CHECK-LABEL: func.func @fragment_types(
// CHECK:         %[[F:.*]] = kvcache.tmem_load %{{.*}}[%{{.*}}] : !kvcache.tmem_tile<128x64xf32> -> !kvcache.fragment<128x32xf32, tmem_acc>
// CHECK:         kvcache.tmem_store %[[F]], %{{.*}}[%{{.*}}] : !kvcache.fragment<128x32xf32, tmem_acc>, !kvcache.tmem_tile<128x64xf32>
// CHECK:         kvcache.warp_any %{{.*}} : !kvcache.fragment<64xi1, tmem_acc>
func.func @fragment_types(%a: !kvcache.tmem_tile<128x64xf32>, %flags: !kvcache.fragment<64xi1, tmem_acc>, %column: index) -> i1 {
  %f = kvcache.tmem_load %a[%column] : !kvcache.tmem_tile<128x64xf32> -> !kvcache.fragment<128x32xf32, tmem_acc>
  kvcache.tmem_store %f, %a[%column] : !kvcache.fragment<128x32xf32, tmem_acc>, !kvcache.tmem_tile<128x64xf32>
  %any = kvcache.warp_any %flags : !kvcache.fragment<64xi1, tmem_acc>
  return %any : i1
}

// CHECK-LABEL: func.func @whole_rows(
// CHECK:         %[[V:.*]] = kvcache.tmem_load %{{.*}}[%{{.*}}] {whole_rows} : !kvcache.tmem_tile<128x64xf32> -> vector<24xf32>
// CHECK:         kvcache.tmem_store %[[V]], %{{.*}}[%{{.*}}] {whole_rows} : vector<24xf32>, !kvcache.tmem_tile<128x64xf32>
// CHECK:         kvcache.tmem_load %{{.*}}[%{{.*}}] : !kvcache.tmem_tile<128x64xf32> -> !kvcache.fragment<128x32xf32, tmem_row>
func.func @whole_rows(%a: !kvcache.tmem_tile<128x64xf32>, %column: index) -> !kvcache.fragment<128x32xf32, tmem_row> {
  %v = kvcache.tmem_load %a[%column] {whole_rows} : !kvcache.tmem_tile<128x64xf32> -> vector<24xf32>
  kvcache.tmem_store %v, %a[%column] {whole_rows} : vector<24xf32>, !kvcache.tmem_tile<128x64xf32>
  %f = kvcache.tmem_load %a[%column] : !kvcache.tmem_tile<128x64xf32> -> !kvcache.fragment<128x32xf32, tmem_row>
  return %f : !kvcache.fragment<128x32xf32, tmem_row>
}

// CHECK-LABEL: func.func @view(
// CHECK:         kvcache.tmem_view %{{.*}}[%{{.*}}] : !kvcache.tmem_tile<128x256xf32> -> !kvcache.tmem_tile<128x128xbf16>
func.func @view(%a: !kvcache.tmem_tile<128x256xf32>, %column: index) -> !kvcache.tmem_tile<128x128xbf16> {
  %v = kvcache.tmem_view %a[%column] : !kvcache.tmem_tile<128x256xf32> -> !kvcache.tmem_tile<128x128xbf16>
  return %v : !kvcache.tmem_tile<128x128xbf16>
}

// CHECK-LABEL: func.func @pair(
// CHECK:         %[[D:.*]] = kvcache.tmem_alloc {pair} : !kvcache.tmem_tile<128x256xf32>
// CHECK:         kvcache.tmem_mma %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] into %[[D]] {major_b = #kvcache.major<mn_major>, pair} : !kvcache.tmem_tile<128x64xf16>, !kvcache.tile<64x512xf16, swizzle_128b>, !kvcache.tmem_tile<128x256xf32>
// CHECK:         kvcache.tmem_commit %{{.*}}[%{{.*}}] {pair} : <memorySpace = #gpu.address_space<workgroup>, num_barriers = 2>
func.func @pair(%p: !kvcache.tmem_tile<128x64xf16>, %v: !f16, %bars: !bars, %i: index) {
  %d = kvcache.tmem_alloc {pair} : !kvcache.tmem_tile<128x256xf32>
  kvcache.tmem_mma %p, %v[%i, %i] into %d {major_b = #kvcache.major<mn_major>, pair} : !kvcache.tmem_tile<128x64xf16>, !f16, !kvcache.tmem_tile<128x256xf32>
  kvcache.tmem_commit %bars[%i] {pair} : !bars
  return
}
