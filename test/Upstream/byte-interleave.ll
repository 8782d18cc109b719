; RUN: not timeout 10 llc %s -mtriple=x86_64 -mcpu=x86-64-v4 -o /dev/null

; X86: instruction selection of interleaved bytes never ends
;
; llc 22.1 legalizes this shuffle of 40 bytes forever with AVX-512, unless there
; is VBMI. So it does for 34 to 38 and 50 to 56 bytes. Expected: code within a
; second, as for 32, 42 or 48 bytes.

define void @split(ptr %from, ptr %to) {
  %bytes = load <20 x i8>, ptr %from
  %low = and <20 x i8> %bytes, splat (i8 15)
  %high = lshr <20 x i8> %bytes, splat (i8 4)
  %joined = shufflevector <20 x i8> %low, <20 x i8> %high, <40 x i32> <
      i32 0, i32 20, i32 1, i32 21, i32 2, i32 22, i32 3, i32 23, i32 4,
      i32 24, i32 5, i32 25, i32 6, i32 26, i32 7, i32 27, i32 8, i32 28,
      i32 9, i32 29, i32 10, i32 30, i32 11, i32 31, i32 12, i32 32, i32 13,
      i32 33, i32 14, i32 34, i32 15, i32 35, i32 16, i32 36, i32 17, i32 37,
      i32 18, i32 38, i32 19, i32 39>
  store <40 x i8> %joined, ptr %to
  ret void
}
