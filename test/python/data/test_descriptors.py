"""Tests of kernels' descriptors, which the compiler describes to hosts outside of the module."""

import pytest

import kvcache

TYPES = """
#kv = #kvcache.params<num_heads = 8, head_size = 128>
#mla = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>
!latent = !kvcache.paged<f8E4M3FN, #mla, page_size = 64>
!hnd = !kvcache.paged<bf16, #kv, page_size = 64, layout = hnd>
!open = !kvcache.paged<bf16, #kv, page_size = 64, layout = [token = 256, head = ?]>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!lt = !kvcache.tile<64x576xf8E4M3FN>
"""

KERNELS = """
gpu.module @kernels {
  gpu.func @load(%k: !cache {kvcache.name = "keys"}, %b: index, %h: index, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %kt = kvcache.alloc_tile : !kt
    %tok = kvcache.async_load_tile %k[%b, %h, %c0, %c0] valid %n to %kt : !cache, !kt
    kvcache.wait %tok
    gpu.return
  }
  gpu.func @layer(%c: !collection {kvcache.name = "kv"}, %layer: index {kvcache.name = "layer"}, %b: index) kernel {
    %c0 = arith.constant 0 : index
    %c3 = arith.constant 3 : index
    %kt = kvcache.alloc_tile : !kt
    %vt = kvcache.alloc_tile : !kt
    %k = kvcache.paged_view key %c[%layer] : !collection
    %v = kvcache.paged_view value %c[%c3] : !collection
    %tok0 = kvcache.async_load_tile %k[%b, %c0, %c0, %c0] to %kt : !cache, !kt
    %tok1 = kvcache.async_load_tile %v[%b, %c0, %c0, %c0] to %vt : !cache, !kt
    kvcache.wait %tok0
    kvcache.wait %tok1
    gpu.return
  }
  gpu.func @blocks(%blocks: memref<?x2x?x64x8x128xbf16> {kvcache.name = "blocks"}, %lengths: memref<?xi32>,
                   %lut: memref<?x?xi32>, %max: i32) kernel {
    %c0 = arith.constant 0 : index
    %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
        : memref<?x2x?x64x8x128xbf16>, memref<?xi32>, memref<?x?xi32> -> !collection
    %k = kvcache.paged_view key %c[%c0] : !collection
    %kt = kvcache.alloc_tile : !kt
    %tok = kvcache.async_load_tile %k[%c0, %c0, %c0, %c0] to %kt : !cache, !kt
    kvcache.wait %tok
    gpu.return
  }
  gpu.func @gather(%k: !latent {kvcache.name = "latent"}, %ids: memref<64xi32>) kernel {
    %c0 = arith.constant 0 : index
    %lt = kvcache.alloc_tile : !lt
    %tok = kvcache.async_gather_tile %k[%c0, %c0] rows %ids to %lt : !latent, memref<64xi32>, !lt
    kvcache.wait %tok
    gpu.return
  }
  gpu.func @twice(%k: !cache, %b: index) kernel {
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %t0 = kvcache.alloc_tile : !kt
    %t1 = kvcache.alloc_tile : !kt
    %tok0 = kvcache.async_load_tile %k[%b, %c0, %c0, %c0] to %t0 : !cache, !kt
    %tok1 = kvcache.async_load_tile %k[%b, %c0, %c64, %c0] to %t1 : !cache, !kt
    kvcache.wait %tok0
    kvcache.wait %tok1
    gpu.return
  }
}
"""

OWN = """
!desc = !kvcache.tma_tile<64x1x64xbf16, swizzle_128b, l2_promotion = 256>
gpu.module @kernels {
  gpu.func @own(%desc: !desc {kvcache.name = "desc"}, %last: i32 {kvcache.name = "last"}) kernel {
    kvcache.tma_prefetch %desc : !desc
    gpu.return
  }
}
"""


@pytest.fixture(scope="module")
def blackwell():
    return kvcache.compile(TYPES + KERNELS, target="sm_100a")


def test_rows_that_may_be_missing(blackwell):
    descriptor, zeros = blackwell.kernel("load").descriptors
    assert (zeros.parameter, zeros.kind, zeros.view, zeros.offset) == ("descriptor1", "paged", {"cache": "keys"}, 0)
    assert zeros.box == (64, 1, 64, 1)
    assert descriptor == kvcache.Descriptor(
        parameter="descriptor0",
        view={"cache": "keys"},
        kind="ragged",
        dims=(128, 64, 8, "rows + 1"),
        strides=(1024, 128, 1024),
        offset=-64 * 1024 * 2,
        box=(64, 64, 1, 1),
        element_type="bf16",
        swizzle="128b",
        l2_promotion=0,
    )
    assert descriptor.fields(rows=4096) == kvcache.descriptor_fields(
        "ragged", dtype="bf16", swizzle="128b", num_heads=8, head_size=128, num_rows=4096, rows=64
    )


def test_rows_of_pages(blackwell):
    keys, values = blackwell.kernel("layer").descriptors
    assert keys.view == {"collection": "kv", "role": "key", "layer": "layer"}
    assert values.view == {"collection": "kv", "role": "value", "layer": 3}
    assert [keys.parameter, values.parameter] == ["descriptor0", "descriptor1"]
    sizes = {"num_heads": 8, "head_size": 128, "page_size": 64, "page_stride": 999424, "num_pages": 12}
    expected = kvcache.descriptor_fields("paged", dtype="bf16", swizzle="128b", rows=64, columns=128, **sizes)
    assert keys.fields(pages=12, page_stride=999424) == expected
    assert expected.broken_limit is None


LAYOUTS = """
gpu.module @kernels {
  gpu.func @layouts(%k: !hnd {kvcache.name = "hnd"}, %o: !open {kvcache.name = "open"}, %b: index, %h: index, %n: index,
                    %ids: memref<64xi32>) kernel {
    %c0 = arith.constant 0 : index
    %t0 = kvcache.alloc_tile : !kt
    %t1 = kvcache.alloc_tile : !kt
    %t2 = kvcache.alloc_tile : !kt
    %tok0 = kvcache.async_load_tile %o[%b, %h, %c0, %c0] to %t0 : !open, !kt
    %tok1 = kvcache.async_load_tile %k[%b, %h, %c0, %c0] valid %n to %t1 : !hnd, !kt
    %tok2 = kvcache.async_gather_tile %k[%h, %c0] rows %ids to %t2 : !hnd, memref<64xi32>, !kt
    kvcache.wait %tok0
    kvcache.wait %tok1
    kvcache.wait %tok2
    gpu.return
  }
}
"""


def test_layouts():
    kernel = kvcache.compile(TYPES + LAYOUTS, target="sm_100a").kernel("layouts")
    paged, ragged, gather, zeros = kernel.descriptors
    assert zeros.kind == "paged" and zeros.view == ragged.view
    shape = {"dtype": "bf16", "swizzle": "128b", "num_heads": 8, "head_size": 128}
    page = {"page_size": 64, "num_pages": 12, "page_stride": 2**20, "rows": 64, "columns": 128}
    assert paged.fields(pages=12, page_stride=2**20, head_stride=2**17) == kvcache.descriptor_fields(
        "paged", token_stride=256, head_stride=2**17, **page, **shape
    )
    with pytest.raises(ValueError, match="expects 'head_stride'"):
        paged.fields(pages=12, page_stride=2**20)
    hnd = {"token_stride": 128, "head_stride": 64 * 128}
    assert ragged.fields(rows=4096) == kvcache.descriptor_fields("ragged", num_rows=4096, rows=64, **hnd, **shape)
    assert gather.fields(rows=4096) == kvcache.descriptor_fields(
        "gather4", num_rows=4096, tile_width=128, **hnd, **shape
    )
    assert gather.fields(rows=4096).dims == (7 * 64 * 128 + 128, 4096)


WIDE = """
#mla = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
!cache = !kvcache.paged<f8E4M3FN, #mla, page_size = 64>
!rows = !kvcache.tile<64x576xf8E4M3FN>
gpu.module @kernels {
  gpu.func @wide(%k: !cache {kvcache.name = "k"}, %b: index) kernel {
    %c0 = arith.constant 0 : index
    %rows = kvcache.alloc_tile : !rows
    %tok = kvcache.async_load_tile %k[%b, %c0, %c0, %c0] to %rows : !cache, !rows
    kvcache.wait %tok
    gpu.return
  }
}
"""


def test_strides_are_in_elements_of_the_descriptor():
    (descriptor,) = kvcache.compile(WIDE, target="sm_90a").kernel("wide").descriptors
    fields = descriptor.fields(pages=12, page_stride=64 * 576)
    assert fields.dtype == "int64" and fields.box == (72, 1, 64, 1)
    assert fields.dims == (72, 1, 64, 12) and fields.strides == (72, 72, 64 * 72)
    with pytest.raises(ValueError, match="expects 'page_stride' to be a multiple of 8, got 36868"):
        descriptor.fields(pages=12, page_stride=64 * 576 + 4)


def test_limits_that_the_host_may_break(blackwell):
    keys, _ = blackwell.kernel("layer").descriptors
    assert "multiple of 16 bytes" in keys.fields(pages=12, page_stride=65537).broken_limit
    with pytest.raises(ValueError, match="expects 'page_stride'"):
        keys.fields(pages=12)


def test_collection_made_in_the_kernel(blackwell):
    (descriptor,) = blackwell.kernel("blocks").descriptors
    assert descriptor.view == {"blocks": "blocks", "role": "key", "layer": 0}


def test_rows_as_wider_elements(blackwell):
    (descriptor,) = blackwell.kernel("gather").descriptors
    assert (descriptor.kind, descriptor.element_type, descriptor.box) == ("gather4", "i64", (72, 1))
    assert descriptor.fields(rows=640) == kvcache.descriptor_fields("gather4", dtype="i64", num_rows=640, tile_width=72)


def test_one_descriptor_for_alike_copies(blackwell):
    assert len(blackwell.kernel("twice").descriptors) == 1


def test_descriptors_are_the_last_parameters(blackwell):
    for kernel in blackwell.kernels.values():
        names = [descriptor.parameter for descriptor in kernel.descriptors]
        last = kernel.parameters[-len(names) :]
        assert [parameter.name for parameter in last] == names
        assert all(parameter.size == 128 and parameter.offset % 64 == 0 for parameter in last)


def test_descriptors_that_the_source_declares():
    (kernel,) = kvcache.compile(OWN, target="sm_90a").kernels.values()
    assert [parameter.name for parameter in kernel.parameters] == ["last", "desc"]
    (descriptor,) = kernel.descriptors
    assert (descriptor.kind, descriptor.view, descriptor.dims) == (None, {}, ())
    assert (descriptor.box, descriptor.swizzle, descriptor.l2_promotion) == ((64, 1, 64), "128b", 256)
    with pytest.raises(ValueError, match="the source declares what 'desc' describes"):
        descriptor.fields()


def test_chips_of_a_module_take_the_same_parameters():
    compiled = kvcache.compile(TYPES + KERNELS, target=["sm_80", "sm_90a", "sm_100a"])
    for name in ("load", "layer", "gather"):
        kernels = [compiled.kernel(name, chip) for chip in compiled.chips]
        described = [[(p.name, p.size) for p in kernel.parameters] for kernel in kernels]
        assert described[0] == described[1] == described[2]
        assert kernels[0].descriptors == kernels[1].descriptors == kernels[2].descriptors


def test_chips_without_tensor_copies_take_none():
    compiled = kvcache.compile(TYPES + KERNELS, target="sm_80")
    assert all(kernel.descriptors == () for kernel in compiled.kernels.values())


def test_artifacts_keep_them(blackwell, tmp_path):
    blackwell.save(tmp_path / "kernels.kvcache")
    loaded = kvcache.load(tmp_path / "kernels.kvcache")
    for name, kernel in blackwell.kernels.items():
        assert loaded.kernels[name].descriptors == kernel.descriptors
