# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parameters of latent caches whose rows have fields of several dtypes."""

from __future__ import annotations

import numpy as np

from ..checks import check_instance
from .layouts import describe
from .params import KVCacheParams
from .quantization import KVCacheQuantizationConfig
from .rows import Field, RowLayout


def row_params(
    layout: RowLayout, page_size: int
) -> tuple[KVCacheParams, KVCacheParams | None]:
    """The parameters of the content and of the rope of such rows, for one layer.

    They are ``params`` and ``rope_params`` of ``kvcache.ops``: None without a rope.

    Args:
        layout: The layout of the rows, from ``Layout.from_name``.
        page_size: Tokens per page.

    Raises:
        TypeError: The layout is not one of rows of fields.
        ValueError: ``page_size`` is not positive.
    """
    check_instance(RowLayout, layout=layout)
    pages = np.zeros((2, layout.page_bytes(page_size)), np.uint8)
    views = layout.views(pages, page_size)
    fields = {field.name: field for field in layout.fields}
    layouts = {
        name: describe(views[name].array, "page token head element") for name in fields
    }
    config = KVCacheQuantizationConfig(fields["scales"].dtype, layout.granularity)
    content = _make_params(fields["content"], page_size, config)
    content = content.with_layout(layouts["content"], layouts["scales"])
    if "rope" not in fields:
        return content, None
    rope = _make_params(fields["rope"], page_size, None)
    return content, rope.with_layout(layouts["rope"])


def _make_params(
    field: Field, page_size: int, scales: KVCacheQuantizationConfig | None
) -> KVCacheParams:
    return KVCacheParams(
        field.dtype,
        1,
        field.columns,
        page_size=page_size,
        total_num_layers=1,
        is_mla=True,
        kvcache_quant_config=scales,
    )
