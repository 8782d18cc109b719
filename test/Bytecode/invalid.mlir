// What a file holds is verified like what a user writes. A number n is the byte
// 4n + 1, an unsigned one 2n + 1.

// RUN: kvcache-opt %s --emit-bytecode -o %t.mlirbc

// No heads in #kvcache.params<num_heads = 3, head_size = 20>.
// RUN: %python %S/Inputs/patch.py %t.mlirbc %t.heads "\x01(\x0d)\x51\x00" 1
// RUN: not kvcache-opt %t.heads 2>&1 | FileCheck %s --check-prefix=HEADS
// HEADS: error: expects num_heads to be positive, got 0

// A case that is none, in #kvcache.eviction<evict_last>.
// RUN: %python %S/Inputs/patch.py %t.mlirbc %t.case "\x51\x00\x07(\x05)" 9
// RUN: not kvcache-opt %t.case 2>&1 | FileCheck %s --check-prefix=CASE
// CASE: error: expects the number of an enum case, got 4

// An unknown type instead of !kvcache.tile<24x40xf32>.
// RUN: %python %S/Inputs/patch.py %t.mlirbc %t.type "(\x11)\x61\xa1" 99
// RUN: not kvcache-opt %t.type 2>&1 | FileCheck %s --check-prefix=TYPE
// TYPE: error: unknown attribute code: 49

#kv = #kvcache.params<num_heads = 3, head_size = 20>

func.func private @cache(!kvcache.paged<f32, #kv, page_size = 16>)
func.func private @tile(!kvcache.tile<24x40xf32>) attributes {l2 = #kvcache.eviction<evict_last>}
