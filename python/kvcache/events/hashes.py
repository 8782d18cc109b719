# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The hashes of blocks of tokens that vLLM and SGLang compute."""

from __future__ import annotations

import hashlib
import importlib
import pickle
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..checks import check_instance, check_positive, check_string
from ..pages.tokens import parse_tokens

ExtraKey: TypeAlias = tuple[Any, ...]
"""A key that the hash of a block covers besides tokens: a kind and its fields."""

_SEED = "vllm-none-hash"
_KINDS = {
    "lora": (str, str),
    "mm": (str, int, int),
    "cache_salt": (str,),
    "prompt_embeds": (bytes, int),
}
"""The kinds of keys in vLLM's order, and the types of their fields."""
_STYLES = {"vllm": (slice(-8, None), False), "sglang": (slice(8), True)}


def import_extra(name: str) -> Any:
    """Imports a package of the extra ``events``."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"events need {name}: pip install 'kvcache[events]'", name=name
        ) from error


def _encode_pickle(value: Any) -> bytes:
    return pickle.dumps(value, protocol=5)


def _make_cbor_encoder() -> Callable[[Any], bytes]:
    dumps = import_extra("cbor2").dumps
    return lambda value: dumps(value, canonical=True)


def _hash_sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


class BlockHasher:
    """Computes the hash of a block from that of the block before it.

    Attributes:
        first: The parent of a first block.
        style: The style of ``wire_hash`` for these hashes.
    """

    def __init__(self, block_hash: str = "sha256_cbor", seed: str | None = None) -> None:
        check_string(block_hash=block_hash)
        if block_hash not in BLOCK_HASHES:
            names = ", ".join(map(repr, BLOCK_HASHES))
            raise ValueError(f"expects 'block_hash' to be one of {names}, got {block_hash!r}")
        if seed is not None:
            check_string(seed=seed)
        self._name = block_hash
        self.style = "sglang" if block_hash == "sglang" else "vllm"
        if block_hash == "sglang":
            if seed is not None:
                raise ValueError(f"'sglang' hashes have no 'seed', got {seed!r}")
            self.first = b""
            return
        if block_hash.startswith("xxhash"):
            if seed is None:
                raise ValueError(f"{block_hash!r} needs the 'seed' of the engine's PYTHONHASHSEED")
            self._digest: Callable[[bytes], bytes] = import_extra("xxhash").xxh3_128_digest
        else:
            self._digest = _hash_sha256
        is_cbor = block_hash.endswith("_cbor")
        self._encode = _make_cbor_encoder() if is_cbor else _encode_pickle
        self.first = self._digest(self._encode(_SEED if seed is None else seed))

    def hash(self, parent: bytes, tokens: Sequence[int], keys: Sequence[ExtraKey] = ()) -> bytes:
        """The hash of a block.

        Args:
            parent: The hash of the block before it, or ``first``.
            tokens: Its tokens, plain integers: pickled NumPy integers differ.
            keys: Its extra keys, in vLLM's order.
        """
        if self._name != "sglang":
            return self._digest(self._encode((parent, tuple(tokens), tuple(keys) or None)))
        if keys:
            raise ValueError(f"'sglang' hashes have no extra keys, got {keys!r}")
        ids = np.asarray(tokens)
        if ids.size and int(ids.max()) >= 1 << 32:
            raise ValueError(f"expects tokens below 2^32 for 'sglang' hashes, got {ids.max()}")
        return _hash_sha256(parent + ids.astype("<u4").tobytes())


BLOCK_HASHES = ("sha256_cbor", "sha256", "xxhash_cbor", "xxhash", "sglang")
"""The names of the hashes: vLLM's options ``prefix_caching_hash_algo``, and SGLang's."""


def block_hashes(
    tokens: npt.ArrayLike,
    block_size: int,
    block_hash: str = "sha256_cbor",
    *,
    seed: str | None = None,
    extra: Iterable[ExtraKey] = (),
) -> list[bytes]:
    """The hash of each full block of tokens, as an engine computes it.

    Args:
        tokens: The ids of the tokens.
        block_size: Tokens per block.
        block_hash: vLLM's ``"sha256_cbor"``, ``"sha256"``, ``"xxhash_cbor"`` and
            ``"xxhash"``, or ``"sglang"``.
        seed: The ``PYTHONHASHSEED`` of the engine; vLLM's own by default. Hashes of
            xxhash need one.
        extra: Keys that hashes cover as well: ``("lora", name, path)`` in each block,
            ``("mm", id, start, stop)`` in the blocks with some of these tokens,
            ``("cache_salt", text)`` in the first block, ``("prompt_embeds", digest,
            block)`` in one.

    Raises:
        ValueError: The hash or a key is none of these, or the seed is missing.
        TypeError: The tokens are not a sequence of integers.
        ModuleNotFoundError: ``pip install kvcache[events]`` is missing.
    """
    check_positive(block_size=block_size)
    hasher = BlockHasher(block_hash, seed)
    ids, keys = parse_tokens(tokens), parse_keys(extra)
    digests, digest = [], hasher.first
    for start in range(0, len(ids) - block_size + 1, block_size):
        chosen = choose_keys(keys, start, start + block_size)
        digest = hasher.hash(digest, ids[start : start + block_size].tolist(), chosen)
        digests.append(digest)
    return digests


def wire_hash(digest: bytes, style: str = "vllm") -> int:
    """The integer that stands for a hash in events.

    Args:
        digest: A hash of ``block_hashes``.
        style: ``"vllm"`` for its last 8 bytes, unsigned, or ``"sglang"`` for its first
            8 bytes, signed.

    Raises ``ValueError`` for another style or fewer than 8 bytes.
    """
    check_instance(bytes, digest=digest)
    if style not in _STYLES:
        raise ValueError(f"expects 'style' to be 'vllm' or 'sglang', got {style!r}")
    if len(digest) < 8:
        raise ValueError(f"expects 'digest' to have at least 8 bytes, got {len(digest)}")
    part, is_signed = _STYLES[style]
    return int.from_bytes(digest[part], "big", signed=is_signed)


def parse_keys(extra: Iterable[ExtraKey]) -> list[ExtraKey]:
    """Checks extra keys, and sorts them in vLLM's order."""
    keys = []
    for key in extra:
        kind = key[0] if isinstance(key, tuple | list) and key else None
        if kind not in _KINDS:
            raise ValueError(f"expects keys of 'extra' to begin with one of {list(_KINDS)}, got {key!r}")
        types = _KINDS[kind]
        if len(key) != 1 + len(types) or not all(map(isinstance, key[1:], types)):
            names = ", ".join(each.__name__ for each in types)
            raise ValueError(f"expects the fields {names} in a key {kind!r}, got {key!r}")
        keys.append(tuple(key))
    order = list(_KINDS)
    return sorted(keys, key=lambda key: order.index(key[0]))


def choose_keys(keys: Sequence[ExtraKey], start: int, stop: int) -> list[ExtraKey]:
    """The extra keys of the block with the tokens from ``start`` to ``stop``."""
    chosen: list[ExtraKey] = []
    for kind, *fields in keys:
        if kind == "lora":
            chosen.append(("lora", *map(_copy, fields)))
        elif kind == "mm" and fields[1] < stop and start < fields[2]:
            chosen.append(("mm", _copy(fields[0]), fields[1] - start))
        elif kind == "cache_salt" and start == 0:
            chosen.append(("cache_salt", _copy(fields[0])))
        elif kind == "prompt_embeds" and start == fields[1] * (stop - start):
            chosen.append(("prompt_embeds", fields[0]))
    return chosen


def _copy(text: str) -> str:
    """A string that is no other object: pickle would write an object only once."""
    return text.encode().decode()
