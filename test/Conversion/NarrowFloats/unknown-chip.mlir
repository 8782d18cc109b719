// RUN: not kvcache-opt %s --kvcache-narrow-floats=chip=sm_99 2>&1 | FileCheck %s

// CHECK: unknown-chip.mlir:{{.*}}: error: unknown chip 'sm_99'; known are sm_80,
module {
}
