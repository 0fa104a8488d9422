# SPDX-License-Identifier: Apache-2.0
"""The three models that every server of the serving bench runs. As a program, models.py FOLDER, it
writes mlp.pt2 for fxserve and tiny.xml, first.xml and mlp.xml for the native reference.
"""
import os
import sys

import torch

FLOATS = 150528  # an image of 3x224x224


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


def model(name):
    torch.set_num_threads(1)
    return {"tiny": Tiny, "first": First, "mlp": Mlp}[name]().eval()


def main():
    import openvino
    folder = sys.argv[1]
    for name, shape in (("tiny", (3, 4)), ("first", (FLOATS,)), ("mlp", (1, 784))):
        exported = torch.export.export(model(name), (torch.zeros(shape),))
        converted = openvino.convert_model(exported)
        converted.reshape(shape)
        openvino.save_model(converted, os.path.join(folder, f"{name}.xml"), compress_to_fp16=False)
    batch = torch.export.Dim("batch")
    torch.export.save(torch.export.export(model("mlp"), (torch.zeros(2, 784),), dynamic_shapes=({0: batch},)),
                      os.path.join(folder, "mlp.pt2"))


if __name__ == "__main__":
    main()
