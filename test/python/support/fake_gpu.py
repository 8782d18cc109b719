"""Tensors of a GPU that have no memory, on machines without one."""

import contextlib
from unittest import mock

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

DEVICE = torch.device("cuda:0")


class Event:
    """An event of a GPU, which ends when the test says so."""

    has_ended = False

    def record(self, stream):
        pass

    def query(self):
        return Event.has_ended


@contextlib.contextmanager
def fake_gpu():
    """Makes PyTorch's operators return tensors without elements, also on CUDA devices.

    So a read of an element by the host raises ``DataDependentOutputException``, and so do tensors of
    different devices in one operator.
    """
    with FakeTensorMode(allow_non_fake_inputs=True), fake_streams():
        yield


@contextlib.contextmanager
def fake_streams():
    """Replaces the functions of PyTorch that need a driver."""
    empty = torch.empty
    with (
        mock.patch.object(torch.Tensor, "pin_memory", lambda tensor: tensor),
        mock.patch.object(torch, "empty", lambda *sizes, pin_memory=False, **options: empty(*sizes, **options)),
        mock.patch.object(torch.cuda, "Event", Event),
        mock.patch.object(torch.cuda, "current_stream", lambda device=None: None),
        mock.patch.object(torch.cuda, "get_device_capability", lambda device=None: (9, 0)),
    ):
        yield


def move(model):
    """Moves a model to the GPU. ``Module.to`` can't within a fake mode."""
    for module in model.modules():
        for name, parameter in module._parameters.items():
            if parameter is not None:
                moved = torch.nn.Parameter(parameter.detach().to(DEVICE), requires_grad=False)
                module._parameters[name] = moved
        for name, buffer in module._buffers.items():
            module._buffers[name] = None if buffer is None else buffer.to(DEVICE)
    return model
