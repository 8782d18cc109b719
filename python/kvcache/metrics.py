# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Metrics of page managers for Prometheus.

``Collector`` reads the counts of managers when Prometheus asks for them::

    from prometheus_client import REGISTRY, start_http_server

    REGISTRY.register(kvcache.metrics.Collector(manager, model_name="llama"))
    start_http_server(8000, addr="127.0.0.1")

Names are those of vLLM after the prefix, where vLLM has the same count. The extra
``kvcache[metrics]`` has the package.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from .checks import check_string, check_text

if TYPE_CHECKING:
    from .pages.manager import PagedKVCacheManager
    from .pages.snapshot import CacheStats

__all__ = ["Collector"]

_Read: TypeAlias = "Callable[[PagedKVCacheManager, CacheStats], float | dict[str, float]]"


class _Metric(NamedTuple):
    """A metric: its name without the prefix, its text, and its value.

    Attributes:
        label: The label of the parts of its value, if it has parts.
    """

    name: str
    text: str
    read: _Read
    label: str = ""


def _read_sources(manager: PagedKVCacheManager, stats: CacheStats) -> dict[str, float]:
    host, disk = stats.tokens_found_on_host, stats.tokens_found_on_disk
    store = stats.tokens_found_in_store
    device = stats.tokens_found - host - disk - store
    return {"device": device, "host": host, "disk": disk, "store": store}


def _read_moves(manager: PagedKVCacheManager, stats: CacheStats) -> dict[str, float]:
    return {
        "device": stats.pages_from_host + stats.pages_from_store,
        "host": stats.pages_to_host,
        "disk": stats.pages_to_disk,
        "store": stats.pages_to_store,
    }


_GAUGES = (
    _Metric(
        "kv_cache_usage_perc",
        "Pages of the device in use, as a share from 0 to 1.",
        lambda manager, stats: 1 - stats.pages_available / manager.num_pages,
    ),
    _Metric("pages", "Pages of the device.", lambda manager, stats: manager.num_pages),
    _Metric(
        "pages_retained",
        "Pages with hints that keep them longer.",
        lambda manager, stats: stats.pages_retained,
    ),
    _Metric("sequences", "Sequences.", lambda manager, stats: stats.sequences),
)
_COUNTERS = (
    _Metric(
        "prefix_cache_queries",
        "Tokens looked up in the cached prefixes.",
        lambda manager, stats: stats.tokens_looked_up,
    ),
    _Metric(
        "prefix_cache_hits",
        "Tokens found in the cached prefixes.",
        lambda manager, stats: stats.tokens_found,
    ),
    _Metric(
        "external_prefix_cache_queries",
        "Tokens looked up in the store.",
        lambda manager, stats: stats.tokens_looked_up_in_store,
    ),
    _Metric(
        "external_prefix_cache_hits",
        "Tokens found that came from the store.",
        lambda manager, stats: stats.tokens_found_in_store,
    ),
    _Metric(
        "prompt_tokens_cached_by_source",
        "Tokens found in the cached prefixes, by their slowest source.",
        _read_sources,
        "source",
    ),
    _Metric(
        "pages_evicted",
        "Cached pages dropped because their room was needed.",
        lambda manager, stats: stats.pages_evicted,
    ),
    _Metric("pages_moved", "Pages moved to each place.", _read_moves, "target"),
    _Metric(
        "bytes_moved",
        "Bytes of pages moved to each place.",
        lambda manager, stats: {
            place: pages * manager.params.bytes_per_block
            for place, pages in _read_moves(manager, stats).items()
        },
        "target",
    ),
)


class Collector:
    """A collector for ``prometheus_client`` that reads the counts of managers.

    It may be read by any thread while the managers work. A registry takes one collector
    per prefix: pass it several managers.

    Args:
        managers: A manager, or managers by the names of their engines.
        prefix: The first part of each name. With ``"vllm:"``, dashboards of vLLM show
            the counts that both have.
        model_name: The label ``model_name`` of each metric.

    Raises:
        ValueError: The prefix is no beginning of a name, or there is no manager,
            or UTF-8 can't encode a label.
        ModuleNotFoundError: ``pip install kvcache[metrics]`` is missing.
    """

    def __init__(
        self,
        managers: PagedKVCacheManager | Mapping[str, PagedKVCacheManager],
        prefix: str = "kvcache",
        *,
        model_name: str = "",
    ) -> None:
        check_string(prefix=prefix)
        check_text(model_name=model_name)
        if not re.fullmatch(r"[a-zA-Z_:][a-zA-Z0-9_:]*", prefix):
            raise ValueError(f"expects 'prefix' to begin a metric's name, got {prefix!r}")
        self._prefix = prefix if prefix.endswith((":", "_")) else f"{prefix}_"
        self._model_name = model_name
        self._managers = dict(managers) if isinstance(managers, Mapping) else {"0": managers}
        check_text(**{f"managers[{i}]": name for i, name in enumerate(self._managers)})
        if not self._managers:
            raise ValueError("expects 'managers' to have at least one manager")
        for manager in self._managers.values():
            if isinstance(manager, type) or not hasattr(manager, "stats"):
                raise TypeError(
                    f"expects 'managers' to be a manager of pages, or a dict of them by names, got {manager!r}"
                )
        try:
            self._core: Any = importlib.import_module("prometheus_client.core")
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                "metrics need prometheus_client: pip install 'kvcache[metrics]'",
                name="prometheus_client",
            ) from error

    def describe(self) -> Iterator[Any]:
        """Yields the metrics without values, so that a registry refuses equal names."""
        for metrics, family in self._list_metrics():
            for metric in metrics:
                yield self._fill(metric, family, {})

    def collect(self) -> Iterator[Any]:
        """Yields the metrics of all managers; ``prometheus_client`` calls it."""
        stats = {name: manager.stats for name, manager in self._managers.items()}
        for metrics, family in self._list_metrics():
            for metric in metrics:
                yield self._fill(metric, family, stats)

    def _list_metrics(self) -> tuple[tuple[tuple[_Metric, ...], Any], ...]:
        """The metrics of each family of ``prometheus_client``."""
        return (_GAUGES, self._core.GaugeMetricFamily), (_COUNTERS, self._core.CounterMetricFamily)

    def _fill(self, metric: _Metric, family: Any, stats: dict[str, CacheStats]) -> Any:
        labels = ["model_name", "engine", *([metric.label] if metric.label else [])]
        filled = family(self._prefix + metric.name, metric.text, labels=labels)
        for engine, each in stats.items():
            value = metric.read(self._managers[engine], each)
            own = [self._model_name, engine]
            if isinstance(value, dict):
                for part, number in value.items():
                    filled.add_metric([*own, part], number)
            else:
                filled.add_metric(own, value)
        return filled
