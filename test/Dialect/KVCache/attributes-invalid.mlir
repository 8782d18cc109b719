// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

// (C1) of params

// expected-error @below {{expects num_heads to be positive, got 0}}
func.func private @c1_no_heads() attributes {params = #kvcache.params<num_heads = 0, head_size = 128>}

// -----

// expected-error @below {{expects num_heads to be positive, got -8}}
func.func private @c1_negative_heads() attributes {params = #kvcache.params<num_heads = -8, head_size = 128>}

// -----

// expected-error @below {{expects head_size to be positive, got 0}}
func.func private @c1_no_head_size() attributes {params = #kvcache.params<num_heads = 8, head_size = 0>}

// -----

// expected-error @below {{expects head_size to be positive, got -1}}
func.func private @c1_negative_head_size() attributes {params = #kvcache.params<num_heads = 8, head_size = -1>}

// -----

// expected-error @below {{expects a row of num_heads * head_size elements to have fewer than 2^31, got 65536 * 32768}}
func.func private @c1_long_row() attributes {params = #kvcache.params<num_heads = 65536, head_size = 32768>}

// -----

// The product wraps around to 0.
func.func private @c1_overflowing_row() attributes {
  // expected-error @below {{expects a row of num_heads * head_size elements to have fewer than 2^31, got 4294967296 * 4294967296}}
  params = #kvcache.params<num_heads = 4294967296, head_size = 4294967296>
}

// -----

// Syntax

// expected-error @below {{struct is missing required parameter: head_size}}
func.func private @missing_head_size() attributes {params = #kvcache.params<num_heads = 8>}

// -----

// expected-error @below {{expected '<'}}
func.func private @missing_parameters() attributes {params = #kvcache.params}

// -----

// expected-error @below {{expected valid keyword}}
// expected-error @below {{expected a parameter name in struct}}
func.func private @empty_parameters() attributes {params = #kvcache.params<>}

// -----

func.func private @repeated_parameter() attributes {
  // expected-error @below {{duplicate or unknown struct parameter name: num_heads}}
  params = #kvcache.params<num_heads = 8, head_size = 128, num_heads = 8>
}

// -----

func.func private @unknown_parameter() attributes {
  // expected-error @below {{duplicate or unknown struct parameter name: layers}}
  params = #kvcache.params<num_heads = 8, head_size = 128, layers = 2>
}

// -----

// expected-error @below {{struct is missing required parameter: head_size}}
func.func private @missing_comma() attributes {params = #kvcache.params<num_heads = 8 head_size = 128>}

// -----

func.func private @too_large_for_64_bits() attributes {
  // expected-error @below {{integer value too large}}
  // expected-error @below {{failed to parse KVCache_ParamsAttr parameter 'num_heads'}}
  params = #kvcache.params<num_heads = 99999999999999999999, head_size = 128>
}

// -----

// expected-error @below {{expected integer value}}
// expected-error @below {{failed to parse KVCache_ParamsAttr parameter 'head_size'}}
func.func private @fraction() attributes {params = #kvcache.params<num_heads = 8, head_size = 1.5>}

// -----

func.func private @neither_true_nor_false() attributes {
  // expected-error @below {{expected integer value}}
  // expected-error @below {{failed to parse KVCache_ParamsAttr parameter 'is_mla'}}
  params = #kvcache.params<num_heads = 8, head_size = 128, is_mla = maybe>
}

// -----

// expected-error @below {{unknown attribute `heads` in dialect `kvcache`}}
func.func private @unknown_attribute() attributes {heads = #kvcache.heads<8>}

// -----

func.func @schedule_of_another_op(%n: index) {
  // expected-error @below {{'arith.addi' op expects no 'kvcache.schedule', which only 'scf.for' has: passes that replace such loops go after 'kvcache-schedule-attention'}}
  %m = arith.addi %n, %n {kvcache.schedule = #kvcache.schedule<pipelined>} : index
  return
}

// -----

func.func @schedule_of_another_type(%n: index) {
  // expected-error @below {{'scf.for' op expects 'kvcache.schedule' to be a #kvcache.schedule, got "pipelined"}}
  scf.for %i = %n to %n step %n {
  } {kvcache.schedule = "pipelined"}
  return
}
