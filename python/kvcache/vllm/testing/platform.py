# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The platform: vLLM's for the CPU, without its compiled operators."""

from __future__ import annotations

from typing import Any

from vllm.platforms.cpu import CpuPlatform
from vllm.platforms.interface import PlatformEnum
from vllm.v1.attention.backends.registry import AttentionBackendEnum

_WORKER = "kvcache.vllm.testing.worker.Worker"
_REFERENCE = "kvcache.vllm.testing.reference.Backend"
_LATENT_REFERENCE = "kvcache.vllm.testing.reference.LatentBackend"


class Platform(CpuPlatform):
    """A CPU that takes attention backends of plugins.

    vLLM treats its own platform of the CPU in special ways, such as operators of its
    build for the CPU: this one is out of its tree.
    """

    _enum = PlatformEnum.OOT

    @classmethod
    def import_kernels(cls) -> None:
        """Imports the operators of PyTorch instead of vLLM's."""
        from . import operators  # noqa: F401

    @classmethod
    def get_attn_backend_cls(
        cls, selected_backend: Any, attn_selector_config: Any, num_heads: Any = None
    ) -> str:
        """Returns the backend ``CUSTOM`` if it is selected, else one in PyTorch."""
        if selected_backend is not AttentionBackendEnum.CUSTOM:
            latent = attn_selector_config.use_mla
            return _LATENT_REFERENCE if latent else _REFERENCE
        backend = selected_backend.get_class()
        reasons = backend.validate_configuration(
            device_capability=None, **attn_selector_config._asdict()
        )
        if reasons:
            raise ValueError(
                f"Selected backend {selected_backend} is not valid for this "
                f"configuration. Reason: {reasons}"
            )
        return ".".join(backend.full_cls_name())

    @classmethod
    def check_and_update_config(cls, vllm_config: Any) -> None:
        """Sets the worker, and operators of PyTorch in place of compiled ones."""
        cache, scheduler = vllm_config.cache_config, vllm_config.scheduler_config
        parallel = vllm_config.parallel_config
        executor = parallel.distributed_executor_backend
        kept = [
            (parallel, "distributed_executor_backend", executor),
            (cache, "block_size", cache.block_size),
            (cache, "enable_prefix_caching", cache.enable_prefix_caching),
            (scheduler, "enable_chunked_prefill", scheduler.enable_chunked_prefill),
            (scheduler, "max_num_batched_tokens", scheduler.max_num_batched_tokens),
        ]
        super().check_and_update_config(vllm_config)
        for owner, name, value in kept:  # vLLM changes them for its own kernels
            setattr(owner, name, value)
        parallel.worker_cls = _WORKER
        vllm_config.compilation_config.custom_ops = ["none"]
