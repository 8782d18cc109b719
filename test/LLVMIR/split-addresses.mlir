// RUN: kvcache-opt %s --kvcache-split-addresses --canonicalize --cse | FileCheck %s
// RUN: kvcache-opt %s --kvcache-split-addresses --remarks-filter='kvcache-.*' -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK: [Passed] address | Category:kvcache-split-addresses | Count={{[1-9].*}}, Remark="addresses split"

// Two accesses a constant apart share what comes before it, also where the
// constant was part of a product and of an extension. Factors are sizes of
// elements.

// CHECK-LABEL: llvm.func @constants_come_last(
// CHECK-SAME:      %[[P:.*]]: !llvm.ptr, %[[PAGE:.*]]: i64, %[[STRIDE:.*]]: i64)
// CHECK-DAG:     %[[HEAD:.*]] = nvvm.read.ptx.sreg.tid.y
// CHECK-DAG:     %[[LANE:.*]] = nvvm.read.ptx.sreg.tid.x
// CHECK-DAG:     %[[PAGE_OFFSET:.*]] = llvm.mul %[[PAGE]], %[[STRIDE]] : i64
// CHECK-DAG:     %[[PAGE_AT:.*]] = llvm.getelementptr %[[P]][%[[PAGE_OFFSET]]] {{.*}}, !llvm.array<2 x i8>
// CHECK-DAG:     %[[C16:.*]] = llvm.mlir.constant(16 : i32)
// CHECK:         %[[H:.*]] = llvm.mul %[[HEAD]], %[[C16]] overflow<nsw, nuw> : i32
// CHECK:         %[[SUM:.*]] = llvm.add %[[H]], %[[LANE]] overflow<nsw, nuw> : i32
// CHECK:         %[[WIDE:.*]] = llvm.zext %[[SUM]] : i32 to i64
// CHECK:         %[[FIRST:.*]] = llvm.getelementptr %[[PAGE_AT]][%[[WIDE]]] {{.*}}, !llvm.array<16 x i8>
// CHECK:         %[[SECOND:.*]] = llvm.getelementptr %[[FIRST]][528] {{.*}}, i8
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
// CHECK:         llvm.getelementptr %[[Q]][-6]
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
// CHECK:         %[[ROW:.*]] = llvm.getelementptr %[[P]][%[[WIDE_J]]] {{.*}}, !llvm.array<16 x i8>
// CHECK:         llvm.getelementptr %[[ROW]][%[[WIDE_I]]] {{.*}}, !llvm.array<2 x i8>
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
// CHECK:         %[[AT:.*]] = llvm.getelementptr %[[P]][%[[ROWS]]] {{.*}}, !llvm.array<2048 x i8>
// CHECK:         llvm.getelementptr %[[AT]][%[[T]]] {{.*}}, !llvm.array<2048 x i8>
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

// Where a factor and the constant fit into 32 bits, a product of 32 bits by 32 is all that there is.

// CHECK-LABEL: llvm.func @products_of_32_bits(
// CHECK-SAME:      %[[P:.*]]: !llvm.ptr, %[[STRIDE:.*]]: i32)
// CHECK-DAG:     %[[Y:.*]] = nvvm.read.ptx.sreg.ctaid.y
// CHECK-DAG:     %[[C4:.*]] = llvm.mlir.constant(4 : i32)
// CHECK-DAG:     %[[WIDE_STRIDE:.*]] = llvm.zext %[[STRIDE]]
// CHECK:         %[[BYTES:.*]] = llvm.mul %[[Y]], %[[C4]] overflow<nsw, nuw> : i32
// CHECK:         %[[WIDE_BYTES:.*]] = llvm.zext %[[BYTES]]
// CHECK:         %[[PRODUCT:.*]] = llvm.mul %[[WIDE_BYTES]], %[[WIDE_STRIDE]] : i64
// CHECK:         %[[ROW:.*]] = llvm.getelementptr %[[P]][%[[PRODUCT]]] {{.*}}, i8
// CHECK:         %[[LARGE:.*]] = llvm.mul %{{.*}}, %[[WIDE_STRIDE]] : i64
// CHECK:         llvm.getelementptr %[[ROW]][%[[LARGE]]] {{.*}}, !llvm.array<4 x i8>
llvm.func @products_of_32_bits(%p: !llvm.ptr, %stride: i32) -> i32 {
  %x = nvvm.read.ptx.sreg.ctaid.x : i32
  %y = nvvm.read.ptx.sreg.ctaid.y : i32
  %wide_x = llvm.zext %x : i32 to i64
  %wide_y = llvm.zext %y : i32 to i64
  %wide_stride = llvm.zext %stride : i32 to i64
  %small = llvm.mul %wide_y, %wide_stride : i64
  %large = llvm.mul %wide_x, %wide_stride : i64
  %index = llvm.add %small, %large : i64
  %q = llvm.getelementptr %p[%index] : (!llvm.ptr, i64) -> !llvm.ptr, i32
  %v = llvm.load %q : !llvm.ptr -> i32
  llvm.return %v : i32
}

// Terms known at the start precede a page id that is read, and products.

// CHECK-LABEL: llvm.func @known_parts_come_first(
// CHECK-SAME:      %[[P:.*]]: !llvm.ptr, %[[STRIDE:.*]]: i64, %[[TABLE:.*]]: !llvm.ptr, %{{.*}}: i1)
// CHECK:         %[[ID:.*]] = nvvm.read.ptx.sreg.tid.x
// CHECK:         %[[WIDE:.*]] = llvm.zext %[[ID]]
// CHECK:         %[[LANE:.*]] = llvm.getelementptr %[[P]][%[[WIDE]]] {{.*}}, !llvm.array<16 x i8>
// CHECK:         llvm.cond_br
// CHECK:         %[[PAGE:.*]] = llvm.load %[[TABLE]]
// CHECK:         %[[OFFSET:.*]] = llvm.mul %[[PAGE]], %[[STRIDE]]
// CHECK:         llvm.getelementptr %[[LANE]][%[[OFFSET]]] {{.*}}, !llvm.array<2 x i8>
llvm.func @known_parts_come_first(%p: !llvm.ptr, %stride: i64, %table: !llvm.ptr, %is_used: i1) {
  %c8 = llvm.mlir.constant(8 : i64) : i64
  %c0 = llvm.mlir.constant(0 : i16) : i16
  %id = nvvm.read.ptx.sreg.tid.x range <i32, 0, 256> : i32
  llvm.cond_br %is_used, ^then, ^end
^then:
  %page = llvm.load %table : !llvm.ptr -> i64
  %offset = llvm.mul %page, %stride : i64
  %wide = llvm.zext %id : i32 to i64
  %element = llvm.mul %wide, %c8 : i64
  %index = llvm.add %offset, %element : i64
  %q = llvm.getelementptr %p[%index] : (!llvm.ptr, i64) -> !llvm.ptr, i16
  llvm.store %c0, %q : i16, !llvm.ptr
  llvm.br ^end
^end:
  llvm.return
}

// A thread id that was taken apart comes together again.

// CHECK-LABEL: llvm.func @quotient_and_remainder(
// CHECK:         %[[ID:.*]] = nvvm.read.ptx.sreg.tid.x
// CHECK:         %[[WIDE:.*]] = llvm.zext %[[ID]]
// CHECK:         %[[Q:.*]] = llvm.getelementptr %{{.*}}[%[[WIDE]]] {{.*}}, !llvm.array<16 x i8>
// CHECK:         llvm.getelementptr %[[Q]][512]
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

// Of the token 16 * x + z, with z below 16, x is the page and z the row, if the token fits into 32 bits: a branch says
// so.

// CHECK-LABEL: llvm.func @page_and_row_of_token(
// CHECK-DAG:     %[[X:.*]] = nvvm.read.ptx.sreg.ctaid.x
// CHECK-DAG:     %[[Z:.*]] = nvvm.read.ptx.sreg.tid.z
// CHECK-DAG:     %[[WIDE_X:.*]] = llvm.zext %[[X]]
// CHECK-DAG:     %[[WIDE_Z:.*]] = llvm.zext %[[Z]]
// CHECK-DAG:     %[[AT:.*]] = llvm.getelementptr %{{.*}}[%[[WIDE_X]]] {{.*}}, !llvm.array<4096 x i8>
// CHECK:         llvm.getelementptr %[[AT]][%[[WIDE_Z]]] {{.*}}, !llvm.array<4 x i8>
llvm.func @page_and_row_of_token(%p: !llvm.ptr, %length: i32) {
  %c0 = llvm.mlir.constant(0 : i32) : i32
  %c16 = llvm.mlir.constant(16 : i32) : i32
  %c16_wide = llvm.mlir.constant(16 : i64) : i64
  %c1024 = llvm.mlir.constant(1024 : i64) : i64
  %x = nvvm.read.ptx.sreg.ctaid.x : i32
  %z = nvvm.read.ptx.sreg.tid.z range <i32, 0, 16> : i32
  %wide_x = llvm.sext %x : i32 to i64
  %wide_z = llvm.sext %z : i32 to i64
  %first = llvm.mul %wide_x, %c16_wide : i64
  %token = llvm.add %first, %wide_z : i64
  %wide_length = llvm.zext %length : i32 to i64
  %is_used = llvm.icmp "ult" %token, %wide_length : i64
  llvm.cond_br %is_used, ^then, ^end
^then:
  %narrow = llvm.trunc %token : i64 to i32
  %page = llvm.udiv %narrow, %c16 : i32
  %row = llvm.urem %narrow, %c16 : i32
  %wide_page = llvm.zext %page : i32 to i64
  %wide_row = llvm.zext %row : i32 to i64
  %offset = llvm.mul %wide_page, %c1024 : i64
  %index = llvm.add %offset, %wide_row : i64
  %q = llvm.getelementptr %p[%index] : (!llvm.ptr, i64) -> !llvm.ptr, i32
  llvm.store %c0, %q : i32, !llvm.ptr
  llvm.br ^end
^end:
  llvm.return
}

// If it may not, the row is known all the same, as 2^32 is a multiple of 16, but of 12 it is none. The branch where the
// token is not less than the length says nothing.

// CHECK-LABEL: llvm.func @token_of_33_bits(
// CHECK-DAG:     %[[NARROW:.*]] = llvm.trunc
// CHECK-DAG:     %[[C16:.*]] = llvm.mlir.constant(16 : i32)
// CHECK-DAG:     %[[C12:.*]] = llvm.mlir.constant(12 : i32)
// CHECK-DAG:     llvm.udiv %[[NARROW]], %[[C16]]
// CHECK-DAG:     llvm.urem %[[NARROW]], %[[C12]]
// CHECK-NOT:     llvm.urem
// CHECK:         llvm.store
llvm.func @token_of_33_bits(%p: !llvm.ptr, %length: i32) {
  %c0 = llvm.mlir.constant(0 : i32) : i32
  %c12 = llvm.mlir.constant(12 : i32) : i32
  %c16 = llvm.mlir.constant(16 : i32) : i32
  %c48 = llvm.mlir.constant(48 : i64) : i64
  %c1024 = llvm.mlir.constant(1024 : i64) : i64
  %x = nvvm.read.ptx.sreg.ctaid.x : i32
  %z = nvvm.read.ptx.sreg.tid.z range <i32, 0, 12> : i32
  %wide_x = llvm.sext %x : i32 to i64
  %wide_z = llvm.sext %z : i32 to i64
  %first = llvm.mul %wide_x, %c48 : i64
  %token = llvm.add %first, %wide_z : i64
  %wide_length = llvm.zext %length : i32 to i64
  %is_used = llvm.icmp "ult" %token, %wide_length : i64
  llvm.cond_br %is_used, ^end, ^then
^then:
  %narrow = llvm.trunc %token : i64 to i32
  %page = llvm.udiv %narrow, %c16 : i32
  %row = llvm.urem %narrow, %c16 : i32
  %other_row = llvm.urem %narrow, %c12 : i32
  %wide_page = llvm.zext %page : i32 to i64
  %wide_row = llvm.zext %row : i32 to i64
  %wide_other = llvm.zext %other_row : i32 to i64
  %offset = llvm.mul %wide_page, %c1024 : i64
  %rows = llvm.add %wide_row, %wide_other : i64
  %index = llvm.add %offset, %rows : i64
  %q = llvm.getelementptr %p[%index] : (!llvm.ptr, i64) -> !llvm.ptr, i32
  llvm.store %c0, %q : i32, !llvm.ptr
  llvm.br ^end
^end:
  llvm.return
}

// Nor is a sum taken apart that a constant may have made negative.

// CHECK-LABEL: llvm.func @token_before(
// CHECK:         llvm.udiv
llvm.func @token_before(%p: !llvm.ptr, %length: i32) {
  %c0 = llvm.mlir.constant(0 : i32) : i32
  %c16 = llvm.mlir.constant(16 : i32) : i32
  %c16_wide = llvm.mlir.constant(16 : i64) : i64
  %back = llvm.mlir.constant(-16 : i64) : i64
  %x = nvvm.read.ptx.sreg.ctaid.x : i32
  %wide_x = llvm.sext %x : i32 to i64
  %first = llvm.mul %wide_x, %c16_wide : i64
  %token = llvm.add %first, %back : i64
  %wide_length = llvm.zext %length : i32 to i64
  %is_used = llvm.icmp "ult" %token, %wide_length : i64
  llvm.cond_br %is_used, ^then, ^end
^then:
  %narrow = llvm.trunc %token : i64 to i32
  %page = llvm.udiv %narrow, %c16 : i32
  %wide_page = llvm.zext %page : i32 to i64
  %index = llvm.add %wide_page, %c16_wide : i64
  %q = llvm.getelementptr %p[%index] : (!llvm.ptr, i64) -> !llvm.ptr, i32
  llvm.store %c0, %q : i32, !llvm.ptr
  llvm.br ^end
^end:
  llvm.return
}

// CHECK-LABEL: llvm.func @terms_of_nothing(
// CHECK-SAME:      %[[P:.*]]: !llvm.ptr,
// CHECK:         %[[Q:.*]] = llvm.getelementptr %[[P]][10]
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

// Of a sum that is only truncated, the parts are truncated: those of %row once.

// CHECK-LABEL: llvm.func @parts_are_truncated(
// CHECK-SAME:      %[[ROW:.*]]: i64)
// CHECK:         %[[NARROW:.*]] = llvm.trunc %[[ROW]] : i64 to i32
// CHECK-NOT:     llvm.trunc
// CHECK:         llvm.add %[[NARROW]], %{{.*}} : i32
// CHECK:         llvm.add %[[NARROW]], %{{.*}} : i32
// CHECK-NOT:     llvm.add %{{.*}} : i64
llvm.func @parts_are_truncated(%row: i64) -> i32 {
  %c1 = llvm.mlir.constant(1 : i64) : i64
  %c2 = llvm.mlir.constant(2 : i64) : i64
  %next = llvm.add %row, %c1 : i64
  %first = llvm.trunc %next : i64 to i32
  %after = llvm.add %row, %c2 : i64
  %second = llvm.trunc %after : i64 to i32
  %product = llvm.mul %first, %second : i32
  llvm.return %product : i32
}

// A sum that has other uses stays, and so does one of two variables.

// CHECK-LABEL: llvm.func @sums_with_other_uses(
// CHECK:         %[[SUM:.*]] = llvm.add {{.*}} : i64
// CHECK:         llvm.trunc %[[SUM]]
// CHECK:         %[[OTHER:.*]] = llvm.add {{.*}} : i64
// CHECK:         llvm.trunc %[[OTHER]]
llvm.func @sums_with_other_uses(%row: i64, %step: i64, %out: !llvm.ptr) -> i32 {
  %c1 = llvm.mlir.constant(1 : i64) : i64
  %next = llvm.add %row, %c1 : i64
  llvm.store %next, %out : i64, !llvm.ptr
  %first = llvm.trunc %next : i64 to i32
  %after = llvm.add %row, %step : i64
  %second = llvm.trunc %after : i64 to i32
  %product = llvm.mul %first, %second : i32
  llvm.return %product : i32
}
