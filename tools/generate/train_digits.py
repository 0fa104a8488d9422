# SPDX-License-Identifier: Apache-2.0
"""Trains the digits classifier of the quickstart and exports it with torch.export.

The data are scikit-learn's digits: 1,797 images of 8x8 pixels with values 0 to 16, a copy of the
test part of the UCI set "Optical Recognition of Handwritten Digits". A fifth of them is held out.
Written to the output folder:

    digits.pt2            the exported model: x [batch, 1, 8, 8] float32, raw pixel values ->
                          {"logits": [batch, 10]}
    digits.safetensors    three input sets with PyTorch's outputs (see expected.py)
    digits_images.json    ten held-out images, one per digit, as the body of a run request
    digits_labels.json    their labels
    seven.npy, seven.npz  the seven of them, for the examples of the documents

    pip install torch==2.13.0 safetensors scikit-learn
    python tools/generate/train_digits.py
"""

import argparse
import json
import pathlib
import re

import numpy
import torch
from sklearn.datasets import load_digits
from torch import nn

from expected import save_sets

SEED = 7


class Digits(nn.Module):
    """Two convolutions and two linear layers, 38,282 parameters."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.dropout = nn.Dropout(0.25)
        self.hidden = nn.Linear(512, 64)
        self.out = nn.Linear(64, 10)

    def forward(self, x):
        x = x / 16.0
        x = torch.relu(self.conv1(x))
        x = self.pool(torch.relu(self.conv2(x)))
        x = self.dropout(torch.flatten(x, 1))
        x = torch.relu(self.hidden(x))
        return {"logits": self.out(x)}


def load():
    """Returns images [n, 1, 8, 8], labels [n], and the shuffled indices of the training and the
    held-out part."""
    bunch = load_digits()
    images = torch.tensor(bunch.images, dtype=torch.float32).unsqueeze(1)
    labels = torch.tensor(bunch.target, dtype=torch.int64)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(SEED))
    n_test = len(labels) // 5
    return images, labels, order[n_test:], order[:n_test]


def shifted(images):
    """Moves each image by up to one pixel in each direction; what leaves the frame is lost."""
    padded = nn.functional.pad(images, (1, 1, 1, 1))
    row, column = torch.randint(0, 3, (2,)).tolist()
    return padded[:, :, row : row + 8, column : column + 8]


def train(model, images, labels, epochs):
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    model.train()
    for _ in range(epochs):
        for batch in torch.randperm(len(labels)).split(64):
            loss = nn.functional.cross_entropy(model(shifted(images[batch]))["logits"], labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        schedule.step()
    model.eval()


def pick(model, images, labels, held_out):
    """The first held-out image of each digit, which must all be classified right."""
    chosen = torch.stack([next(i for i in held_out if labels[i] == digit) for digit in range(10)])
    with torch.no_grad():
        guess = model(images[chosen])["logits"].argmax(1)
    if not torch.equal(guess, labels[chosen]):
        raise SystemExit(f"the ten images are {labels[chosen].tolist()}, the model says {guess.tolist()}")
    return chosen


def export(model, path):
    batch = torch.export.Dim("batch", max=64)
    program = torch.export.export(model, (torch.zeros(2, 1, 8, 8),), dynamic_shapes={"x": {0: batch}})
    # the stack traces name files: keep only the part that is the same everywhere
    for node in program.graph.nodes:
        if "stack_trace" in node.meta:
            node.meta["stack_trace"] = re.sub(r'File "[^"]*/(?=tools/|torch/)', 'File "',
                                              node.meta["stack_trace"])
    torch.export.save(program, path)
    return torch.export.load(path)


def write_seven(folder):
    rows = json.loads((folder / "digits_images.json").read_text())["inputs"]["x"]
    seven = numpy.array(rows[7:8], "float32")
    numpy.save(folder / "seven.npy", seven)
    numpy.savez(folder / "seven.npz", x=seven)


def main():
    here = pathlib.Path(__file__).resolve().parent.parent.parent / "tests" / "models"
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=here,
                        help="folder to write to (default: tests/models)")
    parser.add_argument("--epochs", type=int, default=40)
    options = parser.parse_args()

    torch.manual_seed(SEED)
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)
    images, labels, training, held_out = load()
    model = Digits()
    train(model, images[training], labels[training], options.epochs)

    with torch.no_grad():
        right = (model(images[held_out])["logits"].argmax(1) == labels[held_out]).sum().item()
    print(f"held out: {right} of {len(held_out)} right ({right / len(held_out):.1%})")
    if right < 0.95 * len(held_out):
        raise SystemExit("less than 95 % right: not exported")

    chosen = pick(model, images, labels, held_out)
    forward = export(model, options.out / "digits.pt2").module()
    with torch.no_grad():
        inputs = [images[chosen], images[held_out[:1]], images[held_out[10:17]]]
        save_sets(options.out / "digits.safetensors", [((x,), {}, forward(x)) for x in inputs])

    rows = ",\n".join(json.dumps(image) for image in images[chosen].tolist())
    (options.out / "digits_images.json").write_text('{"inputs": {"x": [\n' + rows + "\n]}}\n")
    (options.out / "digits_labels.json").write_text(json.dumps(labels[chosen].tolist()) + "\n")
    write_seven(options.out)


if __name__ == "__main__":
    main()
