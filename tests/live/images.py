# SPDX-License-Identifier: Apache-2.0
"""JPEG and PNG bodies against Pillow and torchvision: images.py FXSERVE.

Needs torch 2.13, Pillow, numpy and torchvision (installed with --no-deps: it wants another torch).
Pictures of every kind are drawn here, sent to a graph that gives its input back, and the input has
to be what Resize(antialias=True), CenterCrop, ToTensor and Normalize make of Pillow's image: within
1/255. Broken files and bombs have to be refused, and the server goes on. The last line is
`N passed, N failed`.
"""
import io
import json
import os
import struct
import sys
import tempfile
import threading
import time
import zlib

import numpy as np
import torch
from PIL import Image, ImageOps

# torchvision's own operators may be built for another torch: it asks for this one as it starts.
LIBRARY = torch.library.Library("torchvision", "DEF")
try:
    import torchvision.transforms as transforms
except RuntimeError:
    for name in [name for name in sys.modules if name.startswith("torchvision")]:
        del sys.modules[name]
    for name in ("nms", "qnms"):
        LIBRARY.define(name + "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    import torchvision.transforms as transforms

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "service"))
from service import serving

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
IMAGENET = {"size": 256, "crop": 224, "mean": MEAN, "std": STD}


class Same(torch.nn.Module):
    def forward(self, image):
        return image.clone()


class Added(torch.nn.Module):
    def forward(self, image, more):
        return image + more


# ---- pictures ----
def picture(width, height, seed=1):
    """Slopes, circles and noise, so that every step of resizing shows."""
    rows, columns = np.mgrid[0:height, 0:width].astype(np.float64)
    waves = np.sin(np.hypot(rows - height / 3, columns - width / 2) / 3) * 60 + 128
    slopes = np.stack([rows * 255 / max(height - 1, 1), columns * 255 / max(width - 1, 1), waves], 2)
    noise = np.random.default_rng(seed).normal(0, 25, slopes.shape)
    return Image.fromarray(np.clip(slopes + noise, 0, 255).astype(np.uint8), "RGB")


def saved(image, form, **options):
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


def turned(orientation, form, width=321, height=200):
    exif = Image.Exif()
    exif[0x112] = orientation
    return saved(picture(width, height, orientation), form, exif=exif)


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(width, height, depth, colour, rows, interlaced=0):
    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlaced)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows))
            + chunk(b"IEND", b""))


def interlaced(image):
    """Adam7, which Pillow does not write."""
    pixels, rows = np.asarray(image), b""
    for top, left, down, across in ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2),
                                    (0, 1, 2, 2), (1, 0, 2, 1)):
        part = pixels[top::down, left::across]
        rows += b"".join(b"\0" + row.tobytes() for row in part if part.size)
    return png(image.width, image.height, 8, 2 if pixels.ndim == 3 else 0, rows, 1)


def deep(channels, width=150, height=110):
    """16 bits of every channel."""
    values = np.random.default_rng(channels).integers(0, 65536, (height, width, channels), dtype=np.uint16)
    values[:] = np.sort(values, 0)
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)
    return png(width, height, 16, {1: 0, 2: 4, 3: 2, 4: 6}[channels], rows)


def pictures():
    wide, high = picture(400, 300), picture(230, 512, 2)
    for orientation in range(1, 9):
        yield f"jpeg, turned {orientation}", turned(orientation, "JPEG")
    for orientation in (3, 6, 7):
        yield f"png, turned {orientation}", turned(orientation, "PNG")
    yield "jpeg", saved(wide, "JPEG", quality=90)
    yield "jpeg, 4:4:4", saved(high, "JPEG", quality=95, subsampling=0)
    yield "jpeg, 4:2:2", saved(high, "JPEG", quality=80, subsampling=1)
    yield "jpeg, progressive", saved(wide, "JPEG", progressive=True)
    yield "jpeg, grey", saved(wide.convert("L"), "JPEG")
    yield "jpeg, grey and progressive", saved(high.convert("L"), "JPEG", progressive=True)
    yield "jpeg, cmyk", saved(wide.convert("CMYK"), "JPEG")
    yield "jpeg, large", saved(picture(2000, 1500), "JPEG")
    yield "jpeg, smaller than the crop", saved(picture(31, 57), "JPEG")
    yield "png", saved(wide, "PNG")
    yield "png, grey", saved(high.convert("L"), "PNG")
    yield "png, grey and alpha", saved(high.convert("LA"), "PNG")
    yield "png, one bit", saved(wide.convert("1"), "PNG")
    yield "png, palette", saved(wide.convert("P", palette=Image.Palette.ADAPTIVE), "PNG")
    yield "png, palette of 11", saved(wide.quantize(11), "PNG")
    yield "png, palette and transparent", saved(wide.quantize(40), "PNG", transparency=3)
    alpha = wide.copy()
    alpha.putalpha(picture(400, 300, 9).convert("L"))
    yield "png, alpha", saved(alpha, "PNG")
    yield "png, interlaced", interlaced(high)
    yield "png, grey and interlaced", interlaced(wide.convert("L"))
    for depth in (2, 4):
        values = np.random.default_rng(depth).integers(0, 256, (90, 131 * depth // 8 + 1), dtype=np.uint8)
        rows = b"".join(b"\0" + row.tobytes() for row in values)
        yield f"png, grey of {depth} bits", png(131, 90, depth, 0, rows)
    yield "png, one grey is transparent", saved(high.convert("L"), "PNG", transparency=128)
    yield "png, one colour is transparent", saved(wide, "PNG", transparency=(1, 2, 3))
    yield "jpeg, kept as RGB", saved(wide, "JPEG", keep_rgb=True)
    yield "jpeg, restarts", saved(wide, "JPEG", restart_marker_rows=2)
    yield "jpeg, 4:1:0", saved(wide, "JPEG", subsampling="4:1:1")
    yield "png, 1x1", saved(picture(1, 1), "PNG")
    yield "png, 1x300", saved(picture(1, 300), "PNG")
    yield "png, 3x20000", saved(picture(3, 20000), "PNG")
    yield "jpeg, 1000x2", saved(picture(1000, 2), "JPEG")
    for channels in (2, 3, 4):
        yield f"png, {channels} channels of 16 bits", deep(channels)


# ---- the same by others ----
def expected(body, settings, mode="RGB"):
    image = ImageOps.exif_transpose(Image.open(io.BytesIO(body))).convert(mode)
    steps = []
    if "size" in settings:
        steps.append(transforms.Resize(settings["size"], antialias=True))
    if "crop" in settings:
        steps.append(transforms.CenterCrop(settings["crop"]))
    tensor = transforms.Compose([*steps, transforms.ToTensor()])(image)
    if settings.get("colour") == "BGR":
        tensor = tensor.flip(0)
    if "mean" in settings:
        tensor = transforms.Normalize(settings["mean"], settings["std"])(tensor)
    return tensor.numpy()


class Images:
    def __init__(self, server, tally, folder):
        self.server, self.tally, self.folder = server, tally, folder

    def put(self, name, module, inputs, dynamic=None):
        path = os.path.join(self.folder, name + ".pt2")
        torch.export.save(torch.export.export(module, inputs, dynamic_shapes=dynamic), path)
        with open(path, "rb") as file:
            reply = self.server.call("PUT", f"/v1/graphs/{name}", file.read())
        if reply.status != 201:
            raise SystemExit(f"{name} was not taken: {reply.body[:300]}")

    def patch(self, name, settings):
        return self.server.call("PATCH", f"/v1/graphs/{name}", json.dumps({"image": settings}).encode())

    def run(self, name, body, options=""):
        reply = self.server.call("POST", f"/v1/graphs/{name}/run?as=npy{options}", body)
        return reply, np.load(io.BytesIO(reply.body)) if reply.status == 200 else None

    def same(self, case, name, body, want, near):
        reply, got = self.run(name, body)
        if got is None:
            self.tally.check(case, f"{reply.status} {reply.body[:300]}")
            return
        far = np.abs(got.astype(np.float64) - want).max() if got.shape == want.shape else np.inf
        self.tally.check(case, None if far <= near else f"{got.shape} is off by {far}, not {near}")

    def refused(self, case, name, body, status, words, options="", most=2.0):
        began = time.monotonic()
        reply, _ = self.run(name, body, options)
        took = time.monotonic() - began
        text = reply.body.decode(errors="replace")
        right = reply.status == status and words in text and took < most
        self.tally.check(case, None if right else f"{reply.status} after {took:.1f} s: {text[:300]}")

    def set(self, name, settings):
        reply = self.patch(name, settings)
        if reply.status != 200:
            raise SystemExit(f"{name}: {settings} were refused: {reply.body[:300]}")


def compare_pictures(images):
    images.put("same", Same(), (torch.zeros(1, 3, 224, 224),))
    images.set("same", IMAGENET)
    for case, body in pictures():
        images.same(case, "same", body, expected(body, IMAGENET)[None], 1 / 255 / min(STD) + 1e-6)
    # Pillow makes all above 255 white: what it should be is a picture of the upper bits.
    upper = np.asarray(Image.open(io.BytesIO(deep(1)))).astype(np.uint16) >> 8
    images.same("png, grey of 16 bits", "same", deep(1),
                expected(saved(Image.fromarray(upper.astype(np.uint8)), "PNG"), IMAGENET)[None],
                1 / 255 / min(STD) + 1e-6)


def compare_settings(images):
    body, wide = turned(6, "JPEG"), saved(picture(301, 77, 5), "PNG")
    free = {2: torch.export.Dim("h"), 3: torch.export.Dim("w")}
    images.put("free", Same(), (torch.zeros(1, 3, 50, 60),), {"image": free})
    for settings in ({}, {"size": 100}, {"size": [90, 33]}, {"crop": 301}, {"crop": [51, 400]},
                     {"size": 64, "crop": [65, 63]}, {"size": 40, "colour": "BGR"},
                     {"size": 500, "mean": [0.5, 0.4, 0.3], "std": [1, 2, 3]}):
        images.set("free", settings)
        for form, sent in (("jpeg", body), ("png", wide)):
            scale = min(settings.get("std", [1]))
            images.same(f"{form} by {settings}", "free", sent, expected(sent, settings)[None],
                        1 / 255 / scale + 1e-6)
    images.put("grey", Same(), (torch.zeros(1, 1, 28, 28),))
    grey = {"size": 28, "crop": 28, "colour": "grey", "mean": [0.1307], "std": [0.3081]}
    images.set("grey", grey)
    for form, sent in (("jpeg", body), ("png", wide)):
        images.same(f"{form}, grey", "grey", sent, expected(sent, grey, "L")[None], 1 / 255 / 0.3081 + 1e-6)
    images.put("last", Same(), (torch.zeros(64, 48, 3, dtype=torch.uint8),))
    images.set("last", {"size": [64, 48], "layout": "NHWC"})
    images.same("bytes, channels last, without a batch", "last", body,
                expected(body, {"size": [64, 48]}).transpose(1, 2, 0) * 255, 1.001)
    images.put("half", Same(), (torch.zeros(1, 3, 32, 32, dtype=torch.float16),))
    images.set("half", {"size": [32, 32]})
    images.same("float16", "half", body, expected(body, {"size": [32, 32]})[None], 1 / 255 + 1e-3)


def refuse(images):
    whole = saved(picture(400, 300), "JPEG")
    progressive = saved(picture(400, 300), "JPEG", progressive=True)
    drawn = saved(picture(400, 300), "PNG")
    for name, body in (("jpeg", whole), ("progressive jpeg", progressive), ("png", drawn)):
        for part in (0.3, 0.9):
            images.refused(f"{name}, cut at {part}", "same", body[:int(len(body) * part)], 400, "cut off")
    images.refused("jpeg, nothing but its start", "same", whole[:3], 400, "JPEG")
    images.refused("png, nothing but its start", "same", drawn[:8], 400, "PNG")
    broken = bytearray(drawn)
    broken[len(broken) // 2] ^= 0x40
    images.refused("png, a bit changed", "same", bytes(broken), 400, "broken")
    rows = zlib.compress(b"\0" * 1000)
    bomb = (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 50000, 50000, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", rows) + chunk(b"IEND", b""))
    images.refused("png of 50,000 x 50,000", "same", bomb, 413, "--max-image-pixels")
    at = whole.index(b"\xff\xc0") + 5
    images.refused("jpeg of 50,000 x 50,000", "same", whole[:at] + struct.pack(">HH", 50000, 50000)
                   + whole[at + 4:], 413, "--max-image-pixels")
    wide = png(8192, 8192, 8, 2, bytes(8192 * (3 * 8192 + 1)))
    late = saved(Image.new("RGB", (8000, 8000)), "JPEG", progressive=True)
    for case, body in (("png", wide), ("jpeg", late)):
        began = time.monotonic()
        images.run("same", body)
        images.refused(f"{case} that takes longer than its run may", "same", body, 504, "deadline",
                       "&deadline_ms=20", (time.monotonic() - began) / 2)
    images.refused("png of nothing", "same", png(0, 5, 8, 2, b""), 400, "PNG")
    images.same("after all of them", "same", whole, expected(whole, IMAGENET)[None], 1 / 255 / min(STD))


def wait_for_nobody(images):
    """A small body that takes long: other clients do not wait for it."""
    body = png(4096, 7600, 1, 0, bytes(7600 * 513))
    began = time.monotonic()
    images.run("same", body)
    alone, longest = time.monotonic() - began, 0
    sender = threading.Thread(target=lambda: [images.run("same", body) for _ in range(5)])
    sender.start()
    while sender.is_alive():
        began = time.monotonic()
        images.server.call("GET", "/livez")
        longest = max(longest, time.monotonic() - began)
    images.tally.check("others while a small body of many pixels is decoded",
                       None if len(body) < 4096 and longest < alone / 2 else
                       f"{len(body)} bytes take {alone:.3f} s, and /livez {longest:.3f} s beside them")


def main():
    with tempfile.TemporaryDirectory() as folder, serving(sys.argv[1]) as (server, tally):
        images = Images(server, tally, folder)
        compare_pictures(images)
        compare_settings(images)
        refuse(images)
        wait_for_nobody(images)
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
