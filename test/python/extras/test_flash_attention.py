"""Tests of FlashAttention's functions, against attention in float64 that loops over queries."""

import itertools
import math

import pytest
import torch
from fake_gpu import DEVICE, fake_gpu

from kvcache.torch import (
    flash_attn_varlen_func,
    flash_attn_with_kvcache,
    flash_checks,
    flash_steps,
)

GPU = [pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"))]
TOLERANCES = {torch.float32: 2e-5, torch.bfloat16: 2e-2, torch.float16: 3e-3}


@pytest.fixture(params=["cpu", "unread", "emulator:sm_90a", *GPU])
def place(request, monkeypatch):
    """The device of tensors; emulated kernels run on those of the host.

    ``unread`` takes the ways of a GPU, whose tensors the host does not read.
    """
    if request.param == "cuda":
        return torch.device("cuda")
    if request.param == "unread":
        monkeypatch.setattr(flash_steps, "is_readable", lambda tensor: False)
        monkeypatch.setattr(flash_checks, "is_readable", lambda tensor: False)
    if request.param.startswith("emulator"):
        monkeypatch.setitem(flash_steps.TARGETS, "cpu", request.param)
    return torch.device("cpu")


def model(q, k, v, scale=None, causal=False, window=(-1, -1), softcap=0.0, slopes=None, sinks=None):
    """Attention of one sequence: queries [n, heads, dim] to keys [m, kv_heads, dim], in float64."""
    q, k, v = (each.double().cpu() for each in (q, k, v))
    n, heads, dim = q.shape
    m, groups = len(k), heads // k.shape[1]
    out, lse = torch.zeros(n, heads, dim, dtype=torch.float64), torch.full((n, heads), -math.inf)
    left, right = window
    for i, h in itertools.product(range(n), range(heads)):
        position = i + m - n
        last = m - 1 if right < 0 and not causal else position + (0 if causal else right)
        first = 0 if left < 0 else max(position - left, 0)
        last = min(last, m - 1)
        if last < first:
            lse[i, h] = -math.inf if sinks is None else sinks[h].double()
            continue
        seen = torch.arange(first, last + 1)
        s = k[seen, h // groups] @ q[i, h] * (dim**-0.5 if scale is None else scale)
        if softcap:
            s = softcap * torch.tanh(s / softcap)
        if slopes is not None:
            s = s - slopes[h].double().cpu() * (position - seen).abs()
        if sinks is not None:  # its value is zero
            s = torch.cat([s, sinks[h : h + 1].double().cpu()])
        out[i, h] = s.softmax(0)[: len(seen)] @ v[seen, h // groups]
        lse[i, h] = s.logsumexp(0)
    return out, lse


class Case:
    """A cache of random rows, in pages or not, and the rows that the model sees."""

    def __init__(self, place, lengths, *, rows=1, new=0, heads=(4, 2), dim=16, page=16, dtype=torch.float32,
                 capacity=None, seed=0):
        torch.manual_seed(seed)
        self.place, self.lengths, self.new = place, lengths, new
        batch = len(lengths)
        total = max(lengths) + new if capacity is None else capacity
        self.q = torch.randn(batch, rows, heads[0], dim).to(dtype).to(place)
        self.k, self.v = (torch.randn(batch, new, heads[1], dim).to(dtype).to(place) for _ in range(2))
        self.sequences = [torch.randn(2, length, heads[1], dim).to(dtype) for length in lengths]
        self.seqlens = torch.tensor(lengths, dtype=torch.int32, device=place)
        columns = -(-total // page) if page else 1
        count, size = (batch * columns + 3, page) if page else (batch + 2, total)
        order = torch.randperm(count)[: batch * columns].view(batch, columns)
        self.caches = torch.full((2, count, size, heads[1], dim), math.nan).to(dtype)
        for b, sequence in enumerate(self.sequences):
            for t in range(sequence.shape[1]):
                self.caches[:, order[b, t // size], t % size] = sequence[:, t]
        self.table = order.int()
        for b, length in enumerate(lengths if page else ()):  # garbage after the end
            self.table[b, -(-(length + new) // size):] = 1 << 20
        self.order, self.size = order, size
        self.caches = self.caches.to(place)

    @property
    def tables(self):
        table = self.table.to(self.place)
        if len(self.caches[0]) == self.order.numel() + 2 and self.order.shape[1] == 1 and self.is_flat:
            return {"cache_batch_idx": table[:, 0]}
        return {"block_table": table}

    is_flat = False

    def run(self, **options):
        rows = {"k": self.k, "v": self.v} if self.new else {}
        return flash_attn_with_kvcache(
            self.q, *self.caches, **rows, **self.tables, cache_seqlens=self.seqlens, return_softmax_lse=True, **options
        )

    def check(self, window_size=(-1, -1), alibi_slopes=None, s_aux=None, **options):
        dtype = self.q.dtype
        if alibi_slopes is not None:
            options["alibi_slopes"] = alibi_slopes.to(self.place)
        if s_aux is not None:
            options["s_aux"] = s_aux.to(self.place)
        before = self.caches.clone()
        out, lse = self.run(window_size=window_size, **options)
        slopes = options.pop("alibi_slopes", None)
        options["sinks"] = options.pop("s_aux", None)
        options["scale"] = options.pop("softmax_scale", None)
        options.pop("num_splits", None)
        assert out.shape == self.q.shape and lse.shape == (*self.q.shape[:1], self.q.shape[2], self.q.shape[1])
        for b, (keys, values) in enumerate(self.sequences):
            keys, values = torch.cat([keys, self.k[b].cpu()]), torch.cat([values, self.v[b].cpu()])
            own = None if slopes is None else slopes[b] if slopes.dim() == 2 else slopes
            wanted, wanted_lse = model(self.q[b], keys, values, window=window_size, slopes=own, **options)
            tolerance = TOLERANCES[dtype]
            torch.testing.assert_close(out[b].double().cpu(), wanted, rtol=tolerance, atol=tolerance)
            torch.testing.assert_close(lse[b].T.double().cpu(), wanted_lse.double(), rtol=1e-3, atol=1e-3)
            for t in range(self.lengths[b], len(keys)):  # the appended rows
                page = self.order[b, t // self.size]
                before[:, page, t % self.size] = torch.stack([keys[t], values[t]]).to(self.place)
        assert torch.equal(self.caches.nan_to_num(7), before.nan_to_num(7))


class FlatCase(Case):
    """A cache without pages, whose rows ``cache_batch_idx`` chooses."""

    is_flat = True

    def __init__(self, place, lengths, capacity=64, **options):
        super().__init__(place, lengths, page=0, capacity=capacity, **options)


@pytest.mark.parametrize("page", [16, 256])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_decode_reads_pages(place, page, dtype):
    Case(place, (40, 1, 0, 17), page=page, dtype=dtype).check(causal=True)


@pytest.mark.parametrize("heads", [(4, 4), (4, 2), (6, 1)], ids=str)
def test_decode_appends_in_place(place, heads):
    Case(place, (40, 1, 0, 15, 16), new=1, heads=heads).check(causal=True)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("rows", [1, 3, 20])
@pytest.mark.parametrize("new", [0, 3])
def test_last_query_is_at_the_last_key(place, causal, rows, new):
    """Tests queries before the first key as well, which see nothing if causal."""
    Case(place, (21, 3, 0), rows=rows, new=new).check(causal=causal)


@pytest.mark.parametrize("window", [(0, -1), (0, 0), (3, 0), (3, 2), (-1, 0), (-1, 2), (0, 5), (100, 100), (2**70, 2)], ids=str)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("rows", [1, 5])
def test_windows_include_their_ends(place, window, causal, rows):
    sees_later = not causal and window[1] != 0
    Case(place, (21, 5 if sees_later else 3), rows=rows).check(causal=causal, window_size=window)


@pytest.mark.parametrize("rows", [1, 4])
@pytest.mark.parametrize("sizes", [(4,), (3, 4)], ids=str)
@pytest.mark.parametrize("options", [{"causal": True}, {}, {"window_size": (5, 0), "softcap": 2.0}], ids=str)
def test_alibi_lowers_scores_by_distance(place, rows, sizes, options):
    slopes = torch.rand(sizes, generator=torch.Generator().manual_seed(1))
    Case(place, (21, 9, 4), rows=rows).check(alibi_slopes=slopes, **options)


@pytest.mark.parametrize("rows", [1, 4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("options", [{"causal": True}, {"window_size": (5, 0)}, {"alibi_slopes": torch.ones(4)}], ids=str)
def test_sinks_join_denominators(place, rows, dtype, options):
    sinks = torch.tensor([2.0, -1.0, 0.5, 30.0]).to(dtype)
    no_keys = () if "alibi_slopes" in options and "causal" not in options else (2, 0)
    Case(place, (21, 9, *no_keys), rows=rows).check(s_aux=sinks, **options)
    strided = sinks.repeat_interleave(2)[::2]
    Case(place, (700, 5), page=16, dim=8).check(s_aux=strided, num_splits=3)


def test_scale_and_soft_cap(place):
    Case(place, (21, 9), rows=4).check(softmax_scale=0.7, softcap=1.5, causal=True)


@pytest.mark.parametrize("num_splits", [0, 1, 3])
def test_long_decode_is_split(place, num_splits):
    Case(place, (700, 5), page=16, dim=8).check(num_splits=num_splits)


@pytest.mark.parametrize("capacity", [64, 48, 37, 1024])
@pytest.mark.parametrize("new", [0, 2])
def test_cache_without_pages(place, capacity, new):
    lengths = (min(33, capacity - new), 0, capacity - new)
    FlatCase(place, lengths, capacity, rows=2, new=new, dim=8).check(causal=True)


def test_full_cache_without_lengths(place):
    case = FlatCase(place, (32, 32), 32)
    rows = case.tables["cache_batch_idx"].long()
    out = flash_attn_with_kvcache(case.q, *case.caches[:, rows])
    for lengths in (32, torch.tensor([32, 32], device=place)):
        again = flash_attn_with_kvcache(case.q, *case.caches, cache_batch_idx=rows, cache_seqlens=lengths)
        assert torch.equal(again, out)
    twice = rows[:1].repeat(2)
    both = flash_attn_with_kvcache(case.q, *case.caches, cache_batch_idx=twice)
    assert torch.equal(both, flash_attn_with_kvcache(case.q, *case.caches[:, twice]))
    for b, (keys, values) in enumerate(case.sequences):
        torch.testing.assert_close(out[b].double().cpu(), model(case.q[b], keys, values)[0], rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("strides", ["fused", "heads first", "slice"])
def test_strided_caches_are_not_copied(place, strides):
    case = Case(place, (40, 3), new=2, rows=2)
    keys, values = case.caches
    if strides == "fused":
        keys, values = torch.stack([keys, values], dim=3).unbind(3)
    elif strides == "heads first":
        keys, values = (each.transpose(1, 2).contiguous().transpose(1, 2) for each in (keys, values))
    else:
        keys = torch.nn.functional.pad(keys, (0, 0, 0, 1))[:, :, :2]
        values = torch.nn.functional.pad(values, (0, 0, 0, 0, 0, 3))[:, :16]
    fused = torch.randn(2, 2, 8, 16, device=place)
    case.q, case.k, case.v = fused.split([4, 2, 2], dim=2)
    out, lse = flash_attn_with_kvcache(
        case.q, keys, values, case.k, case.v, cache_seqlens=case.seqlens, causal=True, return_softmax_lse=True,
        **case.tables,
    )
    wanted, wanted_lse = case.run(causal=True)
    torch.testing.assert_close(out, wanted)
    torch.testing.assert_close(lse, wanted_lse)
    assert torch.equal(keys.nan_to_num(7), case.caches[0].nan_to_num(7))
    assert torch.equal(values.nan_to_num(7), case.caches[1].nan_to_num(7))


def test_expanded_rows(place):
    case = Case(place, (40, 3), new=2, rows=2)
    case.q, case.k, case.v = (each[:1, :1].expand_as(each) for each in (case.q, case.k, case.v))
    case.check(causal=True)


@pytest.mark.parametrize("kind", [torch.int64, "strided"], ids=str)
def test_numbers_of_64_bits_and_strides(place, kind):
    def convert(numbers):
        if kind == "strided":
            return numbers.repeat_interleave(2, -1)[..., ::2]
        return numbers.to(kind)

    case = Case(place, (40, 3), new=2, rows=2)
    wanted = case.run(causal=True)
    case.seqlens, case.table = convert(case.seqlens), convert(case.table)
    for found, each in zip(case.run(causal=True), wanted):
        assert torch.equal(found, each)
    offsets = make_offsets((1, 1), place), make_offsets((40, 3), place)
    q, (k, v) = case.q[:, 0], torch.cat(case.sequences, dim=1).to(place)
    assert torch.equal(
        flash_attn_varlen_func(q, k, v, *offsets, 1, 40), flash_attn_varlen_func(q, k, v, *map(convert, offsets), 1, 40)
    )


def make_offsets(lengths, place):
    return torch.tensor([0, *itertools.accumulate(lengths)], dtype=torch.int32, device=place)


@pytest.mark.parametrize("paged", [False, True])
@pytest.mark.parametrize(
    "options",
    [{}, {"causal": True}, {"window_size": (2, 1)}, {"window_size": (2, 0), "softcap": 3.0}, {"slopes": 1}, {"sinks": 1}],
    ids=str,
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_sequences_of_different_lengths(place, paged, options, dtype):
    counts, lengths = (7, 1, 0, 5, 3), (9, 12, 4, 0, 2)
    if "slopes" in options or options.get("window_size") == (2, 1):
        counts = 7, 1, 0, 0, 2  # no more queries than keys
    case = Case(place, lengths, dtype=dtype)
    q = torch.randn(sum(counts), 4, 16, device=place).to(dtype)
    k, v = (torch.cat([each[role] for each in case.sequences]).to(place) for role in range(2))
    tables = {}
    if paged:
        (k, v), tables = case.caches, case.tables
    options = dict(options)
    slopes = torch.rand(4) if options.pop("slopes", None) else None
    sinks = torch.rand(4) if options.pop("sinks", None) else None
    if sinks is not None:
        tables["s_aux"] = sinks.to(place)
    if slopes is not None:
        tables["alibi_slopes"] = slopes.to(place)
    out, lse, probabilities = flash_attn_varlen_func(
        q, k, v, make_offsets(counts, place), make_offsets(lengths, place), 8, 12, return_attn_probs=True,
        **tables, **options,
    )
    assert probabilities is None and lse.shape == (4, sum(counts))
    options["window"] = options.pop("window_size", (-1, -1))
    for rows, wanted_rows, (keys, values) in zip(out.split(counts), zip(q.split(counts), lse.split(counts, 1)), case.sequences):
        wanted, wanted_lse = model(wanted_rows[0], keys, values, slopes=slopes, sinks=sinks, **options)
        tolerance = TOLERANCES[dtype]
        torch.testing.assert_close(rows.double().cpu(), wanted, rtol=tolerance, atol=tolerance)
        torch.testing.assert_close(wanted_rows[1].T.double().cpu(), wanted_lse.double(), rtol=1e-3, atol=1e-3)


def test_empty_batches_and_queries(place):
    case = Case(place, (5, 3))
    assert flash_attn_with_kvcache(case.q[:, :0], *case.caches, cache_seqlens=3, **case.tables).shape == (2, 0, 4, 16)
    empty = flash_attn_with_kvcache(case.q[:0], *case.caches, cache_seqlens=case.seqlens[:0], block_table=case.table[:0].to(place))
    assert empty.shape == (0, 1, 4, 16)
    offsets = make_offsets((0, 0), place)
    q, k = case.q[:0, 0], case.caches[0, :0, 0]
    assert flash_attn_varlen_func(q, k, k, offsets, offsets, 0, 0).shape == (0, 4, 16)


@pytest.mark.parametrize("options", [{}, {"causal": True}, {"window_size": (3, 0)}], ids=str)
def test_calls_on_a_gpu_read_no_element(options, monkeypatch):
    """A read of an element by the host raises within ``fake_gpu``."""
    seen = []

    def make(*arguments):
        return lambda inputs, layer, *rows, **more: seen.extend([inputs, *rows, *more.values()])

    monkeypatch.setattr(flash_steps, "_make_append", make)
    monkeypatch.setattr(flash_steps, "_make_attention", make)
    with fake_gpu():
        q, cache = torch.ones(2, 5, 4, 16, device=DEVICE), torch.ones(9, 16, 2, 16, device=DEVICE)
        table, lengths = (torch.ones(size, dtype=torch.int32, device=DEVICE) for size in ((2, 4), 2))
        for rows in ((None, None), (q[:, :, :2], q[:, :, :2])):
            out = flash_attn_with_kvcache(q, cache, cache, *rows, cache_seqlens=lengths, block_table=table, **options)
            assert out.shape == q.shape and out.device == DEVICE
        offsets = torch.ones(3, dtype=torch.int32, device=DEVICE)
        flash_attn_varlen_func(q[0], cache, cache, offsets, offsets, 5, 9, block_table=table, **options)
        flash_attn_varlen_func(q[0], q[0], q[0], offsets, offsets, 5, 9, **options)
    tensors = [each for each in seen if isinstance(each, torch.Tensor)]
    steps = [each for each in seen if hasattr(each, "lut")]
    tensors += [each for step in steps for each in (step.lut, step.lengths, step.placed_offsets)]
    assert len(steps) == 5 and {each.device for each in tensors} == {DEVICE}


# --- Errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options, message",
    [
        ({"rotary_cos": torch.ones(8, 8)}, "'rotary_cos' is not supported: apply the rotary embedding to 'q' and 'k'"),
        ({"rotary_sin": torch.ones(8, 8)}, "'rotary_sin' is not supported: apply the rotary embedding"),
        ({"cache_leftpad": torch.zeros(2)}, "'cache_leftpad' is not supported: the first key"),
        ({"cache_batch_idx": torch.zeros(2)}, "'cache_batch_idx' is not supported: 'block_table' has the pages"),
        ({"window_size": 3}, "'window_size' to be two numbers, got 3"),
        ({"window_size": (-2, 0)}, r"'window_size' of numbers from -1 on, got \(-2, 0\)"),
        ({"softcap": -1.0}, "'softcap' not to be negative, got -1.0"),
        ({"softcap": 10**400}, "'softcap' to be a finite number, got 1000"),
        ({"softcap": "2"}, "'softcap' to be a number, got '2'"),
        ({"softmax_scale": -65537.0}, "'softmax_scale' to be from -65536 to 65536, got -65537.0"),
        ({"softmax_scale": 1e39}, "'softmax_scale' to be a finite number in the range of float32, got 1e"),
        ({"alibi_slopes": torch.ones(3)}, r"'alibi_slopes' of \[4\] or \[2, 4\], got \[3\]"),
        ({"alibi_slopes": torch.ones(4).half()}, "'alibi_slopes' of float32, got torch.float16"),
        ({"alibi_slopes": [1.0]}, "'alibi_slopes' to be a tensor, got list"),
        ({"s_aux": torch.ones(2, 4)}, r"'s_aux' of \[4\], got \[2, 4\]"),
        ({"s_aux": torch.ones(4).int()}, "'s_aux' of float16 or bfloat16 or float32, got torch.int32"),
        ({"s_aux": torch.ones(4, device="meta")}, "'s_aux' on cpu, as 'q' is, got meta"),
        ({"cache_seqlens": torch.ones(3).int()}, r"'cache_seqlens' of \[2\], got \[3\]"),
        ({"cache_seqlens": torch.ones(2)}, "'cache_seqlens' of int32 or int64, got torch.float32"),
        ({"cache_seqlens": 49}, "'cache_seqlens' to be for at most 48 keys of a sequence and not negative, got 49$"),
        ({"cache_seqlens": 2**70}, f"not negative, got {2**70}$"),
        ({"cache_seqlens": torch.tensor([3, 2**32 + 3])}, "not negative, got 2147483647 for sequence 1"),
        ({"cache_seqlens": torch.tensor([3, 3]).to_sparse()}, "'cache_seqlens' to be a dense tensor, got torch.sparse_coo"),
        ({"cache_seqlens": torch.tensor([3, -1])}, "not negative, got -1 for sequence 1"),
        ({"block_table": torch.zeros(3, 3).int()}, r"'block_table' of \[2, columns\], got \[3, 3\]"),
        ({"block_table": torch.tensor([[0, 0, 0], [0, 99, 0]]), "cache_seqlens": 17},
         r"'block_table' to have pages in \[0, 9\), got 99 for sequence 1, column 1"),
        ({"k": torch.ones(2, 1, 2, 16)}, "expects both 'k' and 'v', or none, got only 'k'"),
        ({"k": torch.ones(2, 1, 2, 16), "v": torch.ones(2, 2, 2, 16)}, r"'v' of \[2, 1, 2, 16\], got \[2, 2, 2, 16\]"),
        ({"k": torch.ones(2, 9, 2, 16), "v": torch.ones(2, 9, 2, 16)},
         "at most 48 keys of a sequence, and 9 new ones, and not negative, got 40 for sequence 0"),
        ({"q": torch.ones(2, 4, 16)}, r"'q' of \[batch, seqlen_q, heads, head_dim\], got \[2, 4, 16\]"),
        ({"q": torch.ones(2, 1, 4, 16).double()}, "'q' of float16, bfloat16 or float32, got torch.float64"),
        ({"block_table": torch.full((2, 3), 2**32)}, r"pages in \[0, 9\), got 2147483647 for sequence 0, column 0"),
        ({"q": torch.ones(2, 1, 0, 16)}, r"'q' with heads and elements, got \[2, 1, 0, 16\]"),
        ({"q": torch.ones(2, 1, 4, 0)}, r"'q' with heads and elements, got \[2, 1, 4, 0\]"),
        ({"q": torch.ones(2, 1, 3, 16)}, r"heads of 'q' to be a multiple of those of 'k_cache' \(2\), got 3"),
        ({"q": torch.ones(2, 1, 4, 8)}, "'k_cache' to have heads of 8 elements, as 'q' has, got 16"),
        ({"q": torch.ones(2, 1, 4, 16).half()}, "'k_cache' of torch.float16, as 'q' is, got torch.float32"),
        ({"q": torch.ones(2, 1, 4, 16, requires_grad=True)}, r"'q' without gradients, .* use torch.no_grad\(\)"),
        ({"q": torch.ones(2, 1, 4, 16, device="meta")}, "'q' on a CPU or a CUDA device, got meta"),
        ({"k_cache": torch.ones(9, 16, 2, 16, device="meta")}, "'k_cache' on cpu, as 'q' is, got meta"),
        ({"v_cache": torch.ones(9, 16, 2, 16)[1:]}, r"'v_cache' of \[9, 16, 2, 16\], got \[8, 16, 2, 16\]"),
        ({"v_cache": torch.ones(9, 16, 2, 32)[..., ::2]}, "the elements of a head side by side, got a distance of 2"),
        ({"q": [1]}, "'q' to be a tensor, got list"),
    ],
)
def test_wrong_arguments_are_named(options, message):
    case = Case("cpu", (40, 3))
    given = {"q": case.q, "k_cache": case.caches[0], "v_cache": case.caches[1], "cache_seqlens": case.seqlens}
    with pytest.raises((ValueError, TypeError), match=message):
        flash_attn_with_kvcache(**given | case.tables | options)


NEW = torch.ones(2, 1, 2, 16)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"cache_batch_idx": torch.tensor([0, 4])}, r"'cache_batch_idx' to be rows of the cache, in \[0, 4\), got \[0, 4\]"),
        (
            {"cache_batch_idx": torch.tensor([3, 3]), "k": NEW, "v": NEW, "cache_seqlens": 1},
            r"'cache_batch_idx' to name a row at most once with 'k', got \[3, 3\]",
        ),
        ({"cache_batch_idx": torch.tensor([0])}, r"'cache_batch_idx' of \[2\], got \[1\]"),
        ({"cache_batch_idx": None, "q": torch.ones(5, 1, 4, 16)}, "'k_cache' to have a row for each of 5 sequences, got 4"),
    ],
)
def test_wrong_rows_of_a_cache(options, message):
    case = FlatCase("cpu", (40, 3))
    with pytest.raises(ValueError, match=message):
        flash_attn_with_kvcache(**{"q": case.q, "k_cache": case.caches[0], "v_cache": case.caches[1]} | options)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"dropout_p": 0.1}, "'dropout_p' is not supported: attention to a cache has no dropout"),
        ({"cu_seqlens_q": torch.tensor([0, 5, 4])}, "'cu_seqlens_q' to begin with 0 and not to decrease"),
        ({"cu_seqlens_q": torch.tensor([0, 4, 8])}, "'cu_seqlens_q' to end at most at the 7 rows, got 8"),
        ({"cu_seqlens_k": torch.tensor([0, 4])}, r"'cu_seqlens_k' of \[3\], got \[2\]"),
        ({"cu_seqlens_k": torch.tensor([0, 4, 13])}, "'cu_seqlens_k' to end at most at the 12 rows, got 13"),
        ({"max_seqlen_q": 3}, r"'max_seqlen_q' to be at least the longest sequence \(4\), got 3"),
        ({"cu_seqlens_k": torch.tensor([0, 9, 12]), "max_seqlen_k": 9, "window_size": (-1, 2)},
         "fewer keys than queries .* sequence 1 has 3 keys and 4 queries"),
        ({"cu_seqlens_k": torch.tensor([0, 9, 12]), "max_seqlen_k": 9, "alibi_slopes": torch.ones(4)},
         "fewer keys than queries .* sequence 1 has 3 keys and 4 queries"),
        ({"max_seqlen_k": 7}, r"'max_seqlen_k' to be at least the longest sequence \(8\), got 7"),
        ({"q": torch.ones(7, 64)}, r"'q' of \[total_q, heads, head_dim\], got \[7, 64\]"),
        ({"k": torch.ones(3, 4, 2, 16)}, r"'k' of \[total_k, kv_heads, head_dim\], got \[3, 4, 2, 16\]"),
    ],
)
def test_wrong_arguments_of_sequences_are_named(options, message):
    given = {
        "q": torch.ones(7, 4, 16), "k": torch.ones(12, 2, 16), "v": torch.ones(12, 2, 16),
        "cu_seqlens_q": torch.tensor([0, 3, 7]), "cu_seqlens_k": torch.tensor([0, 4, 12]),
        "max_seqlen_q": 4, "max_seqlen_k": 8,
    }
    assert flash_attn_varlen_func(**given).isfinite().all()
    with pytest.raises((ValueError, TypeError), match=message):
        flash_attn_varlen_func(**given | options)
