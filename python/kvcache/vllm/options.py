# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The options of the backend, from vLLM's ``additional_config``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vllm.platforms import current_platform

from ..checks import check_size
from ..ops.splits import MOST, StepBounds
from ..torch.engine_options import EngineSplits, check_names, read_target

_NAMES = "target", "split_tokens", "latent_rows", "max_splits"


@dataclass(frozen=True)
class Options:
    """The options of ``--additional-config '{"kvcache": {...}}'``.

    Attributes:
        target: The target of ``kvcache.jit``: ``"cuda"`` on GPUs and ``"cpu"`` elsewhere
            by default, or ``"emulator:sm_90a"`` and other chips on a CPU.
        splits: ``split_tokens`` and ``max_splits`` as in ``kvcache.ops.attention``, and
            0 tokens for no splits. By default, vLLM's ``max_num_seqs`` and
            ``max_model_len`` choose them.
        latent_rows: The most new tokens with which a sequence attends to latent rows
            (MLA). Longer prompts use the backend that vLLM has for them. By default,
            a token and its drafts on a GPU, and all elsewhere.
    """

    target: str
    splits: EngineSplits
    latent_rows: int

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
        place = "'kvcache' of additional_config"
        check_names(given, _NAMES, place)
        is_on_gpu = current_platform.is_cuda()
        latent_rows = given.get("latent_rows", 1 if is_on_gpu else MOST)
        check_size(MOST, latent_rows=latent_rows)
        sequences = vllm_config.scheduler_config.max_num_seqs
        bounds = StepBounds(sequences, vllm_config.model_config.max_model_len)
        return cls(
            read_target(given, is_on_gpu), EngineSplits.read(given, bounds), latent_rows
        )
