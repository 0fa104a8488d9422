# SPDX-License-Identifier: Apache-2.0
"""Makes the FX JSON models of tests/models with the outputs PyTorch gives for them.

    python tools/generate/make_models.py [--out tests/models]

Written for each model: `<name>.fx.json` and `<name>.safetensors` (inputs and outputs, see
expected.py). Weights come from seeded_weights.py: inline for the small models; for mlp_784 and
resnet18 only their SHA-256 is kept, and of resnet18's inputs only the number that makes them
(in{set}.0 is `--input x.npy --number {set}`).
"""

import argparse
import hashlib
import pathlib
import sys

import torch
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))  # export_fx.py
from expected import save_sets
from export_fx import dumps, export_fx
from seeded_weights import make_input, make_state, safetensors_bytes

# ---- the networks ------------------------------------------------------------------------------


def relu_neg_abs(x):
    return torch.abs(torch.neg(torch.relu(x)))


def relu_neg_abs_methods(x):
    return x.relu().neg().abs()


def neg_sigmoid(x):
    return torch.sigmoid(torch.neg(x))


def neg_sigmoid_methods(x):
    return x.neg().sigmoid()


class LinearModule(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(10, 20)

    def forward(self, x):
        return self.linear(x)


class MyModule(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3)
        self.relu = nn.ReLU()

    def forward(self, x):
        return self.relu(self.conv1(x))


class NestedModule(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = nn.MaxPool2d(2)

    def forward(self, x):
        return self.pool(x)


class NestedConv(nn.Module):
    def __init__(self):
        super().__init__()
        self.my_module = MyModule()
        self.nested_module = NestedModule()

    def forward(self, x):
        return self.nested_module(self.my_module(x))


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(784, 512)
        self.fc2 = nn.Linear(512, 512)
        self.fc3 = nn.Linear(512, 10)

    def forward(self, x):
        x = torch.relu(self.fc1(x))
        x = torch.relu(self.fc2(x))
        return self.fc3(x)


class Block(nn.Module):
    """The basic residual block: two 3x3 convolutions and a shortcut, with a 1x1 convolution where
    the shape changes."""

    def __init__(self, n_in, n_out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(n_in, n_out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(n_out)
        self.relu = nn.ReLU()
        self.conv2 = nn.Conv2d(n_out, n_out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(n_out)
        self.downsample = None
        if stride != 1 or n_in != n_out:
            self.downsample = nn.Sequential(nn.Conv2d(n_in, n_out, 1, stride, bias=False),
                                            nn.BatchNorm2d(n_out))

    def forward(self, x):
        shortcut = x if self.downsample is None else self.downsample(x)
        x = self.relu(self.bn1(self.conv1(x)))
        return self.relu(self.bn2(self.conv2(x)) + shortcut)


class ResNet18(nn.Module):
    """He et al., 2015: 18 layers, 11.7 M parameters, 224x224 images, 1,000 classes."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU()
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = nn.Sequential(Block(64, 64, 1), Block(64, 64, 1))
        self.layer2 = nn.Sequential(Block(64, 128, 2), Block(128, 128, 1))
        self.layer3 = nn.Sequential(Block(128, 256, 2), Block(256, 256, 1))
        self.layer4 = nn.Sequential(Block(256, 512, 2), Block(512, 512, 1))
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(512, 1000)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


# name: (network, declared input shape or None, shapes of the input sets, weights inline, inputs
# kept)
MODELS = {
    "relu_neg_abs": (relu_neg_abs, None, ([3, 4], [1, 4], [2, 0, 5]), True, True),
    "relu_neg_abs_methods": (relu_neg_abs_methods, None, ([3, 4], [7], []), True, True),
    "neg_sigmoid": (neg_sigmoid, None, ([3, 4], [5], [2, 3, 4]), True, True),
    "neg_sigmoid_methods": (neg_sigmoid_methods, None, ([3, 4], [5], [2, 3, 4]), True, True),
    "linear_module": (LinearModule, ["N", 10], ([1, 10], [4, 10], [9, 10]), True, True),
    "nested_conv": (NestedConv, ["N", 3, "H", "W"], ([1, 3, 8, 8], [2, 3, 11, 6], [1, 3, 4, 4]), True, True),
    "mlp_784": (Mlp, ["N", 784], ([1, 784], [3, 784], [16, 784]), False, True),
    "resnet18": (ResNet18, ["N", 3, 224, 224], ([1, 3, 224, 224], [2, 3, 224, 224]), False, False),
}


def tensor_of(dtype, shape, data):
    flat = torch.frombuffer(bytearray(data), dtype=dtype) if data else torch.empty(0, dtype=dtype)
    return flat.reshape(shape).clone()


def make(name, folder):
    network, declared, shapes, inline, keep_inputs = MODELS[name]
    network = network().eval() if isinstance(network, type) else network
    gm = torch.fx.symbolic_trace(network)
    signature = {"x": ("float32", declared)} if declared else None
    state = make_state(export_fx(gm)[0].get("modules", {}))
    dtypes = {"F32": torch.float32, "I64": torch.int64}
    gm.load_state_dict({key: tensor_of(dtypes[dtype], *rest) for key, (dtype, *rest) in state.items()})

    (folder / f"{name}.fx.json").write_text(dumps(export_fx(gm, inline, signature)[0]), encoding="utf-8")
    if not inline:
        digest = hashlib.sha256(safetensors_bytes(state)).hexdigest()
        (folder / f"{name}.sha256").write_text(f"{digest}  {name}.weights.safetensors\n")

    calls = []
    with torch.no_grad():
        for number, shape in enumerate(shapes):
            x = tensor_of(torch.float32, shape, make_input(shape, number))
            calls.append(((x,), {}, gm(x)))
    save_sets(folder / f"{name}.safetensors", calls, keep_inputs)
    low, high = calls[0][2].aminmax()
    print(f"{name}: {len(gm.graph.nodes)} nodes, first output from {low:.4f} to {high:.4f}")


def main():
    here = pathlib.Path(__file__).resolve().parent.parent.parent / "tests" / "models"
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=here,
                        help="folder to write to (default: tests/models)")
    parser.add_argument("names", nargs="*", metavar="name", help="models to make (default: all)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    for name in options.names or MODELS:
        make(name, options.out)


if __name__ == "__main__":
    main()
