// RUN: kvcache-opt %s --convert-nvvm-to-emulator --split-input-file --verify-diagnostics

// What the chip of a module doesn't have, and what the emulator doesn't.

gpu.module @arrive_with_count [#nvvm.target<chip = "sm_80">] {
  llvm.func @kernel(%barrier: !llvm.ptr<3>, %count: i32) attributes {nvvm.kernel} {
    // expected-error @below {{'nvvm.mbarrier.arrive' op requires sm_90 or newer, but the target is sm_80}}
    %s = nvvm.mbarrier.arrive %barrier, %count : !llvm.ptr<3> -> i64
    llvm.return
  }
}

// -----

gpu.module @count_bytes [#nvvm.target<chip = "sm_89">] {
  llvm.func @kernel(%barrier: !llvm.ptr<3>, %bytes: i32) attributes {nvvm.kernel} {
    // expected-error @below {{'nvvm.mbarrier.expect_tx' op requires sm_90 or newer for TMA, but the target is sm_89}}
    nvvm.mbarrier.expect_tx %barrier, %bytes : !llvm.ptr<3>, i32
    llvm.return
  }
}

// -----

gpu.module @try_wait [#nvvm.target<chip = "sm_80">] {
  llvm.func @kernel(%barrier: !llvm.ptr<3>, %parity: i32) attributes {nvvm.kernel} {
    // expected-error @below {{'nvvm.mbarrier.try_wait' op requires sm_90 or newer, but the target is sm_80}}
    %done = nvvm.mbarrier.try_wait %barrier, %parity : !llvm.ptr<3>, i32 -> i1
    llvm.return
  }
}

// -----

gpu.module @proxy_fence [#nvvm.target<chip = "sm_80">] {
  llvm.func @kernel() attributes {nvvm.kernel} {
    // expected-error @below {{'nvvm.fence.proxy' op requires sm_90 or newer, but the target is sm_80}}
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async>}
    llvm.return
  }
}

// -----

gpu.module @gather4 [#nvvm.target<chip = "sm_90a">] {
  llvm.func @kernel(%to: !llvm.ptr<3>, %map: !llvm.ptr, %barrier: !llvm.ptr<3>, %c: i32) attributes {nvvm.kernel} {
    // expected-error @below {{op requires sm_100 or newer for gather4, but the target is sm_90a}}
    nvvm.cp.async.bulk.tensor.shared.cluster.global %to, %map, %barrier, box[%c, %c, %c, %c, %c]
        {isCTAOnly = true, mode = #nvvm.tma_load_mode<tile_gather4>} : !llvm.ptr<3>, !llvm.ptr
    llvm.return
  }
}

// -----

gpu.module @gather4_to_cluster [#nvvm.target<chip = "sm_120a">] {
  llvm.func @kernel(%to: !llvm.ptr<7>, %map: !llvm.ptr, %barrier: !llvm.ptr<3>, %c: i32) attributes {nvvm.kernel} {
    // expected-error-re @below {{op requires {{.*}} for gather4 to shared::cluster, but the target is sm_120a}}
    nvvm.cp.async.bulk.tensor.shared.cluster.global %to, %map, %barrier, box[%c, %c, %c, %c, %c]
        {mode = #nvvm.tma_load_mode<tile_gather4>} : !llvm.ptr<7>, !llvm.ptr
    llvm.return
  }
}

// -----

gpu.module @scatter4 [#nvvm.target<chip = "sm_100">] {
  llvm.func @kernel(%from: !llvm.ptr<3>, %map: !llvm.ptr, %c: i32) attributes {nvvm.kernel} {
    // expected-error-re @below {{op requires {{.*}} for scatter4, but the target is sm_100}}
    nvvm.cp.async.bulk.tensor.global.shared.cta %map, %from, box[%c, %c, %c, %c, %c]
        {mode = #nvvm.tma_store_mode<tile_scatter4>} : !llvm.ptr, !llvm.ptr<3>
    llvm.return
  }
}

// -----

gpu.module @fp8_mma [#nvvm.target<chip = "sm_86">] {
  llvm.func @kernel(%a: i32, %c: f32) attributes {nvvm.kernel} {
    // expected-error @below {{'llvm.call_intrinsic' op requires sm_89 or newer, but the target is sm_86}}
    %d = llvm.call_intrinsic "llvm.nvvm.mma.m16n8k32.row.col.f32.e4m3.e4m3.f32"(%a, %a, %a, %a, %a, %a, %c, %c, %c, %c)
        : (i32, i32, i32, i32, i32, i32, f32, f32, f32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
    llvm.return
  }
}

// -----

gpu.module @fp8_conversion [#nvvm.target<chip = "sm_80">] {
  llvm.func @kernel(%a: f32) attributes {nvvm.kernel} {
    // expected-error @below {{'nvvm.convert.f32x2.to.f8x2' op requires sm_89 or newer for fp8 conversions, but the target is sm_80}}
    %x = nvvm.convert.f32x2.to.f8x2 %a, %a {rnd = #nvvm.fp_rnd_mode<rn>, sat = #nvvm.sat_mode<satfinite>} : i16 (f8E4M3FN)
    llvm.return
  }
}

// -----

gpu.module @registers [#nvvm.target<chip = "sm_90">] {
  llvm.func @kernel() attributes {nvvm.kernel, nvvm.maxnreg = 32 : i32} {
    // expected-error @below {{'nvvm.setmaxregister' op requires code for one architecture or family, such as sm_90a, but the target is sm_90}}
    nvvm.setmaxregister increase 64
    llvm.return
  }
}

// -----

gpu.module @registers_of_no_number [#nvvm.target<chip = "sm_90a">] {
  llvm.func @kernel() attributes {nvvm.kernel, nvvm.maxntid = array<i32: 384>} {
    // expected-error @below {{'nvvm.setmaxregister' op requires 'nvvm.maxnreg' of the kernel, or 'nvvm.minctasm' and the size of its blocks: ptxas ignores it without a number of registers}}
    nvvm.setmaxregister increase 64
    llvm.return
  }
}

// -----

gpu.module @registers_by_name [#nvvm.target<chip = "sm_90a">] {
  llvm.func @kernel() attributes {nvvm.kernel, nvvm.minctasm = 1 : i32} {
    %n = llvm.mlir.constant(64 : i32) : i32
    // expected-error @below {{'llvm.call_intrinsic' op requires 'nvvm.maxnreg' of the kernel, or 'nvvm.minctasm' and the size of its blocks}}
    llvm.call_intrinsic "llvm.nvvm.setmaxnreg.inc.sync.aligned.u32"(%n) : (i32) -> ()
    llvm.return
  }
}

// -----

gpu.module @clusters [#nvvm.target<chip = "sm_89">] {
  // expected-error @below {{'llvm.func' op requires sm_90 or newer for clusters, but the target is sm_89}}
  llvm.func @kernel() attributes {nvvm.kernel, nvvm.cluster_dim = array<i32: 2, 1, 1>} {
    llvm.return
  }
}

// -----

gpu.module @large_clusters [#nvvm.target<chip = "sm_90a">] {
  // expected-error @below {{'llvm.func' op expects clusters of at most 8 blocks, got sides of 4, 4, 1}}
  llvm.func @kernel() attributes {nvvm.kernel, nvvm.cluster_dim = array<i32: 4, 4, 1>} {
    llvm.return
  }
}

// -----

gpu.module @no_cluster [#nvvm.target<chip = "sm_90a">] {
  // expected-error @below {{'llvm.func' op expects positive sides of its clusters, got 0}}
  llvm.func @kernel() attributes {nvvm.kernel, nvvm.cluster_dim = array<i32: 2, 0, 1>} {
    llvm.return
  }
}

// -----

gpu.module @im2col [#nvvm.target<chip = "sm_90a">] {
  llvm.func @kernel(%to: !llvm.ptr<7>, %map: !llvm.ptr, %barrier: !llvm.ptr<3>, %c: i32, %offset: i16)
      attributes {nvvm.kernel} {
    // expected-error @below {{op in mode im2col has no lowering for the emulator}}
    nvvm.cp.async.bulk.tensor.shared.cluster.global %to, %map, %barrier, box[%c, %c, %c] im2col[%offset]
        {mode = #nvvm.tma_load_mode<im2col>} : !llvm.ptr<7>, !llvm.ptr
    llvm.return
  }
}

// -----

gpu.module @reduction [#nvvm.target<chip = "sm_90a">] {
  llvm.func @kernel(%from: !llvm.ptr<3>, %map: !llvm.ptr, %c: i32) attributes {nvvm.kernel} {
    // expected-error @below {{'nvvm.cp.async.bulk.tensor.reduce' op has no lowering for the emulator}}
    nvvm.cp.async.bulk.tensor.reduce %map, %from, box[%c] {redKind = #nvvm.tma_redux_kind<add>}
        : !llvm.ptr, !llvm.ptr<3>
    llvm.return
  }
}

// -----

gpu.module @integers [#nvvm.target<chip = "sm_103a", verifyTarget = false>] {
  llvm.func @kernel(%d: !llvm.ptr<6>, %a: i64, %b: i64, %i: i32, %adds: i1) attributes {nvvm.kernel} {
    // expected-error @below {{op requires sm_100a or sm_110a for tcgen05.mma of 8-bit integers, but the target is sm_103a}}
    nvvm.tcgen05.mma %d, %a, %b, %i, %adds {kind = #nvvm.tcgen05_mma_kind<i8>, ctaGroup = #nvvm.cta_group<cta_1>}
        : (!llvm.ptr<6>, i64, i64, i32, i1)
    llvm.return
  }
}

// -----

gpu.module @scale [#nvvm.target<chip = "sm_110a">] {
  llvm.func @kernel(%d: !llvm.ptr<6>, %a: i64, %b: i64, %i: i32, %adds: i1) attributes {nvvm.kernel} {
    %three = llvm.mlir.constant(3 : i64) : i64
    // expected-error @below {{op requires sm_100a/f or sm_103a/f for tcgen05.mma with a scale, but the target is sm_110a}}
    nvvm.tcgen05.mma %d, %a, %b, %i, %adds scale = %three {kind = #nvvm.tcgen05_mma_kind<f16>, ctaGroup = #nvvm.cta_group<cta_1>}
        : (!llvm.ptr<6>, i64, i64, i32, i1, i64)
    llvm.return
  }
}

// -----

gpu.module @shift [#nvvm.target<chip = "sm_100f", verifyTarget = false>] {
  llvm.func @kernel(%address: !llvm.ptr<6>) attributes {nvvm.kernel} {
    // expected-error @below {{op requires sm_100a, sm_103a or sm_110a for tcgen05.shift, but the target is sm_100f}}
    nvvm.tcgen05.shift %address : !llvm.ptr<6>
    llvm.return
  }
}

// -----

gpu.module @two_groups [#nvvm.target<chip = "sm_100a">] {
  llvm.func @kernel(%slot: !llvm.ptr<3>, %bar: !llvm.ptr<3>, %n: i32) attributes {nvvm.kernel} {
    // expected-note @below {{which is here}}
    nvvm.tcgen05.alloc %slot, %n {group = #nvvm.cta_group<cta_2>} : !llvm.ptr<3>, i32
    // expected-error @below {{'nvvm.tcgen05.commit' op is for cta_1 in a function with tcgen05 for cta_2}}
    nvvm.tcgen05.commit %bar : !llvm.ptr<3>
    llvm.return
  }
}

// -----

gpu.module @wgmma [#nvvm.target<chip = "sm_80">] {
  llvm.func @kernel(%a: i64, %acc: !llvm.struct<(f32, f32, f32, f32)>) attributes {nvvm.kernel} {
    // expected-error @below {{'nvvm.wgmma.mma_async' op requires sm_90a for wgmma, but the target is sm_80}}
    %d = nvvm.wgmma.mma_async %a, %a, %acc, #nvvm.shape<m = 64, n = 8, k = 16>,
        D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>],
        B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>]
        : !llvm.struct<(f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32)>
    llvm.return
  }
}

// -----

gpu.module @wgmma_of_newer_chips [#nvvm.target<chip = "sm_100a">] {
  llvm.func @kernel(%a: i64, %acc: !llvm.struct<(f32, f32, f32, f32)>) attributes {nvvm.kernel} {
    // expected-error @below {{'nvvm.wgmma.mma_async' op requires sm_90a for wgmma, but the target is sm_100a}}
    %d = nvvm.wgmma.mma_async %a, %a, %acc, #nvvm.shape<m = 64, n = 8, k = 16>,
        D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>],
        B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>]
        : !llvm.struct<(f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32)>
    llvm.return
  }
}
