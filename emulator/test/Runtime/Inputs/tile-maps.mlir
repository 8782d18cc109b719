// A tensor, and descriptors of it.

// 8 rows of 32 numbers, row r from 100 * r on.
func.func @make_tensor() -> memref<8x32xi32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %c100 = arith.constant 100 : index
  %host = memref.alloc() : memref<8x32xi32>
  scf.for %r = %c0 to %c8 step %c1 {
    scf.for %c = %c0 to %c32 step %c1 {
      %hundreds = arith.muli %r, %c100 : index
      %sum = arith.addi %hundreds, %c : index
      %value = arith.index_cast %sum : index to i32
      memref.store %value, %host[%r, %c] : memref<8x32xi32>
    }
  }
  %device = gpu.alloc() : memref<8x32xi32>
  gpu.memcpy %device, %host : memref<8x32xi32>, memref<8x32xi32>
  memref.dealloc %host : memref<8x32xi32>
  return %device : memref<8x32xi32>
}

// The descriptor of the first 6 rows of a tensor, as kvcache/TMA/Encoding.h has
// it. `box_and_kind` are the two words with the sides of the box and the rank,
// the bytes of an element and the swizzle.
func.func @make_map(%tensor: memref<8x32xi32>, %box: i64, %kind: i64) -> memref<16xi64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c10 = arith.constant 10 : index
  %c12 = arith.constant 12 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %magic = arith.constant 0x000170616d74766b : i64
  %stride = arith.constant 32 : i64
  %sizes = arith.constant 0x600000020 : i64
  %host = memref.alloc() : memref<16xi64>
  scf.for %i = %c0 to %c16 step %c1 {
    memref.store %zero, %host[%i] : memref<16xi64>
  }
  memref.store %magic, %host[%c0] : memref<16xi64>
  %i = memref.extract_aligned_pointer_as_index %tensor : memref<8x32xi32> -> index
  %base = arith.index_cast %i : index to i64
  memref.store %base, %host[%c1] : memref<16xi64>
  memref.store %one, %host[%c3] : memref<16xi64>
  memref.store %stride, %host[%c4] : memref<16xi64>
  memref.store %sizes, %host[%c8] : memref<16xi64>
  memref.store %box, %host[%c10] : memref<16xi64>
  memref.store %kind, %host[%c12] : memref<16xi64>
  %device = gpu.alloc() : memref<16xi64>
  gpu.memcpy %device, %host : memref<16xi64>, memref<16xi64>
  memref.dealloc %host : memref<16xi64>
  return %device : memref<16xi64>
}
