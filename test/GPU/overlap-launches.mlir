// RUN: kvcache-opt %s --kvcache-overlap-launches --mlir-print-local-scope | FileCheck %s
// RUN: kvcache-opt %s --kvcache-overlap-launches=enable=false --mlir-print-local-scope | FileCheck %s --check-prefix=OFF

// Kernels of expanded ops have launches that overlap if all of their chips can:
// a clone for another chip shares the launches.

module attributes {gpu.container_module} {

// CHECK-LABEL: gpu.module @hopper
// CHECK:         nvvm.griddepcontrol wait{{$}}
// CHECK-NEXT:    nvvm.griddepcontrol launch_dependents{{$}}
// OFF-LABEL:   gpu.module @hopper
// OFF-NOT:       griddepcontrol
gpu.module @hopper [#nvvm.target<chip = "sm_90">] {
  gpu.func @kernel() kernel {
    nvvm.griddepcontrol wait {kvcache.programmatic}
    nvvm.griddepcontrol launch_dependents {kvcache.programmatic}
    gpu.return
  }
}

// CHECK-LABEL: gpu.module @ampere
// CHECK-NOT:     griddepcontrol
gpu.module @ampere [#nvvm.target<chip = "sm_80">] {
  gpu.func @kernel() kernel {
    nvvm.griddepcontrol wait {kvcache.programmatic}
    nvvm.griddepcontrol launch_dependents {kvcache.programmatic}
    gpu.return
  }
}

// CHECK-LABEL: gpu.module @both
// CHECK-NOT:     griddepcontrol
gpu.module @both [#nvvm.target<chip = "sm_90a">] {
  gpu.func @kernel() kernel {
    nvvm.griddepcontrol wait {kvcache.programmatic}
    gpu.return
  }
}
// CHECK-LABEL: gpu.module @both_sm_80
// CHECK-NOT:     griddepcontrol
gpu.module @both_sm_80 [#nvvm.target<chip = "sm_80">] attributes {kvcache.clone_of = @both} {
  gpu.func @kernel() kernel {
    nvvm.griddepcontrol wait {kvcache.programmatic}
    gpu.return
  }
}

// What an author writes by hand stays.

// CHECK-LABEL: gpu.module @by_hand
// CHECK:         nvvm.griddepcontrol wait
// OFF-LABEL:   gpu.module @by_hand
// OFF:           nvvm.griddepcontrol wait
gpu.module @by_hand [#nvvm.target<chip = "sm_90">] {
  gpu.func @kernel() kernel {
    nvvm.griddepcontrol wait
    gpu.return
  }
}

// CHECK-LABEL: func.func @launch
// CHECK:         gpu.launch_func @hopper::@kernel {{.*}} {kvcache.programmatic}
// CHECK:         gpu.launch_func @ampere::@kernel
// CHECK-NOT:     programmatic
// CHECK:         gpu.launch_func @both::@kernel
// CHECK-NOT:     programmatic
// CHECK:         gpu.launch_func @by_hand::@kernel
// CHECK-NOT:     programmatic
// CHECK:         return
// OFF-LABEL:   func.func @launch
// OFF-NOT:       programmatic
func.func @launch(%n: index) {
  gpu.launch_func @hopper::@kernel blocks in (%n, %n, %n) threads in (%n, %n, %n)
  gpu.launch_func @ampere::@kernel blocks in (%n, %n, %n) threads in (%n, %n, %n)
  gpu.launch_func @both::@kernel blocks in (%n, %n, %n) threads in (%n, %n, %n)
  gpu.launch_func @by_hand::@kernel blocks in (%n, %n, %n) threads in (%n, %n, %n)
  return
}

}
