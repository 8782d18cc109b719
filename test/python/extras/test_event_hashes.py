"""Tests that hashes of blocks equal those of vLLM and SGLang, to the byte."""

import sys

import numpy as np
import pytest

from kvcache.events import BLOCK_HASHES, block_hashes, wire_hash

TOKENS = range(32)
VECTORS = {
    "sha256_cbor": (
        "dc918a88b139e5afe60b88eda27508d4aee16c10fdc354791efea06206ac0749",
        "c300ec275d7bf08af8fc63e76cdc0086911bbc7091e03c5cf892553bef84ef0c",
    ),
    "sha256": (
        "fe8fa5dda3210d0ca2031e37cbe3b001186773cd1c710beb2d45fcb51d434798",
        "8be7aaa33831156d316f1f463ae57e643deb63f42e633e2d631df88815cc4629",
    ),
    "xxhash_cbor": ("209f5d549fc07c8e39d823615ede61ce", "03888914ee75b87e89df867a21beb72b"),
    "sglang": (
        "5d85718ec594b982c252d0279e5966ffca33a5eaf2a455038d3ab331fde70cea",
        "4681c0107c38f402cd1bc30b0b09a65202dba31f98269d9d7f63f5e0dea6901a",
    ),
}
"""The hashes of 32 tokens in blocks of 16, computed by the engines."""

SEEDS = {"xxhash_cbor": "0", "xxhash": "0"}
SALT = ("cache_salt", "tenant-a")


def hash_all(tokens, name="sha256_cbor", size=16, **options):
    return [each.hex() for each in block_hashes(tokens, size, name, seed=SEEDS.get(name), **options)]


@pytest.mark.parametrize("name", VECTORS)
@pytest.mark.parametrize("tokens", [TOKENS, [*range(40)], np.arange(33, dtype=np.uint16)], ids=["range", "list", "numpy"])
def test_hashes_equal_the_vectors(name, tokens):
    assert hash_all(tokens, name) == [*VECTORS[name]]


def test_salts_change_the_first_block_and_its_followers():
    salted = hash_all(TOKENS, extra=[SALT])
    assert salted[0] == "4e31e1ced73eb044a95997f0109d0ddab3d9145878214f1a0ee37c048b397859"
    assert salted[1] != VECTORS["sha256_cbor"][1]


@pytest.mark.parametrize("name", [name for name in BLOCK_HASHES if name != "sglang"])
def test_keys_cover_their_blocks(name):
    plain = hash_all(TOKENS, name)
    image = ("mm", "id", 20, 24)
    with_image = hash_all(TOKENS, name, extra=[image])
    assert with_image[0] == plain[0] and with_image[1] != plain[1]
    assert hash_all(range(48), name, extra=[("mm", "id", 14, 17)])[0] != plain[0]
    adapter = ("lora", "fr", "/fr")
    # The order of keys is that of their kinds.
    assert hash_all(TOKENS, name, extra=[image, SALT, adapter]) == hash_all(TOKENS, name, extra=(adapter, image, SALT))
    embeds = hash_all(TOKENS, name, extra=[("prompt_embeds", b"digest", 1)])
    assert embeds[0] == plain[0] and embeds[1] != plain[1]


@pytest.mark.parametrize("name", ["sha256", "xxhash"])
def test_pickled_hashes_depend_on_values_alone(name):
    text = "tenant-a"
    other = "".join([*text])
    assert other is not text
    one, two = [("lora", text, text), ("cache_salt", text)], [("lora", text, other), ("cache_salt", sys.intern(other))]
    assert hash_all(TOKENS, name, extra=one) == hash_all(TOKENS, name, extra=two)


def test_seeds_change_hashes():
    assert block_hashes(TOKENS, 16, seed="vllm-none-hash")[0].hex() == VECTORS["sha256_cbor"][0]
    assert block_hashes(TOKENS, 16, seed="1")[0].hex() != VECTORS["sha256_cbor"][0]


def test_blocks_that_are_not_full_have_no_hash():
    assert block_hashes([], 16) == block_hashes(range(15), 16) == []
    assert len(block_hashes(range(47), 16)) == 2


def test_integers_of_the_wire_equal_the_engines():
    assert wire_hash(block_hashes(TOKENS, 16)[0]) == 2233398808101521225
    assert wire_hash(block_hashes(TOKENS, 16, "sglang")[0], "sglang") == 6738917275443968386
    assert wire_hash(b"\xff" * 8) == 2**64 - 1 and wire_hash(b"\xff" * 8, "sglang") == -1


@pytest.mark.parametrize(
    "error, message, arguments, options",
    [
        (ValueError, "'block_hash' to be one of 'sha256_cbor', .*, got 'md5'", (TOKENS, 16, "md5"), {}),
        (TypeError, "'block_hash' to be a string, got 3", (TOKENS, 16, 3), {}),
        (ValueError, "'block_size' to be positive, got 0", (TOKENS, 0), {}),
        (TypeError, "'tokens' to be a sequence of integers", (["a"], 16), {}),
        (TypeError, "'seed' to be a string, got 0", (TOKENS, 16), {"seed": 0}),
        (ValueError, "'xxhash' needs the 'seed'", (TOKENS, 16, "xxhash"), {}),
        (ValueError, "'sglang' hashes have no 'seed', got '0'", (TOKENS, 16, "sglang"), {"seed": "0"}),
        (ValueError, "'sglang' hashes have no extra keys", (TOKENS, 16, "sglang"), {"extra": [SALT]}),
        (ValueError, r"tokens below 2\^32 .* got 4294967296", ([2**32], 1, "sglang"), {}),
        (ValueError, "'extra' to begin with one of .*, got 'cache_salt'", (TOKENS, 16), {"extra": ["cache_salt"]}),
        (ValueError, "fields str in a key 'cache_salt', got", (TOKENS, 16), {"extra": [("cache_salt", b"x")]}),
        (ValueError, "fields str, int, int in a key 'mm', got", (TOKENS, 16), {"extra": [("mm", "id", 3)]}),
    ],
)
def test_hashes_reject_invalid_arguments(error, message, arguments, options):
    with pytest.raises(error, match=message):
        block_hashes(*arguments, **options)


@pytest.mark.parametrize(
    "error, message, arguments",
    [
        (TypeError, "'digest' to be a bytes, got 3", (3,)),
        (ValueError, "at least 8 bytes, got 7", (b"1234567",)),
        (ValueError, "'style' to be 'vllm' or 'sglang', got 'max'", (b"12345678", "max")),
    ],
)
def test_wire_hash_rejects_invalid_arguments(error, message, arguments):
    with pytest.raises(error, match=message):
        wire_hash(*arguments)
