// Reports of uses of values that depend on uninitialized bytes,
// one kernel for each use. Kernels that read such bytes
// and discard them are in poison.mlir.

// RUN: %add_launches %s | kvcache-opt --kvcache-to-emulator="chip=sm_100a" -o %t.mlir
// RUN: %emulator_tests/kvcache-run-cases %t.mlir --shared-libs=%kvcache_emulator,%kvcache_runtime | FileCheck %s -DFILE="<stdin>"

!out = memref<64xi32>

module attributes {gpu.container_module} {

gpu.module @kernels {
  llvm.mlir.global internal @tile() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<512 x i8>
  llvm.mlir.global internal @other() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<512 x i8>

  gpu.func @address(%out: !out) kernel {
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    // CHECK-LABEL: run @address:
    // CHECK: [[FILE]]:[[#@LINE+3]]:{{[0-9]+}}: llvm.store: thread (0, 0, 0) of block (0, 0, 0) computes an address from a value that depends on bytes which were uninitialized when llvm.load at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte 0 of shared @tile
    %v = llvm.load %tile : !llvm.ptr<3> -> i32
    %i = arith.index_cast %v : i32 to index
    memref.store %v, %out[%i] : !out
    gpu.return
  }

  gpu.func @store(%out: !out) kernel {
    %c0 = arith.constant 0 : index
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    // CHECK-LABEL: run @store:
    // CHECK: [[FILE]]:[[#@LINE+2]]:{{[0-9]+}}: llvm.store: thread (0, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which were uninitialized when llvm.load at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte 0 of shared @tile
    %v = llvm.load %tile : !llvm.ptr<3> -> i32
    memref.store %v, %out[%c0] : !out
    gpu.return
  }

  gpu.func @condition_of_a_select(%out: !out) kernel {
    %c0 = arith.constant 0 : index
    %one = arith.constant 1 : i32
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    // CHECK-LABEL: run @condition_of_a_select:
    // CHECK: [[FILE]]:[[#@LINE+5]]:{{[0-9]+}}: llvm.store: thread (0, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which were uninitialized when llvm.load at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte 0 of shared @tile
    %v = llvm.load %tile : !llvm.ptr<3> -> i32
    %two = arith.constant 2 : i32
    %is = arith.cmpi sgt, %v, %one : i32
    %chosen = arith.select %is, %two, %one : i32
    memref.store %chosen, %out[%c0] : !out
    gpu.return
  }

  gpu.func @switch_on_it(%out: !out) kernel {
    %c0 = arith.constant 0 : index
    %one = arith.constant 1 : i32
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    // CHECK-LABEL: run @switch_on_it:
    // CHECK: [[FILE]]:[[#@LINE+3]]:{{[0-9]+}}: llvm.switch: thread (0, 0, 0) of block (0, 0, 0) branches on a value that depends on bytes which were uninitialized when llvm.load at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte 0 of shared @tile
    %v = llvm.load %tile : !llvm.ptr<3> -> i32
    %i = arith.index_cast %v : i32 to index
    scf.index_switch %i
    case 2 {
      memref.store %one, %out[%c0] : !out
      scf.yield
    }
    case 5 {
      memref.store %one, %out[%c0] : !out
      scf.yield
    }
    default {
    }
    gpu.return
  }

  gpu.func @printed(%out: !out) kernel {
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    // CHECK-LABEL: run @printed:
    // CHECK: [[FILE]]:[[#@LINE+2]]:{{[0-9]+}}: llvm.store: thread (0, 0, 0) of block (0, 0, 0) stores to a variable whose address is passed on a value that depends on bytes which were uninitialized when llvm.load at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte 0 of shared @tile
    %v = llvm.load %tile : !llvm.ptr<3> -> i32
    gpu.printf "%d", %v : i32
    gpu.return
  }

  gpu.func @asserted(%out: !out) kernel {
    %one = arith.constant 1 : i32
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    // CHECK-LABEL: run @asserted:
    // CHECK: [[FILE]]:[[#@LINE+3]]:{{[0-9]+}}: llvm.cond_br: thread (0, 0, 0) of block (0, 0, 0) branches on a value that depends on bytes which were uninitialized when llvm.load at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte 0 of shared @tile
    %v = llvm.load %tile : !llvm.ptr<3> -> i32
    %is = arith.cmpi eq, %v, %one : i32
    cf.assert %is, "is one"
    gpu.return
  }

  gpu.func @divisor(%out: !out) kernel {
    %c0 = arith.constant 0 : index
    %one = arith.constant 1 : i32
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    // CHECK-LABEL: run @divisor:
    // CHECK: [[FILE]]:[[#@LINE+2]]:{{[0-9]+}}: llvm.cond_br: thread (0, 0, 0) of block (0, 0, 0) branches on a value that depends on bytes which were uninitialized when llvm.load at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte 0 of shared @tile
    %v = llvm.load %tile : !llvm.ptr<3> -> i32
    %q = arith.divui %one, %v : i32
    memref.store %q, %out[%c0] : !out
    gpu.return
  }

  gpu.func @bulk_copy_out(%out: !out) kernel {
    %index = memref.extract_aligned_pointer_as_index %out : !out -> index
    %address = arith.index_cast %index : index to i64
    %g = llvm.inttoptr %address : i64 to !llvm.ptr<1>
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %bytes = arith.constant 64 : i32
    %word = llvm.mlir.constant(1 : i32) : i32
    llvm.store %word, %tile : i32, !llvm.ptr<3>
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async>}
    // CHECK-LABEL: run @bulk_copy_out:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.cp.async.bulk.global.shared.cta: thread (0, 0, 0) of block (0, 0, 0) issues a copy that reads 64 bytes at byte 0 of shared @tile, which are uninitialized; the first of these bytes is byte 4 of shared @tile
    nvvm.cp.async.bulk.global.shared.cta %g, %tile, %bytes : !llvm.ptr<1>, !llvm.ptr<3>
    nvvm.cp.async.bulk.commit.group
    nvvm.cp.async.bulk.wait_group 0
    gpu.return
  }

  gpu.func @bulk_copy_out_of_what_never_arrived(%out: !out) kernel {
    %index = memref.extract_aligned_pointer_as_index %out : !out -> index
    %address = arith.index_cast %index : index to i64
    %g = llvm.inttoptr %address : i64 to !llvm.ptr<1>
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %bytes = arith.constant 64 : i32
    %words = llvm.mlir.constant(dense<1> : vector<4xi32>) : vector<4xi32>
    llvm.store %words, %g : vector<4xi32>, !llvm.ptr<1>
    nvvm.cp.async.shared.global %tile, %g, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
    nvvm.cp.async.commit.group
    nvvm.cp.async.wait.group 0
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async>}
    // CHECK-LABEL: run @bulk_copy_out_of_what_never_arrived:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.cp.async.bulk.global.shared.cta: thread (0, 0, 0) of block (0, 0, 0) issues a copy that reads 64 bytes at byte 0 of shared @tile, which are uninitialized, and for which no copy has been issued; the first of these bytes is byte 16 of shared @tile
    nvvm.cp.async.bulk.global.shared.cta %g, %tile, %bytes : !llvm.ptr<1>, !llvm.ptr<3>
    nvvm.cp.async.bulk.commit.group
    nvvm.cp.async.bulk.wait_group 0
    gpu.return
  }

  gpu.func @bulk_copy_of_what_depends_on_it(%out: !out) kernel {
    %index = memref.extract_aligned_pointer_as_index %out : !out -> index
    %address = arith.index_cast %index : index to i64
    %g = llvm.inttoptr %address : i64 to !llvm.ptr<1>
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %bytes = arith.constant 16 : i32
    %other = llvm.mlir.addressof @other : !llvm.ptr<3>
    %v = llvm.load %tile {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
    llvm.store %v, %other {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async>}
    // CHECK-LABEL: run @bulk_copy_of_what_depends_on_it:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.cp.async.bulk.global.shared.cta: thread (0, 0, 0) of block (0, 0, 0) issues a copy that reads 16 bytes at byte 0 of shared @other, which hold a value that depends on bytes which were uninitialized when llvm.load at [[FILE]]:[[#@LINE-4]]:10 read them; the first is byte 0 of shared @tile
    nvvm.cp.async.bulk.global.shared.cta %g, %other, %bytes : !llvm.ptr<1>, !llvm.ptr<3>
    nvvm.cp.async.bulk.commit.group
    nvvm.cp.async.bulk.wait_group 0
    gpu.return
  }

  // It calls itself: not all calls of it go away.
  func.func private @add(%n: i32, %to: i32) -> i32 {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %is_zero = arith.cmpi eq, %n, %zero : i32
    %count = scf.if %is_zero -> i32 {
      scf.yield %to : i32
    } else {
      %rest = arith.subi %n, %one : i32
      // CHECK-LABEL: run @passed_to_a_function:
      // CHECK: [[FILE]]:[[#@LINE+1]]:16: llvm.call: thread (0, 0, 0) of block (0, 0, 0) passes to a function a value that depends on bytes which were uninitialized when llvm.load at [[FILE]]:[[#@LINE+11]]:10 read them; the first is byte 0 of shared @tile
      %below = func.call @add(%rest, %to) : (i32, i32) -> i32
      %all = arith.addi %below, %one : i32
      scf.yield %all : i32
    }
    return %count : i32
  }

  gpu.func @passed_to_a_function(%out: !out) kernel {
    %c0 = arith.constant 0 : index
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %v = llvm.load %tile : !llvm.ptr<3> -> i32
    %three = arith.constant 3 : i32
    %count = func.call @add(%three, %v) : (i32, i32) -> i32
    memref.store %count, %out[%c0] : !out
    gpu.return
  }
}

}
