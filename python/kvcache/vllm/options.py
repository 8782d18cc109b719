# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The options of the backend, from vLLM's ``additional_config``."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from vllm.platforms import current_platform

from ..checks import check_size, check_string

_MOST = 2**20


@dataclass(frozen=True)
class Options:
    """The options of ``--additional-config '{"kvcache": {...}}'``.

    Attributes:
        target: The target of ``kvcache.jit``: ``"cuda"`` on GPUs and ``"cpu"`` elsewhere
            by default, or ``"emulator:sm_90a"`` and other chips on a CPU.
        split_tokens: Tokens per split of a long sequence; 0 for no splits. By default
            256 on GPUs and emulated ones.
        max_splits: The most splits of a row.
        latent_rows: The most new tokens with which a sequence attends to latent rows
            (MLA). Longer prompts use the backend that vLLM has for them. By default,
            a token and its drafts on a GPU, and all elsewhere.
    """

    target: str
    split_tokens: int
    latent_rows: int
    max_splits: int = 32

    @classmethod
    def read(cls, vllm_config: Any) -> Options:
        """Reads the options of a configuration of vLLM.

        Raises:
            ValueError: An option is unknown, or out of range.
            TypeError: The options are no dictionary, or one has the wrong type.
        """
        config = vllm_config.additional_config
        given = config.get("kvcache", {}) if isinstance(config, dict) else {}
        if not isinstance(given, dict):
            raise TypeError(
                "expects 'kvcache' of additional_config to be a dictionary, got "
                f"{given!r}"
            )
        names = [field.name for field in fields(cls)]
        for name in given:
            if name not in names:
                raise ValueError(
                    "expects the options in 'kvcache' of additional_config to be of "
                    f"{', '.join(names)}, got {name!r}"
                )
        is_on_gpu = current_platform.is_cuda()
        target = given.get("target", "cuda" if is_on_gpu else "cpu")
        check_string(target=target)
        split_tokens = given.get("split_tokens", 0 if target == "cpu" else 256)
        if split_tokens != 0:
            check_size(_MOST, split_tokens=split_tokens)
        latent_rows = given.get("latent_rows", 1 if is_on_gpu else _MOST)
        check_size(_MOST, latent_rows=latent_rows)
        max_splits = given.get("max_splits", cls.max_splits)
        check_size(_MOST, max_splits=max_splits)
        return cls(target, split_tokens, latent_rows, max_splits)
