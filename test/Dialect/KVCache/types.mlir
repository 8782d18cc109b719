// RUN: kvcache-opt %s --verify-roundtrip | FileCheck %s
// RUN: kvcache-opt %s --emit-bytecode | kvcache-opt | FileCheck %s

#kv = #kvcache.params<num_heads = 8, head_size = 128>
#mla = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>

// CHECK-DAG: #[[$KV:kv[0-9]*]] = #kvcache.params<num_heads = 8, head_size = 128>
// CHECK-DAG: #[[$MLA:kv[0-9]*]] = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
// CHECK-DAG: #[[$FULL:kv[0-9]*]] = #kvcache.params<num_heads = 1, head_size = 2147483647>

// CHECK-LABEL: func.func private @paged_collection(
// CHECK-SAME:    !kvcache.paged_collection<f32, #[[$KV]], page_size = 64>,
// CHECK-SAME:    !kvcache.paged_collection<f16, #[[$KV]], page_size = 3>,
// CHECK-SAME:    !kvcache.paged_collection<bf16, #[[$MLA]], page_size = 1>,
// CHECK-SAME:    !kvcache.paged_collection<f8E4M3FN, #[[$KV]], page_size = 48>,
// CHECK-SAME:    !kvcache.paged_collection<f8E5M2, #[[$KV]], page_size = 256>)
func.func private @paged_collection(
  !kvcache.paged_collection<f32, #kv, page_size = 64>,
  !kvcache.paged_collection<f16, #kv, page_size = 3>,
  !kvcache.paged_collection<bf16, #mla, page_size = 1>,
  !kvcache.paged_collection<f8E4M3FN, #kv, page_size = 48>,
  !kvcache.paged_collection<f8E5M2, #kv, page_size = 256>)

// CHECK-LABEL: func.func private @quantized_collection(
// CHECK-SAME:    !kvcache.paged_collection<f8E4M3FN, #[[$KV]], page_size = 64, scale = f32, granularity = 128>,
// CHECK-SAME:    !kvcache.paged_collection<f8E5M2, #[[$KV]], page_size = 64, scale = f16, granularity = 1>,
// CHECK-SAME:    !kvcache.paged_collection<i8, #[[$KV]], page_size = 64, scale = bf16, granularity = 48>,
// CHECK-SAME:    !kvcache.paged_collection<i8, #[[$KV]], page_size = 64, scale = f8E8M0FNU, granularity = 32>,
// CHECK-SAME:    !kvcache.paged_collection<i8, #[[$KV]], page_size = 64, scale = f8E4M3FN, granularity = 32>,
// CHECK-SAME:    !kvcache.paged_collection<f4E2M1FN, #[[$KV]], page_size = 64, scale = f8E4M3FN, granularity = 16>,
// CHECK-SAME:    !kvcache.paged_collection<f4E2M1FN, #[[$KV]], page_size = 64, scale = f8E8M0FNU, granularity = 32>)
func.func private @quantized_collection(
  !kvcache.paged_collection<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 128>,
  !kvcache.paged_collection<f8E5M2, #kv, page_size = 64, scale = f16, granularity = 1>,
  !kvcache.paged_collection<i8, #kv, page_size = 64, scale = bf16, granularity = 48>,
  !kvcache.paged_collection<i8, #kv, page_size = 64, scale = f8E8M0FNU, granularity = 32>,
  !kvcache.paged_collection<i8, #kv, page_size = 64, scale = f8E4M3FN, granularity = 32>,
  !kvcache.paged_collection<f4E2M1FN, #kv, page_size = 64, scale = f8E4M3FN, granularity = 16>,
  !kvcache.paged_collection<f4E2M1FN, #kv, page_size = 64, scale = f8E8M0FNU, granularity = 32>)

// CHECK-LABEL: func.func private @groups(
// CHECK-SAME:    !kvcache.paged_collection<i4, #[[$KV]], page_size = 64, scale = f16, granularity = 32, zero_point = f16>,
// CHECK-SAME:    !kvcache.paged<i4, #[[$KV]], page_size = ?, scale = f32, granularity = 128, zero_point = f32>,
// CHECK-SAME:    !kvcache.paged<i4, #[[$KV]], page_size = 64, scale = bf16, granularity = 1, zero_point = bf16, token_granularity = 32, scale_layout = [token = 256, head = 512], table = csr>,
// CHECK-SAME:    !kvcache.paged<i8, #[[$KV]], page_size = 64, scale = f32, granularity = 1, token_granularity = 64>,
// CHECK-SAME:    !kvcache.paged<i8, #[[$KV]], page_size = 64, scale = f32, granularity = 1>)
func.func private @groups(
  !kvcache.paged_collection<i4, #kv, page_size = 64, scale = f16, granularity = 32, zero_point = f16>,
  !kvcache.paged<i4, #kv, page_size = ?, zero_point = f32, scale = f32, granularity = 128>,
  !kvcache.paged<i4, #kv, page_size = 64, token_granularity = 32, scale = bf16, zero_point = bf16, scale_layout = hnd, table = csr>,
  !kvcache.paged<i8, #kv, page_size = 64, scale = f32, token_granularity = 64>,
  !kvcache.paged<i8, #kv, page_size = 64, scale = f32, token_granularity = 1>)

// CHECK-LABEL: func.func private @paged_cache(
// CHECK-SAME:    !kvcache.paged<bf16, #[[$KV]], page_size = 64>,
// CHECK-SAME:    !kvcache.paged<f8E4M3FN, #[[$MLA]], page_size = 64, scale = f32, granularity = 64>)
func.func private @paged_cache(
  !kvcache.paged<bf16, #kv, page_size = 64>,
  !kvcache.paged<f8E4M3FN, #mla, page_size = 64, scale = f32, granularity = 64>)

// CHECK-LABEL: func.func private @open_page_size(
// CHECK-SAME:    !kvcache.paged_collection<bf16, #[[$KV]], page_size = ?>,
// CHECK-SAME:    !kvcache.paged<f8E4M3FN, #[[$KV]], page_size = ?, scale = f32, granularity = 128>,
// CHECK-SAME:    !kvcache.scales<!kvcache.paged<f8E4M3FN, #[[$KV]], page_size = ?, scale = f32, granularity = 128>>,
// CHECK-SAME:    !kvcache.row_indices<rows = 16, page_size = ?>)
func.func private @open_page_size(
  !kvcache.paged_collection<bf16, #kv, page_size = ?>,
  !kvcache.paged<f8E4M3FN, #kv, page_size = ?, scale = f32, granularity = 128>,
  !kvcache.scales<!kvcache.paged<f8E4M3FN, #kv, page_size = ?, scale = f32, granularity = 128>>,
  !kvcache.row_indices<page_size = ?, rows = 16>)

// CHECK-LABEL: func.func private @granularity_before_scale(
// CHECK-SAME:    !kvcache.paged<f8E4M3FN, #[[$KV]], page_size = 64, scale = f32, granularity = 64>)
func.func private @granularity_before_scale(
  !kvcache.paged<f8E4M3FN, #kv, page_size = 64, granularity = 64, scale = f32>)

// CHECK-LABEL: func.func private @params_in_short(
// CHECK-SAME:    !kvcache.paged<bf16, #[[$KV]], page_size = 64>)
func.func private @params_in_short(!kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>)

// CHECK-LABEL: func.func private @largest_page(
// CHECK-SAME:    !kvcache.paged<bf16, #[[$FULL]], page_size = 1>)
func.func private @largest_page(
  !kvcache.paged<bf16, #kvcache.params<num_heads = 1, head_size = 2147483647>, page_size = 1>)

// CHECK-LABEL: func.func private @continuous_collection(
// CHECK-SAME:    !kvcache.continuous_collection<f32, #[[$KV]]>,
// CHECK-SAME:    !kvcache.continuous_collection<f16, #[[$KV]]>,
// CHECK-SAME:    !kvcache.continuous_collection<bf16, #[[$MLA]]>,
// CHECK-SAME:    !kvcache.continuous_collection<f8E4M3FN, #[[$KV]]>,
// CHECK-SAME:    !kvcache.continuous_collection<f8E5M2, #[[$KV]]>)
func.func private @continuous_collection(
  !kvcache.continuous_collection<f32, #kv>,
  !kvcache.continuous_collection<f16, #kv>,
  !kvcache.continuous_collection<bf16, #mla>,
  !kvcache.continuous_collection<f8E4M3FN, #kv>,
  !kvcache.continuous_collection<f8E5M2, #kv>)

// CHECK-LABEL: func.func private @continuous_cache(
// CHECK-SAME:    !kvcache.continuous<f32, #[[$KV]]>,
// CHECK-SAME:    !kvcache.continuous<bf16, #[[$MLA]]>)
func.func private @continuous_cache(!kvcache.continuous<f32, #kv>, !kvcache.continuous<bf16, #mla>)

// CHECK-LABEL: func.func private @row_indices(
// CHECK-SAME:    !kvcache.row_indices<rows = 128, page_size = 64>,
// CHECK-SAME:    !kvcache.row_indices<rows = 32, page_size = 64>,
// CHECK-SAME:    !kvcache.row_indices<rows = 64, page_size = 64>,
// CHECK-SAME:    !kvcache.row_indices<rows = 192, page_size = 48>,
// CHECK-SAME:    !kvcache.row_indices<rows = 1>)
func.func private @row_indices(
  !kvcache.row_indices<rows = 128, page_size = 64>,
  !kvcache.row_indices<rows = 32, page_size = 64>,
  !kvcache.row_indices<rows = 64, page_size = 64>,
  !kvcache.row_indices<page_size = 48, rows = 192>,
  !kvcache.row_indices<rows = 1>)

// CHECK-LABEL: func.func private @scales(
// CHECK-SAME:    !kvcache.scales<!kvcache.paged<f8E4M3FN, #[[$KV]], page_size = 64, scale = f32, granularity = 128>>,
// CHECK-SAME:    !kvcache.scales<!kvcache.paged<f4E2M1FN, #[[$KV]], page_size = 64, scale = f8E8M0FNU, granularity = 32>>,
// CHECK-SAME:    !kvcache.scales<!kvcache.paged<i8, #[[$MLA]], page_size = 3, scale = bf16, granularity = 1>>,
// CHECK-SAME:    !kvcache.scales<!kvcache.paged<bf16, #[[$KV]], page_size = 64>>, !kvcache.scales<!kvcache.continuous<bf16, #[[$KV]]>>)
func.func private @scales(
  !kvcache.scales<!kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 128>>,
  !kvcache.scales<!kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E8M0FNU, granularity = 32>>,
  !kvcache.scales<!kvcache.paged<i8, #mla, page_size = 3, scale = bf16, granularity = 1>>,
  !kvcache.scales<!kvcache.paged<bf16, #kv, page_size = 64>>, !kvcache.scales<!kvcache.continuous<bf16, #kv>>)

// CHECK-LABEL: func.func private @elements_without_conversion(
// CHECK-SAME:    !kvcache.paged<f64, #[[$KV]], page_size = 64>,
// CHECK-SAME:    !kvcache.paged_collection<i8, #[[$KV]], page_size = 64>,
// CHECK-SAME:    !kvcache.continuous<i16, #[[$KV]]>,
// CHECK-SAME:    !kvcache.continuous_collection<i32, #[[$KV]]>)
func.func private @elements_without_conversion(
  !kvcache.paged<f64, #kv, page_size = 64>,
  !kvcache.paged_collection<i8, #kv, page_size = 64>,
  !kvcache.continuous<i16, #kv>,
  !kvcache.continuous_collection<i32, #kv>)

// CHECK-LABEL: func.func private @a_scale_for_each_element(
// CHECK-SAME:    !kvcache.paged<f8E4M3FN, #[[$KV]], page_size = 64, scale = f32, granularity = 1>)
func.func private @a_scale_for_each_element(
  !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32>)
