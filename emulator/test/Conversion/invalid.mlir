// RUN: kvcache-opt %s --convert-nvvm-to-emulator --split-input-file --verify-diagnostics

// expected-error @below {{'gpu.module' op expects one target from the table of chips}}
gpu.module @no_target {
}

// -----

gpu.module @assembly [#nvvm.target<chip = "sm_90a">] {
  llvm.func @kernel() attributes {nvvm.kernel} {
    // expected-error @below {{'llvm.inline_asm' op has no lowering for the emulator}}
    llvm.inline_asm has_side_effects "bar.sync 0;", "" : () -> ()
    llvm.return
  }
}

// -----

gpu.module @masked_lanes_of_a_pair [#nvvm.target<chip = "sm_100a">] {
  llvm.func @kernel(%d: !llvm.ptr<6>, %a: i64, %b: i64, %i: i32, %adds: i1, %mask: vector<8xi32>) attributes {nvvm.kernel} {
    // expected-error @below {{'nvvm.tcgen05.mma' op with a mask of lanes for a pair of blocks has no lowering for the emulator}}
    nvvm.tcgen05.mma %d, %a, %b, %i, %adds mask = %mask {kind = #nvvm.tcgen05_mma_kind<f16>, ctaGroup = #nvvm.cta_group<cta_2>}
        : (!llvm.ptr<6>, i64, i64, i32, i1, vector<8xi32>)
    llvm.return
  }
}

// -----

gpu.module @compressed_source [#nvvm.target<chip = "sm_100a">] {
  llvm.func @kernel(%to: !llvm.ptr<6>, %descriptor: i64) attributes {nvvm.kernel} {
    // expected-error @below {{'nvvm.tcgen05.cp' op from b6x16_p32 has no lowering for the emulator}}
    nvvm.tcgen05.cp %to, %descriptor {shape = #nvvm.tcgen05_cp_shape<shape_128x256b>, srcFormat = #nvvm.tcgen05_cp_src_fmt<b6x16_p32>}
    llvm.return
  }
}

// -----

gpu.module @shifted_factor [#nvvm.target<chip = "sm_100a">] {
  llvm.func @kernel(%d: !llvm.ptr<6>, %b: i64, %i: i32, %adds: i1) attributes {nvvm.kernel} {
    // expected-error @below {{'nvvm.tcgen05.mma' op that shifts A has no lowering for the emulator}}
    nvvm.tcgen05.mma %d, %d, %b, %i, %adds {kind = #nvvm.tcgen05_mma_kind<f16>, ctaGroup = #nvvm.cta_group<cta_1>, aShift}
        : (!llvm.ptr<6>, !llvm.ptr<6>, i64, i32, i1)
    llvm.return
  }
}

// -----

gpu.module @sparse_factor [#nvvm.target<chip = "sm_100a">] {
  llvm.func @kernel(%d: !llvm.ptr<6>, %a: i64, %b: i64, %i: i32, %adds: i1) attributes {nvvm.kernel} {
    // expected-error @below {{'nvvm.tcgen05.mma.sp' op has no lowering for the emulator}}
    nvvm.tcgen05.mma.sp %d, %a, %b, %i, %adds, %d {kind = #nvvm.tcgen05_mma_kind<f16>, ctaGroup = #nvvm.cta_group<cta_1>}
        : (!llvm.ptr<6>, i64, i64, i32, i1, !llvm.ptr<6>)
    llvm.return
  }
}

// -----

gpu.module @plain_load_of_tensor_memory [#nvvm.target<chip = "sm_100a">] {
  llvm.func @kernel(%address: !llvm.ptr<6>) attributes {nvvm.kernel} {
    // expected-error @below {{'llvm.load' op of tensor memory has no lowering for the emulator}}
    %0 = llvm.load %address : !llvm.ptr<6> -> i32
    llvm.return
  }
}

// -----

gpu.module @unknown_function [#nvvm.target<chip = "sm_90a">] {
  llvm.func @somewhere(i32)
  llvm.func @kernel(%x: i32) attributes {nvvm.kernel} {
    // expected-error @below {{'llvm.call' op of @somewhere has no lowering for the emulator}}
    llvm.call @somewhere(%x) : (i32) -> ()
    llvm.return
  }
}

// -----

gpu.module @unknown_intrinsic [#nvvm.target<chip = "sm_90a">] {
  llvm.func @kernel(%x: i32) attributes {nvvm.kernel} {
    // expected-error @below {{'llvm.call_intrinsic' op of llvm.nvvm.sust.b.1d.i32.trap has no lowering for the emulator}}
    llvm.call_intrinsic "llvm.nvvm.sust.b.1d.i32.trap"(%x, %x, %x) : (i32, i32, i32) -> ()
    llvm.return
  }
}

// -----

gpu.module @indirect [#nvvm.target<chip = "sm_90a">] {
  llvm.func @kernel(%f: !llvm.ptr) attributes {nvvm.kernel} {
    // expected-error @below {{'llvm.call' op through a pointer has no lowering for the emulator}}
    llvm.call %f() : !llvm.ptr, () -> ()
    llvm.return
  }
}

// -----

gpu.module @exceptions [#nvvm.target<chip = "sm_90a">] {
  llvm.func @personality(...) -> i32
  llvm.func @other()
  llvm.func @kernel() attributes {nvvm.kernel, personality = @personality} {
    // expected-error @below {{'llvm.invoke' op has no lowering for the emulator}}
    llvm.invoke @other() to ^end unwind ^failed : () -> ()
  ^end:
    llvm.return
  ^failed:
    %pad = llvm.landingpad cleanup : !llvm.struct<(ptr, i32)>
    llvm.return
  }
}

// -----

gpu.module @variable_arguments [#nvvm.target<chip = "sm_90a">] {
  // expected-error @below {{'llvm.func' op with variable arguments has no lowering for the emulator}}
  llvm.func @other(%n: i32, ...) {
    llvm.return
  }
}

// -----

gpu.module @address_of_a_label [#nvvm.target<chip = "sm_90a">] {
  llvm.func @kernel() attributes {nvvm.kernel} {
    // expected-error @below {{'llvm.blockaddress' op has no lowering for the emulator}}
    %label = llvm.blockaddress <function = @kernel, tag = <id = 1>> : !llvm.ptr
    llvm.indirectbr %label : !llvm.ptr, [^end]
  ^end:
    llvm.blocktag <id = 1>
    llvm.return
  }
}

// -----

gpu.module @code_before_kernels [#nvvm.target<chip = "sm_90a">] {
  llvm.func @begin() {
    llvm.return
  }
  // expected-error @below {{'llvm.mlir.global_ctors' op has no lowering for the emulator}}
  llvm.mlir.global_ctors ctors = [@begin], priorities = [0 : i32], data = [#llvm.zero]
}

// -----

gpu.module @shared_pointers [#nvvm.target<chip = "sm_90a">] {
  llvm.func @kernel(%offsets: vector<2xi32>) attributes {nvvm.kernel} {
    // expected-error @below {{'llvm.inttoptr' op of a vector of pointers to shared memory has no lowering for the emulator}}
    %pointers = llvm.inttoptr %offsets : vector<2xi32> to vector<2x!llvm.ptr<3>>
    llvm.return
  }
}

// -----

gpu.module @shared_value [#nvvm.target<chip = "sm_90a">] {
  // expected-error @below {{'llvm.mlir.global' op in shared memory can't have an initial value (PTX ISA, "Initializers")}}
  llvm.mlir.global internal @word(5 : i32) {addr_space = 3 : i32} : i32
}

// -----

gpu.module @shared_address [#nvvm.target<chip = "sm_90a">] {
  llvm.mlir.global internal @word() {addr_space = 3 : i32} : i32
  // expected-error @below {{'llvm.mlir.global' op can't begin with the address of @word, which is in shared memory}}
  llvm.mlir.global internal @pointer() {addr_space = 1 : i32} : !llvm.ptr<3> {
    %address = llvm.mlir.addressof @word : !llvm.ptr<3>
    llvm.return %address : !llvm.ptr<3>
  }
}

// -----

gpu.module @large_constant [#nvvm.target<chip = "sm_90a">] {
  // expected-error @below {{'llvm.mlir.global' op has 65537 bytes; constant memory has 65536 bytes}}
  llvm.mlir.global internal constant @bytes() {addr_space = 4 : i32} : !llvm.array<65537 x i8>
}

// -----

gpu.module @large_variable [#nvvm.target<chip = "sm_90a">] {
  // expected-error @below {{'llvm.mlir.global' op has 8589934592 bytes; the emulator supports variables of up to 1073741824 bytes}}
  llvm.mlir.global internal @words() {addr_space = 1 : i32} : !llvm.array<1073741824 x i64>
}

// -----

gpu.module @types_of_others [#nvvm.target<chip = "sm_90a">] {
  llvm.func @kernel(%n: i32) attributes {nvvm.kernel} {
    // expected-error @below {{'llvm.sitofp' op uses the type 'f128', which no chip of the table of chips has}}
    %x = llvm.sitofp %n : i32 to f128
    llvm.return
  }
}

// -----

gpu.module @scalable_vectors [#nvvm.target<chip = "sm_90a">] {
  llvm.func @kernel(%pointer: !llvm.ptr) attributes {nvvm.kernel} {
    // expected-error @below {{'llvm.load' op uses the type 'vector<[4]xi32>', which no chip of the table of chips has}}
    %x = llvm.load %pointer : !llvm.ptr -> vector<[4]xi32>
    llvm.return
  }
}

// -----

gpu.module @large_frame [#nvvm.target<chip = "sm_90a">] {
  // expected-error @below {{'llvm.func' op has variables of 524292 bytes; a thread can have 524288 bytes}}
  llvm.func @kernel() attributes {nvvm.kernel} {
    %count = llvm.mlir.constant(131073 : i32) : i32
    %variable = llvm.alloca %count x i32 : (i32) -> !llvm.ptr
    llvm.return
  }
}

// -----

gpu.module @large_vectors [#nvvm.target<chip = "sm_90a">] {
  // expected-error @below {{'llvm.func' op has vectors and structures of 8000000 bytes together; the emulator supports up to 4194304 bytes in a function}}
  llvm.func @kernel(%pointer: !llvm.ptr) attributes {nvvm.kernel} {
    %x = llvm.load %pointer {alignment = 4 : i64} : !llvm.ptr -> !llvm.array<2000000 x i32>
    llvm.store %x, %pointer {alignment = 4 : i64} : !llvm.array<2000000 x i32>, !llvm.ptr
    llvm.return
  }
}
