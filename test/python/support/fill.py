"""A function with a kernel that needs no cache."""

FILL = """
func.func @fill(%x: memref<?xf32>, %value: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %blocks = arith.ceildivui %n, %c32 : index
  scf.parallel (%b) = (%c0) to (%blocks) step (%c1) {
    scf.parallel (%t) = (%c0) to (%c32) step (%c1) {
      %first = arith.muli %b, %c32 : index
      %i = arith.addi %first, %t : index
      %inside = arith.cmpi ult, %i, %n : index
      scf.if %inside {
        memref.store %value, %x[%i] : memref<?xf32>
      }
    }
  }
  return
}
"""
