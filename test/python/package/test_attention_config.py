"""The fields of kvcache.AttentionConfig, and the keywords that set them."""

import numpy as np
import pytest

import kvcache
from kvcache import AttentionConfig

PARAMS = kvcache.KVCacheParams("bf16", 2, 64, page_size=16, total_num_layers=1)


def test_config_is_text_of_the_attribute():
    config = AttentionConfig(mma="mma_sync", rows=np.int64(16), swap_ab=np.bool_(False), l2_hint="evict_last")
    wanted = "#kvcache.attention_config<mma = mma_sync, swap_ab = false, rows = 16, l2_hint = evict_last>"
    assert str(config) == wanted
    assert f"config = {wanted}" in kvcache.ops.attention(PARAMS, 8, config=config).source


def test_keywords_and_fields_make_one_operation():
    attention = kvcache.ops.attention
    assert attention(PARAMS, 8, tile_rows=16) is attention(PARAMS, 8, config=AttentionConfig(rows=16))
    assert attention(PARAMS, 8, tile_rows=0) is attention(PARAMS, 8, config=AttentionConfig(mma="none"))
    both = attention(PARAMS, 8, tile_rows=16, config=AttentionConfig(keys=32))
    assert both is attention(PARAMS, 8, config=AttentionConfig(rows=16, keys=32))


def test_kernel_has_the_fields():
    config = AttentionConfig(mma="mma_sync", rows=16, keys=32, stages=1)
    (kernel,) = kvcache.ops.attention(PARAMS, 8, config=config).compile("sm_90a").kernels.values()
    assert "mma.sync" in kernel.ptx and "wgmma" not in kernel.ptx and kernel.block_size[0] == 32


def test_field_that_the_chip_lacks_is_an_error():
    attention = kvcache.ops.attention(PARAMS, 8, config=AttentionConfig(mma="tcgen05"))
    with pytest.raises(kvcache.CompileError, match="expects 'config' to have an 'mma' and 'rows' that the chip has"):
        attention.compile("sm_90a")
    assert attention.compile("sm_100a").kernels


@pytest.mark.long
@pytest.mark.parametrize("options", [{}, {"split_tokens": 64}], ids=["prompt", "splits"])
def test_swap_is_kept_where_the_chip_has_it(options):
    """The keyword is for the chips that have swapAB, the field for all."""
    keyword = kvcache.ops.attention(PARAMS, 32, swap_operands=True, **options)
    field = kvcache.ops.attention(PARAMS, 32, config=AttentionConfig(swap_ab=True), **options)
    texts = [list(each.compile("sm_90a").kernels.values())[0].ptx for each in (keyword, field)]
    assert all("wgmma" in text for text in texts)
    assert {kernel.block_size for kernel in keyword.compile("sm_90a").kernels.values()} >= {(128, 1, 1)}
    for chips in ("sm_80", "sm_80,sm_90a"):
        plain = kvcache.ops.attention(PARAMS, 32, **options).compile(chips)
        same = keyword.compile(chips)
        assert [each.ptx for each in same.kernels.values()] == [each.ptx for each in plain.kernels.values()]
        with pytest.raises(kvcache.CompileError, match="'swap_ab' = false here, got true"):
            field.compile(chips)


@pytest.mark.parametrize(
    ("fields", "chip", "message"),
    [
        ({"swap_ab": True}, "sm_100a", "'swap_ab' = false here, got true"),
        ({"convert_loads": 2}, "sm_90a", "no 'convert_loads' here, where threads convert no elements, got 2"),
        ({"persistent": 8}, "sm_90a", "an 'mma', or no fields of tiles"),
        ({"swap_ab": True}, "sm_90a", "'swap_ab' = false here, got true"),
    ],
)
def test_field_that_the_kernel_lacks_is_an_error(fields, chip, message):
    """Splits of two query heads a group have a warp for each row, and values of 48 elements no swap."""
    heads, options = (4, {"split_tokens": 64}) if "persistent" in fields else (32, {"value_dim": 48})
    attention = kvcache.ops.attention(PARAMS, heads, config=AttentionConfig(**fields), **options)
    with pytest.raises(kvcache.CompileError, match=message):
        attention.compile(chip)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"mma": "hmma"}, "expects 'mma' to be one of \\('none', .*, got 'hmma'"),
        ({"mma": 1}, "expects 'mma' to be one of"),
        ({"rows": 48}, "expects 'rows' to be one of \\(16, 32, 64, 128, 256\\), got 48"),
        ({"keys": 24}, "expects 'keys' to be a multiple of 16 from 16 to 128, got 24"),
        ({"stages": 0}, "expects 'stages' to be from 1 to 16, got 0"),
        ({"persistent": -1}, "expects 'persistent' to be from 0 to 1048576, got -1"),
        ({"mma": "none", "keys": 64}, "expects no field but 'l2_hint' with mma='none'"),
        ({"swap_ab": True, "rows": 64}, "expects 'rows' to be 16 or 32 with 'swap_ab', got 64"),
        ({"merge": "block"}, "expects 'merge' to be one of \\('launch', 'cluster'\\), got 'block'"),
        ({"merge": "cluster", "mma": "wgmma"}, "expects 'mma' to be 'mma_sync' with merge='cluster', got 'wgmma'"),
        ({"merge": "cluster", "persistent": 8}, "expects 'persistent' to be 0 with merge='cluster', got 8"),
    ],
)
def test_field_out_of_range_is_rejected(fields, message):
    with pytest.raises(ValueError, match=message):
        AttentionConfig(**fields)


def test_field_of_wrong_type_is_rejected():
    with pytest.raises(TypeError, match="expects 'keys' to be an integer, got '64'"):
        AttentionConfig(keys="64")
    with pytest.raises(TypeError, match="swap_ab"):
        AttentionConfig(swap_ab=2)
    with pytest.raises(TypeError, match="expects 'config' to be an AttentionConfig"):
        kvcache.ops.attention(PARAMS, 8, config={"rows": 16})


def test_field_that_is_given_twice_is_rejected():
    with pytest.raises(ValueError, match="expects either 'tile_rows' or 'rows' of 'config'"):
        kvcache.ops.attention(PARAMS, 8, tile_rows=16, config=AttentionConfig(rows=16))
    with pytest.raises(ValueError, match="expects either 'tile_rows' or 'mma' of 'config'"):
        kvcache.ops.attention(PARAMS, 8, tile_rows=0, config=AttentionConfig(mma="wgmma"))


@pytest.mark.parametrize("options", [{"scheduled_blocks": 4}, {"swap_operands": True}, {"config": AttentionConfig(keys=64)}])
def test_warps_for_rows_have_no_tiles_to_configure(options):
    with pytest.raises(ValueError, match="expects no field but 'l2_hint' with tile_rows=0"):
        kvcache.ops.attention(PARAMS, 8, tile_rows=0, **options)


def test_values_of_another_type_are_rejected():
    with pytest.raises(TypeError, match="expects 'tile_rows' to be an integer, got False"):
        kvcache.ops.attention(PARAMS, 8, tile_rows=False)
    with pytest.raises(TypeError, match="expects 'target' to be a str, got None"):
        kvcache.ops.attention(PARAMS, 8, target=None)
