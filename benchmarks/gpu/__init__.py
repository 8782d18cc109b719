"""The benchmarks on a GPU: whether every contender is right, and then how fast it is.

On the machine with the GPU this needs Python 3.10, NumPy and cuda-bindings; `pack.py` and `emulate.py` belong to the
machine with the compiler.
"""
