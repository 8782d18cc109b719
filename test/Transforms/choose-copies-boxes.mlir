// RUN: kvcache-opt %s --kvcache-attach-targets=chip=sm_90a --kvcache-choose-copies --remarks-filter=kvcache-choose-copies -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: kvcache-opt %s --kvcache-attach-targets=chip=sm_90a --kvcache-expand-copies --canonicalize --cse | FileCheck %s

// Tensor copies of consecutive tokens, at the edges of what they can do.

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!page64 = !kvcache.paged<bf16, #kv, page_size = 64>
!page48 = !kvcache.paged<bf16, #kv, page_size = 48>
!page4 = !kvcache.paged<bf16, #kv, page_size = 4>
!page2 = !kvcache.paged<bf16, #kv, page_size = 2>
!any_pages = !kvcache.paged<bf16, #kv, page_size = ?>
!page1 = !kvcache.paged<bf16, #kv, page_size = 1>
!whole = !kvcache.continuous<bf16, #kv>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>
!fp4 = !kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E4M3FN, granularity = 16>
!odd = !kvcache.paged<bf16, #kvcache.params<num_heads = 8, head_size = 20>, page_size = 64>
!odder = !kvcache.paged<f8E4M3FN, #kvcache.params<num_heads = 8, head_size = 18>, page_size = 64>

!rows = !kvcache.paged<f8E4M3FN, #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>, page_size = 16>

gpu.module @kernels {
  // A row of 576 bytes is 72 elements of a box of 64-bit integers, and the element 64 is the eighth of these.
  // CHECK-LABEL: @wide_rows(
  // CHECK-SAME:    %[[ALL:[a-z0-9]+]]: !kvcache.tma_tile<72x1x16x1xi64>
  // CHECK-SAME:    %[[DESC:[a-z0-9]+]]: !kvcache.tma_tile<64x16x1x1xi64>
  // CHECK-SAME:    %[[ZEROS:[a-z0-9]+]]: !kvcache.tma_tile<64x1x16x1xi64>
  // CHECK-COUNT-2: kvcache.tma_load %[[ALL]][%c0, %{{.*}}, %{{.*}}, %{{.*}}], %{{.*}} at %{{.*}} :
  // CHECK:         arith.select %{{.*}}, %[[DESC]], %{{.*}} : !kvcache.tma_tile<64x16x1x1xi64>
  // CHECK:         kvcache.tma_load %{{.*}}[%c8, %{{.*}}, %{{.*}}, %{{.*}}], %{{.*}} at %{{.*}} :
  // REMARK: [Passed] copy | Category:kvcache-choose-copies | BoxRows=16, Remark="copies by tensor_boxes"
  // REMARK: [Passed] copy | Category:kvcache-choose-copies | BoxRows=16, Remark="copies by tensor_boxes"
  gpu.func @wide_rows(%k: !rows, %b: index, %i: index, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %t = arith.muli %i, %c16 : index
    %kt = kvcache.alloc_tile : !kvcache.tile<32x576xf8E4M3FN>
    %part = kvcache.alloc_tile : !kvcache.tile<32x512xf8E4M3FN>
    %tok0 = kvcache.async_load_tile %k[%b, %c0, %t, %c0] to %kt : !rows, !kvcache.tile<32x576xf8E4M3FN>
    %tok1 = kvcache.async_load_tile %k[%b, %c0, %t, %c64] valid %n to %part : !rows, !kvcache.tile<32x512xf8E4M3FN>
    kvcache.wait %tok0
    kvcache.wait %tok1
    gpu.return
  }

  // The token is a multiple of the page, so the tile is one box.
  // CHECK-LABEL: @one_page(
  // CHECK-SAME:    %[[DESC:[a-z0-9]+]]: !kvcache.tma_tile<64x1x64x1xbf16, swizzle_128b>
  // CHECK:         %[[PAGE:.*]] = kvcache.page_id
  // CHECK:         kvcache.tma_expect %{{.*}} bytes %c16384
  // CHECK:         %[[ROW:.*]], %{{.*}} = kvcache.tma_coords
  // CHECK:         kvcache.tma_load %[[DESC]][%c0, %{{.*}}, %[[ROW]], %[[PAGE]]], %{{.*}} to %{{[0-9]+}} :
  // REMARK: [Passed] copy | Category:kvcache-choose-copies | BoxRows=64, Remark="copies by tensor_boxes"
  gpu.func @one_page(%k: !page64, %b: index, %h: index, %i: index) kernel {
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %t = arith.muli %i, %c64 : index
    %kt = kvcache.alloc_tile : !kvcache.tile<64x128xbf16, swizzle_128b>
    %tok = kvcache.async_load_tile %k[%b, %h, %t, %c0] to %kt : !page64, !kvcache.tile<64x128xbf16, swizzle_128b>
    kvcache.wait %tok
    gpu.return
  }

  // CHECK-LABEL: @two_pages(
  // CHECK-SAME:    !kvcache.tma_tile<64x1x64x1xbf16, swizzle_128b>
  // CHECK:         kvcache.tma_load {{.*}} at %c0 :
  // CHECK:         kvcache.tma_load {{.*}} at %c64 :
  // CHECK-NOT:     kvcache.tma_load
  // REMARK: [Passed] copy | Category:kvcache-choose-copies | BoxRows=64, Remark="copies by tensor_boxes"
  gpu.func @two_pages(%k: !page64, %b: index, %h: index, %i: index) kernel {
    %c0 = arith.constant 0 : index
    %c128 = arith.constant 128 : index
    %t = arith.muli %i, %c128 : index
    %kt = kvcache.alloc_tile : !kvcache.tile<128x128xbf16, swizzle_128b>
    %tok = kvcache.async_load_tile %k[%b, %h, %t, %c0] to %kt : !page64, !kvcache.tile<128x128xbf16, swizzle_128b>
    kvcache.wait %tok
    gpu.return
  }

  // Tiles of 64 rows begin at 0, 16 or 32 of a page of 48.
  // CHECK-LABEL: @page_of_48(
  // CHECK-SAME:    !kvcache.tma_tile<64x1x16x1xbf16, swizzle_128b>
  // CHECK-COUNT-4: kvcache.tma_load
  // CHECK-NOT:     kvcache.tma_load
  // REMARK: [Passed] copy | Category:kvcache-choose-copies | BoxRows=16, Remark="copies by tensor_boxes"
  gpu.func @page_of_48(%k: !page48, %b: index, %h: index, %i: index) kernel {
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %t = arith.muli %i, %c64 : index
    %kt = kvcache.alloc_tile : !kvcache.tile<64x64xbf16, swizzle_128b>
    %tok = kvcache.async_load_tile %k[%b, %h, %t, %c0] to %kt : !page48, !kvcache.tile<64x64xbf16, swizzle_128b>
    kvcache.wait %tok
    gpu.return
  }

  // A row of 128 bytes is enough for a tensor copy; 64 of them are the most.
  // CHECK-LABEL:  @page_of_1(
  // CHECK-SAME:     !kvcache.tma_tile<64x1x1x1xbf16, swizzle_128b>
  // Each lane looks up a page, and all receive it.
  // CHECK:          kvcache.page_id
  // CHECK-COUNT-32: nvvm.shfl.sync  idx
  // CHECK:          kvcache.page_id
  // CHECK-COUNT-32: nvvm.shfl.sync  idx
  // CHECK-COUNT-64: kvcache.tma_load
  // CHECK-NOT:      kvcache.{{tma_load|page_id}}
  // REMARK: [Passed] copy | Category:kvcache-choose-copies | BoxRows=1, Remark="copies by tensor_boxes"
  gpu.func @page_of_1(%k: !page1, %b: index, %h: index, %t: index) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %c0 = arith.constant 0 : index
    %kt = kvcache.alloc_tile : !kvcache.tile<64x64xbf16, swizzle_128b>
    %tok = kvcache.async_load_tile %k[%b, %h, %t, %c0] to %kt : !page1, !kvcache.tile<64x64xbf16, swizzle_128b>
    kvcache.wait %tok
    gpu.return
  }

  // CHECK-LABEL: @too_many_copies(
  // CHECK-NOT:     tma_tile
  // CHECK:         nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 16, cache =  cg
  // REMARK: Reason="it takes 72 copies of 1 row, more than 64", Remark="does not copy by tensor_boxes"
  // REMARK: [Passed] copy | Category:kvcache-choose-copies | Remark="copies by cp_async"
  gpu.func @too_many_copies(%k: !page1, %b: index, %h: index, %t: index) kernel {
    %c0 = arith.constant 0 : index
    %kt = kvcache.alloc_tile : !kvcache.tile<72x64xbf16, swizzle_128b>
    %tok = kvcache.async_load_tile %k[%b, %h, %t, %c0] to %kt : !page1, !kvcache.tile<72x64xbf16, swizzle_128b>
    kvcache.wait %tok
    gpu.return
  }

  // A row of 64 bytes is not, two are.
  // CHECK-LABEL: @page_of_1_in_64_bytes(
  // CHECK-NOT:     tma_tile
  // CHECK:         nvvm.cp.async.shared.global
  // REMARK: Reason="a box of 1 row has 64 bytes of a chunk, not a multiple of 128", Remark="does not copy by tensor_boxes"
  // REMARK: [Passed] copy | Category:kvcache-choose-copies | Remark="copies by cp_async"
  gpu.func @page_of_1_in_64_bytes(%k: !page1, %b: index, %h: index, %t: index) kernel {
    %c0 = arith.constant 0 : index
    %kt = kvcache.alloc_tile : !kvcache.tile<16x32xbf16, swizzle_64b>
    %tok = kvcache.async_load_tile %k[%b, %h, %t, %c0] to %kt : !page1, !kvcache.tile<16x32xbf16, swizzle_64b>
    kvcache.wait %tok
    gpu.return
  }

  // CHECK-LABEL: @page_of_2_in_64_bytes(
  // CHECK-SAME:    !kvcache.tma_tile<32x1x2x1xbf16, swizzle_64b>
  // CHECK-COUNT-8: kvcache.tma_load
  // CHECK-NOT:     kvcache.tma_load
  // REMARK: [Passed] copy | Category:kvcache-choose-copies | BoxRows=2, Remark="copies by tensor_boxes"
  gpu.func @page_of_2_in_64_bytes(%k: !page2, %b: index, %h: index, %i: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %t = arith.shli %i, %c1 : index
    %kt = kvcache.alloc_tile : !kvcache.tile<16x32xbf16, swizzle_64b>
    %tok = kvcache.async_load_tile %k[%b, %h, %t, %c0] to %kt : !page2, !kvcache.tile<16x32xbf16, swizzle_64b>
    kvcache.wait %tok
    gpu.return
  }

  // Of 32 bytes, it takes four.
  // CHECK-LABEL: @page_of_2_in_32_bytes(
  // CHECK-NOT:     tma_tile
  // CHECK:         nvvm.cp.async.shared.global
  // REMARK: Reason="a box of 2 rows has 64 bytes of a chunk, not a multiple of 128", Remark="does not copy by tensor_boxes"
  // REMARK: [Passed] copy | Category:kvcache-choose-copies | Remark="copies by cp_async"
  gpu.func @page_of_2_in_32_bytes(%k: !page2, %b: index, %h: index) kernel {
    %c0 = arith.constant 0 : index
    %kt = kvcache.alloc_tile : !kvcache.tile<16x16xbf16, swizzle_32b>
    %tok = kvcache.async_load_tile %k[%b, %h, %c0, %c0] to %kt : !page2, !kvcache.tile<16x16xbf16, swizzle_32b>
    kvcache.wait %tok
    gpu.return
  }

  // CHECK-LABEL: @page_of_4_in_32_bytes(
  // CHECK-SAME:    !kvcache.tma_tile<16x1x4x1xbf16, swizzle_32b>
  // CHECK-COUNT-4: kvcache.tma_load
  // CHECK-NOT:     kvcache.tma_load
  // REMARK: [Passed] copy | Category:kvcache-choose-copies | BoxRows=4, Remark="copies by tensor_boxes"
  gpu.func @page_of_4_in_32_bytes(%k: !page4, %b: index, %h: index) kernel {
    %c0 = arith.constant 0 : index
    %kt = kvcache.alloc_tile : !kvcache.tile<16x16xbf16, swizzle_32b>
    %tok = kvcache.async_load_tile %k[%b, %h, %c0, %c0] to %kt : !page4, !kvcache.tile<16x16xbf16, swizzle_32b>
    kvcache.wait %tok
    gpu.return
  }

  // Without a swizzle the box is as wide as the tile.
  // CHECK-LABEL: @no_swizzle(
  // CHECK-SAME:    !kvcache.tma_tile<128x1x64x1xbf16>
  // CHECK-COUNT-1: kvcache.tma_load
  // CHECK-NOT:     kvcache.tma_load
  // REMARK: [Passed] copy | Category:kvcache-choose-copies | BoxRows=64, Remark="copies by tensor_boxes"
  gpu.func @no_swizzle(%k: !page64, %b: index, %h: index) kernel {
    %c0 = arith.constant 0 : index
    %kt = kvcache.alloc_tile : !kvcache.tile<64x128xbf16>
    %tok = kvcache.async_load_tile %k[%b, %h, %c0, %c0] to %kt : !page64, !kvcache.tile<64x128xbf16>
    kvcache.wait %tok
    gpu.return
  }

  // Any row may be the last of its page.
  // CHECK-LABEL: @unknown_token(
  // CHECK-NOT:     tma_tile
  // CHECK:         nvvm.cp.async.shared.global
  // REMARK: Reason="it takes 128 copies of 1 row, more than 64; 'base_alignment' can state what the first token is a multiple of", Remark="does not copy by tensor_boxes"
  // REMARK: [Passed] copy | Category:kvcache-choose-copies | Remark="copies by cp_async"
  gpu.func @unknown_token(%k: !page64, %b: index, %h: index, %t: index) kernel {
    %c0 = arith.constant 0 : index
    %kt = kvcache.alloc_tile : !kvcache.tile<64x128xbf16, swizzle_128b>
    %tok = kvcache.async_load_tile %k[%b, %h, %t, %c0] to %kt : !page64, !kvcache.tile<64x128xbf16, swizzle_128b>
    kvcache.wait %tok
    gpu.return
  }

  // Grid loops with a step come as an affine expression of the block.
  // CHECK-LABEL: @token_of_block(
  // CHECK-SAME:    !kvcache.tma_tile<64x1x64x1xbf16, swizzle_128b>
  // REMARK: [Passed] copy | Category:kvcache-choose-copies | BoxRows=64, Remark="copies by tensor_boxes"
  gpu.func @token_of_block(%k: !page64, %b: index, %h: index) kernel {
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %block = gpu.block_id x
    %t = affine.apply affine_map<(d0)[s0, s1] -> (d0 * s0 + s1)>(%block)[%c64, %c0]
    %kt = kvcache.alloc_tile : !kvcache.tile<64x128xbf16, swizzle_128b>
    %tok = kvcache.async_load_tile %k[%b, %h, %t, %c0] to %kt : !page64, !kvcache.tile<64x128xbf16, swizzle_128b>
    kvcache.wait %tok
    gpu.return
  }

  // CHECK-LABEL: @promised_token(
  // CHECK-SAME:    !kvcache.tma_tile<64x1x32x1xbf16, swizzle_128b>
  // CHECK-COUNT-2: kvcache.tma_load
  // CHECK-NOT:     kvcache.tma_load
  // REMARK: [Passed] copy | Category:kvcache-choose-copies | BoxRows=32, Remark="copies by tensor_boxes"
  gpu.func @promised_token(%k: !page64, %b: index, %h: index, %t: index) kernel {
    %c0 = arith.constant 0 : index
    %kt = kvcache.alloc_tile : !kvcache.tile<64x128xbf16, swizzle_128b>
    %tok = kvcache.async_load_tile %k[%b, %h, %t, %c0] to %kt {base_alignment = 32} : !page64, !kvcache.tile<64x128xbf16, swizzle_128b>
    kvcache.wait %tok
    gpu.return
  }

  // Rows that are not valid are out of the bounds of a ragged box: the bytes stay
  // the same, and a page without a valid row is not looked up. Its box is one of
  // a tensor that begins in the cache.
  // CHECK-LABEL: @valid(
  // CHECK-SAME:    %[[B:[a-z0-9]+]]: index, %{{.*}}: index, %[[N:[a-z0-9]+]]: index, %[[DESC:[a-z0-9]+]]: !kvcache.tma_tile<64x64x1x1xbf16, swizzle_128b>
  // CHECK-SAME:    %[[ZEROS:[a-z0-9]+]]: !kvcache.tma_tile<64x1x64x1xbf16, swizzle_128b>
  // CHECK:         %[[POSITIVE:.*]] = arith.maxsi %[[N]], %c0
  // CHECK:         %[[ALL:.*]] = arith.minsi %[[POSITIVE]], %c128
  // CHECK:         %[[ANY:.*]] = arith.cmpi sgt, %[[ALL]], %c0
  // CHECK:         %[[FIRST:.*]] = scf.if %[[ANY]] -> (index) {
  // CHECK:           kvcache.row_index %{{.*}}[%[[B]], %c64]
  // CHECK:         kvcache.tma_expect %{{.*}} bytes %c16384
  // CHECK:         %[[VALID:.*]] = arith.minsi %{{.*}}, %c64
  // CHECK:         %[[MISSING:.*]] = arith.subi %c64, %[[VALID]]
  // CHECK:         %[[ROW:.*]] = arith.addi %[[FIRST]], %[[VALID]]
  // CHECK:         %[[NOTHING:.*]] = builtin.unrealized_conversion_cast %[[ZEROS]]
  // CHECK:         %[[CHOSEN:.*]] = arith.select %[[ANY]], %[[DESC]], %[[NOTHING]]
  // CHECK:         kvcache.tma_load %[[CHOSEN]][%c64, %[[MISSING]], %{{.*}}, %[[ROW]]], {{.*}} at %c0 :
  // CHECK:         arith.subi %[[ALL]], %c64
  // CHECK:         kvcache.tma_load {{.*}} at %c64 :
  // REMARK: [Passed] copy | Category:kvcache-choose-copies | BoxRows=64, Remark="copies by tensor_boxes"
  gpu.func @valid(%k: !page64, %b: index, %h: index, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %kt = kvcache.alloc_tile : !kvcache.tile<128x64xbf16, swizzle_128b>
    %tok = kvcache.async_load_tile %k[%b, %h, %c64, %c64] valid %n to %kt : !page64, !kvcache.tile<128x64xbf16, swizzle_128b>
    kvcache.wait %tok
    gpu.return
  }

  // A continuous cache has no pages for a box to end in.
  // CHECK-LABEL: @continuous(
  // CHECK-SAME:    !kvcache.tma_tile<128x64x1x1xbf16>
  // CHECK:         %[[FIRST:.*]] = kvcache.row_index
  // CHECK:         %[[ROW:.*]] = arith.addi %[[FIRST]], %c64
  // CHECK:         kvcache.tma_load %{{.*}}[%c0, %c0, %{{.*}}, %[[ROW]]]
  // REMARK: [Passed] copy | Category:kvcache-choose-copies | BoxRows=64, Remark="copies by tensor_boxes"
  gpu.func @continuous(%k: !whole, %b: index, %h: index, %t: index) kernel {
    %c0 = arith.constant 0 : index
    %kt = kvcache.alloc_tile : !kvcache.tile<64x128xbf16>
    %tok = kvcache.async_load_tile %k[%b, %h, %t, %c0] to %kt : !whole, !kvcache.tile<64x128xbf16>
    kvcache.wait %tok
    gpu.return
  }

  // Two elements of 4 bits are a byte.
  // CHECK-LABEL: @fp4(
  // CHECK-SAME:    %[[D:[a-z0-9]+]]: index, %{{[a-z0-9]+}}: !kvcache.tma_tile<32x1x64x1xi8>
  // CHECK:         %[[BYTE:.*]] = arith.divui %[[D]], %c2
  // CHECK:         kvcache.tma_load %{{.*}}[%[[BYTE]],
  // REMARK: [Passed] copy | Category:kvcache-choose-copies | BoxRows=64, Remark="copies by tensor_boxes"
  gpu.func @fp4(%k: !fp4, %b: index, %h: index, %d: index) kernel {
    %c0 = arith.constant 0 : index
    %kt = kvcache.alloc_tile : !kvcache.tile<64x32xi8>
    %tok = kvcache.async_load_tile %k[%b, %h, %c0, %d] to %kt : !fp4, !kvcache.tile<64x32xi8>
    kvcache.wait %tok
    gpu.return
  }

  // Rows are aligned to 8 bytes.
  // CHECK-LABEL: @rows_of_40_bytes(
  // CHECK-NOT:     tma_tile
  // CHECK:         nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 8, cache =  ca
  // REMARK: Reason="the descriptor expects stride 1 to be a multiple of 16 bytes, got 40", Remark="does not copy by tensor_boxes"
  // REMARK: [Passed] copy | Category:kvcache-choose-copies | Remark="copies by cp_async"
  gpu.func @rows_of_40_bytes(%k: !odd, %b: index, %h: index) kernel {
    %c0 = arith.constant 0 : index
    %kt = kvcache.alloc_tile : !kvcache.tile<64x16xbf16>
    %tok = kvcache.async_load_tile %k[%b, %h, %c0, %c0] to %kt : !odd, !kvcache.tile<64x16xbf16>
    kvcache.wait %tok
    gpu.return
  }

  // Aligned to 2 bytes: cp.async takes 4.
  // CHECK-LABEL: @rows_of_18_bytes(
  // CHECK-NOT:     cp.async.shared
  // CHECK:         kvcache.tile_store
  // REMARK: Reason="the descriptor expects stride 1 to be a multiple of 16 bytes, got 18", Remark="does not copy by tensor_boxes"
  // REMARK: Reason="rows are aligned to 2 bytes, not to 4", Remark="does not copy by cp_async"
  // REMARK: [Passed] copy | Category:kvcache-choose-copies | Remark="copies by plain"
  gpu.func @rows_of_18_bytes(%k: !odder, %b: index, %h: index) kernel {
    %c0 = arith.constant 0 : index
    %kt = kvcache.alloc_tile : !kvcache.tile<64x16xf8E4M3FN>
    %tok = kvcache.async_load_tile %k[%b, %h, %c0, %c0] to %kt : !odder, !kvcache.tile<64x16xf8E4M3FN>
    kvcache.wait %tok
    gpu.return
  }

  // The host can compute the view.
  // CHECK-LABEL: @layer_of_argument(
  // CHECK-SAME:    !kvcache.tma_tile<64x1x64x1xbf16, swizzle_128b>
  // CHECK:         kvcache.tma_load
  // REMARK: [Passed] copy | Category:kvcache-choose-copies | BoxRows=64, Remark="copies by tensor_boxes"
  gpu.func @layer_of_argument(%c: !collection, %layer: index, %b: index, %h: index) kernel {
    %c0 = arith.constant 0 : index
    %k = kvcache.paged_view value %c[%layer] : !collection
    %kt = kvcache.alloc_tile : !kvcache.tile<64x128xbf16, swizzle_128b>
    %tok = kvcache.async_load_tile %k[%b, %h, %c0, %c0] to %kt : !page64, !kvcache.tile<64x128xbf16, swizzle_128b>
    kvcache.wait %tok
    gpu.return
  }

  // The host has no block.
  // CHECK-LABEL: @layer_of_block(
  // CHECK-NOT:     tma_tile
  // CHECK:         nvvm.cp.async.shared.global
  // REMARK: Reason="the host can't compute the view from the kernel's arguments", Remark="does not copy by tensor_boxes"
  // REMARK: [Passed] copy | Category:kvcache-choose-copies | Remark="copies by cp_async"
  gpu.func @layer_of_block(%c: !collection, %b: index, %h: index) kernel {
    %c0 = arith.constant 0 : index
    %layer = gpu.block_id x
    %k = kvcache.paged_view value %c[%layer] : !collection
    %kt = kvcache.alloc_tile : !kvcache.tile<64x128xbf16, swizzle_128b>
    %tok = kvcache.async_load_tile %k[%b, %h, %c0, %c0] to %kt : !page64, !kvcache.tile<64x128xbf16, swizzle_128b>
    kvcache.wait %tok
    gpu.return
  }

  // No number of rows surely lies in a page together.
  // CHECK-LABEL: @pages_of_any_size(
  // CHECK-NOT:     tma_tile
  // CHECK:         nvvm.cp.async.shared.global
  // CHECK-NOT:     kvcache.tma_load
  // REMARK: Reason="the page size is known only at run time", Remark="does not copy by tensor_boxes"
  // REMARK: [Passed] copy | Category:kvcache-choose-copies | Remark="copies by cp_async"
  gpu.func @pages_of_any_size(%k: !any_pages, %b: index, %h: index, %i: index) kernel {
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %t = arith.muli %i, %c64 : index
    %kt = kvcache.alloc_tile : !kvcache.tile<64x128xbf16, swizzle_128b>
    %tok = kvcache.async_load_tile %k[%b, %h, %t, %c0] to %kt : !any_pages, !kvcache.tile<64x128xbf16, swizzle_128b>
    kvcache.wait %tok
    gpu.return
  }
}
