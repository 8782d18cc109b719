// Matrices of elements of less than 16 bits, which sm_100a has.

// DEFINE: %{libs} = %kvcache_emulator,%kvcache_runtime,%mlir_lib_dir/libmlir_c_runner_utils.so,%mlir_lib_dir/libmlir_runner_utils.so
// DEFINE: %{run} = mlir-runner -e main -entry-point-result=void -shared-libs=%{libs}
// RUN: kvcache-opt %s --kvcache-to-emulator="chip=sm_100a" | %{run} | FileCheck %s

module attributes {gpu.container_module} {

gpu.module @kernels {
  // 32 rows whose bytes are their numbers, modulo 256.
  func.func private @fill(%shared: memref<32x16xi8, #gpu.address_space<workgroup>>, %lane: i32) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %all = arith.constant -1 : i32
    %t = arith.index_cast %lane : i32 to index
    scf.for %i = %c0 to %c16 step %c1 {
      %row = arith.muli %t, %c16 : index
      %number = arith.addi %row, %i : index
      %value = arith.index_cast %number : index to i8
      memref.store %value, %shared[%t, %i] : memref<32x16xi8, #gpu.address_space<workgroup>>
    }
    nvvm.bar.warp.sync %all : i32
    return
  }

  func.func private @get_row(%shared: memref<32x16xi8, #gpu.address_space<workgroup>>, %lane: i32) -> !llvm.ptr<3> {
    %base = memref.extract_aligned_pointer_as_index %shared : memref<32x16xi8, #gpu.address_space<workgroup>> -> index
    %base_i64 = arith.index_cast %base : index to i64
    %start = llvm.inttoptr %base_i64 : i64 to !llvm.ptr<3>
    %row = llvm.getelementptr %start[%lane] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, !llvm.array<16 x i8>
    return %row : !llvm.ptr<3>
  }

  // Register 1 of the first of two matrices, register 0 of the second; the
  // second of two whose elements have 4 bits, and of two of 6 bits.
  gpu.func @load(%out: memref<4x32xi32>) workgroup(%shared: memref<32x16xi8, #gpu.address_space<workgroup>>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %lane = nvvm.read.ptx.sreg.laneid range <i32, 0, 32> : i32
    %t = arith.index_cast %lane : i32 to index
    func.call @fill(%shared, %lane) : (memref<32x16xi8, #gpu.address_space<workgroup>>, i32) -> ()
    %row = func.call @get_row(%shared, %lane) : (memref<32x16xi8, #gpu.address_space<workgroup>>, i32) -> !llvm.ptr<3>
    %bytes = nvvm.ldmatrix %row {num = 2 : i32, layout = #nvvm.mma_layout<col>, shape = #nvvm.ld_st_matrix_shape<m = 16, n = 16>, eltType = #nvvm.ld_st_matrix_elt_type<b8>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
    %bytes1 = llvm.extractvalue %bytes[1] : !llvm.struct<(i32, i32, i32, i32)>
    %bytes2 = llvm.extractvalue %bytes[2] : !llvm.struct<(i32, i32, i32, i32)>
    %fours = nvvm.ldmatrix %row {num = 2 : i32, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 16>, eltType = #nvvm.ld_st_matrix_elt_type<b8x16.b4x16_p64>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32)>
    %fours1 = llvm.extractvalue %fours[1] : !llvm.struct<(i32, i32)>
    %sixes = nvvm.ldmatrix %row {num = 2 : i32, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 16>, eltType = #nvvm.ld_st_matrix_elt_type<b8x16.b6x16_p32>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32)>
    %sixes1 = llvm.extractvalue %sixes[1] : !llvm.struct<(i32, i32)>
    memref.store %bytes1, %out[%c0, %t] : memref<4x32xi32>
    memref.store %bytes2, %out[%c1, %t] : memref<4x32xi32>
    memref.store %fours1, %out[%c2, %t] : memref<4x32xi32>
    memref.store %sixes1, %out[%c3, %t] : memref<4x32xi32>
    gpu.return
  }

  // The accumulator of m16n8, whose elements are 8 * row + column, as bytes:
  // stored by columns.
  gpu.func @store(%out: memref<4x32xi32>) workgroup(%shared: memref<32x16xi8, #gpu.address_space<workgroup>>) kernel {
    %c0 = arith.constant 0 : index
    %all = arith.constant -1 : i32
    %zero = arith.constant 0 : i32
    %c2 = arith.constant 2 : i32
    %c3 = arith.constant 3 : i32
    %c8 = arith.constant 8 : i32
    %ones = arith.constant 0x01010101 : i32
    // The next column, and 8 rows below.
    %offsets = arith.constant 0x41400100 : i32
    %lane = nvvm.read.ptx.sreg.laneid range <i32, 0, 32> : i32
    %t = arith.index_cast %lane : i32 to index
    %g = arith.shrui %lane, %c2 : i32
    %q = arith.andi %lane, %c3 : i32
    %column = arith.muli %q, %c2 : i32
    %place = arith.muli %g, %c8 : i32
    %first = arith.addi %place, %column : i32
    %four = arith.muli %first, %ones : i32
    %bytes = arith.addi %four, %offsets : i32
    %row = func.call @get_row(%shared, %lane) : (memref<32x16xi8, #gpu.address_space<workgroup>>, i32) -> !llvm.ptr<3>
    nvvm.stmatrix %row, %bytes {layout = #nvvm.mma_layout<col>, shape = #nvvm.ld_st_matrix_shape<m = 16, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b8>} : !llvm.ptr<3>, i32
    nvvm.bar.warp.sync %all : i32
    %start = func.call @get_row(%shared, %zero) : (memref<32x16xi8, #gpu.address_space<workgroup>>, i32) -> !llvm.ptr<3>
    %word = llvm.getelementptr %start[%lane] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %value = llvm.load %word : !llvm.ptr<3> -> i32
    memref.store %value, %out[%c0, %t] : memref<4x32xi32>
    gpu.return
  }
}

func.func private @printMemrefI32(memref<*xi32>)

func.func private @print(%device: memref<4x32xi32>, %rows: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %host = memref.alloc() : memref<4x32xi32>
  gpu.memcpy %host, %device : memref<4x32xi32>, memref<4x32xi32>
  scf.for %row = %c0 to %rows step %c1 {
    %one = memref.subview %host[%row, 0] [1, 32] [1, 1] : memref<4x32xi32> to memref<32xi32, strided<[1], offset: ?>>
    %any = memref.cast %one : memref<32xi32, strided<[1], offset: ?>> to memref<*xi32>
    func.call @printMemrefI32(%any) : (memref<*xi32>) -> ()
  }
  memref.dealloc %host : memref<4x32xi32>
  return
}

// CHECK: [942157856, 2020110432, -1196904288, -118951712, 959000865, 2036953441, -1180061279, -102108703, 975843874, 2053796450, -1163218270, -85265694, 992686883, 2070639459, -1146375261, -68422685, 1009529892, 2087482468, -1129532252, -51579676, 1026372901, 2104325477, -1112689243, -34736667, 1043215910, 2121168486, -1095846234, -17893658, 1060058919, 2138011495, -1079003225, -1050649]
// CHECK: [403181568, 1481134144, -1735880576, -657928000, 420024577, 1497977153, -1719037567, -641084991, 436867586, 1514820162, -1702194558, -624241982, 453710595, 1531663171, -1685351549, -607398973, 470553604, 1548506180, -1668508540, -590555964, 487396613, 1565349189, -1651665531, -573712955, 504239622, 1582192198, -1634822522, -556869946, 521082631, 1599035207, -1617979513, -540026937]
// CHECK: [134285312, 134416386, 134547460, 134678534, 151062784, 151193858, 151324932, 151456006, 167840256, 167971330, 168102404, 168233478, 184617728, 184748802, 184879876, 185010950, 201395200, 201526274, 201657348, 201788422, 218172672, 218303746, 218434820, 218565894, 234950144, 235081218, 235212292, 235343366, 251727616, 251858690, 251989764, 252120838]
// CHECK: [539493888, 555225603, 570957318, 574106121, 606668304, 622400019, 638131734, 641280537, 673842720, 689574435, 705306150, 708454953, 741017136, 756748851, 772480566, 775629369, 808191744, 823923459, 839655174, 842803977, 875366160, 891097875, 906829590, 909978393, 942540576, 958272291, 974004006, 977152809, 1009714992, 1025446707, 1041178422, 1044327225]
// CHECK: [403703808, 942680096, 1481656384, 2020632672, 420546817, 959523105, 1498499393, 2037475681, 437389826, 976366114, 1515342402, 2054318690, 454232835, 993209123, 1532185411, 2071161699, 471075844, 1010052132, 1549028420, 2088004708, 487918853, 1026895141, 1565871429, 2104847717, 504761862, 1043738150, 1582714438, 2121690726, 521604871, 1060581159, 1599557447, 2138533735]
func.func @main() {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c32 = arith.constant 32 : index
  %device = gpu.alloc() : memref<4x32xi32>
  gpu.launch_func @kernels::@load blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1)
      args(%device : memref<4x32xi32>)
  func.call @print(%device, %c4) : (memref<4x32xi32>, index) -> ()
  gpu.launch_func @kernels::@store blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1)
      args(%device : memref<4x32xi32>)
  func.call @print(%device, %c1) : (memref<4x32xi32>, index) -> ()
  gpu.dealloc %device : memref<4x32xi32>
  return
}

}
