// RUN: kvcache-opt %s -o %t.text
// RUN: kvcache-opt %S/attributes.mlirbc -o %t.bytecode
// RUN: diff %t.text %t.bytecode

#kv = #kvcache.params<num_heads = 8, head_size = 128>
#kv1 = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
#kv2 = #kvcache.params<num_heads = 2147483647, head_size = 1>
module {
  func.func private @params() attributes {params = #kv}
  func.func private @params_in_another_order() attributes {params = #kv}
  func.func private @latent_params() attributes {params = #kv1}
  func.func private @largest_row() attributes {params = #kv2}
}

