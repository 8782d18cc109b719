"""Tests of top_rows on data: each row against a stable sort of its candidates."""

import dataclasses

import numpy as np
import pytest
from devices import TARGETS as CHIPS

import kvcache
from kvcache import KVCacheParams, StepInputs

CPU = "cpu"
TARGETS = [CPU, *CHIPS]
PAGE = 16
PARAMS = KVCacheParams("f32", 1, 32, page_size=PAGE, is_mla=True)


@dataclasses.dataclass(frozen=True)
class Options:
    """The options of a selection that change its result."""

    width: int = 1
    whole: bool = False
    expand: bool = False
    tail: bool = False
    first: int = 0
    last: int = 0

    def count_columns(self, k):
        return k * (self.width if self.expand else 1) + (self.width - 1 if self.tail else 0)

    def count_candidates(self, position):
        return (position + 1 + (0 if self.whole else self.width - 1)) // self.width


def make_step(lengths, new, page_tokens=1, seed=0):
    """Sequences with so many tokens before the step and in it; pages are in random order.

    ``page_tokens`` are the tokens of an entry of the cache.
    """
    lengths, new = np.array(lengths, np.int32), np.array(new, np.int32)
    pages = -(-(lengths + new) // (PAGE * page_tokens))
    rng = np.random.default_rng(seed)
    lut = np.zeros((len(lengths), int(pages.max()) + 1), np.uint32)
    order = iter(rng.permutation(int(pages.sum())))
    for b, count in enumerate(pages):
        lut[b, :count] = [next(order) for _ in range(count)]
    offsets = np.concatenate([[0], np.cumsum(new)]).astype(np.int32)
    blocks = np.zeros((int(pages.sum()), 1, 1, PAGE, 1, 32), np.float32)
    return StepInputs.of(blocks=blocks, lengths=lengths, lut=lut, row_offsets=offsets)


def select(scores, position, k, options):
    """The tokens of a row, by the order of the op: a stable sort of its candidates."""
    count = options.count_candidates(position)

    def rank(c):
        is_forced = c < options.first or c >= count - options.last
        is_nan = bool(np.isnan(scores[c]))
        return not is_forced, is_nan, 0.0 if is_nan else -float(scores[c]), c

    chosen = sorted(range(count), key=rank)[:k]
    if not options.expand:
        return sorted(chosen)
    width = options.width
    tokens = [t for c in sorted(chosen) for t in range(c * width, (c + 1) * width) if t <= position]
    if options.tail:
        tokens += range((position + 1) // width * width, position + 1)
    return tokens


def expect(step, scores, k, options, lengths=None):
    """The rows and the tokens of all rows of scores, [total, heads, n]."""
    total, heads = scores.shape[:2]
    lengths = step.lengths if lengths is None else lengths
    tokens = np.full((total, heads, options.count_columns(k)), -1, np.int32)
    ids = tokens.copy()
    offsets = step.row_offsets
    for b in range(len(lengths)):
        for row in range(offsets[b], offsets[b + 1]):
            for head in range(heads):
                chosen = np.array(
                    select(scores[row, head], int(lengths[b]) + row - int(offsets[b]), k, options), np.int64
                )
                tokens[row, head, : len(chosen)] = chosen
                ids[row, head, : len(chosen)] = step.lut[b, chosen // PAGE].astype(np.int64) * PAGE + chosen % PAGE
    return ids, tokens


def check(target, step, scores, k, options=Options(), lengths=None, splits=1, **build):
    """Compares one call with the model, bit by bit."""
    build["splits"] = splits
    operation = kvcache.ops.top_rows(PARAMS, k, **dataclasses.asdict(options), target=target, **build)
    wide = scores if scores.ndim == 3 else scores[:, None]
    ids, tokens = expect(step, wide, k, options, lengths)
    if scores.ndim == 2:
        ids, tokens = ids[:, 0], tokens[:, 0]
    found_ids, found_tokens = np.full_like(ids, 99), np.full_like(tokens, 99)
    given = {}
    if splits > 1:
        given["workspace"] = np.full((*scores.shape[:-1], splits, 2 * k), -1, np.int32)
    operation(step, scores, out=found_ids, tokens=found_tokens, lengths=lengths, **given)
    np.testing.assert_array_equal(found_tokens, tokens)
    np.testing.assert_array_equal(found_ids, ids)


def draw_scores(shape, seed=0, most=3):
    """Integers, so that many scores are equal."""
    rng = np.random.default_rng(seed)
    return rng.integers(-most, most + 1, shape).astype(np.float32)


@pytest.mark.parametrize("target", TARGETS)
def test_top_rows_with_special_scores(target):
    step = make_step([0, 40, 7, 63], [3, 1, 0, 2])
    scores = draw_scores((7, 70))
    special = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-45, np.float32(3.4e38)]
    for row in range(7):
        places = np.random.default_rng(row).permutation(70)[: 3 * len(special)]
        scores[row, places] = special * 3
    for k in (5, 64):
        check(target, step, scores, k)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "options",
    [
        Options(width=4),
        Options(width=4, whole=True),
        Options(width=4, expand=True),
        Options(width=4, whole=True, expand=True, tail=True),
        Options(width=3, expand=True, first=1, last=2),
        Options(first=2),
        Options(last=3),
        Options(width=8, whole=True, first=1, last=1),
    ],
    ids=lambda options: "-".join(f"{name}{value}" for name, value in vars(options).items() if value),
)
def test_top_rows_with_options(target, options):
    step = make_step([0, 50, 61], [5, 4, 1])
    check(target, step, draw_scores((10, 70)), 6, options)


@pytest.mark.parametrize("target", TARGETS)
def test_top_rows_of_heads_are_independent(target):
    check(target, make_step([5, 90], [1, 2]), draw_scores((3, 4, 96)), 16, Options(first=1, last=1))


@pytest.mark.parametrize("target", TARGETS)
def test_lengths_count_tokens_of_a_cache_of_entries(target):
    """Each entry of the cache stands for four tokens, and the cache counts entries."""
    options = Options(width=4, whole=True)
    step = make_step([50, 9], [2, 3], page_tokens=4)
    tokens = step.lengths.copy()
    step.lengths[:] = tokens // 4
    check(target, step, draw_scores((5, 16)), 4, options, lengths=tokens)


def draw_long_scores(kind, columns):
    rng = np.random.default_rng(columns)
    return {
        "random": lambda: rng.standard_normal(columns),
        "equal": lambda: np.zeros(columns),
        "ascending": lambda: np.arange(columns),
        "descending": lambda: -np.arange(columns),
        "few": lambda: rng.integers(0, 3, columns),
    }[kind]().astype(np.float32)[None]


LONG = [("random", 2048), ("equal", 512), ("ascending", 100), ("descending", 4096), ("few", 1024)]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("kind", "k"), LONG, ids=lambda value: str(value))
def test_top_rows_of_long_sequences(target, kind, k):
    """The buffer fills several times, and thresholds are found in it."""
    columns = 20_000 if target == CPU else 14_000
    check(target, make_step([columns - 1], [1]), draw_long_scores(kind, columns), k)


@pytest.mark.parametrize("threads", [32, 96, 512])
def test_top_rows_with_any_number_of_threads(threads):
    scores = np.concatenate([draw_long_scores(kind, 1500) for kind in ("random", "few")])
    check(CHIPS[1], make_step([1498], [2]), scores, 70, block_threads=threads)


@pytest.mark.long
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ["special", "options", "heads", "entries", "long"])
def test_splits_do_not_change_the_selection(target, name):
    """Rows shorter than a split, ties and forced candidates in several splits, and buffers that fill."""
    if name == "special":
        scores = draw_scores((6, 500))
        scores[:, ::7] = np.resize([np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-45], (6, 72))
        check(target, make_step([0, 40, 497], [2, 1, 3]), scores, 64, splits=5)
    elif name == "options":
        options = Options(width=3, whole=True, expand=True, tail=True, first=9, last=5)
        check(target, make_step([0, 700, 61], [5, 4, 1]), draw_scores((10, 240)), 20, options, splits=3)
    elif name == "heads":
        check(target, make_step([5, 190], [1, 2]), draw_scores((3, 4, 200)), 16, Options(first=1, last=1), splits=2)
    elif name == "entries":
        step = make_step([1000, 9], [2, 3], page_tokens=4)
        tokens = step.lengths.copy()
        step.lengths[:] = tokens // 4
        check(target, step, draw_scores((5, 251)), 4, Options(width=4, whole=True), tokens, splits=7)
    else:
        scores = np.concatenate([draw_long_scores(kind, 14_000) for kind in ("few", "random", "ascending")])
        check(target, make_step([13_997], [3]), scores, 100, splits=3, block_threads=128)


@pytest.mark.parametrize("splits", [1, 4])
@pytest.mark.parametrize("target", [CPU, CHIPS[1]])
def test_rows_of_padding_are_minus_one(target, splits):
    step = make_step([4], [1])
    out = np.full((3, 8), 99, np.int32)
    workspace = {"workspace": np.zeros((3, 4, 16), np.int32)} if splits > 1 else {}
    operation = kvcache.ops.top_rows(PARAMS, 8, splits=splits, target=target)
    operation(step, draw_scores((3, 8)), out=out, **workspace)
    assert (out[1:] == -1).all() and (out[0, :5] >= 0).all()


def test_selection_does_not_depend_on_other_rows():
    scores = draw_scores((5, 200))
    step, alone = make_step([199, 196], [1, 4]), make_step([199], [1])
    outs = np.empty((5, 32), np.int32), np.empty((1, 32), np.int32)
    tokens = np.empty((5, 32), np.int32), np.empty((1, 32), np.int32)
    operation = kvcache.ops.top_rows(PARAMS, 32)
    operation(step, scores, out=outs[0], tokens=tokens[0])
    operation(alone, scores[:1], out=outs[1], tokens=tokens[1])
    np.testing.assert_array_equal(tokens[0][:1], tokens[1])


@pytest.mark.parametrize("target", [CPU, CHIPS[0]])
def test_rows_do_not_depend_on_the_output_of_tokens(target):
    step, scores = make_step([30], [2]), draw_scores((2, 32))
    outs, tokens = np.empty((2, 2, 6), np.int32), np.empty((2, 6), np.int32)
    operation = kvcache.ops.top_rows(PARAMS, 6, target=target)
    operation(step, scores, out=outs[0])
    operation(step, scores, out=outs[1], tokens=tokens)
    np.testing.assert_array_equal(outs[0], outs[1])


@pytest.mark.parametrize("heads", [1, 2])
def test_values_of_a_separate_cache_are_not_read(heads):
    """Values of another head size, as in DeepSeek's prompts, or none."""
    params = KVCacheParams("f32", heads, 32, page_size=PAGE, total_num_layers=1, is_mla=heads == 1)
    step, scores = make_step([30], [1]), draw_scores((1, 31))
    keys, values = np.ones((2, PAGE, heads, 32), np.float32), np.zeros((2, PAGE, heads, 8), np.float32)
    table = {"lengths": step.lengths, "lut": step.lut, "row_offsets": step.row_offsets}
    operation = kvcache.ops.top_rows(params, 8, separate=True)
    pool = kvcache.ops.pool(params, 31, separate=True)
    expected, _ = expect(step, scores[:, None], 8, Options())
    for given in ({}, {"values": values}):
        inputs, out, summary = StepInputs.of(keys=keys, **given, **table), np.zeros((1, 8), np.int32), np.zeros((1, heads, 32), np.float32)
        operation(inputs, scores, out=out)
        np.testing.assert_array_equal(out, expected[:, 0])
        pool(inputs, 0, out=summary)
        assert (summary == 1).all()


def test_attention_reads_the_selected_rows():
    """All tokens selected: attention to the rows is attention to the sequence."""
    step = make_step([29], [1])
    step.blocks[0][:] = np.random.default_rng(3).standard_normal(step.blocks[0].shape)
    rows = np.empty((1, 64), np.int32)
    kvcache.ops.top_rows(PARAMS, 64)(step, draw_scores((1, 30)), out=rows)
    q = np.random.default_rng(4).standard_normal((1, 4, 32)).astype(np.float32)
    chosen, dense = np.empty_like(q), np.empty_like(q)
    kvcache.ops.attention(PARAMS, 4, value_dim=32, rows=True)(step, 0, q, out=chosen, scale=0.25, rows=rows)
    kvcache.ops.attention(PARAMS, 4, value_dim=32)(step, 0, q, out=dense, scale=0.25)
    np.testing.assert_allclose(chosen, dense, rtol=1e-5, atol=1e-6)


# --- Errors ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"k": 4097}, "expects 'k' to be at most 4096, got 4097"),
        ({"k": 0}, "expects 'k' to be positive, got 0"),
        ({"width": 0}, "expects 'width' to be positive, got 0"),
        ({"first": -1}, "expects 'first' not to be negative, got -1"),
        ({"first": 5, "last": 4}, "at most 'k' .8. together, got 5 and 4"),
        ({"splits": 257}, "expects 'splits' to be at most 256, got 257"),
        ({"splits": 0}, "expects 'splits' to be positive, got 0"),
        ({"tail": True}, "expects 'tail' only with 'whole' and 'expand'"),
        ({"block_threads": 48}, "expects 'block_threads' to be a multiple of 32"),
    ],
)
def test_options_out_of_range(given, message):
    with pytest.raises(ValueError, match=message):
        kvcache.ops.top_rows(PARAMS, **{"k": 8, **given})


def test_options_of_other_types():
    with pytest.raises(TypeError, match="expects 'whole'"):
        kvcache.ops.top_rows(PARAMS, 8, whole=1.5)
    with pytest.raises(TypeError, match="expects 'k' to be an integer"):
        kvcache.ops.top_rows(PARAMS, 8.0)


def test_arrays_of_wrong_sizes():
    step, operation = make_step([20], [1]), kvcache.ops.top_rows(PARAMS, 8)
    scores, out = draw_scores((1, 21)), np.empty((1, 8), np.int32)
    operation(step, scores, out=out)
    with pytest.raises(ValueError, match="'out' to have 8 columns for 'k' .8., got 9"):
        operation(step, scores, out=np.empty((1, 9), np.int32))
    with pytest.raises(ValueError, match="'scores' to have a column for each of 21 candidates of sequence 0, got 20"):
        operation(step, scores[:, :20], out=out)
    with pytest.raises(ValueError, match="'scores' to have a row for each of 1 new tokens, got 0"):
        operation(step, scores[:0], out=out[:0])
    with pytest.raises(ValueError, match="'tokens' to have the first sizes of 'out'"):
        operation(step, scores, out=out, tokens=np.empty((1, 7), np.int32))
    with pytest.raises(ValueError, match="'lengths' to have a number for each of 1 sequences"):
        operation(step, scores, out=out, lengths=np.zeros(2, np.int32))
    with pytest.raises(ValueError, match="'lengths' not to be negative, got -5 for sequence 0"):
        operation(step, scores, out=out, lengths=np.array([-5], np.int32))
    for lengths, found in (([20], "to be an array, got list"), (np.zeros(1), "of integers, got float64")):
        with pytest.raises(TypeError, match=f"expects 'lengths' .*{found}"):
            operation(step, scores, out=out, lengths=lengths)
    with pytest.raises(TypeError, match="'lengths' to be an array of int32 or uint32, got int64"):
        operation(step, scores, out=out, lengths=np.array([20]))
    pair = make_step([19, 19], [1, 1]), np.concatenate([scores[:, :20], -scores[:, :20]])
    for given in ({"out": np.zeros((2, 8), np.int32), "tokens": out}, {"out": out}):
        name = list(given)[-1]
        given[name] = np.lib.stride_tricks.as_strided(given[name], (2, 8), (0, 4))
        with pytest.raises(ValueError, match=f"expects the elements of '{name}' to share no memory"):
            operation(*pair, **given)
    idle = make_step([100, 5], [0, 1])
    operation(idle, scores[:, :6], out=out)
    operation(idle, scores[:, :6], out=out, lengths=np.array([100, 5], np.int32))
    with pytest.raises(ValueError, match="'tokens' to share no memory with 'out'"):
        operation(step, scores, out=out, tokens=out)
    with pytest.raises(ValueError, match="expects no 'workspace', as the operation was made without it"):
        operation(step, scores, out=out, workspace=np.empty((1, 2, 16), np.int32))
    split = kvcache.ops.top_rows(PARAMS, 8, splits=2)
    with pytest.raises(ValueError, match=r"was made with splits=2: expects 'workspace', int32 \[1, 2, 16\]"):
        split(step, scores, out=out)
    with pytest.raises(ValueError, match=r"'workspace' to have the shape \[1, 2, 16\], got \[1, 2, 15\]"):
        split(step, scores, out=out, workspace=np.empty((1, 2, 15), np.int32))
    workspace = np.empty((1, 2, 16), np.int32)
    with pytest.raises(ValueError, match="'out' to share no memory with 'workspace'|'workspace' to share no memory"):
        split(step, scores, out=workspace[:, 0, :8], workspace=workspace)


@pytest.mark.parametrize(
    ("options", "most"),
    [
        (Options(), 32),
        (Options(width=4), 128),
        (Options(width=4, whole=True), 131),
        (Options(width=4, expand=True), 32),
        (Options(width=5, expand=True, whole=True), 34),
        (Options(width=4, expand=True, whole=True, tail=True), 32),
    ],
    ids=lambda value: str(value) if isinstance(value, int) else "-".join(name for name, on in vars(value).items() if on),
)
@pytest.mark.parametrize("has_lengths", [False, True])
def test_rows_beyond_the_pages(options, most, has_lengths):
    """Only what may be selected needs a page: 32 tokens, or candidates without ``expand``."""
    operation = kvcache.ops.top_rows(PARAMS, 8, **dataclasses.asdict(options))
    out = np.zeros((1, options.count_columns(8)), np.int32)

    def call(total):
        step = make_step([31 if has_lengths else total - 1], [1], page_tokens=1 if has_lengths else 99)
        step = dataclasses.replace(step, lut=np.zeros((1, 2), np.uint32))
        lengths = np.array([total - 1], np.int32) if has_lengths else None
        operation(step, draw_scores((1, total)), out=out, lengths=lengths)

    call(most)
    noun = "tokens" if options.expand or options.width == 1 else "entries"
    with pytest.raises(ValueError, match=f"sequence 0 to have at most 32 {noun}, those of the 2 pages .* got {33 if options.width < 5 else 35}"):
        call(most + 1)


@pytest.mark.parametrize("target", [CPU, CHIPS[1]])
def test_checks_of_candidates_and_pages(target, monkeypatch):
    operation = kvcache.ops.top_rows(PARAMS, 8, target=target, bounds_checks=True)
    monkeypatch.setattr("kvcache.ops.selection.check_columns", lambda *_: None)
    out = np.empty((1, 8), np.int32)
    with pytest.raises(kvcache.CheckError, match="number of columns that a row of 'scores' needs is out of range"):
        operation(make_step([20], [1]), draw_scores((1, 20)), out=out)
    in_splits = kvcache.ops.top_rows(PARAMS, 8, splits=2, target=target, bounds_checks=True)
    monkeypatch.setattr("kvcache.ops.selection.check_rows", lambda *_, **__: None)
    monkeypatch.setattr("kvcache.ops.selection.check_selection", lambda *_, **__: None)
    with pytest.raises(kvcache.CheckError, match="number of rows of 'ids' in 'workspace'"):
        in_splits(make_step([20], [1]), draw_scores((1, 21)), out=out, workspace=np.zeros((0, 2, 16), np.int32))
    step = make_step([20], [1])
    step.lut[:] = 1 << 28
    with pytest.raises(kvcache.CheckError, match="out of range"):
        operation(step, draw_scores((1, 21)), out=out)
