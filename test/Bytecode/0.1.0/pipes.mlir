// RUN: kvcache-opt %s -o %t.text
// RUN: kvcache-opt %S/pipes.mlirbc -o %t.bytecode
// RUN: diff %t.text %t.bytecode

#kv = #kvcache.params<num_heads = 8, head_size = 128>
module {
  func.func private @types(!kvcache.pipe<3, !kvcache.tile<64x128xbf16, swizzle_128b>, !kvcache.tile<64x128xbf16>>, !kvcache.pipe<64, !kvcache.tile<64x128xbf16>>, !kvcache.pipe<1, !kvcache.tile<64x128xbf16>, producers = 31>)
  func.func @register_bound() {
    %0 = kvcache.pipe {consumer_registers = 216 : i64} : !kvcache.pipe<2, !kvcache.tile<64x128xbf16>>
    return
  }
  func.func @registers() {
    %0 = kvcache.pipe {consumer_registers = 240 : i64, producer_registers = 24 : i64} : !kvcache.pipe<2, !kvcache.tile<64x128xbf16>, producers = 4>
    return
  }
  func.func @keys_and_values(%arg0: !kvcache.paged<bf16, #kv, page_size = 64>, %arg1: !kvcache.paged<bf16, #kv, page_size = 64>, %arg2: index, %arg3: index, %arg4: index, %arg5: index, %arg6: index, %arg7: index, %arg8: f32) -> f32 {
    %0 = kvcache.pipe : !kvcache.pipe<3, !kvcache.tile<64x128xbf16, swizzle_128b>, !kvcache.tile<64x128xbf16, swizzle_128b>>
    kvcache.produce %0[%arg7] : !kvcache.pipe<3, !kvcache.tile<64x128xbf16, swizzle_128b>, !kvcache.tile<64x128xbf16, swizzle_128b>> {
    ^bb0(%arg9: !kvcache.tile<64x128xbf16, swizzle_128b>, %arg10: !kvcache.tile<64x128xbf16, swizzle_128b>):
      %2 = kvcache.async_load_tile %arg0[%arg2, %arg3, %arg4, %arg5] valid %arg6 to %arg9 : !kvcache.paged<bf16, #kv, page_size = 64>, !kvcache.tile<64x128xbf16, swizzle_128b>
      %3 = kvcache.async_load_tile %arg1[%arg2, %arg3, %arg4, %arg5] valid %arg6 to %arg10 : !kvcache.paged<bf16, #kv, page_size = 64>, !kvcache.tile<64x128xbf16, swizzle_128b>
    }
    %1 = kvcache.consume %0[%arg7] : !kvcache.pipe<3, !kvcache.tile<64x128xbf16, swizzle_128b>, !kvcache.tile<64x128xbf16, swizzle_128b>>  -> f32 {
    ^bb0(%arg9: !kvcache.tile<64x128xbf16, swizzle_128b>, %arg10: !kvcache.tile<64x128xbf16, swizzle_128b>):
      kvcache.yield %arg8 : f32
    }
    return %1 : f32
  }
  func.func @results(%arg0: index, %arg1: f32) -> (f32, vector<8xbf16>) {
    %0 = kvcache.pipe : !kvcache.pipe<2, !kvcache.tile<64x128xbf16>>
    kvcache.consume %0[%arg0] : !kvcache.pipe<2, !kvcache.tile<64x128xbf16>>  {
    ^bb0(%arg2: !kvcache.tile<64x128xbf16>):
    }
    %1:2 = kvcache.consume %0[%arg0] : !kvcache.pipe<2, !kvcache.tile<64x128xbf16>>  -> (f32, vector<8xbf16>) {
    ^bb0(%arg2: !kvcache.tile<64x128xbf16>):
      %2 = kvcache.tile_load %arg2[%arg0, %arg0] : !kvcache.tile<64x128xbf16> -> vector<8xbf16>
      kvcache.yield %arg1, %2 : f32, vector<8xbf16>
    }
    return %1#0, %1#1 : f32, vector<8xbf16>
  }
  func.func @attributes(%arg0: index) {
    %0 = kvcache.pipe {note = 1 : i32} : !kvcache.pipe<2, !kvcache.tile<64x128xbf16>>
    kvcache.produce %0[%arg0] : !kvcache.pipe<2, !kvcache.tile<64x128xbf16>> {
    ^bb0(%arg1: !kvcache.tile<64x128xbf16>):
    } {note = 2 : i32}
    kvcache.consume %0[%arg0] : !kvcache.pipe<2, !kvcache.tile<64x128xbf16>>  {
    ^bb0(%arg1: !kvcache.tile<64x128xbf16>):
    } {note = 3 : i32}
    return
  }
  func.func @address_code(%arg0: !kvcache.paged<bf16, #kv, page_size = 64>, %arg1: memref<?xindex>, %arg2: memref<64xi32>, %arg3: index, %arg4: i1) {
    %0 = kvcache.pipe : !kvcache.pipe<2, !kvcache.tile<64x128xbf16, swizzle_128b>, !kvcache.tile<64x128xbf16, swizzle_128b>>
    kvcache.produce %0[%arg3] : !kvcache.pipe<2, !kvcache.tile<64x128xbf16, swizzle_128b>, !kvcache.tile<64x128xbf16, swizzle_128b>> {
    ^bb0(%arg5: !kvcache.tile<64x128xbf16, swizzle_128b>, %arg6: !kvcache.tile<64x128xbf16, swizzle_128b>):
      %1 = memref.load %arg1[%arg3] : memref<?xindex>
      %2 = scf.if %arg4 -> (index) {
        scf.yield %1 : index
      } else {
        %5 = kvcache.cache_length %arg0[%1] : !kvcache.paged<bf16, #kv, page_size = 64>
        scf.yield %5 : index
      }
      %3 = kvcache.async_load_tile %arg0[%arg3, %arg3, %2, %arg3] to %arg5 : !kvcache.paged<bf16, #kv, page_size = 64>, !kvcache.tile<64x128xbf16, swizzle_128b>
      %4 = kvcache.async_gather_tile %arg0[%arg3, %arg3] rows %arg2 to %arg6 : !kvcache.paged<bf16, #kv, page_size = 64>, memref<64xi32>, !kvcache.tile<64x128xbf16, swizzle_128b>
    }
    return
  }
  func.func @nested(%arg0: !kvcache.paged<bf16, #kv, page_size = 64>, %arg1: index, %arg2: index, %arg3: i1, %arg4: bf16) -> bf16 {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %0 = kvcache.pipe : !kvcache.pipe<2, !kvcache.tile<64x128xbf16, swizzle_128b>, producers = 1>
    %1 = scf.for %arg5 = %c0 to %arg2 step %c1 iter_args(%arg6 = %arg4) -> (bf16) {
      %2 = scf.if %arg3 -> (bf16) {
        kvcache.produce %0[%arg5] : !kvcache.pipe<2, !kvcache.tile<64x128xbf16, swizzle_128b>, producers = 1> {
        ^bb0(%arg7: !kvcache.tile<64x128xbf16, swizzle_128b>):
          %3 = kvcache.async_load_tile %arg0[%arg1, %c0, %arg5, %c0] to %arg7 : !kvcache.paged<bf16, #kv, page_size = 64>, !kvcache.tile<64x128xbf16, swizzle_128b>
        }
        scf.yield %arg6 : bf16
      } else {
        %3 = kvcache.consume %0[%arg5] : !kvcache.pipe<2, !kvcache.tile<64x128xbf16, swizzle_128b>, producers = 1>  -> bf16 {
        ^bb0(%arg7: !kvcache.tile<64x128xbf16, swizzle_128b>):
          %4 = scf.for %arg8 = %c0 to %c1 step %c1 iter_args(%arg9 = %arg6) -> (bf16) {
            %5 = kvcache.tile_load %arg7[%arg8, %c0] : !kvcache.tile<64x128xbf16, swizzle_128b> -> bf16
            %6 = arith.addf %arg9, %5 : bf16
            scf.yield %6 : bf16
          }
          kvcache.yield %4 : bf16
        }
        scf.yield %3 : bf16
      }
      scf.yield %2 : bf16
    }
    return %1 : bf16
  }
  func.func @pipe_in_pipe(%arg0: index, %arg1: i1) {
    %0 = kvcache.pipe : !kvcache.pipe<2, !kvcache.tile<64x128xbf16, swizzle_128b>>
    scf.if %arg1 {
      %1 = kvcache.pipe : !kvcache.pipe<3, !kvcache.tile<64x128xbf16>>
      kvcache.consume %0[%arg0] : !kvcache.pipe<2, !kvcache.tile<64x128xbf16, swizzle_128b>>  {
      ^bb0(%arg2: !kvcache.tile<64x128xbf16, swizzle_128b>):
        kvcache.consume %1[%arg0] : !kvcache.pipe<3, !kvcache.tile<64x128xbf16>>  {
        ^bb0(%arg3: !kvcache.tile<64x128xbf16>):
        }
      }
    }
    return
  }
  func.func @launch_in_a_loop(%arg0: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %arg1 = %c0 to %arg0 step %c1 {
      gpu.launch blocks(%arg2, %arg3, %arg4) in (%arg8 = %c1, %arg9 = %c1, %arg10 = %c1) threads(%arg5, %arg6, %arg7) in (%arg11 = %c1, %arg12 = %c1, %arg13 = %c1) {
        %0 = kvcache.pipe : !kvcache.pipe<2, !kvcache.tile<64x128xbf16>>
        kvcache.consume %0[%arg1] : !kvcache.pipe<2, !kvcache.tile<64x128xbf16>>  {
        ^bb0(%arg14: !kvcache.tile<64x128xbf16>):
        }
        gpu.terminator
      }
    }
    return
  }
  func.func @parallel_in_a_loop(%arg0: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %arg1 = %c0 to %arg0 step %c1 {
      scf.parallel (%arg2) = (%c0) to (%arg0) step (%c1) {
        %0 = kvcache.pipe : !kvcache.pipe<2, !kvcache.tile<64x128xbf16>>
        kvcache.consume %0[%arg1] : !kvcache.pipe<2, !kvcache.tile<64x128xbf16>>  {
        ^bb0(%arg3: !kvcache.tile<64x128xbf16>):
        }
        scf.reduce
      }
    }
    return
  }
  func.func @effects(%arg0: !kvcache.paged<bf16, #kv, page_size = 64>, %arg1: index) {
    %0 = kvcache.pipe : !kvcache.pipe<2, !kvcache.tile<64x128xbf16, swizzle_128b>>
    kvcache.produce %0[%arg1] : !kvcache.pipe<2, !kvcache.tile<64x128xbf16, swizzle_128b>> {
    ^bb0(%arg2: !kvcache.tile<64x128xbf16, swizzle_128b>):
      %1 = kvcache.async_load_tile %arg0[%arg1, %arg1, %arg1, %arg1] to %arg2 : !kvcache.paged<bf16, #kv, page_size = 64>, !kvcache.tile<64x128xbf16, swizzle_128b>
    }
    kvcache.consume %0[%arg1] : !kvcache.pipe<2, !kvcache.tile<64x128xbf16, swizzle_128b>>  {
    ^bb0(%arg2: !kvcache.tile<64x128xbf16, swizzle_128b>):
    }
    kvcache.consume %0[%arg1] : !kvcache.pipe<2, !kvcache.tile<64x128xbf16, swizzle_128b>>  {
    ^bb0(%arg2: !kvcache.tile<64x128xbf16, swizzle_128b>):
    }
    return
  }
  func.func @roles(%arg0: !kvcache.paged<bf16, #kv, page_size = 64>, %arg1: !kvcache.tmem_tile<64x64xf32>, %arg2: index) {
    %0 = kvcache.pipe : !kvcache.pipe<2, !kvcache.tile<64x128xbf16, swizzle_128b>, producers = 1>
    kvcache.warp_roles warps [1, 3, 4] registers [40, 40, 232] {
      kvcache.produce %0[%arg2] : !kvcache.pipe<2, !kvcache.tile<64x128xbf16, swizzle_128b>, producers = 1> {
      ^bb0(%arg3: !kvcache.tile<64x128xbf16, swizzle_128b>):
        %1 = kvcache.async_load_tile %arg0[%arg2, %arg2, %arg2, %arg2] to %arg3 : !kvcache.paged<bf16, #kv, page_size = 64>, !kvcache.tile<64x128xbf16, swizzle_128b>
      }
    }, {
    }, {
      kvcache.consume %0[%arg2] commit : !kvcache.pipe<2, !kvcache.tile<64x128xbf16, swizzle_128b>, producers = 1>  {
      ^bb0(%arg3: !kvcache.tile<64x128xbf16, swizzle_128b>):
        kvcache.tmem_mma %arg3[%arg2, %arg2], %arg3[%arg2, %arg2] into %arg1 : !kvcache.tile<64x128xbf16, swizzle_128b>, !kvcache.tile<64x128xbf16, swizzle_128b>, !kvcache.tmem_tile<64x64xf32>
      }
    }
    return
  }
}

