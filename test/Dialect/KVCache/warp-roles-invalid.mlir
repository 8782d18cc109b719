// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

func.func @c1_count() {
  // expected-error @below {{'kvcache.warp_roles' op expects 'warps' to have a number for each role (2), got 1}}
  kvcache.warp_roles warps [4] {
  }, {
  }
  return
}

// -----

func.func @c1_positive() {
  // expected-error @below {{'kvcache.warp_roles' op expects 'warps' to be positive, got 0}}
  kvcache.warp_roles warps [4, 0] {
  }, {
  }
  return
}

// -----

func.func @c2_count() {
  // expected-error @below {{'kvcache.warp_roles' op expects 'registers' to have a number for each role (2), got 1}}
  kvcache.warp_roles warps [4, 4] registers [40] {
  }, {
  }
  return
}

// -----

func.func @c2_multiple() {
  // expected-error @below {{'kvcache.warp_roles' op expects 'registers' to be multiples of 8 from 24 to 256, got 20}}
  kvcache.warp_roles warps [4, 4] registers [20, 232] {
  }, {
  }
  return
}

// -----

func.func @c2_warpgroup() {
  // expected-error @below {{'kvcache.warp_roles' op expects roles with warps of a warpgroup to have as many registers, got 40 and 232}}
  kvcache.warp_roles warps [2, 6] registers [40, 232] {
  }, {
  }
  return
}
