"""Streams of CUDA, on a GPU or on the stand-in driver."""

from standin import succeed


def synchronize(stream):
    from cuda.bindings import driver as bindings

    succeed(bindings.cuStreamSynchronize(stream))


def capture(stream, call):
    """Captures the work of a call in a graph."""
    from cuda.bindings import driver as bindings

    succeed(bindings.cuStreamBeginCapture(stream, bindings.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL))
    try:
        call()
    finally:
        error, graph = bindings.cuStreamEndCapture(stream)
    assert int(error) == 0, error
    return succeed(bindings.cuGraphInstantiate(graph, 0))
