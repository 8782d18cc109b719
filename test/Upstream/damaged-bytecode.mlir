// RUN: mlir-opt %s --emit-bytecode -o %t.mlirbc
// RUN: %python -c "import sys; b = bytearray(open(sys.argv[1], 'rb').read()); b[38] ^= 32; open(sys.argv[1], 'wb').write(b)" %t.mlirbc
// RUN: not --crash mlir-opt %t.mlirbc

// [mlir] The reader of bytecode ends the process, or never ends, on damaged files
//
// Of the 1,000 files that differ from this module's bytecode by one bit, mlir-opt
// 22.1 ends by a signal on ten, and does not end on seven. Byte 38 is an offset
// in the table of attributes and types. Expected: an error.

func.func @load(%memory: memref<4xf32>, %i: index) -> f32 {
  %number = memref.load %memory[%i] : memref<4xf32>
  return %number : f32
}
