// RUN: kvcache-opt %s --kvcache-expand-all-reduce --split-input-file --verify-diagnostics

gpu.module @kernels {
  gpu.func @some_threads(%x: f32, %c: i1) kernel {
    scf.if %c {
      // expected-error @below {{expects 'uniform' in control flow: all threads of a block reduce together}}
      %m = gpu.all_reduce add %x {} : (f32) -> f32
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @wide(%x: i128) kernel {
    // expected-error @below {{expects a value of at most 64 bits, got 'i128'}}
    %m = gpu.all_reduce add %x {} : (i128) -> i128
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @blocks(%x: i32) kernel {
    // expected-error @below {{expects a body of one block}}
    %m = gpu.all_reduce %x uniform {
    ^bb0(%a: i32, %b: i32):
      cf.br ^end(%a : i32)
    ^end(%c: i32):
      gpu.yield %c : i32
    } : (i32) -> i32
    gpu.return
  }
}

// -----

gpu.module @kernels {
  func.func @device(%x: i32) {
    // expected-error @below {{expects to be in a 'gpu.func'}}
    %m = gpu.all_reduce add %x {} : (i32) -> i32
    return
  }
}

// -----

gpu.module @kernels {
  gpu.func @cluster_beyond_warp(%x: i32) kernel {
    %fits = gpu.subgroup_reduce add %x cluster(size = 8, stride = 4) : (i32) -> i32
    // expected-error @below {{expects the size of a cluster times its stride to be at most 32, the threads of a warp, got 64}}
    %m = gpu.subgroup_reduce add %x cluster(size = 16, stride = 4) : (i32) -> i32
    gpu.return
  }
}
