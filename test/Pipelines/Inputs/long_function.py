"""Prints a kernel that multiplies %a by %b + 1 and by %b + 2, and then does a given number of other multiplications."""

import sys

others = range(int(sys.argv[1]))
print(
    """gpu.module @kernels {
  gpu.func @multiply(%out: memref<?xi32>, %a: i32, %b: i32) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %one = arith.constant 1 : i32
    %two = arith.constant 2 : i32
    %b1 = arith.addi %b, %one : i32
    %b2 = arith.addi %b, %two : i32
    %first = arith.muli %b1, %a : i32
    %second = arith.muli %b2, %a : i32
    memref.store %first, %out[%c0] : memref<?xi32>
    memref.store %second, %out[%c1] : memref<?xi32>
    %x0 = arith.xori %a, %b : i32"""
)
for i in others:
    print(f"    %square{i} = arith.muli %x{i}, %x{i} : i32")
    print(f"    %x{i + 1} = arith.xori %square{i}, %a : i32")
print(f"    memref.store %x{len(others)}, %out[%c2] : memref<?xi32>\n    gpu.return\n  }}\n}}")
