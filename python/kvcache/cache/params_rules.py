# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rules across fields of ``KVCacheParams``."""

from __future__ import annotations

import sys
import warnings
from types import FrameType
from typing import TYPE_CHECKING, Any

from ..checks import check_instance, check_integer, check_positive
from .layouts import check_layouts as check_layout_fields
from .reach import Reach
from .strategy import KVCacheStrategy

if TYPE_CHECKING:
    from .params import KVCacheParams
    from .types import CacheFormat


def check_reach(params: KVCacheParams) -> None:
    """Raises ``ValueError`` if a cache without pages has a reach."""
    check_instance(Reach, reach=params.reach)
    if not params.reach.is_full and params.page_size is None:
        raise ValueError(_limit_to_pages(params, "reach"))


def check_layer_ids(params: KVCacheParams, layers: tuple[int, ...]) -> None:
    """Raises an error unless ``layers`` are different layers of a cache without stages."""
    check_integer(**{f"layer_ids[{i}]": layer for i, layer in enumerate(layers)})
    if not layers or min(layers) < 0 or len(set(layers)) < len(layers):
        raise ValueError(
            f"expects 'layer_ids' to be different layers, got {list(layers)}"
        )
    if params.total_num_layers not in (None, len(layers)):
        raise ValueError(
            f"expects 'total_num_layers' to be {len(layers)}, as 'layer_ids' has, "
            f"got {params.total_num_layers}"
        )
    if params.pipeline_parallel_degree > 1:
        raise ValueError("'layer_ids' are only possible without pipeline stages")


def check_strategy(params: KVCacheParams, *, is_given: bool) -> None:
    """Raises ``ValueError`` for options that the strategy does not have.

    Warns of the continuous strategy, which is deprecated; ``is_given`` says that the
    caller named it.
    """
    is_paged = params.cache_strategy is KVCacheStrategy.PAGED
    if is_paged and params.page_size is None:
        raise ValueError("the paged cache strategy needs 'page_size'")
    if params.enable_prefix_caching and not is_paged:
        raise ValueError(_limit_to_pages(params, "enable_prefix_caching"))
    if params.enable_kvcache_swapping_to_host and not is_paged:
        raise ValueError(_limit_to_pages(params, "enable_kvcache_swapping_to_host"))
    if params.cache_strategy is KVCacheStrategy.CONTINUOUS:
        if params.kvcache_quant_config is not None:
            raise ValueError(_limit_to_pages(params, "kvcache_quant_config"))
        warnings.warn(
            (
                "KVCacheStrategy.CONTINUOUS is deprecated: use KVCacheStrategy.PAGED"
                if is_given
                else "a cache without 'page_size' is continuous, which is deprecated: "
                "give 'page_size'"
            ),
            DeprecationWarning,
            stacklevel=_count_own_frames() + 1,
        )


def check_layouts(params: KVCacheParams) -> None:
    """Raises ``ValueError`` for layouts of a cache without pages, or without scales."""
    has_scales = params.kvcache_quant_config is not None
    check_layout_fields(params.layout, params.scale_layout, has_scales=has_scales)
    if params.layout is not None and params.page_size is None:
        raise ValueError(_limit_to_pages(params, "layout"))


def _limit_to_pages(params: KVCacheParams, name: str) -> str:
    return (
        f"{name!r} is only possible with the paged cache strategy, got "
        f"{params.cache_strategy.value!r}"
    )


def check_swapping(params: KVCacheParams) -> None:
    """Raises ``ValueError`` for swapping without a size of the swap space."""
    if not params.enable_kvcache_swapping_to_host:
        return
    if params.host_kvcache_swap_space_gb is None:
        raise ValueError(
            "'enable_kvcache_swapping_to_host' needs 'host_kvcache_swap_space_gb'"
        )


def check_parallelism(params: KVCacheParams) -> None:
    """Raises ``ValueError`` if devices or stages can't share heads or layers."""
    degree = params.pipeline_parallel_degree
    if degree > 1 and params.total_num_layers is None:
        raise ValueError(
            f"'pipeline_parallel_degree' of {degree} needs 'total_num_layers'"
        )
    if params.stage_id is not None and not 0 <= params.stage_id < degree:
        raise ValueError(
            "expects 'stage_id' to be below 'pipeline_parallel_degree' "
            f"({degree}) and not negative, got {params.stage_id}"
        )
    devices = 1 if params.is_mla else params.n_devices_per_stage
    if params.n_kv_heads > devices and params.n_kv_heads % devices:
        raise ValueError(
            f"expects 'n_kv_heads' ({params.n_kv_heads}) to be a multiple of "
            f"'n_devices' ({params.n_devices}), or not above it"
        )


def check_derived(params: KVCacheParams, heads: int, layers: int | None) -> None:
    """Raises ``ValueError`` if given sizes are not those that the fields make."""
    check_integer(n_kv_heads_per_device=heads)
    if heads not in (0, params.n_kv_heads_per_device):
        reason = "of one latent row"
        if not params.is_mla:
            reason = (
                f"as 'n_kv_heads' ({params.n_kv_heads}) over {params.n_devices_per_stage} "
                "devices makes"
            )
        raise ValueError(
            f"expects 'n_kv_heads_per_device' to be {params.n_kv_heads_per_device}, "
            f"{reason}, got {heads}"
        )
    if layers is None:
        return
    check_integer(n_layers_per_stage=layers)
    if params.n_layers_per_stage is None:
        raise ValueError(
            f"'n_layers_per_stage' of {layers} needs 'total_num_layers'"
        )
    if layers != params.n_layers_per_stage:
        raise ValueError(
            f"expects 'n_layers_per_stage' to be {params.n_layers_per_stage}, as "
            f"'total_num_layers' ({params.total_num_layers}) over "
            f"{params.pipeline_parallel_degree} stages makes, got {layers}"
        )


def _count_own_frames() -> int:
    """Counts the frames from the caller's on that construct parameters."""
    own = (__name__, f"{__package__}.params", "dataclasses")
    count = 0
    frame: FrameType | None = sys._getframe(1)
    while frame and frame.f_globals["__name__"] in own:
        count, frame = count + 1, frame.f_back
    return count

def count_shares(fields: dict[str, Any], format_: CacheFormat) -> int:
    """The number of devices that share the heads, if a type has a share of them."""
    is_staged = fields.get("pipeline_parallel_degree", 1) != 1
    if format_.is_mla or is_staged:
        return 1
    check_positive(n_devices=(devices := fields.get("n_devices", 1)))
    return devices
