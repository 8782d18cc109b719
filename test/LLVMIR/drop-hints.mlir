// RUN: kvcache-opt %s --kvcache-drop-hints | FileCheck %s

// Stores of whole, aligned registers keep the hint.

// CHECK-LABEL: llvm.func @stores
// CHECK:         llvm.store %{{.*}}, %{{.*}} {alignment = 16 : i64, nontemporal} : vector<8xi16>
// CHECK:         llvm.store %{{.*}}, %{{.*}} {alignment = 64 : i64, nontemporal} : vector<16xi32>
llvm.func @stores(%a: vector<8xi16>, %b: vector<16xi32>, %p: !llvm.ptr) {
  llvm.store %a, %p {alignment = 16 : i64, nontemporal} : vector<8xi16>, !llvm.ptr
  llvm.store %b, %p {alignment = 64 : i64, nontemporal} : vector<16xi32>, !llvm.ptr
  llvm.return
}

// CHECK-LABEL: llvm.func @parts_of_registers
// CHECK-NOT:     nontemporal
llvm.func @parts_of_registers(%a: vector<8xi16>, %b: vector<12xi16>, %c: i16, %p: !llvm.ptr) {
  llvm.store %a, %p {alignment = 8 : i64, nontemporal} : vector<8xi16>, !llvm.ptr
  llvm.store %b, %p {alignment = 16 : i64, nontemporal} : vector<12xi16>, !llvm.ptr
  llvm.store %c, %p {nontemporal} : i16, !llvm.ptr
  llvm.return
}

// CHECK-LABEL: llvm.func @loads
// CHECK-NOT:     nontemporal
llvm.func @loads(%p: !llvm.ptr, %mask: vector<8xi1>, %none: vector<8xi16>) -> vector<8xi16> {
  %a = llvm.load %p {alignment = 16 : i64, nontemporal} : !llvm.ptr -> vector<8xi16>
  %b = llvm.intr.masked.load %p, %mask, %a {alignment = 2 : i32, nontemporal} : (!llvm.ptr, vector<8xi1>, vector<8xi16>) -> vector<8xi16>
  llvm.return %b : vector<8xi16>
}
