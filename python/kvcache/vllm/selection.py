# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The choice of a backend for a layer: ours, or vLLM's own for other layers."""

from __future__ import annotations

from typing import Any, ClassVar

from vllm.logger import init_logger
from vllm.platforms import current_platform
from vllm.v1.attention.selector import AttentionSelectorConfig

from .backend import Backend
from .latent import LatentBackend

_LOGGER = init_logger("vllm.kvcache")


class Selection:
    """The class that vLLM asks which backend a layer gets.

    vLLM resolves ``CUSTOM`` to a new subclass for each layer, validates its
    configuration, and then reads the name of the class to load.
    """

    _path: ClassVar[str] = ""

    @classmethod
    def validate_configuration(cls, device_capability: Any, **config: Any) -> list[str]:
        """Chooses a backend, and logs why another one than ours.

        Returns no reasons: an unsupported layer falls back to the backend that vLLM
        chooses by itself.
        """
        backend = LatentBackend if config["use_mla"] else Backend
        reasons = backend.validate_configuration(
            device_capability=device_capability, **config
        )
        cls._path = ".".join(backend.full_cls_name())
        if reasons:
            selector = AttentionSelectorConfig(**config)
            cls._path = current_platform.get_attn_backend_cls(None, selector)
            _LOGGER.warning_once(
                "kvcache does not run this model's attention, vLLM runs %s instead: %s",
                cls._path.rpartition(".")[2],
                "; ".join(reasons),
            )
        return []

    @classmethod
    def full_cls_name(cls) -> tuple[str, str]:
        """Returns the module and the name of the chosen class."""
        module, _, name = cls._path.rpartition(".")
        return module, name


def make_selection() -> type[Selection]:
    """Makes a class for the selection of one layer, which threads do not share.

    Raises ``ImportError`` on a platform without kernels.
    """
    if not current_platform.is_cuda() and current_platform.device_type != "cpu":
        raise ImportError(
            "kvcache.vllm has kernels for NVIDIA's GPUs and for CPUs, got the platform "
            f"{current_platform.device_name}"
        )
    return type("Selection", (Selection,), {})
