// RUN: kvcache-opt %s --convert-kvcache-to-memref --split-input-file --verify-diagnostics

func.func @lanes_on_a_cpu(%x: vector<8xbf16>) -> (vector<8xf8E4M3FN>, f32) {
  // expected-error @below {{'kvcache.quantize' op expects GPU code for a group over several lanes}}
  %w, %s = kvcache.quantize %x {lanes = 16} : vector<8xbf16> -> vector<8xf8E4M3FN>, f32
  return %w, %s : vector<8xf8E4M3FN>, f32
}
