// RUN: kvcache-opt %s --convert-kvcache-to-nvvm --split-input-file --verify-diagnostics

func.func @host() {
  // expected-error @below {{'kvcache.cluster_barrier' op expects GPU code}}
  kvcache.cluster_barrier {blocks = 2 : i64}
  return
}

// -----

gpu.module @kernels [#nvvm.target<chip = "sm_89">] {
  gpu.func @chip() kernel {
    // expected-error @below {{'kvcache.cluster_barrier' op requires sm_90 or newer for clusters, but the target is sm_89}}
    kvcache.cluster_barrier {blocks = 2 : i64}
    gpu.return
  }
}

// -----

gpu.module @kernels [#nvvm.target<chip = "sm_90a">] {
  func.func @function() {
    // expected-error @below {{'kvcache.cluster_barrier' op expects to be in a kernel}}
    kvcache.cluster_barrier {blocks = 2 : i64}
    return
  }
}

// -----

gpu.module @kernels [#nvvm.target<chip = "sm_90a">] {
  gpu.func @two_sizes() kernel {
    kvcache.cluster_barrier {blocks = 2 : i64}
    // expected-error @below {{'kvcache.cluster_barrier' op expects 'blocks' of the first barrier of its kernel (2), got 4}}
    kvcache.cluster_barrier {blocks = 4 : i64}
    gpu.return
  }
}

// -----

gpu.module @kernels [#nvvm.target<chip = "sm_90a">] {
  gpu.func @stated() kernel attributes {known_cluster_size = array<i32: 2, 2, 1>} {
    // expected-error @below {{'kvcache.cluster_barrier' op expects 'blocks' of the clusters that its kernel states (4), got 2}}
    kvcache.cluster_barrier {blocks = 2 : i64}
    gpu.return
  }
}

// -----

!state = !kvcache.tile<16x4xf32>

gpu.module @kernels [#nvvm.target<chip = "sm_90a">] {
  gpu.func @no_barrier(%tile: !state, %row: index) kernel {
    // expected-error @below {{'kvcache.cluster_load' op expects a 'cluster_barrier' in its kernel}}
    %v = kvcache.cluster_load %tile[%row, %row] rank %row : !state -> f32
    gpu.return
  }
}
