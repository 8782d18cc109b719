// UNSUPPORTED: quick

// Operations that would stop the host, or never end: an error of the kernel instead.

// DEFINE: %{libs} = %kvcache_emulator,%kvcache_runtime
// DEFINE: %{case} =
// DEFINE: %{run} = env KVCACHE_EMULATOR_TIMEOUT=1 not mlir-runner %t.plain.mlir -e %{case} -entry-point-result=void -shared-libs=%{libs} 2>&1 | FileCheck %s -DFILE="<stdin>" --check-prefix
// RUN: %add_launches %s | kvcache-opt --kvcache-to-emulator="chip=sm_90a" -o %t.mlir
// RUN: env KVCACHE_EMULATOR_TIMEOUT=1 %emulator_tests/kvcache-run-cases %t.mlir --shared-libs=%{libs} --right=right | FileCheck %s -DFILE="<stdin>" --check-prefixes=CHECK,LOOP,BARRIERS
// RUN: %add_launches %s | kvcache-opt --kvcache-to-emulator="chip=sm_90a sanitize=false" -o %t.plain.mlir
// REDEFINE: %{case} = loop_without_end
// RUN: %{run} LOOP
// REDEFINE: %{case} = barriers_without_end
// RUN: %{run} BARRIERS

module attributes {gpu.container_module} {

gpu.module @kernels {
  llvm.func @vprintf(!llvm.ptr, !llvm.ptr) -> i32
  llvm.mlir.global internal constant @two_numbers("%d %d\0A\00")

  // Without end.
  llvm.func @sums(%n: i32) -> i32 attributes {no_inline} {
    %one = llvm.mlir.constant(1 : i32) : i32
    %variable = llvm.alloca %one x i32 : (i32) -> !llvm.ptr
    llvm.store volatile %n, %variable : i32, !llvm.ptr
    %next = llvm.add %n, %one : i32
    %sum = llvm.call @sums(%next) : (i32) -> i32
    %again = llvm.load volatile %variable : !llvm.ptr -> i32
    %all = llvm.add %sum, %again : i32
    llvm.return %all : i32
  }

  gpu.func @zero_divisor(%numbers: !llvm.ptr) kernel {
    %zero = llvm.load %numbers : !llvm.ptr -> i32
    // CHECK-LABEL: run @zero_divisor:
    // CHECK: [[FILE]]:[[#@LINE+1]]:10: llvm.sdiv: thread (0, 0, 0) of block (0, 0, 0) divides by zero
    %q = llvm.sdiv %zero, %zero : i32
    llvm.store %q, %numbers : i32, !llvm.ptr
    gpu.return
  }

  gpu.func @zero_in_a_vector(%numbers: !llvm.ptr) kernel {
    %zero = llvm.load %numbers {alignment = 4 : i64} : !llvm.ptr -> vector<4xi32>
    // CHECK-LABEL: run @zero_in_a_vector:
    // CHECK: [[FILE]]:[[#@LINE+1]]:10: llvm.urem: thread (0, 0, 0) of block (0, 0, 0) divides by zero
    %q = llvm.urem %zero, %zero : vector<4xi32>
    llvm.store %q, %numbers {alignment = 4 : i64} : vector<4xi32>, !llvm.ptr
    gpu.return
  }

  gpu.func @quotient_too_large(%numbers: !llvm.ptr) kernel {
    %zero = llvm.load %numbers : !llvm.ptr -> i32
    %least = llvm.mlir.constant(-2147483648 : i32) : i32
    %minus_one = llvm.mlir.constant(-1 : i32) : i32
    %dividend = llvm.add %zero, %least : i32
    %divisor = llvm.add %zero, %minus_one : i32
    // CHECK-LABEL: run @quotient_too_large:
    // CHECK: [[FILE]]:[[#@LINE+1]]:10: llvm.sdiv: thread (0, 0, 0) of block (0, 0, 0) divides the least number of its type by -1
    %q = llvm.sdiv %dividend, %divisor : i32
    llvm.store %q, %numbers : i32, !llvm.ptr
    gpu.return
  }

  gpu.func @never_reached(%numbers: !llvm.ptr) kernel {
    %zero = llvm.load %numbers : !llvm.ptr -> i32
    llvm.switch %zero : i32, ^end [0: ^never]
  ^never:
    // CHECK-LABEL: run @never_reached:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: llvm.unreachable: thread (0, 0, 0) of block (0, 0, 0) reaches code that the compiler assumed to be unreachable
    llvm.unreachable
  ^end:
    gpu.return
  }

  gpu.func @loop_without_end(%numbers: !llvm.ptr) kernel {
    llvm.br ^again
  ^again:
    // CHECK-LABEL: run @loop_without_end:
    // LOOP: [[FILE]]:[[#@LINE+1]]:5: llvm.br: thread (0, 0, 0) of block (0, 0, 0) loops without end, or its block uses more than 1 seconds of a processor (KVCACHE_EMULATOR_TIMEOUT)
    llvm.br ^again
  }

  // LAUNCH: 32 threads
  gpu.func @barriers_without_end(%numbers: !llvm.ptr) kernel {
    llvm.br ^again
  ^again:
    // The time may be over at either line.
    // CHECK-LABEL: run @barriers_without_end:
    // BARRIERS: [[FILE]]:{{[0-9]+}}:5: {{nvvm.barrier0|llvm.br}}: thread ({{.*}}, 0, 0) of block (0, 0, 0) loops without end
    nvvm.barrier0
    llvm.br ^again
  }

  // CHECK-LABEL: run @call_without_end:
  // CHECK: [[FILE]]:{{.*}}: thread (0, 0, 0) of block (0, 0, 0) has no more stack: functions call each other without end
  gpu.func @call_without_end(%numbers: !llvm.ptr) kernel {
    %zero = llvm.load %numbers : !llvm.ptr -> i32
    %sum = llvm.call @sums(%zero) : (i32) -> i32
    llvm.store %sum, %numbers : i32, !llvm.ptr
    gpu.return
  }

  // One of a known size would be the same in each iteration.
  gpu.func @stack_in_a_loop(%numbers: !llvm.ptr) kernel {
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %zero = llvm.load %numbers : !llvm.ptr -> i32
    %one = llvm.add %zero, %c1 : i32
    llvm.br ^again
  ^again:
    // CHECK-LABEL: run @stack_in_a_loop:
    // CHECK: [[FILE]]:[[#@LINE+1]]:17: llvm.alloca: thread (0, 0, 0) of block (0, 0, 0) has no more stack
    %variable = llvm.alloca %one x !llvm.array<64 x i32> : (i32) -> !llvm.ptr
    llvm.store volatile %one, %variable : i32, !llvm.ptr
    llvm.br ^again
  }

  gpu.func @many_variables(%numbers: !llvm.ptr) kernel {
    %zero = llvm.load %numbers : !llvm.ptr -> i32
    %more = llvm.mlir.constant(-1 : i32) : i32
    %count = llvm.add %zero, %more : i32
    // CHECK-LABEL: run @many_variables:
    // CHECK: [[FILE]]:[[#@LINE+1]]:17: llvm.alloca: thread (0, 0, 0) of block (0, 0, 0) has no more stack
    %variable = llvm.alloca %count x i32 : (i32) -> !llvm.ptr
    llvm.store volatile %zero, %variable : i32, !llvm.ptr
    gpu.return
  }

  gpu.func @outside_of_a_variable(%numbers: !llvm.ptr) kernel {
    %four = llvm.mlir.constant(4 : i32) : i32
    %variable = llvm.alloca %four x i32 : (i32) -> !llvm.ptr
    %zero = llvm.load %numbers : !llvm.ptr -> i32
    %place = llvm.add %zero, %four : i32
    %element = llvm.getelementptr %variable[%place] : (!llvm.ptr, i32) -> !llvm.ptr, i32
    // CHECK-LABEL: run @outside_of_a_variable:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: llvm.store: thread (0, 0, 0) of block (0, 0, 0) writes 4 bytes at byte 16 of a variable of its own of 16 bytes
    llvm.store volatile %four, %element : i32, !llvm.ptr
    gpu.return
  }

  gpu.func @fill_of_more_than_a_variable(%numbers: !llvm.ptr) kernel {
    %four = llvm.mlir.constant(4 : i32) : i32
    %variable = llvm.alloca %four x i32 : (i32) -> !llvm.ptr
    %byte = llvm.mlir.constant(0 : i8) : i8
    %bytes = llvm.mlir.constant(17 : i64) : i64
    // CHECK-LABEL: run @fill_of_more_than_a_variable:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: llvm.intr.memset: thread (0, 0, 0) of block (0, 0, 0) writes 17 bytes at byte 0 of a variable of its own of 16 bytes
    "llvm.intr.memset"(%variable, %byte, %bytes) <{isVolatile = true}> : (!llvm.ptr, i8, i64) -> ()
    gpu.return
  }

  gpu.func @variable_by_another_pointer(%numbers: !llvm.ptr) kernel {
    %four = llvm.mlir.constant(4 : i32) : i32
    %variable = llvm.alloca %four x i32 : (i32) -> !llvm.ptr
    %zero = llvm.load %numbers : !llvm.ptr -> i32
    %is_zero = llvm.icmp "eq" %zero, %four : i32
    %one_of_two = llvm.select %is_zero, %numbers, %variable : i1, !llvm.ptr
    %element = llvm.getelementptr %one_of_two[-1] : (!llvm.ptr) -> !llvm.ptr, i32
    // CHECK-LABEL: run @variable_by_another_pointer:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: llvm.store: thread (0, 0, 0) of block (0, 0, 0) writes 4 bytes at byte -4 of a variable of its own of 16 bytes
    llvm.store volatile %four, %element : i32, !llvm.ptr
    gpu.return
  }

  gpu.func @print_of_too_few(%numbers: !llvm.ptr) kernel {
    %one = llvm.mlir.constant(1 : i32) : i32
    %format = llvm.mlir.addressof @two_numbers : !llvm.ptr
    %arguments = llvm.alloca %one x i32 : (i32) -> !llvm.ptr
    llvm.store %one, %arguments : i32, !llvm.ptr
    // CHECK-LABEL: run @print_of_too_few:
    // CHECK: [[FILE]]:[[#@LINE+1]]:14: llvm.call: thread (0, 0, 0) of block (0, 0, 0) reads 4 bytes at byte 4 of a variable of its own of 4 bytes
    %count = llvm.call @vprintf(%format, %arguments) : (!llvm.ptr, !llvm.ptr) -> i32
    gpu.return
  }

  // A function that gets a structure by value has a copy; recursion that ends, a
  // load that is atomic, and a zero of shared memory are right.
  llvm.func @changes(%pair: !llvm.ptr {llvm.byval = !llvm.struct<(i32, i64)>}, %n: i8 {llvm.signext}) -> (i32 {llvm.signext}) attributes {no_inline} {
    %number = llvm.sext %n : i8 to i32
    llvm.store volatile %number, %pair : i32, !llvm.ptr
    llvm.return %number : i32
  }

  llvm.func @factorial(%n: i32) -> i32 attributes {no_inline} {
    %one = llvm.mlir.constant(1 : i32) : i32
    %is_small = llvm.icmp "ule" %n, %one : i32
    llvm.cond_br %is_small, ^end(%one : i32), ^more
  ^more:
    %less = llvm.sub %n, %one : i32
    %product = llvm.call @factorial(%less) : (i32) -> i32
    %result = llvm.mul %product, %n : i32
    llvm.br ^end(%result : i32)
  ^end(%value: i32):
    llvm.return %value : i32
  }

  llvm.mlir.global internal @word() {addr_space = 3 : i32} : i32

  gpu.func @right(%numbers: !llvm.ptr) kernel {
    %one = llvm.mlir.constant(1 : i32) : i32
    %pair = llvm.alloca %one x !llvm.struct<(i32, i64)> : (i32) -> !llvm.ptr
    %seven = llvm.mlir.constant(7 : i32) : i32
    %minus_three = llvm.mlir.constant(-3 : i8) : i8
    llvm.store %seven, %pair : i32, !llvm.ptr
    %changed = llvm.call @changes(%pair, %minus_three) : (!llvm.ptr {llvm.byval = !llvm.struct<(i32, i64)>}, i8 {llvm.signext}) -> (i32 {llvm.signext})
    %kept = llvm.load %pair : !llvm.ptr -> i32
    %product = llvm.call @factorial(%seven) : (i32) -> i32
    llvm.store %product, %numbers atomic syncscope("device") release {alignment = 4 : i64} : i32, !llvm.ptr
    %again = llvm.load %numbers atomic syncscope("device") acquire {alignment = 4 : i64} : !llvm.ptr -> i32
    %word = llvm.mlir.addressof @word : !llvm.ptr<3>
    llvm.store %seven, %word : i32, !llvm.ptr<3>
    %zero = llvm.mlir.zero : !llvm.ptr<3>
    %first = llvm.load %zero : !llvm.ptr<3> -> i32
    // CHECK-LABEL: run @right:
    // CHECK-NEXT: -3 7 5040 7
    gpu.printf "%d %d %d %d\n", %changed, %kept, %again, %first : i32, i32, i32, i32
    gpu.return
  }
}
}
