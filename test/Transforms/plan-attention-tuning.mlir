// RUN: split-file %s %t
// RUN: kvcache-opt %t/ops.mlir "--kvcache-plan-attention=chip=sm_90a tuning=%t/h200.json" 2>%t/warnings | FileCheck %t/ops.mlir
// RUN: FileCheck %t/ops.mlir --check-prefix=WARNING <%t/warnings
// RUN: kvcache-opt %t/ops.mlir "--kvcache-plan-attention=chip=sm_90a tuning=%t/h200.json" --kvcache-plan-attention=chip=sm_90a 2>/dev/null | FileCheck %t/ops.mlir

// Files that can't be used are errors at the first op.

// RUN: not kvcache-opt %t/ops.mlir "--kvcache-plan-attention=chip=sm_90a,sm_100a tuning=%t/h200.json" 2>&1 | FileCheck %s --check-prefix=CHIPS
// CHIPS: ops.mlir:{{[0-9]+}}:3: error: expects one chip with 'tuning', got 2
// RUN: not kvcache-opt %t/ops.mlir "--kvcache-plan-attention=chip=sm_100a tuning=%t/h200.json" 2>&1 | FileCheck %s --check-prefix=CHIP
// CHIP: ops.mlir:{{[0-9]+}}:3: error: tuning file '{{.*}}h200.json' is for chip 'sm_90a', and kernels are for 'sm_100a'
// RUN: not kvcache-opt %t/ops.mlir "--kvcache-plan-attention=chip=sm_90a tuning=%t/missing.json" 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: error: cannot read tuning file '{{.*}}missing.json': No such file or directory
// RUN: not kvcache-opt %t/ops.mlir "--kvcache-plan-attention=chip=sm_90a tuning=%t/half.json" 2>&1 | FileCheck %s --check-prefix=HALF
// HALF: error: tuning file '{{.*}}half.json' is damaged: {{.*}}
// RUN: not kvcache-opt %t/ops.mlir "--kvcache-plan-attention=chip=sm_90a tuning=%t/version.json" 2>&1 | FileCheck %s --check-prefix=VERSION
// VERSION: error: tuning file '{{.*}}version.json' has version 2, and this compiler reads version 1
// RUN: not kvcache-opt %t/ops.mlir "--kvcache-plan-attention=chip=sm_90a tuning=%t/other.json" 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: error: tuning file '{{.*}}other.json' is no tuning file
// RUN: not kvcache-opt %t/ops.mlir "--kvcache-plan-attention=chip=sm_90a tuning=%t/empty.json" 2>&1 | FileCheck %s --check-prefix=EMPTY
// EMPTY: error: tuning file '{{.*}}empty.json' has no 'shapes'

//--- ops.mlir
#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// A config of the file is completed.

// CHECK-LABEL: func.func @tuned(
// CHECK:         config = #kvcache.attention_config<mma = wgmma, swap_ab = false, rows = 128, keys = 128, stages = 3, {{.*}} schedule = pipelined>
func.func @tuned(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  kvcache.attention %q, %k, %v, %n, %s outs(%out) {causal}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// Fields of an op are part of its shape.

// CHECK-LABEL: func.func @other_shape(
// CHECK:         config = #kvcache.attention_config<mma = wgmma, swap_ab = false, rows = 64, keys = 64, stages = 2,
func.func @other_shape(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  kvcache.attention %q, %k, %v, %n, %s outs(%out) {causal, config = #kvcache.attention_config<rows = 64>}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// CHECK-LABEL: func.func @other_bits(
// CHECK:         config = #kvcache.attention_config<mma = wgmma, swap_ab = false, rows = 128, keys = 64,
func.func @other_bits(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  kvcache.attention %q, %k, %v, %n, %s outs(%out)
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// Other entries are not used.

// CHECK-LABEL: func.func @unsaid_bits(
// CHECK:         config = #kvcache.attention_config<mma = wgmma, swap_ab = false, rows = 128, keys = 128,
// WARNING: ops.mlir:[[@LINE+2]]:3: warning: does not use the config of tuning file '{{.*}}h200.json': expects 'config' to have #kvcache.attention_config<mma = wgmma, swap_ab = false, rows = 128, keys = 128, dequant = tile> for equal bits, got #kvcache.attention_config<mma = wgmma, swap_ab = false, rows = 64, keys = 128,
func.func @unsaid_bits(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  kvcache.attention %q, %k, %v, %n, %s outs(%out) {causal, window = 512 : i64}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// CHECK-LABEL: func.func @refused(
// CHECK:         config = #kvcache.attention_config<mma = wgmma,
// WARNING: warning: does not use the config of tuning file '{{.*}}': expects 'config' to have tiles of at most 231424 bytes of shared memory, got {{[0-9]+}}
func.func @refused(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  kvcache.attention %q, %k, %v, %n, %s outs(%out) {causal, window = 513 : i64}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// CHECK-LABEL: func.func @unknown_field(
// CHECK:         config = #kvcache.attention_config<mma = wgmma,
// WARNING: warning: does not use the config of tuning file '{{.*}}': expects 'config' to have fields of a config
func.func @unknown_field(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  kvcache.attention %q, %k, %v, %n, %s outs(%out) {causal, window = 514 : i64}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// CHECK-LABEL: func.func @changed_field(
// CHECK:         config = #kvcache.attention_config<mma = wgmma, swap_ab = false, rows = 128, keys = 128, stages = 1,
// WARNING: warning: does not use the config of tuning file '{{.*}}': expects 'config' to keep the fields of the op's
func.func @changed_field(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  kvcache.attention %q, %k, %v, %n, %s outs(%out) {causal, config = #kvcache.attention_config<keys = 128, stages = 1>}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

//--- h200.json
{"format": "kvcache-tuning", "version": 1, "chip": "sm_90a", "gpu": "NVIDIA H200", "driver": "580.95.05", "shapes": {
  "attention q memref<?x32x128xbf16>, key_cache !kvcache.paged<bf16, #kvcache.params<num_heads = 8, head_size = 128>, page_size = 64>, value_cache !kvcache.paged<bf16, #kvcache.params<num_heads = 8, head_size = 128>, page_size = 64>, row_offsets memref<?xi32>, scale f32, out memref<?x32x128xbf16>, causal":
  {"config": {"schedule": "pipelined", "stages": 3}},
  "attention q memref<?x32x128xbf16>, key_cache !kvcache.paged<bf16, #kvcache.params<num_heads = 8, head_size = 128>, page_size = 64>, value_cache !kvcache.paged<bf16, #kvcache.params<num_heads = 8, head_size = 128>, page_size = 64>, row_offsets memref<?xi32>, scale f32, out memref<?x32x128xbf16>":
  {"config": {"swap_ab": false, "keys": 64}, "other_bits": true},
  "attention q memref<?x32x128xbf16>, key_cache !kvcache.paged<bf16, #kvcache.params<num_heads = 8, head_size = 128>, page_size = 64>, value_cache !kvcache.paged<bf16, #kvcache.params<num_heads = 8, head_size = 128>, page_size = 64>, row_offsets memref<?xi32>, scale f32, out memref<?x32x128xbf16>, causal, window = 512 : i64":
  {"config": {"rows": 64, "keys": 128}, "other_bits": false},
  "attention q memref<?x32x128xbf16>, key_cache !kvcache.paged<bf16, #kvcache.params<num_heads = 8, head_size = 128>, page_size = 64>, value_cache !kvcache.paged<bf16, #kvcache.params<num_heads = 8, head_size = 128>, page_size = 64>, row_offsets memref<?xi32>, scale f32, out memref<?x32x128xbf16>, causal, window = 513 : i64":
  {"config": {"rows": 128, "keys": 128, "stages": 8}},
  "attention q memref<?x32x128xbf16>, key_cache !kvcache.paged<bf16, #kvcache.params<num_heads = 8, head_size = 128>, page_size = 64>, value_cache !kvcache.paged<bf16, #kvcache.params<num_heads = 8, head_size = 128>, page_size = 64>, row_offsets memref<?xi32>, scale f32, out memref<?x32x128xbf16>, causal, window = 514 : i64":
  {"config": {"warps": 8}},
  "attention q memref<?x32x128xbf16>, key_cache !kvcache.paged<bf16, #kvcache.params<num_heads = 8, head_size = 128>, page_size = 64>, value_cache !kvcache.paged<bf16, #kvcache.params<num_heads = 8, head_size = 128>, page_size = 64>, row_offsets memref<?xi32>, scale f32, out memref<?x32x128xbf16>, causal, config = #kvcache.attention_config<keys = 128, stages = 1>":
  {"config": {"keys": 128, "stages": 2}}
}}
//--- half.json
{"format": "kvcache-tuning", "version": 1, "chi
//--- version.json
{"format": "kvcache-tuning", "version": 2, "chip": "sm_90a", "shapes": {}}
//--- other.json
["kvcache-tuning"]
//--- empty.json
{"format": "kvcache-tuning", "version": 1, "chip": "sm_90a"}
