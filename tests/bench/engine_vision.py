# SPDX-License-Identifier: Apache-2.0
"""Networks of images for engines.py, written in torch.nn from their published configurations:
EfficientNet-Lite0 with TensorFlow's uneven pads, Swin-T, SegFormer-B0."""

import torch
from torch import nn
from torch.nn import functional


class SamePad(nn.Module):
    """TensorFlow's "SAME" for stride 2 on even sizes: the odd pad stands behind."""

    def __init__(self, size):
        super().__init__()
        self.before, self.behind = (size - 2) // 2, (size - 2) - (size - 2) // 2

    def forward(self, x):
        return functional.pad(x, (self.before, self.behind, self.before, self.behind))


def same_conv(n_in, n_out, size, stride, groups=1):
    pads = [SamePad(size)] if stride == 2 else []
    padding = 0 if stride == 2 else size // 2
    return pads + [nn.Conv2d(n_in, n_out, size, stride, padding, groups=groups, bias=False),
                   nn.BatchNorm2d(n_out)]


class Mobile(nn.Module):
    """1x1 up, depthwise, 1x1 down without an activation."""

    def __init__(self, n_in, n_out, size, stride, widen):
        super().__init__()
        n = n_in * widen
        layers = [] if widen == 1 else same_conv(n_in, n, 1, 1) + [nn.ReLU6()]
        layers += same_conv(n, n, size, stride, n) + [nn.ReLU6()] + same_conv(n, n_out, 1, 1)
        self.body, self.keeps = nn.Sequential(*layers), stride == 1 and n_in == n_out

    def forward(self, x):
        return x + self.body(x) if self.keeps else self.body(x)


def efficientnet_lite0():
    layers, channels = same_conv(3, 32, 3, 2) + [nn.ReLU6()], 32
    for widen, n, repeat, stride, size in ((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5),
                                           (6, 80, 3, 2, 3), (6, 112, 3, 1, 5), (6, 192, 4, 2, 5),
                                           (6, 320, 1, 1, 3)):
        for block in range(repeat):
            layers.append(Mobile(channels, n, size, stride if block == 0 else 1, widen))
            channels = n
    layers += same_conv(320, 1280, 1, 1) + [nn.ReLU6()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, 1000))


# ---- Swin: attention in windows of 7x7, every other layer shifted by 3 -------------------------
class Windows(nn.Module):
    def __init__(self, width, heads, side, shift):
        super().__init__()
        self.heads, self.side, self.shift = heads, side, shift if side > 7 else 0
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.table = nn.Parameter(torch.randn(169, heads) * 0.1)
        at = torch.stack(torch.meshgrid(torch.arange(7), torch.arange(7), indexing="ij")).flatten(1)
        near = (at[:, :, None] - at[:, None, :]).permute(1, 2, 0) + 6
        self.register_buffer("index", (near[..., 0] * 13 + near[..., 1]).flatten())
        self.register_buffer("mask", self.windows_apart() if self.shift else None)

    def windows_apart(self):
        part = torch.zeros(1, self.side, self.side, 1)
        cuts = (slice(0, -7), slice(-7, -self.shift), slice(-self.shift, None))
        for i, rows in enumerate(cuts):
            for j, columns in enumerate(cuts):
                part[:, rows, columns] = i * 3 + j
        part = self.cut(part).squeeze(-1)
        return torch.where(part[:, None, :] == part[:, :, None], 0.0, -100.0)

    def cut(self, x):
        n, many = x.shape[0], self.side // 7
        return x.view(n, many, 7, many, 7, -1).transpose(2, 3).reshape(n * many * many, 49, -1)

    def forward(self, x):
        n, side, _, width = x.shape
        many = side // 7
        if self.shift:
            x = torch.roll(x, (-self.shift, -self.shift), (1, 2))
        y = self.cut(x)
        q, k, v = self.qkv(y).view(-1, 49, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        bias = self.table[self.index].view(49, 49, self.heads).permute(2, 0, 1).unsqueeze(0)
        if self.shift:
            bias = bias + self.mask.unsqueeze(1)
        y = functional.scaled_dot_product_attention(q, k, v, bias)
        y = self.out(y.transpose(1, 2).clone(memory_format=torch.contiguous_format).view(-1, 49, width))
        y = y.view(n, many, many, 7, 7, width).transpose(2, 3).reshape(n, side, side, width)
        return torch.roll(y, (self.shift, self.shift), (1, 2)) if self.shift else y


class SwinLayer(nn.Module):
    def __init__(self, width, heads, side, shift):
        super().__init__()
        self.one, self.two = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Windows(width, heads, side, shift)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.one(x))
        return x + self.mlp(self.two(x))


class Merge(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.linear = nn.LayerNorm(4 * width), nn.Linear(4 * width, 2 * width, bias=False)

    def forward(self, x):
        parts = [x[:, i::2, j::2] for j in (0, 1) for i in (0, 1)]
        return self.linear(self.norm(torch.cat(parts, -1)))


class Swin(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches, self.norm = nn.Conv2d(3, 96, 4, 4), nn.LayerNorm(96)
        stages = []
        for stage, depth in enumerate((2, 2, 6, 2)):
            width, side = 96 << stage, 56 >> stage
            stages += [Merge(width // 2)] if stage > 0 else []
            stages += [SwinLayer(width, 3 << stage, side, 3 * (layer % 2)) for layer in range(depth)]
        self.stages = nn.Sequential(*stages)
        self.last, self.head = nn.LayerNorm(768), nn.Linear(768, 1000)

    def forward(self, x):
        x = self.stages(self.norm(self.patches(x).permute(0, 2, 3, 1)))
        return self.head(self.last(x).mean((1, 2)))


# ---- SegFormer ---------------------------------------------------------------------------------
class Reduced(nn.Module):
    """Attention whose keys and values come from an image made `ratio` times smaller."""

    def __init__(self, width, heads, ratio):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, width)
        self.smaller = nn.Conv2d(width, width, ratio, ratio) if ratio > 1 else None
        self.norm = nn.LayerNorm(width) if ratio > 1 else None

    def split(self, x):
        return x.view(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)

    def forward(self, x, side):
        y = x
        if self.smaller is not None:
            y = self.smaller(x.transpose(1, 2).reshape(x.shape[0], x.shape[2], side, side))
            y = self.norm(y.flatten(2).transpose(1, 2))
        q, k, v = self.split(self.query(x)), self.split(self.key(y)), self.split(self.value(y))
        y = functional.scaled_dot_product_attention(q, k, v)
        return self.out(y.transpose(1, 2).contiguous().view(x.shape))


class SegLayer(nn.Module):
    def __init__(self, width, heads, ratio):
        super().__init__()
        self.one, self.two = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Reduced(width, heads, ratio)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.near = nn.Conv2d(4 * width, 4 * width, 3, 1, 1, groups=4 * width)

    def forward(self, x, side):
        x = x + self.attention(self.one(x), side)
        y = self.up(self.two(x))
        y = self.near(y.transpose(1, 2).reshape(y.shape[0], y.shape[2], side, side))
        return x + self.down(functional.gelu(y.flatten(2).transpose(1, 2)))


class SegFormer(nn.Module):
    WIDTHS = (32, 64, 160, 256)

    def __init__(self):
        super().__init__()
        plan = zip((3,) + self.WIDTHS, self.WIDTHS, (7, 3, 3, 3), (4, 2, 2, 2), (1, 2, 5, 8), (8, 4, 2, 1))
        self.stages = nn.ModuleList(
            nn.ModuleList([nn.Conv2d(n_in, n, size, stride, size // 2), nn.LayerNorm(n),
                           SegLayer(n, heads, ratio), SegLayer(n, heads, ratio), nn.LayerNorm(n)])
            for n_in, n, size, stride, heads, ratio in plan)
        self.linears = nn.ModuleList(nn.Linear(n, 256) for n in self.WIDTHS)
        self.join = nn.Sequential(nn.Conv2d(1024, 256, 1, bias=False), nn.BatchNorm2d(256), nn.ReLU())
        self.head = nn.Conv2d(256, 150, 1)

    def forward(self, x):
        found = []
        for (patches, norm, one, two, last), linear in zip(self.stages, self.linears):
            x = patches(x)
            side = x.shape[2]
            y = last(two(one(norm(x.flatten(2).transpose(1, 2)), side), side))
            x = y.transpose(1, 2).reshape(1, -1, side, side)
            y = linear(y).transpose(1, 2).reshape(1, 256, side, side)
            found.append(functional.interpolate(y, size=(128, 128), mode="bilinear", align_corners=False))
        return self.head(self.join(torch.cat(found[::-1], 1)))


ROWS = {  # name: module, shape of the input, aim (best peer / ours)
    "efficientnet-lite0": (efficientnet_lite0, (1, 3, 224, 224), 1.1),
    "swin-t": (Swin, (1, 3, 224, 224), 1.1),
    "segformer-b0": (SegFormer, (1, 3, 512, 512), 1.05),
}
