"""Functions of scores and masks, of numbers or arrays of NumPy; without ``np``, also of tensors."""

import numpy as np


def alibi(s, sequence, head, query, key, slopes):
    return s + slopes[head] * (key - query)


def causal(sequence, head, query, key):
    return key <= query


def prefix_lm(sequence, head, query, key, prefixes):
    return (key <= query) | (key < prefixes[sequence])


def documents_causal(sequence, head, query, key, documents):
    return (key <= query) & (documents[sequence, key] == documents[sequence, query])


def global_window(sequence, head, query, key):
    return (key <= query) & ((query - key < 9) | (key < 4))


def dilated(sequence, head, query, key):
    return (key <= query) & ((query - key) % 3 == 0)


def capped(s, sequence, head, query, key):
    return 20 * np.tanh(s / 20)
