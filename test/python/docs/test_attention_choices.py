"""Tests that the table in docs/explanation/choices-of-attention.md has the compiler's choices."""

import functools
import re
import subprocess

import pytest
from places import OPT, ROOT

import kvcache

SPLITS, SPARSE = {"split_tokens": 256}, {"rows": True}
# Elements, granularity of scales, heads of the cache, elements of a head.
BF16, FP8, INT8 = ("bf16", None, 8, 128), ("f8E4M3FN", 128, 8, 128), ("i8", 32, 8, 128)
F16 = "f16", None, 8, 256
LATENT, FP8_LATENT = ("bf16", None, 1, 576), ("f8E4M3FN", None, 1, 576)
# The cache, the query heads, and options, by the titles of rows.
OPERATIONS = {
    "heads of 128 elements": (BF16, 32, {}),
    "the same with `tile_rows=128`": (BF16, 32, {"tile_rows": 128}),
    "the same in splits": (BF16, 32, SPLITS),
    "the same with `swap_operands=True`": (BF16, 32, {"swap_operands": True, **SPLITS}),
    "the same in splits, 16 query heads": (BF16, 16, SPLITS),
    "the same, sparse `rows` of 8 query heads": (BF16, 64, SPARSE),
    "the same, sparse `rows` of 4 query heads": (BF16, 32, SPARSE),
    "the same of 8 bits": (FP8, 32, {}),
    "the same of 8 bits, in splits": (FP8, 32, SPLITS),
    "the same, with a scale for 32 elements": (INT8, 32, SPLITS),
    "the same, with a scale for 16 elements": (("i8", 16, 8, 128), 32, SPLITS),
    "the same of NVFP4": (("f4E2M1FN", 16, 8, 128), 32, SPLITS),
    "the same of int4, with a scale for 32 elements": (("i4", 32, 8, 128), 32, SPLITS),
    "the same of int4, with a scale for 128 elements": (("i4", 128, 8, 128), 32, SPLITS),
    "heads of 256 elements": (F16, 32, {}),
    "heads of 256 elements with `tile_rows=128`": (F16, 32, {"tile_rows": 128}),
    "a latent cache of 576 elements, 32 query heads": (LATENT, 32, {}),
    "the same in splits, 12 query heads": (LATENT, 12, SPLITS),
    "a latent cache, 64 query heads": (LATENT, 64, {}),
    "a latent cache, 64 query heads, in splits": (LATENT, 64, SPLITS),
    "a latent cache of 8 bits, 64 query heads": (FP8_LATENT, 64, {}),
    "a latent cache, sparse `rows`, 16 query heads": (LATENT, 16, SPARSE),
    "elements of f32": (("f32", None, 8, 128), 32, {}),
}
# The options of one kernel, by their names in the table.
CHIPS = {chip: chip for chip in ("sm_80", "sm_90a", "sm_100a")} | {"both": "sm_90a,sm_100a"}
KINDS = {
    "`mma.sync`": ("mma_sync", "tile", "false", "prefetch"),
    "`mma.sync`, in registers": ("mma_sync", "registers", "false", "prefetch"),
    "`wgmma`": ("wgmma", "tile", "false", "prefetch"),
    "`wgmma`, `ping_pong`": ("wgmma", "tile", "false", "ping_pong"),
    "`wgmma`, `seesaw`": ("wgmma", "tile", "false", "seesaw"),
    "`wgmma`, swapAB": ("wgmma", "tile", "true", "prefetch"),
    "`tcgen05`": ("tcgen05", "tile", "false", "prefetch"),
    "none": ("none", "tile", "false", "prefetch"),
}


def list_chips(cell):
    return list(CHIPS) if cell == "all" else cell.split(", ")


def read_table():
    text = (ROOT / "docs/explanation/choices-of-attention.md").read_text()
    lines = text.split("| attention to |")[-1].split("\n\n")[0].splitlines()[2:]
    for line in lines:
        yield [cell.strip() for cell in line.strip("|").split("|")]


ROWS = list(read_table())


def get_source(title, chip):
    (dtype, granularity, heads, size), query_heads, options = OPERATIONS[title]
    scale = "f8E4M3FN" if dtype == "f4E2M1FN" else "f32"
    zero_point = scale if dtype == "i4" else None
    config = granularity and kvcache.KVCacheQuantizationConfig(scale, granularity, zero_point)
    is_latent = size == 576
    params = kvcache.KVCacheParams(
        dtype, heads, size, page_size=64, total_num_layers=1, kvcache_quant_config=config, is_mla=is_latent
    )
    more = {"value_dim": 512} if is_latent else {}
    query = "f32" if dtype == "f32" else "f16" if dtype == "f16" else "bf16"
    return kvcache.ops.attention(params, query_heads, dtype=query, **options, **more).write_source(chip)


@functools.cache
def choose(chip):
    """The remarks on all operations."""
    sources = [get_source(title, chip) for title in OPERATIONS]
    passes = [
        f"--kvcache-plan-attention=chip={chip}",
        "--kvcache-split-attention",
        f"--kvcache-expand-ops=for-gpu chip={chip}",
    ]
    command = [OPT, "-", *passes, "--split-input-file", "--remarks-filter=kvcache-expand-ops", "-o", "/dev/null"]
    result = subprocess.run(command, input="\n// -----\n".join(sources), capture_output=True, text=True, check=True)
    remarks = [line for line in result.stderr.splitlines() if "remark: [Passed] attention" in line]
    return dict(zip(OPERATIONS, remarks, strict=True))


def read_config(remark):
    """The fields of the config in a remark."""
    text = re.search(r"#kvcache.attention_config<(.*?)>", remark)[1]
    return dict(field.split(" = ") for field in text.split(", "))


def describe(config):
    """The cells of a row after its MMA, from a config."""
    if "rows" not in config:
        return ["", "", "", ""]
    stored = "" if config["raw_stages"] == "0" else f" + {config['raw_stages']} stored"
    persistent = "" if config["persistent"] == "0" else config["persistent"]
    tile = f"{config['rows']} x {config['keys']}"
    return [tile, config["stages"] + stored, config["acc_shares"], persistent]


@pytest.mark.long
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]}-{row[1]}")
def test_table_row_equals_the_compiler_s_choice(row):
    title, chips, mma, *cells, hint = row
    for chip in list_chips(chips):
        config = read_config(choose(CHIPS[chip])[title])
        assert config["l2_hint"].replace("evict_normal", "") == hint.strip("`")
        defaults = {"dequant": "tile", "swap_ab": "false", "schedule": "prefetch"}
        kind = config["mma"], *(config.get(field, default) for field, default in defaults.items())
        assert kind == KINDS[mma]
        assert describe(config) == cells


def test_the_table_has_all_operations_on_all_chips():
    named = {}
    for title, chips, *_ in ROWS:
        named.setdefault(title, []).extend(list_chips(chips))
    assert list(named) == list(OPERATIONS)
    assert all(sorted(chips) == sorted(CHIPS) for chips in named.values())


@pytest.mark.parametrize(
    "title, chip, copy",
    [
        ("the same in splits", "sm_80", "cp.async.cg."),
        ("the same in splits", "sm_100a", "cp.async.bulk.tensor."),
        ("a latent cache, 64 query heads, in splits", "sm_90a", "cp.async.bulk.tensor."),
        ("a latent cache, 64 query heads, in splits", "sm_80", "cp.async.cg."),
        ("heads of 128 elements", "sm_90a", "cp.async.bulk.tensor."),
    ],
)
def test_all_copies_of_a_kernel_have_the_hint(title, chip, copy):
    hint = next(hint for row, chips, *_, hint in ROWS if row == title and chip in list_chips(chips))
    command = [OPT, "-", f"--kvcache-to-ptx=chip={chip}"]
    text = subprocess.run(command, input=get_source(title, chip), capture_output=True, text=True, check=True).stdout
    copies = re.findall(re.escape(copy) + "[^;]*;", text)
    assert copies and {"L2::cache_hint" in text for text in copies} == {bool(hint)}
