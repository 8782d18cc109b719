// RUN: kvcache-opt %s --verify-roundtrip | FileCheck %s
// RUN: kvcache-opt %s --emit-bytecode | kvcache-opt | FileCheck %s

// The alias of a module's parameters is `#kv`.
// CHECK-DAG: #[[$KV:kv[0-9]*]] = #kvcache.params<num_heads = 8, head_size = 128>
// CHECK-DAG: #[[$MLA:kv[0-9]*]] = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
// CHECK-DAG: #[[$LARGEST:kv[0-9]*]] = #kvcache.params<num_heads = 2147483647, head_size = 1>

// CHECK-LABEL: func.func private @params()
// CHECK-SAME:    params = #[[$KV]]
func.func private @params() attributes {params = #kvcache.params<num_heads = 8, head_size = 128>}

// CHECK-LABEL: func.func private @params_in_another_order()
// CHECK-SAME:    params = #[[$KV]]
func.func private @params_in_another_order() attributes {
  params = #kvcache.params<is_mla = false, head_size = 128, num_heads = 8>
}

// CHECK-LABEL: func.func private @latent_params()
// CHECK-SAME:    params = #[[$MLA]]
func.func private @latent_params() attributes {
  params = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
}

// CHECK-LABEL: func.func private @largest_row()
// CHECK-SAME:    params = #[[$LARGEST]]
func.func private @largest_row() attributes {params = #kvcache.params<num_heads = 2147483647, head_size = 1>}
