# SPDX-License-Identifier: Apache-2.0
"""The models that every server of the serving bench runs. As a program, models.py FOLDER, it writes
mlp.pt2 and minilm.pt2 for fxserve, and NAME.xml of each model for the native reference.
"""
import os
import sys

import torch

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
from engine_layers import layers  # noqa: E402

FLOATS = 150528  # an image of 3x224x224
TOKENS = 16


class Tiny(torch.nn.Module):
    def forward(self, x):
        return x.relu().neg().abs()


class First(torch.nn.Module):
    """An image's worth of numbers in, 1,000 out, and next to nothing to compute."""

    def forward(self, x):
        return x.narrow(0, 0, 1000).relu()


class Mlp(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        linear, relu = torch.nn.Linear, torch.nn.ReLU
        self.layers = torch.nn.Sequential(linear(784, 512), relu(), linear(512, 512), relu(), linear(512, 10))

    def forward(self, x):
        return self.layers(x)


class MiniLM(torch.nn.Module):
    """The shape of all-MiniLM-L6-v2 with random weights. Tokens come as floats, as all inputs here do."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.words, self.layers = torch.nn.Embedding(30522, 384), layers(6, 384, 12, TOKENS)

    def forward(self, x):
        return self.layers(self.words(x.long())).mean(1)


SHAPES = {"tiny": (3, 4), "first": (FLOATS,), "mlp": (1, 784), "minilm": (1, TOKENS)}


def model(name):
    torch.set_num_threads(1)
    return {"tiny": Tiny, "first": First, "mlp": Mlp, "minilm": MiniLM}[name]().eval()


def main():
    import openvino
    folder = sys.argv[1]
    for name, shape in SHAPES.items():
        exported = torch.export.export(model(name), (torch.zeros(shape),))
        converted = openvino.convert_model(exported)
        converted.reshape(shape)
        openvino.save_model(converted, os.path.join(folder, f"{name}.xml"), compress_to_fp16=False)
    batch = torch.export.Dim("batch")
    for name in ("mlp", "minilm"):
        example = torch.zeros(2, SHAPES[name][1])
        torch.export.save(torch.export.export(model(name), (example,), dynamic_shapes=({0: batch},)),
                          os.path.join(folder, f"{name}.pt2"))


if __name__ == "__main__":
    main()
