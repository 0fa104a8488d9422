# SPDX-License-Identifier: Apache-2.0
"""What the files of architectures for zoo.py share."""

import torch
from torch import nn

LARGEST = 320e6  # parameters; a model is in memory up to six times


def net(forward, **parts):
    """A module with these layers, parameters and buffers, and with `forward(self, …)`."""
    module = type("Net", (nn.Module, ), {"forward": forward})()
    for name, part in parts.items():
        if isinstance(part, list):
            part = nn.ModuleList(part)
        if isinstance(part, torch.Tensor) and not isinstance(part, nn.Parameter):
            module.register_buffer(name, part)
        else:
            setattr(module, name, part)
    return module


def param(*shape):
    return nn.Parameter(torch.randn(*shape) * 0.3)


def signals(module, first, second):
    """The module with one input of numbers in two sizes."""
    return module, (torch.randn(*first), ), (torch.randn(*second), )


def tokens(*shape, high=20):
    return torch.randint(0, high, shape)


def small(module):
    count = sum(parameter.numel() for parameter in module.parameters())
    if count > LARGEST:
        raise ValueError(f"{count / 1e6:.0f} million parameters")
    return module


def made_on_meta(make):
    """Refuses models that are too large before their weights take memory."""
    try:
        with torch.device("meta"):
            small(make())
    except NotImplementedError:  # it looks at numbers while it is made
        return small(make())
    return make()
