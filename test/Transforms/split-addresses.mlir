// RUN: kvcache-opt %s --kvcache-split-addresses --canonicalize --cse | FileCheck %s

// Two accesses a constant apart share what comes before it, also where the
// constant was part of a product and of an extension.

// CHECK-LABEL: llvm.func @constants_come_last(
// CHECK-SAME:      %[[P:.*]]: !llvm.ptr, %[[PAGE:.*]]: i64, %[[STRIDE:.*]]: i64)
// CHECK-DAG:     %[[HEAD:.*]] = nvvm.read.ptx.sreg.tid.y
// CHECK-DAG:     %[[LANE:.*]] = nvvm.read.ptx.sreg.tid.x
// CHECK-DAG:     %[[PAGE_OFFSET:.*]] = llvm.mul %[[PAGE]], %[[STRIDE]] : i64
// CHECK-DAG:     %[[PAGE_AT:.*]] = llvm.getelementptr %[[P]][%[[PAGE_OFFSET]]]
// CHECK-DAG:     %[[C16:.*]] = llvm.mlir.constant(16 : i32)
// CHECK-DAG:     %[[C8:.*]] = llvm.mlir.constant(8 : i64)
// CHECK:         %[[H:.*]] = llvm.mul %[[HEAD]], %[[C16]] overflow<nsw, nuw> : i32
// CHECK:         %[[SUM:.*]] = llvm.add %[[H]], %[[LANE]] overflow<nsw, nuw> : i32
// CHECK:         %[[WIDE:.*]] = llvm.zext %[[SUM]] : i32 to i64
// CHECK:         %[[SCALED:.*]] = llvm.mul %[[WIDE]], %[[C8]] : i64
// CHECK:         %[[FIRST:.*]] = llvm.getelementptr %[[PAGE_AT]][%[[SCALED]]]
// CHECK:         %[[SECOND:.*]] = llvm.getelementptr %[[FIRST]][264]
// CHECK:         llvm.load %[[FIRST]]
// CHECK:         llvm.load %[[SECOND]]
llvm.func @constants_come_last(%p: !llvm.ptr, %page: i64, %stride: i64) -> i16 {
  %c2 = llvm.mlir.constant(2 : i32) : i32
  %c8 = llvm.mlir.constant(8 : i32) : i32
  %c128 = llvm.mlir.constant(128 : i32) : i32
  %lane = nvvm.read.ptx.sreg.tid.x range <i32, 0, 16> : i32
  %head = nvvm.read.ptx.sreg.tid.y range <i32, 0, 2> : i32
  %page_offset = llvm.mul %page, %stride : i64

  %d = llvm.mul %lane, %c8 : i32
  %h = llvm.mul %head, %c128 : i32
  %in_page = llvm.add %h, %d : i32
  %wide = llvm.zext %in_page : i32 to i64
  %index = llvm.add %page_offset, %wide : i64
  %first = llvm.getelementptr %p[%index] : (!llvm.ptr, i64) -> !llvm.ptr, i16

  %next_d = llvm.add %d, %c8 : i32
  %next_head = llvm.add %head, %c2 : i32
  %next_h = llvm.mul %next_head, %c128 : i32
  %next_in_page = llvm.add %next_h, %next_d : i32
  %next_wide = llvm.zext %next_in_page : i32 to i64
  %next_index = llvm.add %page_offset, %next_wide : i64
  %second = llvm.getelementptr %p[%next_index] : (!llvm.ptr, i64) -> !llvm.ptr, i16

  %v = llvm.load %first : !llvm.ptr -> i16
  %w = llvm.load %second : !llvm.ptr -> i16
  %sum = llvm.add %v, %w : i16
  llvm.return %sum : i16
}

// A sum of 32 bits that may wrap is one number.

// CHECK-LABEL: llvm.func @wrapping_sum_stays(
// CHECK:         %[[SUM:.*]] = llvm.add %{{.*}}, %{{.*}} : i32
// CHECK-NEXT:    %[[WIDE:.*]] = llvm.zext %[[SUM]]
// CHECK-NEXT:    llvm.getelementptr %{{.*}}[%[[WIDE]]]
llvm.func @wrapping_sum_stays(%p: !llvm.ptr, %i: i32) -> i16 {
  %c2 = llvm.mlir.constant(2 : i32) : i32
  %sum = llvm.add %i, %c2 : i32
  %wide = llvm.zext %sum : i32 to i64
  %q = llvm.getelementptr %p[%wide] : (!llvm.ptr, i64) -> !llvm.ptr, i16
  %v = llvm.load %q : !llvm.ptr -> i16
  llvm.return %v : i16
}

// A number that may be negative is no unsigned one.

// CHECK-LABEL: llvm.func @signed_extension_stays(
// CHECK:         %[[WIDE:.*]] = llvm.sext
// CHECK:         %[[Q:.*]] = llvm.getelementptr %{{.*}}[%[[WIDE]]]
// CHECK:         llvm.getelementptr %[[Q]][-3]
llvm.func @signed_extension_stays(%p: !llvm.ptr, %i: i32) -> i16 {
  %back = llvm.mlir.constant(-3 : i64) : i64
  %wide = llvm.sext %i : i32 to i64
  %index = llvm.add %wide, %back : i64
  %q = llvm.getelementptr %p[%index] : (!llvm.ptr, i64) -> !llvm.ptr, i16
  %v = llvm.load %q : !llvm.ptr -> i16
  llvm.return %v : i16
}

// Numbers whose sum may not fit into 32 bits are added to the address one by one.

// CHECK-LABEL: llvm.func @large_sums_are_wide(
// CHECK-SAME:      %[[P:.*]]: !llvm.ptr, %[[I:.*]]: i32, %[[J:.*]]: i32)
// CHECK-DAG:     %[[WIDE_J:.*]] = llvm.zext %[[J]]
// CHECK-DAG:     %[[WIDE_I:.*]] = llvm.zext %[[I]]
// CHECK:         %[[SCALED:.*]] = llvm.mul %[[WIDE_J]]
// CHECK:         %[[ROW:.*]] = llvm.getelementptr %[[P]][%[[SCALED]]]
// CHECK:         llvm.getelementptr %[[ROW]][%[[WIDE_I]]]
llvm.func @large_sums_are_wide(%p: !llvm.ptr, %i: i32, %j: i32) -> i16 {
  %c8 = llvm.mlir.constant(8 : i64) : i64
  %wide_i = llvm.zext %i : i32 to i64
  %wide_j = llvm.zext %j : i32 to i64
  %scaled = llvm.mul %wide_j, %c8 : i64
  %index = llvm.add %scaled, %wide_i : i64
  %q = llvm.getelementptr %p[%index] : (!llvm.ptr, i64) -> !llvm.ptr, i16
  %v = llvm.load %q : !llvm.ptr -> i16
  llvm.return %v : i16
}

// The constants of a product go to its end, so that what is left of it can be
// computed once for all accesses.

// CHECK-LABEL: llvm.func @products_of_two_variables(
// CHECK-SAME:      %[[P:.*]]: !llvm.ptr, %[[B:.*]]: i64, %[[SIZE:.*]]: i64, %[[T:.*]]: i64)
// CHECK:         %[[ROWS:.*]] = llvm.mul %[[B]], %[[SIZE]]
// CHECK:         %[[SEQUENCE:.*]] = llvm.mul %[[ROWS]], %[[C:.*]] : i64
// CHECK:         %[[AT:.*]] = llvm.getelementptr %[[P]][%[[SEQUENCE]]]
// CHECK:         %[[ROW:.*]] = llvm.mul %[[T]], %[[C]] : i64
// CHECK:         llvm.getelementptr %[[AT]][%[[ROW]]]
llvm.func @products_of_two_variables(%p: !llvm.ptr, %b: i64, %size: i64, %t: i64) -> i16 {
  %c1024 = llvm.mlir.constant(1024 : i64) : i64
  %stride = llvm.mul %size, %c1024 : i64
  %sequence = llvm.mul %b, %stride : i64
  %row = llvm.mul %t, %c1024 : i64
  %index = llvm.add %sequence, %row : i64
  %q = llvm.getelementptr %p[%index] : (!llvm.ptr, i64) -> !llvm.ptr, i16
  %v = llvm.load %q : !llvm.ptr -> i16
  llvm.return %v : i16
}

// A thread id that was taken apart comes together again.

// CHECK-LABEL: llvm.func @quotient_and_remainder(
// CHECK:         %[[ID:.*]] = nvvm.read.ptx.sreg.tid.x
// CHECK:         %[[WIDE:.*]] = llvm.zext %[[ID]]
// CHECK:         %[[SCALED:.*]] = llvm.mul %[[WIDE]], %[[C8:.*]] : i64
// CHECK:         %[[Q:.*]] = llvm.getelementptr %{{.*}}[%[[SCALED]]]
// CHECK:         llvm.getelementptr %[[Q]][256]
llvm.func @quotient_and_remainder(%p: !llvm.ptr) -> i16 {
  %c8 = llvm.mlir.constant(8 : i32) : i32
  %c16 = llvm.mlir.constant(16 : i32) : i32
  %c128 = llvm.mlir.constant(128 : i32) : i32
  %c256 = llvm.mlir.constant(256 : i32) : i32
  %id = nvvm.read.ptx.sreg.tid.x range <i32, 0, 256> : i32
  %head = llvm.udiv %id, %c16 : i32
  %lane = llvm.urem %id, %c16 : i32
  %h = llvm.mul %head, %c128 : i32
  %d = llvm.mul %lane, %c8 : i32
  %sum = llvm.add %h, %d : i32
  %next = llvm.add %sum, %c256 : i32
  %wide = llvm.zext %next : i32 to i64
  %q = llvm.getelementptr %p[%wide] : (!llvm.ptr, i64) -> !llvm.ptr, i16
  %v = llvm.load %q : !llvm.ptr -> i16
  llvm.return %v : i16
}

// CHECK-LABEL: llvm.func @terms_of_nothing(
// CHECK-SAME:      %[[P:.*]]: !llvm.ptr,
// CHECK:         %[[Q:.*]] = llvm.getelementptr %[[P]][5]
// CHECK:         llvm.load %[[Q]]
llvm.func @terms_of_nothing(%p: !llvm.ptr, %i: i32, %j: i64) -> i16 {
  %c5 = llvm.mlir.constant(5 : i64) : i64
  %c31 = llvm.mlir.constant(31 : i64) : i64
  %wide = llvm.zext %i : i32 to i64
  %a = llvm.shl %wide, %c31 : i64
  %b = llvm.shl %a, %c31 : i64
  %c = llvm.shl %b, %c31 : i64
  %d = llvm.shl %j, %c31 : i64
  %e = llvm.shl %d, %c31 : i64
  %f = llvm.shl %e, %c31 : i64
  %sum = llvm.add %c, %f : i64
  %index = llvm.add %sum, %c5 : i64
  %q = llvm.getelementptr %p[%index] : (!llvm.ptr, i64) -> !llvm.ptr, i16
  %v = llvm.load %q : !llvm.ptr -> i16
  llvm.return %v : i16
}

// Shared memory takes 32 bits to address.

// CHECK-LABEL: llvm.func @shared_memory_stays(
// CHECK:         %[[INDEX:.*]] = llvm.add
// CHECK:         llvm.getelementptr %{{.*}}[%[[INDEX]]]
// CHECK-NOT:     llvm.getelementptr
llvm.func @shared_memory_stays(%p: !llvm.ptr<3>, %i: i64) -> i16 {
  %c2 = llvm.mlir.constant(2 : i64) : i64
  %index = llvm.add %i, %c2 : i64
  %q = llvm.getelementptr %p[%index] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, i16
  %v = llvm.load %q : !llvm.ptr<3> -> i16
  llvm.return %v : i16
}
