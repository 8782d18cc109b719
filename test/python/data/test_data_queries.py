"""Tests of queries of a cache against the NumPy model."""

import functools
from dataclasses import replace

import pytest
from devices import spread
from edits import edit
from hypothesis import given
from hypothesis import strategies as st
from model import PagedView
from programs import Shape, Source, caches, examples, page_span, small_cache

SHAPES = [
    Shape("f32", 1, 4, 1),
    Shape("bf16", 2, 8, 3),
    Shape("f8E4M3FN", 3, 16, 48),
    Shape("f16", 8, 128, 64),
    Shape("bf16", 4, 24, 256),
    Shape("f8E5M2", 1, 576, 64, mla=True),
    Shape("bf16", 2, 3, 7),
    Shape("f32", 2, 8, None),
    Shape("f8E4M3FN", 5, 24, None),
    Shape("bf16", 1, 576, None, mla=True),
]
each_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)

FACTS = {
    "num_kv_rows": "index",
    "max_prompt_length": "index",
    "max_context_length": "index",
    "empty_cache": "i1",
}
# The results of queries of scales for a cache without scales.
WITHOUT_SCALES = ("cache_length", "max_context_length", "extent batch")
OF_COLLECTIONS = ("max_prompt_length", "max_context_length", "empty_cache")


def add_query(source, op, view, name, indices="", results="index"):
    operands = f"[{', '.join(f'%{index}' for index in indices)}]" if indices else ""
    type = {"%c": "!collection", "%k": "!cache", "%s": "!kvcache.scales<!cache>"}[view]
    made = "  %s = kvcache.scales_view %k : !cache\n" if view == "%s" else ""
    values = ", ".join(f"%r{i}" for i, _ in enumerate(results.split(", ")))
    body = f"{made}  {values} = kvcache.{op} {view}{operands} : {type}\n"
    body += f"  return {values} : {results}"
    role = "value" if name.endswith("value") else "key"
    source.add(
        name, [f"{index}: index" for index in indices], body, results, f"%k = {role}"
    )


@functools.cache
def compile_queries(shape, target="cpu"):
    source = Source(shape)
    for op in OF_COLLECTIONS:
        add_query(source, op, "%c", f"{op}_of_collection", results=FACTS[op])
    add_query(source, "cache_length", "%c", "cache_length_of_collection", "b")
    add_query(source, "extent layers", "%c", "extent_layers")
    for op in WITHOUT_SCALES:
        indices = "b" if op == "cache_length" else ""
        add_query(source, op, "%s", f"{op.replace(' ', '_')}_without_scales", indices)
    for role in shape.roles:
        for op, result in FACTS.items():
            add_query(source, op, "%k", f"{op}_{role}", results=result)
        for op, indices in (
            ("cache_length", "b"),
            ("page_id", "bt"),
            ("row_index", "bt"),
            ("tma_row", "e"),
            ("col_index", "h"),
        ):
            add_query(source, op, "%k", f"{op}_{role}", indices)
        if shape.page_size:
            add_query(
                source, "tma_coords", "%k", f"tma_coords_{role}", "bt", "index, index"
            )
        for extent in ("batch", "pages", "tokens"):
            add_query(source, f"extent {extent}", "%k", f"extent_{extent}_{role}")
        add_query(source, "row_index", "%k", f"row_index_of_page_{role}", "bt")
        source.functions[-1] = edit(
            source.functions[-1],
            ("%t: index", "%t: index, %page: index"),
            ("%k[%b, %t]", "%k[%b, %t] page %page"),
        )
    return source.compile(target=target)


# Nothing is read from the blocks, so pages may be far apart, and ids may be any.
word = st.integers(0, 2**32 - 1)
any_word = word | st.sampled_from((0, 1, 2**31 - 1, 2**31, 2**32 - 1))


@st.composite
def queries(draw, shape, whole):
    """Draws a cache of any size, a layer, and arguments of queries. ``whole`` ones exist in memory."""
    tokens = 5 * (shape.page_size or 9)
    if whole:
        cache = draw(caches(shape, tokens))
        return cache, draw(questions(shape, cache))
    cache = draw(caches(shape, tokens, ids=any_word))
    least = -(-page_span(cache) // shape.row)
    distance = shape.row * draw(
        st.integers(least, 2**29) | st.sampled_from((least, 2**30))
    )
    # Arrays keep no distance along a dimension of one.
    pages = draw(st.integers(2, 2**31 - 1) | st.integers(2, 9))
    cache = replace(
        cache,
        shape=(pages, *cache.shape[1:]),
        distances=(distance, *cache.distances[1:]),
    )
    return cache, draw(questions(shape, cache))


@st.composite
def questions(draw, shape, cache):
    tokens = st.integers(0, cache.view(0, 0).tokens() - 1)
    return (
        draw(st.integers(0, cache.shape[2] - 1)),
        draw(st.integers(0, len(cache.lengths) - 1)),
        draw(st.integers(0, shape.heads - 1)),
        draw(tokens),
        draw(
            st.integers(0, (shape.page_size or 1) * 2**32 - 1)
            | st.integers(-(2**63), -1)
        ),
        draw(any_word),
    )


@each_shape
@given(st.data())
@examples(60)
def test_queries(shape, data):
    check_queries(shape, data)


@pytest.mark.parametrize(("shape", "target"), spread(SHAPES))
@given(st.data())
@examples(4)
def test_queries_in_kernels(shape, target, data):
    check_queries(shape, data, target)


def check_queries(shape, data, target="cpu"):
    program = compile_queries(shape, target)
    cache, (layer, b, h, t, e, page) = data.draw(queries(shape, target != "cpu"))

    def ask(function, *indices):
        return program.call(function, *cache.arguments(shape.numpy), layer, *indices)

    view = cache.view(0, layer)
    for op in OF_COLLECTIONS:
        assert ask(f"{op}_of_collection") == getattr(view, op)()
    assert ask("cache_length_of_collection", b) == view.cache_length(b)
    assert ask("extent_layers") == cache.shape[2]
    assert ask("cache_length_without_scales", b) == view.cache_length(b)
    assert ask("max_context_length_without_scales") == view.max_context_length()
    assert ask("extent_batch_without_scales") == len(cache.lengths)
    for number, role in enumerate(shape.roles):
        view = cache.view(number, layer)
        for op in FACTS:
            assert ask(f"{op}_{role}") == getattr(view, op)()
        assert ask(f"cache_length_{role}", b) == view.cache_length(b)
        assert ask(f"page_id_{role}", b, t) == view.page_id(b, t)
        assert ask(f"row_index_{role}", b, t) == view.row_index(b, t)
        known = page * view.row_distance + view.row_in_page(t)
        assert ask(f"row_index_of_page_{role}", b, t, page) == known
        for encoded in (e, -1, 0):
            assert ask(f"tma_row_{role}", encoded) == view.tma_row(encoded)
        assert ask(f"col_index_{role}", h) == view.col_index(h)
        if isinstance(view, PagedView):
            assert ask(f"tma_coords_{role}", b, t) == view.tma_coords(b, t)
        assert ask(f"extent_batch_{role}") == len(cache.lengths)
        assert ask(f"extent_pages_{role}") == cache.shape[0]
        assert ask(f"extent_tokens_{role}") == view.tokens()


@pytest.mark.parametrize("shape", SHAPES[1:2] + SHAPES[-1:], ids=str)
@pytest.mark.parametrize("length", [0, 1, 2**31 - 1, 2**31, 2**32 - 1])
@pytest.mark.parametrize("signed", [False, True])
def test_words_are_unsigned(shape, length, signed):
    """Tests lengths, maxima and ids as signed and unsigned arrays."""
    cache = small_cache(shape, word=length)
    if signed:
        cache = replace(
            cache,
            table=cache.table.view("i4"),
            lengths=cache.lengths.view("i4"),
            max_seq=int(cache.lengths.view("i4")[0]),
            max_cache=int(cache.lengths.view("i4")[0]),
        )
    program = compile_queries(shape)
    arguments = (*cache.arguments(shape.numpy), 0)
    assert program.call("cache_length_key", *arguments, 0) == length
    assert program.call("max_prompt_length_key", *arguments) == length
    assert program.call("max_context_length_key", *arguments) == length
    assert program.call("empty_cache_key", *arguments) is (length == 0)
    assert program.call("page_id_key", *arguments, 0, 0) == length
    distance = cache.view(0, 0).row_distance
    assert program.call("row_index_key", *arguments, 0, 0) == length * distance
