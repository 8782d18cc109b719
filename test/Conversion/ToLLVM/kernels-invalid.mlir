// RUN: kvcache-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(gpu.module(kvcache-kernels-to-nvvm))'

gpu.module @kernels {
  gpu.func @assertion_in_a_loop(%holds: i1) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %i = %c0 to %c1 step %c1 {
      // expected-error @+1 {{'cf.assert' op in 'scf.for' has no lowering here: 'kvcache-lower-control-flow' goes first}}
      cf.assert %holds, "holds"
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @assertion_in_a_switch(%holds: i1, %i: index) kernel {
    scf.index_switch %i
    case 2 {
      // expected-error @+1 {{'cf.assert' op in 'scf.index_switch' has no lowering here}}
      cf.assert %holds, "holds"
      scf.yield
    }
    default {
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @check_in_a_loop(%i: index, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %j = %c0 to %c1 step %c1 {
      // expected-error @+1 {{'kvcache.check' op has no lowering here}}
      kvcache.check %i below %n, "row"
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @print(%x: f32) kernel {
    // expected-error @+1 {{can't run on a GPU: becomes a call of @printF32, a function of the host}}
    vector.print %x : f32
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @copy(%from: memref<?xi32, strided<[?]>>, %to: memref<?xi32, strided<[?]>>) kernel {
    // expected-error @+1 {{can't run on a GPU: becomes a call of @memrefCopy, a function of the host}}
    memref.copy %from, %to : memref<?xi32, strided<[?]>> to memref<?xi32, strided<[?]>>
    gpu.return
  }
}

// -----

gpu.module @taken {
  // expected-error @+1 {{the name @kvcache_failure_record is taken: kernels with checks use it}}
  llvm.func @kvcache_failure_record()
  gpu.func @kernel(%holds: i1) kernel {
    cf.assert %holds, "no"
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @+1 {{'gpu.printf' op is in no function of its module}}
  gpu.printf "done"
}

// -----

gpu.module @kernels {
  // expected-error @+1 {{'gpu.func' op expects 'llvm.align' of its variables to be a power of two, got 9223372036854775807 : i64}}
  gpu.func @alignment_of_shared_memory() workgroup(%a: memref<4xf32, #gpu.address_space<workgroup>> {llvm.align = 9223372036854775807 : i64}) kernel {
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @+1 {{expects 'llvm.align' of its variables to be a power of two, got 3 : i64}}
  gpu.func @alignment_of_private_memory() private(%a: memref<4xf32, #gpu.address_space<private>> {llvm.align = 3 : i64}) kernel {
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @integer_for_a_float(%i: i32) kernel {
    // expected-error @below {{'gpu.printf' op has no conversion '%f' of 'i32'}}
    gpu.printf "%f\n", %i : i32
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @more_conversions_than_operands(%i: i32) kernel {
    // expected-error @below {{'gpu.printf' op expects a conversion for each operand (1), got more}}
    gpu.printf "%d %d\n", %i : i32
    gpu.return
  }
}

// -----

!s = !kvcache.fragment<16x16xf32, mma_acc>

gpu.module @kernels {
  gpu.func @math_in_a_region(%x: f32) kernel {
    // expected-error @+1 {{'kvcache.splat' op expects 'kvcache-lower-fragments' to lower it first}}
    %s = kvcache.splat %x : !s
    %y = kvcache.map math.atan(%s) : !s -> !s
    gpu.return
  }
}
