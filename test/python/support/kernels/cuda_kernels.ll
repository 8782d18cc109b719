; ModuleID = 'cuda_kernels.cu'
source_filename = "cuda_kernels.cu"
target datalayout = "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

%struct.Map = type { [16 x i64] }
%struct.Output = type { ptr, i32, float }

@_ZZ11tensor_copyE4tile = internal addrspace(3) global [256 x float] undef, align 128
@_ZZ11tensor_copyE7barrier = internal addrspace(3) global i64 undef, align 8
@_ZZL17run_scratch_reuseILb0EEvPKfPfE7scratch = internal unnamed_addr addrspace(3) global [4 x float] undef, align 4
@_ZZL17run_scratch_reuseILb1EEvPKfPfE7scratch = internal unnamed_addr addrspace(3) global [4 x float] undef, align 4
@_ZZL16run_partial_sumsILb0EEvPKfPfPjS2_E6isLast = internal unnamed_addr addrspace(3) global i8 undef, align 1
@_ZZL16run_partial_sumsILb1EEvPKfPfPjS2_E6isLast = internal unnamed_addr addrspace(3) global i8 undef, align 1
@_ZZL13run_table_endILb0EEvPKfPKiiPfE6copied = internal addrspace(3) global [64 x float] undef, align 4
@_ZZL13run_table_endILb1EEvPKfPKiiPfE6copied = internal addrspace(3) global [64 x float] undef, align 4
@_ZZL15run_proxy_fenceILb0EEvPKfPfE4tile = internal addrspace(3) global [128 x float] undef, align 128
@_ZZL15run_proxy_fenceILb1EEvPKfPfE4tile = internal addrspace(3) global [128 x float] undef, align 128
@_ZZL17run_named_barrierILb0EEvPKfPfE4tile = internal unnamed_addr addrspace(3) global [128 x float] undef, align 4
@_ZZL17run_named_barrierILb1EEvPKfPfE4tile = internal unnamed_addr addrspace(3) global [128 x float] undef, align 4
@_ZZL17run_live_mbarrierILb0EEvPKfPfE6memory = internal addrspace(3) global [64 x i64] undef, align 16
@_ZZL17run_live_mbarrierILb1EEvPKfPfE6memory = internal addrspace(3) global [64 x i64] undef, align 16
@_ZZL17run_cluster_scopeILb0EEvPKfPfE4tile = internal addrspace(3) global [32 x float] undef, align 16
@_ZZL17run_cluster_scopeILb0EEvPKfPfE7barrier = internal addrspace(3) global i64 undef, align 8
@_ZZL17run_cluster_scopeILb1EEvPKfPfE4tile = internal addrspace(3) global [32 x float] undef, align 16
@_ZZL17run_cluster_scopeILb1EEvPKfPfE7barrier = internal addrspace(3) global i64 undef, align 8

; Function Attrs: convergent noinline norecurse nounwind
define dso_local ptx_kernel void @scratch_reuse(ptr noundef readonly captures(none) %0, ptr noundef writeonly captures(none) %1) local_unnamed_addr #0 {
  %3 = tail call noundef i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %4 = and i32 %3, 31
  %5 = icmp eq i32 %4, 0
  %6 = lshr exact i32 %3, 5
  %7 = zext nneg i32 %6 to i64
  %8 = getelementptr inbounds nuw float, ptr addrspacecast (ptr addrspace(3) @_ZZL17run_scratch_reuseILb0EEvPKfPfE7scratch to ptr), i64 %7
  %9 = icmp eq i32 %3, 0
  br label %10

10:                                               ; preds = %40, %2
  %11 = phi i32 [ 0, %2 ], [ %41, %40 ]
  %12 = shl nuw nsw i32 %11, 7
  %13 = add nuw nsw i32 %12, %3
  %14 = zext nneg i32 %13 to i64
  %15 = getelementptr inbounds nuw float, ptr %0, i64 %14
  %16 = load float, ptr %15, align 4, !tbaa !11
  br label %18

17:                                               ; preds = %18
  br i1 %5, label %25, label %26

18:                                               ; preds = %18, %10
  %19 = phi i32 [ 16, %10 ], [ %23, %18 ]
  %20 = phi float [ %16, %10 ], [ %22, %18 ]
  %21 = tail call contract noundef float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %20, i32 %19, i32 31)
  %22 = tail call noundef float @llvm.maxnum.f32(float %20, float %21)
  %23 = lshr i32 %19, 1
  %24 = icmp eq i32 %23, 0
  br i1 %24, label %17, label %18, !llvm.loop !13

25:                                               ; preds = %17
  store float %22, ptr %8, align 4, !tbaa !11
  br label %26

26:                                               ; preds = %25, %17
  tail call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  br label %27

27:                                               ; preds = %27, %26
  %28 = phi i32 [ 0, %26 ], [ %34, %27 ]
  %29 = phi float [ %22, %26 ], [ %33, %27 ]
  %30 = zext nneg i32 %28 to i64
  %31 = getelementptr inbounds nuw float, ptr addrspacecast (ptr addrspace(3) @_ZZL17run_scratch_reuseILb0EEvPKfPfE7scratch to ptr), i64 %30
  %32 = load float, ptr %31, align 4, !tbaa !11
  %33 = tail call noundef float @llvm.maxnum.f32(float %29, float %32)
  %34 = add nuw nsw i32 %28, 1
  %35 = icmp eq i32 %34, 4
  br i1 %35, label %36, label %27, !llvm.loop !16

36:                                               ; preds = %27
  br i1 %9, label %37, label %40

37:                                               ; preds = %36
  %38 = zext nneg i32 %11 to i64
  %39 = getelementptr inbounds nuw float, ptr %1, i64 %38
  store float %33, ptr %39, align 4, !tbaa !11
  br label %40

40:                                               ; preds = %37, %36
  %41 = add nuw nsw i32 %11, 1
  %42 = icmp eq i32 %11, 0
  br i1 %42, label %10, label %43, !llvm.loop !17

43:                                               ; preds = %40
  ret void
}

; Function Attrs: convergent noinline norecurse nounwind
define dso_local ptx_kernel void @scratch_reuse_right(ptr noundef readonly captures(none) %0, ptr noundef writeonly captures(none) %1) local_unnamed_addr #0 {
  %3 = tail call noundef i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %4 = and i32 %3, 31
  %5 = icmp eq i32 %4, 0
  %6 = lshr exact i32 %3, 5
  %7 = zext nneg i32 %6 to i64
  %8 = getelementptr inbounds nuw float, ptr addrspacecast (ptr addrspace(3) @_ZZL17run_scratch_reuseILb1EEvPKfPfE7scratch to ptr), i64 %7
  %9 = icmp eq i32 %3, 0
  br label %10

10:                                               ; preds = %40, %2
  %11 = phi i32 [ 0, %2 ], [ %41, %40 ]
  %12 = shl nuw nsw i32 %11, 7
  %13 = add nuw nsw i32 %12, %3
  %14 = zext nneg i32 %13 to i64
  %15 = getelementptr inbounds nuw float, ptr %0, i64 %14
  %16 = load float, ptr %15, align 4, !tbaa !11
  br label %18

17:                                               ; preds = %18
  br i1 %5, label %25, label %26

18:                                               ; preds = %18, %10
  %19 = phi i32 [ 16, %10 ], [ %23, %18 ]
  %20 = phi float [ %16, %10 ], [ %22, %18 ]
  %21 = tail call contract noundef float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %20, i32 %19, i32 31)
  %22 = tail call noundef float @llvm.maxnum.f32(float %20, float %21)
  %23 = lshr i32 %19, 1
  %24 = icmp eq i32 %23, 0
  br i1 %24, label %17, label %18, !llvm.loop !18

25:                                               ; preds = %17
  store float %22, ptr %8, align 4, !tbaa !11
  br label %26

26:                                               ; preds = %25, %17
  tail call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  br label %27

27:                                               ; preds = %27, %26
  %28 = phi i32 [ 0, %26 ], [ %34, %27 ]
  %29 = phi float [ %22, %26 ], [ %33, %27 ]
  %30 = zext nneg i32 %28 to i64
  %31 = getelementptr inbounds nuw float, ptr addrspacecast (ptr addrspace(3) @_ZZL17run_scratch_reuseILb1EEvPKfPfE7scratch to ptr), i64 %30
  %32 = load float, ptr %31, align 4, !tbaa !11
  %33 = tail call noundef float @llvm.maxnum.f32(float %29, float %32)
  %34 = add nuw nsw i32 %28, 1
  %35 = icmp eq i32 %34, 4
  br i1 %35, label %36, label %27, !llvm.loop !19

36:                                               ; preds = %27
  tail call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  br i1 %9, label %37, label %40

37:                                               ; preds = %36
  %38 = zext nneg i32 %11 to i64
  %39 = getelementptr inbounds nuw float, ptr %1, i64 %38
  store float %33, ptr %39, align 4, !tbaa !11
  br label %40

40:                                               ; preds = %37, %36
  %41 = add nuw nsw i32 %11, 1
  %42 = icmp eq i32 %11, 0
  br i1 %42, label %10, label %43, !llvm.loop !20

43:                                               ; preds = %40
  ret void
}

; Function Attrs: convergent mustprogress noinline norecurse nounwind
define dso_local ptx_kernel void @partial_sums(ptr noundef readonly captures(none) %0, ptr noundef captures(none) %1, ptr noundef %2, ptr noundef writeonly captures(none) %3) local_unnamed_addr #1 {
  %5 = tail call noundef i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %6 = tail call noundef i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %7 = mul i32 %5, %6
  %8 = tail call noundef i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %9 = add i32 %7, %8
  %10 = zext i32 %9 to i64
  %11 = getelementptr inbounds nuw float, ptr %0, i64 %10
  %12 = load float, ptr %11, align 4, !tbaa !11
  %13 = fmul contract float %12, 2.000000e+00
  %14 = getelementptr inbounds nuw float, ptr %1, i64 %10
  store float %13, ptr %14, align 4, !tbaa !11
  tail call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %15 = icmp eq i32 %8, 0
  br i1 %15, label %16, label %22

16:                                               ; preds = %4
  %17 = tail call noundef i32 asm sideeffect "atom.global.add.u32 $0, [$1], 1;", "=r,l,~{memory}"(ptr %2) #12, !srcloc !21
  %18 = tail call noundef i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
  %19 = add nsw i32 %18, -1
  %20 = icmp eq i32 %17, %19
  %21 = zext i1 %20 to i8
  store i8 %21, ptr addrspacecast (ptr addrspace(3) @_ZZL16run_partial_sumsILb0EEvPKfPfPjS2_E6isLast to ptr), align 1, !tbaa !22
  br label %22

22:                                               ; preds = %16, %4
  tail call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %23 = load i8, ptr addrspacecast (ptr addrspace(3) @_ZZL16run_partial_sumsILb0EEvPKfPfPjS2_E6isLast to ptr), align 1, !tbaa !22, !range !24, !noundef !25
  %24 = trunc nuw i8 %23 to i1
  br i1 %24, label %25, label %41

25:                                               ; preds = %22
  %26 = tail call noundef i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
  br label %30

27:                                               ; preds = %30
  %28 = zext nneg i32 %8 to i64
  %29 = getelementptr inbounds nuw float, ptr %3, i64 %28
  store float %38, ptr %29, align 4, !tbaa !11
  br label %41

30:                                               ; preds = %30, %25
  %31 = phi i32 [ 0, %25 ], [ %39, %30 ]
  %32 = phi float [ 0.000000e+00, %25 ], [ %38, %30 ]
  %33 = mul i32 %31, %6
  %34 = add i32 %33, %8
  %35 = zext i32 %34 to i64
  %36 = getelementptr inbounds nuw float, ptr %1, i64 %35
  %37 = load float, ptr %36, align 4, !tbaa !11
  %38 = fadd contract float %32, %37
  %39 = add nuw nsw i32 %31, 1
  %40 = icmp eq i32 %39, %26
  br i1 %40, label %27, label %30, !llvm.loop !26

41:                                               ; preds = %22, %27
  ret void
}

; Function Attrs: convergent mustprogress noinline norecurse nounwind
define dso_local ptx_kernel void @partial_sums_right(ptr noundef readonly captures(none) %0, ptr noundef captures(none) %1, ptr noundef %2, ptr noundef writeonly captures(none) %3) local_unnamed_addr #1 {
  %5 = tail call noundef i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %6 = tail call noundef i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %7 = mul i32 %5, %6
  %8 = tail call noundef i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %9 = add i32 %7, %8
  %10 = zext i32 %9 to i64
  %11 = getelementptr inbounds nuw float, ptr %0, i64 %10
  %12 = load float, ptr %11, align 4, !tbaa !11
  %13 = fmul contract float %12, 2.000000e+00
  %14 = getelementptr inbounds nuw float, ptr %1, i64 %10
  store float %13, ptr %14, align 4, !tbaa !11
  tail call void @llvm.nvvm.membar.gl()
  tail call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %15 = icmp eq i32 %8, 0
  br i1 %15, label %16, label %22

16:                                               ; preds = %4
  %17 = tail call noundef i32 asm sideeffect "atom.global.add.u32 $0, [$1], 1;", "=r,l,~{memory}"(ptr %2) #12, !srcloc !21
  %18 = tail call noundef i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
  %19 = add nsw i32 %18, -1
  %20 = icmp eq i32 %17, %19
  %21 = zext i1 %20 to i8
  store i8 %21, ptr addrspacecast (ptr addrspace(3) @_ZZL16run_partial_sumsILb1EEvPKfPfPjS2_E6isLast to ptr), align 1, !tbaa !22
  br label %22

22:                                               ; preds = %16, %4
  tail call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %23 = load i8, ptr addrspacecast (ptr addrspace(3) @_ZZL16run_partial_sumsILb1EEvPKfPfPjS2_E6isLast to ptr), align 1, !tbaa !22, !range !24, !noundef !25
  %24 = trunc nuw i8 %23 to i1
  br i1 %24, label %25, label %41

25:                                               ; preds = %22
  tail call void @llvm.nvvm.membar.gl()
  %26 = tail call noundef i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
  br label %30

27:                                               ; preds = %30
  %28 = zext nneg i32 %8 to i64
  %29 = getelementptr inbounds nuw float, ptr %3, i64 %28
  store float %38, ptr %29, align 4, !tbaa !11
  br label %41

30:                                               ; preds = %30, %25
  %31 = phi i32 [ 0, %25 ], [ %39, %30 ]
  %32 = phi float [ 0.000000e+00, %25 ], [ %38, %30 ]
  %33 = mul i32 %31, %6
  %34 = add i32 %33, %8
  %35 = zext i32 %34 to i64
  %36 = getelementptr inbounds nuw float, ptr %1, i64 %35
  %37 = load float, ptr %36, align 4, !tbaa !11
  %38 = fadd contract float %32, %37
  %39 = add nuw nsw i32 %31, 1
  %40 = icmp eq i32 %39, %26
  br i1 %40, label %27, label %30, !llvm.loop !27

41:                                               ; preds = %22, %27
  ret void
}

; Function Attrs: convergent mustprogress noinline norecurse nounwind
define dso_local ptx_kernel void @table_end(ptr noundef %0, ptr noundef readonly captures(none) %1, i32 noundef %2, ptr noundef writeonly captures(none) %3) local_unnamed_addr #1 {
  %5 = icmp sgt i32 %2, 0
  br i1 %5, label %6, label %35

6:                                                ; preds = %4
  %7 = tail call noundef i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %8 = zext nneg i32 %7 to i64
  %9 = getelementptr inbounds nuw float, ptr addrspacecast (ptr addrspace(3) @_ZZL13run_table_endILb0EEvPKfPKiiPfE6copied to ptr), i64 %8
  %10 = addrspacecast ptr %9 to ptr addrspace(3)
  %11 = ptrtoint ptr addrspace(3) %10 to i64
  %12 = trunc i64 %11 to i32
  br label %13

13:                                               ; preds = %13, %6
  %14 = phi float [ 0.000000e+00, %6 ], [ %32, %13 ]
  %15 = phi i32 [ 0, %6 ], [ %33, %13 ]
  %16 = add nuw i32 %15, %7
  %17 = freeze i32 %16
  %18 = sdiv i32 %17, 16
  %19 = sext i32 %18 to i64
  %20 = getelementptr inbounds i32, ptr %1, i64 %19
  %21 = load i32, ptr %20, align 4, !tbaa !6
  %22 = shl nsw i32 %21, 4
  %23 = sext i32 %22 to i64
  %24 = getelementptr inbounds float, ptr %0, i64 %23
  %25 = mul i32 %18, 16
  %26 = sub i32 %17, %25
  %27 = sext i32 %26 to i64
  %28 = getelementptr inbounds float, ptr %24, i64 %27
  %29 = icmp slt i32 %16, %2
  %30 = select i1 %29, i32 4, i32 0
  tail call void asm sideeffect "cp.async.ca.shared.global [$0], [$1], 4, $2;\0Acp.async.wait_all;", "r,l,r,~{memory}"(i32 %12, ptr %28, i32 %30) #12, !srcloc !28
  %31 = load float, ptr %9, align 4, !tbaa !11
  %32 = fadd contract float %14, %31
  %33 = add nuw nsw i32 %15, 64
  %34 = icmp slt i32 %33, %2
  br i1 %34, label %13, label %35, !llvm.loop !29

35:                                               ; preds = %13, %4
  %36 = phi float [ 0.000000e+00, %4 ], [ %32, %13 ]
  %37 = tail call noundef i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %38 = zext nneg i32 %37 to i64
  %39 = getelementptr inbounds nuw float, ptr %3, i64 %38
  store float %36, ptr %39, align 4, !tbaa !11
  ret void
}

; Function Attrs: convergent noinline norecurse nounwind
define dso_local ptx_kernel void @table_end_right(ptr noundef %0, ptr noundef readonly captures(none) %1, i32 noundef %2, ptr noundef writeonly captures(none) %3) local_unnamed_addr #0 {
  %5 = icmp sgt i32 %2, 0
  br i1 %5, label %6, label %36

6:                                                ; preds = %4
  %7 = tail call noundef i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %8 = add nsw i32 %2, -1
  %9 = zext nneg i32 %7 to i64
  %10 = getelementptr inbounds nuw float, ptr addrspacecast (ptr addrspace(3) @_ZZL13run_table_endILb1EEvPKfPKiiPfE6copied to ptr), i64 %9
  %11 = addrspacecast ptr %10 to ptr addrspace(3)
  %12 = ptrtoint ptr addrspace(3) %11 to i64
  %13 = trunc i64 %12 to i32
  br label %14

14:                                               ; preds = %14, %6
  %15 = phi float [ 0.000000e+00, %6 ], [ %33, %14 ]
  %16 = phi i32 [ 0, %6 ], [ %34, %14 ]
  %17 = add nuw i32 %16, %7
  %18 = tail call noundef range(i32 -2147483648, 2147483647) i32 @llvm.smin.i32(i32 %17, i32 range(i32 -2147483648, 2147483647) %8)
  %19 = sdiv i32 %18, 16
  %20 = sext i32 %19 to i64
  %21 = getelementptr inbounds i32, ptr %1, i64 %20
  %22 = load i32, ptr %21, align 4, !tbaa !6
  %23 = shl nsw i32 %22, 4
  %24 = sext i32 %23 to i64
  %25 = getelementptr inbounds float, ptr %0, i64 %24
  %26 = mul i32 %19, 16
  %27 = sub i32 %18, %26
  %28 = sext i32 %27 to i64
  %29 = getelementptr inbounds float, ptr %25, i64 %28
  %30 = icmp slt i32 %17, %2
  %31 = select i1 %30, i32 4, i32 0
  tail call void asm sideeffect "cp.async.ca.shared.global [$0], [$1], 4, $2;\0Acp.async.wait_all;", "r,l,r,~{memory}"(i32 %13, ptr %29, i32 %31) #12, !srcloc !28
  %32 = load float, ptr %10, align 4, !tbaa !11
  %33 = fadd contract float %15, %32
  %34 = add nuw nsw i32 %16, 64
  %35 = icmp slt i32 %34, %2
  br i1 %35, label %14, label %36, !llvm.loop !30

36:                                               ; preds = %14, %4
  %37 = phi float [ 0.000000e+00, %4 ], [ %33, %14 ]
  %38 = tail call noundef i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %39 = zext nneg i32 %38 to i64
  %40 = getelementptr inbounds nuw float, ptr %3, i64 %39
  store float %37, ptr %40, align 4, !tbaa !11
  ret void
}

; Function Attrs: nofree noinline norecurse nosync nounwind memory(argmem: readwrite)
define dso_local ptx_kernel void @unwritten_values(ptr noundef readonly captures(none) %0, ptr noundef readonly captures(none) %1, i32 noundef %2, ptr noundef writeonly captures(none) %3) local_unnamed_addr #2 {
  %5 = tail call noundef i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  br label %6

6:                                                ; preds = %15, %4
  %7 = phi float [ 0.000000e+00, %4 ], [ %23, %15 ]
  %8 = phi i32 [ 0, %4 ], [ %24, %15 ]
  %9 = icmp slt i32 %8, %2
  br i1 %9, label %10, label %15

10:                                               ; preds = %6
  %11 = zext nneg i32 %8 to i64
  %12 = getelementptr inbounds nuw float, ptr %0, i64 %11
  %13 = load float, ptr %12, align 4, !tbaa !11
  %14 = tail call noundef float @llvm.nvvm.ex2.approx.f32(float %13)
  br label %15

15:                                               ; preds = %10, %6
  %16 = phi contract float [ %14, %10 ], [ 0.000000e+00, %6 ]
  %17 = shl nuw nsw i32 %8, 5
  %18 = add nuw nsw i32 %17, %5
  %19 = zext nneg i32 %18 to i64
  %20 = getelementptr inbounds nuw float, ptr %1, i64 %19
  %21 = load float, ptr %20, align 4, !tbaa !11
  %22 = fmul contract float %16, %21
  %23 = fadd contract float %7, %22
  %24 = add nuw nsw i32 %8, 1
  %25 = icmp eq i32 %24, 16
  br i1 %25, label %26, label %6, !llvm.loop !31

26:                                               ; preds = %15
  %27 = zext nneg i32 %5 to i64
  %28 = getelementptr inbounds nuw float, ptr %3, i64 %27
  store float %23, ptr %28, align 4, !tbaa !11
  ret void
}

; Function Attrs: nofree noinline norecurse nosync nounwind memory(argmem: readwrite)
define dso_local ptx_kernel void @unwritten_values_right(ptr noundef readonly captures(none) %0, ptr noundef readonly captures(none) %1, i32 noundef %2, ptr noundef writeonly captures(none) %3) local_unnamed_addr #2 {
  %5 = tail call noundef i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  br label %6

6:                                                ; preds = %15, %4
  %7 = phi float [ 0.000000e+00, %4 ], [ %24, %15 ]
  %8 = phi i32 [ 0, %4 ], [ %25, %15 ]
  %9 = icmp slt i32 %8, %2
  br i1 %9, label %10, label %15

10:                                               ; preds = %6
  %11 = zext nneg i32 %8 to i64
  %12 = getelementptr inbounds nuw float, ptr %0, i64 %11
  %13 = load float, ptr %12, align 4, !tbaa !11
  %14 = tail call noundef float @llvm.nvvm.ex2.approx.f32(float %13)
  br label %15

15:                                               ; preds = %10, %6
  %16 = phi contract float [ %14, %10 ], [ 0.000000e+00, %6 ]
  %17 = shl nuw nsw i32 %8, 5
  %18 = add nuw nsw i32 %17, %5
  %19 = zext nneg i32 %18 to i64
  %20 = getelementptr inbounds nuw float, ptr %1, i64 %19
  %21 = load float, ptr %20, align 4, !tbaa !11
  %22 = select contract i1 %9, float %21, float 0.000000e+00
  %23 = fmul contract float %16, %22
  %24 = fadd contract float %7, %23
  %25 = add nuw nsw i32 %8, 1
  %26 = icmp eq i32 %25, 16
  br i1 %26, label %27, label %6, !llvm.loop !32

27:                                               ; preds = %15
  %28 = zext nneg i32 %5 to i64
  %29 = getelementptr inbounds nuw float, ptr %3, i64 %28
  store float %24, ptr %29, align 4, !tbaa !11
  ret void
}

; Function Attrs: convergent mustprogress noinline norecurse nounwind
define dso_local ptx_kernel void @proxy_fence(ptr noundef readonly captures(none) %0, ptr noundef %1) local_unnamed_addr #1 {
  %3 = tail call noundef i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %4 = zext nneg i32 %3 to i64
  %5 = getelementptr inbounds nuw float, ptr %0, i64 %4
  %6 = load float, ptr %5, align 4, !tbaa !11
  %7 = fadd contract float %6, 1.000000e+00
  %8 = getelementptr inbounds nuw float, ptr addrspacecast (ptr addrspace(3) @_ZZL15run_proxy_fenceILb0EEvPKfPfE4tile to ptr), i64 %4
  store float %7, ptr %8, align 4, !tbaa !11
  tail call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %9 = icmp eq i32 %3, 0
  br i1 %9, label %10, label %11

10:                                               ; preds = %2
  tail call void asm sideeffect "cp.async.bulk.global.shared::cta.bulk_group [$0], [$1], $2;\0Acp.async.bulk.commit_group;\0Acp.async.bulk.wait_group 0;", "l,r,r,~{memory}"(ptr %1, i32 ptrtoint (ptr addrspace(3) @_ZZL15run_proxy_fenceILb0EEvPKfPfE4tile to i32), i32 512) #12, !srcloc !33
  br label %11

11:                                               ; preds = %2, %10
  ret void
}

; Function Attrs: convergent mustprogress noinline norecurse nounwind
define dso_local ptx_kernel void @proxy_fence_right(ptr noundef readonly captures(none) %0, ptr noundef %1) local_unnamed_addr #1 {
  %3 = tail call noundef i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %4 = zext nneg i32 %3 to i64
  %5 = getelementptr inbounds nuw float, ptr %0, i64 %4
  %6 = load float, ptr %5, align 4, !tbaa !11
  %7 = fadd contract float %6, 1.000000e+00
  %8 = getelementptr inbounds nuw float, ptr addrspacecast (ptr addrspace(3) @_ZZL15run_proxy_fenceILb1EEvPKfPfE4tile to ptr), i64 %4
  store float %7, ptr %8, align 4, !tbaa !11
  tail call void asm sideeffect "fence.proxy.async.shared::cta;", "~{memory}"() #12, !srcloc !34
  tail call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %9 = icmp eq i32 %3, 0
  br i1 %9, label %10, label %11

10:                                               ; preds = %2
  tail call void asm sideeffect "cp.async.bulk.global.shared::cta.bulk_group [$0], [$1], $2;\0Acp.async.bulk.commit_group;\0Acp.async.bulk.wait_group 0;", "l,r,r,~{memory}"(ptr %1, i32 ptrtoint (ptr addrspace(3) @_ZZL15run_proxy_fenceILb1EEvPKfPfE4tile to i32), i32 512) #12, !srcloc !33
  br label %11

11:                                               ; preds = %2, %10
  ret void
}

; Function Attrs: convergent mustprogress noinline norecurse nounwind
define dso_local ptx_kernel void @named_barrier(ptr noundef readonly captures(none) %0, ptr noundef writeonly captures(none) %1) local_unnamed_addr #1 {
  %3 = tail call noundef i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %4 = icmp samesign ult i32 %3, 128
  br i1 %4, label %5, label %15

5:                                                ; preds = %2
  %6 = zext nneg i32 %3 to i64
  %7 = getelementptr inbounds nuw float, ptr %0, i64 %6
  %8 = load float, ptr %7, align 4, !tbaa !11
  %9 = getelementptr inbounds nuw float, ptr addrspacecast (ptr addrspace(3) @_ZZL17run_named_barrierILb0EEvPKfPfE4tile to ptr), i64 %6
  store float %8, ptr %9, align 4, !tbaa !11
  tail call void asm sideeffect "bar.sync 1, 256;", "~{memory}"() #12, !srcloc !35
  %10 = sub nuw nsw i32 127, %3
  %11 = zext nneg i32 %10 to i64
  %12 = getelementptr inbounds nuw float, ptr addrspacecast (ptr addrspace(3) @_ZZL17run_named_barrierILb0EEvPKfPfE4tile to ptr), i64 %11
  %13 = load float, ptr %12, align 4, !tbaa !11
  %14 = getelementptr inbounds nuw float, ptr %1, i64 %6
  store float %13, ptr %14, align 4, !tbaa !11
  br label %15

15:                                               ; preds = %2, %5
  ret void
}

; Function Attrs: convergent mustprogress noinline norecurse nounwind
define dso_local ptx_kernel void @named_barrier_right(ptr noundef readonly captures(none) %0, ptr noundef writeonly captures(none) %1) local_unnamed_addr #1 {
  %3 = tail call noundef i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %4 = icmp samesign ult i32 %3, 128
  br i1 %4, label %5, label %15

5:                                                ; preds = %2
  %6 = zext nneg i32 %3 to i64
  %7 = getelementptr inbounds nuw float, ptr %0, i64 %6
  %8 = load float, ptr %7, align 4, !tbaa !11
  %9 = getelementptr inbounds nuw float, ptr addrspacecast (ptr addrspace(3) @_ZZL17run_named_barrierILb1EEvPKfPfE4tile to ptr), i64 %6
  store float %8, ptr %9, align 4, !tbaa !11
  tail call void asm sideeffect "bar.sync 1, 128;", "~{memory}"() #12, !srcloc !36
  %10 = sub nuw nsw i32 127, %3
  %11 = zext nneg i32 %10 to i64
  %12 = getelementptr inbounds nuw float, ptr addrspacecast (ptr addrspace(3) @_ZZL17run_named_barrierILb1EEvPKfPfE4tile to ptr), i64 %11
  %13 = load float, ptr %12, align 4, !tbaa !11
  %14 = getelementptr inbounds nuw float, ptr %1, i64 %6
  store float %13, ptr %14, align 4, !tbaa !11
  br label %15

15:                                               ; preds = %2, %5
  ret void
}

; Function Attrs: convergent mustprogress noinline norecurse nounwind memory(argmem: readwrite, inaccessiblemem: readwrite)
define dso_local ptx_kernel void @partial_warp(ptr noundef readonly captures(none) %0, ptr noundef writeonly captures(none) %1) local_unnamed_addr #3 {
  %3 = tail call noundef i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %4 = zext nneg i32 %3 to i64
  %5 = getelementptr inbounds nuw float, ptr %0, i64 %4
  %6 = load float, ptr %5, align 4, !tbaa !11
  %7 = and i32 %3, 31
  br label %8

8:                                                ; preds = %8, %2
  %9 = phi float [ %6, %2 ], [ %13, %8 ]
  %10 = phi i32 [ 16, %2 ], [ %14, %8 ]
  %11 = xor i32 %10, %7
  %12 = tail call contract noundef float @llvm.nvvm.shfl.sync.idx.f32(i32 -1, float %9, i32 %11, i32 31)
  %13 = fadd contract float %9, %12
  %14 = lshr i32 %10, 1
  %15 = icmp eq i32 %14, 0
  br i1 %15, label %16, label %8, !llvm.loop !37

16:                                               ; preds = %8
  %17 = getelementptr inbounds nuw float, ptr %1, i64 %4
  store float %13, ptr %17, align 4, !tbaa !11
  ret void
}

; Function Attrs: convergent mustprogress noinline norecurse nounwind memory(argmem: readwrite, inaccessiblemem: readwrite)
define dso_local ptx_kernel void @partial_warp_right(ptr noundef readonly captures(none) %0, ptr noundef writeonly captures(none) %1) local_unnamed_addr #3 {
  %3 = tail call noundef i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %4 = zext nneg i32 %3 to i64
  %5 = getelementptr inbounds nuw float, ptr %0, i64 %4
  %6 = load float, ptr %5, align 4, !tbaa !11
  %7 = tail call noundef i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %8 = and i32 %3, 992
  %9 = sub nsw i32 %7, %8
  %10 = tail call noundef range(i32 0, 33) i32 @llvm.umin.i32(i32 %9, i32 32)
  %11 = and i32 %3, 31
  br label %12

12:                                               ; preds = %12, %2
  %13 = phi float [ %6, %2 ], [ %20, %12 ]
  %14 = phi i32 [ 16, %2 ], [ %21, %12 ]
  %15 = xor i32 %14, %11
  %16 = icmp samesign ult i32 %15, %10
  %17 = select i1 %16, i32 %15, i32 %11
  %18 = tail call contract noundef float @llvm.nvvm.shfl.sync.idx.f32(i32 -1, float %13, i32 %17, i32 31)
  %19 = select contract i1 %16, float %18, float 0.000000e+00
  %20 = fadd contract float %13, %19
  %21 = lshr i32 %14, 1
  %22 = icmp eq i32 %21, 0
  br i1 %22, label %23, label %12, !llvm.loop !38

23:                                               ; preds = %12
  %24 = getelementptr inbounds nuw float, ptr %1, i64 %4
  store float %20, ptr %24, align 4, !tbaa !11
  ret void
}

; Function Attrs: mustprogress nofree noinline norecurse nosync nounwind willreturn memory(argmem: readwrite)
define dso_local ptx_kernel void @padding_slot(ptr noundef readonly captures(none) %0, ptr noundef readonly captures(none) %1, ptr noundef writeonly captures(none) %2) local_unnamed_addr #4 {
  %4 = tail call noundef i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %5 = zext nneg i32 %4 to i64
  %6 = getelementptr inbounds nuw i32, ptr %1, i64 %5
  %7 = load i32, ptr %6, align 4, !tbaa !6
  %8 = shl i32 %4, 5
  %9 = tail call noundef i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %10 = add i32 %8, %9
  %11 = zext i32 %10 to i64
  %12 = getelementptr inbounds nuw float, ptr %0, i64 %11
  %13 = load float, ptr %12, align 4, !tbaa !11
  %14 = shl nsw i32 %7, 5
  %15 = add nsw i32 %14, %9
  %16 = sext i32 %15 to i64
  %17 = getelementptr inbounds float, ptr %2, i64 %16
  store float %13, ptr %17, align 4, !tbaa !11
  ret void
}

; Function Attrs: mustprogress nofree noinline norecurse nosync nounwind willreturn memory(argmem: readwrite)
define dso_local ptx_kernel void @padding_slot_right(ptr noundef readonly captures(none) %0, ptr noundef readonly captures(none) %1, ptr noundef writeonly captures(none) %2) local_unnamed_addr #4 {
  %4 = tail call noundef i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %5 = zext nneg i32 %4 to i64
  %6 = getelementptr inbounds nuw i32, ptr %1, i64 %5
  %7 = load i32, ptr %6, align 4, !tbaa !6
  %8 = icmp slt i32 %7, 0
  br i1 %8, label %20, label %9

9:                                                ; preds = %3
  %10 = shl i32 %4, 5
  %11 = tail call noundef i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %12 = add i32 %10, %11
  %13 = zext i32 %12 to i64
  %14 = getelementptr inbounds nuw float, ptr %0, i64 %13
  %15 = load float, ptr %14, align 4, !tbaa !11
  %16 = shl nsw i32 %7, 5
  %17 = add nuw nsw i32 %16, %11
  %18 = zext nneg i32 %17 to i64
  %19 = getelementptr inbounds nuw float, ptr %2, i64 %18
  store float %15, ptr %19, align 4, !tbaa !11
  br label %20

20:                                               ; preds = %3, %9
  ret void
}

; Function Attrs: convergent mustprogress noinline norecurse nounwind
define dso_local ptx_kernel void @live_mbarrier(ptr noundef readonly captures(none) %0, ptr noundef writeonly captures(none) %1) local_unnamed_addr #1 {
  %3 = tail call noundef i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %4 = icmp eq i32 %3, 0
  br i1 %4, label %5, label %6

5:                                                ; preds = %2
  tail call void asm sideeffect "mbarrier.init.shared::cta.b64 [$0], 32;", "r,~{memory}"(i32 ptrtoint (ptr addrspace(3) @_ZZL17run_live_mbarrierILb0EEvPKfPfE6memory to i32)) #12, !srcloc !39
  br label %6

6:                                                ; preds = %2, %5
  tail call void @llvm.nvvm.bar.warp.sync(i32 -1)
  tail call void asm sideeffect "{\0A.reg .pred done;\0Ambarrier.arrive.shared::cta.b64 _, [$0];\0AWAIT: mbarrier.try_wait.parity.shared::cta.b64 done, [$0], 0;\0A@!done bra WAIT;\0A}", "r,~{memory}"(i32 ptrtoint (ptr addrspace(3) @_ZZL17run_live_mbarrierILb0EEvPKfPfE6memory to i32)) #12, !srcloc !40
  tail call void @llvm.nvvm.bar.warp.sync(i32 -1)
  tail call void @llvm.nvvm.bar.warp.sync(i32 -1)
  %7 = zext nneg i32 %3 to i64
  %8 = getelementptr inbounds nuw float, ptr %0, i64 %7
  %9 = load float, ptr %8, align 4, !tbaa !11
  %10 = getelementptr inbounds nuw float, ptr addrspacecast (ptr addrspace(3) @_ZZL17run_live_mbarrierILb0EEvPKfPfE6memory to ptr), i64 %7
  store float %9, ptr %10, align 4, !tbaa !11
  tail call void @llvm.nvvm.bar.warp.sync(i32 -1)
  %11 = sub nsw i32 31, %3
  %12 = zext i32 %11 to i64
  %13 = getelementptr inbounds nuw float, ptr addrspacecast (ptr addrspace(3) @_ZZL17run_live_mbarrierILb0EEvPKfPfE6memory to ptr), i64 %12
  %14 = load float, ptr %13, align 4, !tbaa !11
  %15 = getelementptr inbounds nuw float, ptr %1, i64 %7
  store float %14, ptr %15, align 4, !tbaa !11
  ret void
}

; Function Attrs: convergent mustprogress noinline norecurse nounwind
define dso_local ptx_kernel void @live_mbarrier_right(ptr noundef readonly captures(none) %0, ptr noundef writeonly captures(none) %1) local_unnamed_addr #1 {
  %3 = tail call noundef i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %4 = icmp eq i32 %3, 0
  br i1 %4, label %5, label %6

5:                                                ; preds = %2
  tail call void asm sideeffect "mbarrier.init.shared::cta.b64 [$0], 32;", "r,~{memory}"(i32 ptrtoint (ptr addrspace(3) @_ZZL17run_live_mbarrierILb1EEvPKfPfE6memory to i32)) #12, !srcloc !39
  br label %6

6:                                                ; preds = %5, %2
  tail call void @llvm.nvvm.bar.warp.sync(i32 -1)
  tail call void asm sideeffect "{\0A.reg .pred done;\0Ambarrier.arrive.shared::cta.b64 _, [$0];\0AWAIT: mbarrier.try_wait.parity.shared::cta.b64 done, [$0], 0;\0A@!done bra WAIT;\0A}", "r,~{memory}"(i32 ptrtoint (ptr addrspace(3) @_ZZL17run_live_mbarrierILb1EEvPKfPfE6memory to i32)) #12, !srcloc !40
  tail call void @llvm.nvvm.bar.warp.sync(i32 -1)
  br i1 %4, label %7, label %8

7:                                                ; preds = %6
  tail call void asm sideeffect "mbarrier.inval.shared::cta.b64 [$0];", "r,~{memory}"(i32 ptrtoint (ptr addrspace(3) @_ZZL17run_live_mbarrierILb1EEvPKfPfE6memory to i32)) #12, !srcloc !41
  br label %8

8:                                                ; preds = %6, %7
  tail call void @llvm.nvvm.bar.warp.sync(i32 -1)
  %9 = zext nneg i32 %3 to i64
  %10 = getelementptr inbounds nuw float, ptr %0, i64 %9
  %11 = load float, ptr %10, align 4, !tbaa !11
  %12 = getelementptr inbounds nuw float, ptr addrspacecast (ptr addrspace(3) @_ZZL17run_live_mbarrierILb1EEvPKfPfE6memory to ptr), i64 %9
  store float %11, ptr %12, align 4, !tbaa !11
  tail call void @llvm.nvvm.bar.warp.sync(i32 -1)
  %13 = sub nsw i32 31, %3
  %14 = zext i32 %13 to i64
  %15 = getelementptr inbounds nuw float, ptr addrspacecast (ptr addrspace(3) @_ZZL17run_live_mbarrierILb1EEvPKfPfE6memory to ptr), i64 %14
  %16 = load float, ptr %15, align 4, !tbaa !11
  %17 = getelementptr inbounds nuw float, ptr %1, i64 %9
  store float %16, ptr %17, align 4, !tbaa !11
  ret void
}

; Function Attrs: convergent mustprogress noinline norecurse nounwind
define dso_local ptx_kernel void @cluster_scope(ptr noundef readonly captures(none) %0, ptr noundef writeonly captures(none) %1) local_unnamed_addr #1 {
  %3 = tail call i32 asm sideeffect "mov.u32 $0, %cluster_ctarank;", "=r"() #12, !srcloc !42
  %4 = tail call noundef i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %5 = icmp eq i32 %4, 0
  br i1 %5, label %6, label %7

6:                                                ; preds = %2
  tail call void asm sideeffect "mbarrier.init.shared::cta.b64 [$0], 32;\0Afence.mbarrier_init.release.cluster;", "r,~{memory}"(i32 ptrtoint (ptr addrspace(3) @_ZZL17run_cluster_scopeILb0EEvPKfPfE7barrier to i32)) #12, !srcloc !43
  br label %7

7:                                                ; preds = %6, %2
  tail call void asm sideeffect "barrier.cluster.arrive.relaxed.aligned;\0Abarrier.cluster.wait.aligned;", "~{memory}"() #12, !srcloc !44
  %8 = icmp eq i32 %3, 1
  br i1 %8, label %9, label %15

9:                                                ; preds = %7
  %10 = zext nneg i32 %4 to i64
  %11 = getelementptr inbounds nuw float, ptr %0, i64 %10
  %12 = load float, ptr %11, align 4, !tbaa !11
  %13 = getelementptr inbounds nuw float, ptr addrspacecast (ptr addrspace(3) @_ZZL17run_cluster_scopeILb0EEvPKfPfE4tile to ptr), i64 %10
  store float %12, ptr %13, align 4, !tbaa !11
  %14 = tail call i32 asm sideeffect "mapa.shared::cluster.u32 $0, $1, 0;", "=r,r"(i32 ptrtoint (ptr addrspace(3) @_ZZL17run_cluster_scopeILb0EEvPKfPfE7barrier to i32)) #12, !srcloc !45
  tail call void asm sideeffect "mbarrier.arrive.shared::cluster.b64 _, [$0];", "r,~{memory}"(i32 %14) #12, !srcloc !46
  br label %24

15:                                               ; preds = %7
  tail call void asm sideeffect "{\0A.reg .pred done;\0AWAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [$0], 0;\0A@!done bra WAIT;\0A}", "r,~{memory}"(i32 ptrtoint (ptr addrspace(3) @_ZZL17run_cluster_scopeILb0EEvPKfPfE7barrier to i32)) #12, !srcloc !47
  %16 = zext nneg i32 %4 to i64
  %17 = getelementptr inbounds nuw float, ptr addrspacecast (ptr addrspace(3) @_ZZL17run_cluster_scopeILb0EEvPKfPfE4tile to ptr), i64 %16
  %18 = addrspacecast ptr %17 to ptr addrspace(3)
  %19 = ptrtoint ptr addrspace(3) %18 to i64
  %20 = trunc i64 %19 to i32
  %21 = tail call i32 asm sideeffect "mapa.shared::cluster.u32 $0, $1, 1;", "=r,r"(i32 %20) #12, !srcloc !48
  %22 = tail call contract float asm sideeffect "ld.shared::cluster.f32 $0, [$1];", "=f,r,~{memory}"(i32 %21) #12, !srcloc !49
  %23 = getelementptr inbounds nuw float, ptr %1, i64 %16
  store float %22, ptr %23, align 4, !tbaa !11
  br label %24

24:                                               ; preds = %9, %15
  tail call void asm sideeffect "barrier.cluster.arrive.aligned;\0Abarrier.cluster.wait.aligned;", "~{memory}"() #12, !srcloc !50
  ret void
}

; Function Attrs: convergent mustprogress noinline norecurse nounwind
define dso_local ptx_kernel void @cluster_scope_right(ptr noundef readonly captures(none) %0, ptr noundef writeonly captures(none) %1) local_unnamed_addr #1 {
  %3 = tail call i32 asm sideeffect "mov.u32 $0, %cluster_ctarank;", "=r"() #12, !srcloc !42
  %4 = tail call noundef i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %5 = icmp eq i32 %4, 0
  br i1 %5, label %6, label %7

6:                                                ; preds = %2
  tail call void asm sideeffect "mbarrier.init.shared::cta.b64 [$0], 32;\0Afence.mbarrier_init.release.cluster;", "r,~{memory}"(i32 ptrtoint (ptr addrspace(3) @_ZZL17run_cluster_scopeILb1EEvPKfPfE7barrier to i32)) #12, !srcloc !43
  br label %7

7:                                                ; preds = %6, %2
  tail call void asm sideeffect "barrier.cluster.arrive.relaxed.aligned;\0Abarrier.cluster.wait.aligned;", "~{memory}"() #12, !srcloc !44
  %8 = icmp eq i32 %3, 1
  br i1 %8, label %9, label %15

9:                                                ; preds = %7
  %10 = zext nneg i32 %4 to i64
  %11 = getelementptr inbounds nuw float, ptr %0, i64 %10
  %12 = load float, ptr %11, align 4, !tbaa !11
  %13 = getelementptr inbounds nuw float, ptr addrspacecast (ptr addrspace(3) @_ZZL17run_cluster_scopeILb1EEvPKfPfE4tile to ptr), i64 %10
  store float %12, ptr %13, align 4, !tbaa !11
  %14 = tail call i32 asm sideeffect "mapa.shared::cluster.u32 $0, $1, 0;", "=r,r"(i32 ptrtoint (ptr addrspace(3) @_ZZL17run_cluster_scopeILb1EEvPKfPfE7barrier to i32)) #12, !srcloc !45
  tail call void asm sideeffect "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [$0];", "r,~{memory}"(i32 %14) #12, !srcloc !51
  br label %24

15:                                               ; preds = %7
  tail call void asm sideeffect "{\0A.reg .pred done;\0AWAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [$0], 0;\0A@!done bra WAIT;\0A}", "r,~{memory}"(i32 ptrtoint (ptr addrspace(3) @_ZZL17run_cluster_scopeILb1EEvPKfPfE7barrier to i32)) #12, !srcloc !47
  %16 = zext nneg i32 %4 to i64
  %17 = getelementptr inbounds nuw float, ptr addrspacecast (ptr addrspace(3) @_ZZL17run_cluster_scopeILb1EEvPKfPfE4tile to ptr), i64 %16
  %18 = addrspacecast ptr %17 to ptr addrspace(3)
  %19 = ptrtoint ptr addrspace(3) %18 to i64
  %20 = trunc i64 %19 to i32
  %21 = tail call i32 asm sideeffect "mapa.shared::cluster.u32 $0, $1, 1;", "=r,r"(i32 %20) #12, !srcloc !48
  %22 = tail call contract float asm sideeffect "ld.shared::cluster.f32 $0, [$1];", "=f,r,~{memory}"(i32 %21) #12, !srcloc !49
  %23 = getelementptr inbounds nuw float, ptr %1, i64 %16
  store float %22, ptr %23, align 4, !tbaa !11
  br label %24

24:                                               ; preds = %9, %15
  tail call void asm sideeffect "barrier.cluster.arrive.aligned;\0Abarrier.cluster.wait.aligned;", "~{memory}"() #12, !srcloc !50
  ret void
}

; Function Attrs: convergent mustprogress noinline norecurse nounwind
define dso_local ptx_kernel void @tensor_copy(ptr noundef byval(%struct.Map) align 64 "nvvm.grid_constant" %0, ptr noundef readonly byval(%struct.Output) align 8 captures(none) "nvvm.grid_constant" %1) local_unnamed_addr #1 {
  %3 = tail call noundef i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %4 = icmp eq i32 %3, 0
  br i1 %4, label %5, label %6

5:                                                ; preds = %2
  tail call void asm sideeffect "mbarrier.init.shared::cta.b64 [$0], 1;\0Afence.mbarrier_init.release.cluster;", "r,~{memory}"(i32 ptrtoint (ptr addrspace(3) @_ZZ11tensor_copyE7barrier to i32)) #12, !srcloc !52
  br label %6

6:                                                ; preds = %5, %2
  tail call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %7 = tail call noundef i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %8 = shl i32 %7, 5
  call void asm sideeffect "{\0A.reg .pred elected, done;\0Asetp.eq.u32 elected, $5, 0;\0A@elected mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], 1024;\0A@elected cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [$1], [$2, {$3, $4}], [$0];\0AWAIT: mbarrier.try_wait.parity.shared::cta.b64 done, [$0], 0;\0A@done bra DONE;\0Abra WAIT;\0ADONE:\0A}", "r,r,l,r,r,r,~{memory}"(i32 ptrtoint (ptr addrspace(3) @_ZZ11tensor_copyE7barrier to i32), i32 ptrtoint (ptr addrspace(3) @_ZZ11tensor_copyE4tile to i32), ptr nonnull %0, i32 %8, i32 0, i32 %3) #12, !srcloc !53
  br label %14

9:                                                ; preds = %14
  %10 = add i32 %8, %3
  %11 = getelementptr inbounds nuw i8, ptr %1, i64 8
  %12 = load i32, ptr %11, align 8, !tbaa !54
  %13 = icmp slt i32 %10, %12
  br i1 %13, label %25, label %32

14:                                               ; preds = %6, %14
  %15 = phi float [ 0.000000e+00, %6 ], [ %22, %14 ]
  %16 = phi i32 [ 0, %6 ], [ %23, %14 ]
  %17 = shl nuw nsw i32 %16, 5
  %18 = add nuw nsw i32 %17, %3
  %19 = zext nneg i32 %18 to i64
  %20 = getelementptr inbounds nuw float, ptr addrspacecast (ptr addrspace(3) @_ZZ11tensor_copyE4tile to ptr), i64 %19
  %21 = load float, ptr %20, align 4, !tbaa !11
  %22 = fadd contract float %15, %21
  %23 = add nuw nsw i32 %16, 1
  %24 = icmp eq i32 %23, 8
  br i1 %24, label %9, label %14, !llvm.loop !58

25:                                               ; preds = %9
  %26 = getelementptr inbounds nuw i8, ptr %1, i64 12
  %27 = load float, ptr %26, align 4, !tbaa !59
  %28 = fmul contract float %22, %27
  %29 = load ptr, ptr %1, align 8, !tbaa !60
  %30 = sext i32 %10 to i64
  %31 = getelementptr inbounds float, ptr %29, i64 %30
  store float %28, ptr %31, align 4, !tbaa !11
  br label %32

32:                                               ; preds = %25, %9
  ret void
}

; Function Attrs: convergent nocallback nounwind
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32) #5

; Function Attrs: mustprogress nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare noundef range(i32 0, 1024) i32 @llvm.nvvm.read.ptx.sreg.tid.x() #6

; Function Attrs: mustprogress nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare noundef range(i32 0, 2147483647) i32 @llvm.nvvm.read.ptx.sreg.ctaid.x() #6

; Function Attrs: convergent nocallback nounwind memory(inaccessiblemem: readwrite)
declare float @llvm.nvvm.shfl.sync.bfly.f32(i32, float, i32, i32) #7

; Function Attrs: mustprogress nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare noundef range(i32 1, 1025) i32 @llvm.nvvm.read.ptx.sreg.ntid.x() #6

; Function Attrs: mustprogress nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare noundef range(i32 1, -2147483648) i32 @llvm.nvvm.read.ptx.sreg.nctaid.x() #6

; Function Attrs: nocallback nounwind
declare void @llvm.nvvm.membar.gl() #8

; Function Attrs: convergent nocallback nounwind memory(inaccessiblemem: readwrite)
declare float @llvm.nvvm.shfl.sync.idx.f32(i32, float, i32, i32) #7

; Function Attrs: convergent nocallback nounwind
declare void @llvm.nvvm.bar.warp.sync(i32) #5

; Function Attrs: mustprogress nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare i32 @llvm.smin.i32(i32, i32) #9

; Function Attrs: mustprogress nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare i32 @llvm.umin.i32(i32, i32) #9

; Function Attrs: mustprogress nocallback nofree nosync nounwind willreturn memory(none)
declare float @llvm.nvvm.ex2.approx.f32(float) #10

; Function Attrs: nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare float @llvm.maxnum.f32(float, float) #11

attributes #0 = { convergent noinline norecurse nounwind "frame-pointer"="all" "no-trapping-math"="true" "stack-protector-buffer-size"="8" "target-cpu"="sm_90a" "target-features"="+ptx88,+sm_90a" "uniform-work-group-size"="true" }
attributes #1 = { convergent mustprogress noinline norecurse nounwind "frame-pointer"="all" "no-trapping-math"="true" "stack-protector-buffer-size"="8" "target-cpu"="sm_90a" "target-features"="+ptx88,+sm_90a" "uniform-work-group-size"="true" }
attributes #2 = { nofree noinline norecurse nosync nounwind memory(argmem: readwrite) "frame-pointer"="all" "no-trapping-math"="true" "stack-protector-buffer-size"="8" "target-cpu"="sm_90a" "target-features"="+ptx88,+sm_90a" "uniform-work-group-size"="true" }
attributes #3 = { convergent mustprogress noinline norecurse nounwind memory(argmem: readwrite, inaccessiblemem: readwrite) "frame-pointer"="all" "no-trapping-math"="true" "stack-protector-buffer-size"="8" "target-cpu"="sm_90a" "target-features"="+ptx88,+sm_90a" "uniform-work-group-size"="true" }
attributes #4 = { mustprogress nofree noinline norecurse nosync nounwind willreturn memory(argmem: readwrite) "frame-pointer"="all" "no-trapping-math"="true" "stack-protector-buffer-size"="8" "target-cpu"="sm_90a" "target-features"="+ptx88,+sm_90a" "uniform-work-group-size"="true" }
attributes #5 = { convergent nocallback nounwind }
attributes #6 = { mustprogress nocallback nofree nosync nounwind speculatable willreturn memory(none) }
attributes #7 = { convergent nocallback nounwind memory(inaccessiblemem: readwrite) }
attributes #8 = { nocallback nounwind }
attributes #9 = { mustprogress nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none) }
attributes #10 = { mustprogress nocallback nofree nosync nounwind willreturn memory(none) }
attributes #11 = { nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none) }
attributes #12 = { convergent nounwind }

!llvm.module.flags = !{!0, !1, !2, !3}
!llvm.ident = !{!4, !5}
!llvm.errno.tbaa = !{!6}
!nvvmir.version = !{!10}

!0 = !{i32 2, !"SDK Version", [2 x i32] [i32 12, i32 9]}
!1 = !{i32 1, !"wchar_size", i32 4}
!2 = !{i32 4, !"nvvm-reflect-ftz", i32 0}
!3 = !{i32 7, !"frame-pointer", i32 2}
!4 = !{!"Debian clang version 22.1.8 (1~deb12u1)"}
!5 = !{!"clang version 3.8.0 (tags/RELEASE_380/final)"}
!6 = !{!7, !7, i64 0}
!7 = !{!"int", !8, i64 0}
!8 = !{!"omnipotent char", !9, i64 0}
!9 = !{!"Simple C++ TBAA"}
!10 = !{i32 2, i32 0}
!11 = !{!12, !12, i64 0}
!12 = !{!"float", !8, i64 0}
!13 = distinct !{!13, !14, !15}
!14 = !{!"llvm.loop.mustprogress"}
!15 = !{!"llvm.loop.unroll.disable"}
!16 = distinct !{!16, !14, !15}
!17 = distinct !{!17, !14, !15}
!18 = distinct !{!18, !14, !15}
!19 = distinct !{!19, !14, !15}
!20 = distinct !{!20, !14, !15}
!21 = !{i64 1085}
!22 = !{!23, !23, i64 0}
!23 = !{!"bool", !8, i64 0}
!24 = !{i8 0, i8 2}
!25 = !{}
!26 = distinct !{!26, !14, !15}
!27 = distinct !{!27, !14, !15}
!28 = !{i64 3776, i64 3843}
!29 = distinct !{!29, !14, !15}
!30 = distinct !{!30, !14, !15}
!31 = distinct !{!31, !14, !15}
!32 = distinct !{!32, !14, !15}
!33 = !{i64 5480, i64 5560, i64 5607}
!34 = !{i64 944}
!35 = !{i64 6215}
!36 = !{i64 6153}
!37 = distinct !{!37, !14, !15}
!38 = distinct !{!38, !14, !15}
!39 = !{i64 7998}
!40 = !{i64 8116, i64 8138, i64 8174, i64 8234, i64 8315, i64 8351}
!41 = !{i64 8465}
!42 = !{i64 9196}
!43 = !{i64 9285, i64 9347}
!44 = !{i64 9442, i64 9502}
!45 = !{i64 9644}
!46 = !{i64 9906}
!47 = !{i64 10027, i64 10051, i64 10089, i64 10208, i64 10246}
!48 = !{i64 10325}
!49 = !{i64 10472}
!50 = !{i64 10648, i64 10700}
!51 = !{i64 9747}
!52 = !{i64 11317, i64 11378}
!53 = !{i64 11502, i64 11515, i64 11551, i64 11589, i64 11665, i64 11802, i64 11874, i64 11900, i64 11920, i64 11936}
!54 = !{!55, !7, i64 8}
!55 = !{!"_ZTS6Output", !56, i64 0, !7, i64 8, !12, i64 12}
!56 = !{!"p1 float", !57, i64 0}
!57 = !{!"any pointer", !8, i64 0}
!58 = distinct !{!58, !14, !15}
!59 = !{!55, !12, i64 12}
!60 = !{!55, !56, i64 0}
