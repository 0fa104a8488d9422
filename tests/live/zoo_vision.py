# SPDX-License-Identifier: Apache-2.0
"""Architectures of vision for zoo.py. `MODELS` maps a name to what makes (module, inputs, inputs of
another size); widths and depths are small, the structure is that of the papers."""

import torch
import torch.nn.functional as F
from torch import nn

MODELS = {}


def model(make):
    MODELS[make.__name__] = make
    return make


def images(module, channels=3, first=(1, 32, 32), second=(2, 64, 32)):
    """The module with one input of images in two sizes."""
    return (module, *((torch.randn(n, channels, h, w), ) for n, h, w in (first, second)))


def conv_bn(c1, c2, kernel=3, stride=1, groups=1, act=nn.ReLU):
    layers = [nn.Conv2d(c1, c2, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(c2)]
    return nn.Sequential(*layers, *([act()] if act else []))


def classifier(channels, classes=10):
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


class Residual(nn.Module):
    """x + body(x), or short(x) + body(x), and an activation."""

    def __init__(self, body, short=None, act=None):
        super().__init__()
        self.body, self.short, self.act = body, short or nn.Identity(), act or nn.Identity()

    def forward(self, x):
        return self.act(self.short(x) + self.body(x))


class Excite(nn.Module):
    """Squeeze and excitation."""

    def __init__(self, channels, squeezed, act=nn.ReLU, gate=nn.Sigmoid):
        super().__init__()
        self.reduce, self.expand = nn.Conv2d(channels, squeezed, 1), nn.Conv2d(squeezed, channels, 1)
        self.act, self.gate = act(), gate()

    def forward(self, x):
        return x * self.gate(self.expand(self.act(self.reduce(x.mean((2, 3), keepdim=True)))))


class Branches(nn.Module):
    """Results of several ways, side by side."""

    def __init__(self, *ways):
        super().__init__()
        self.ways = nn.ModuleList(ways)

    def forward(self, x):
        return torch.cat([way(x) for way in self.ways], 1)


@model
def lenet():
    return images(
        nn.Sequential(nn.Conv2d(1, 6, 5), nn.Tanh(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 5), nn.Tanh(),
                      nn.AdaptiveAvgPool2d(5), nn.Flatten(), nn.Linear(400, 84), nn.Tanh(), nn.Linear(84,
                                                                                                      10)), 1)


@model
def alexnet():
    features = nn.Sequential(nn.Conv2d(3, 16, 11, 4, 2), nn.ReLU(True), nn.LocalResponseNorm(5),
                             nn.MaxPool2d(3, 2), nn.Conv2d(16, 32, 5, padding=2), nn.ReLU(True),
                             nn.LocalResponseNorm(5), nn.MaxPool2d(3, 1), nn.AdaptiveAvgPool2d(6))
    head = nn.Sequential(nn.Flatten(), nn.Dropout(), nn.Linear(32 * 36, 64), nn.ReLU(True), nn.Linear(64, 10))
    return images(nn.Sequential(features, head), first=(1, 64, 64), second=(3, 96, 64))


@model
def vgg():
    layers, c = [], 3
    for width in (8, 16, 16):
        layers += [conv_bn(c, width), conv_bn(width, width), nn.MaxPool2d(2)]
        c = width
    return images(nn.Sequential(*layers, classifier(16)))


def bottleneck(c1, c2, stride, groups=1):
    body = nn.Sequential(conv_bn(c1, c2 // 4, 1), conv_bn(c2 // 4, c2 // 4, 3, stride, groups),
                         conv_bn(c2 // 4, c2, 1, act=None))
    return Residual(body, conv_bn(c1, c2, 1, stride, act=None) if c1 != c2 or stride > 1 else None, nn.ReLU())


@model
def resnet():
    stem = nn.Sequential(conv_bn(3, 16, 7, 2), nn.MaxPool2d(3, 2, 1))
    return images(
        nn.Sequential(stem, bottleneck(16, 32, 1), bottleneck(32, 64, 2), bottleneck(64, 64, 1),
                      classifier(64)))


@model
def resnext():
    return images(
        nn.Sequential(conv_bn(3, 16), bottleneck(16, 32, 2, 4), bottleneck(32, 32, 1, 8), classifier(32)))


@model
def preact_resnet():

    def block(c):
        return Residual(
            nn.Sequential(nn.BatchNorm2d(c), nn.ReLU(), nn.Conv2d(c, c, 3, 1, 1, bias=False),
                          nn.GroupNorm(4, c), nn.ELU(), nn.Conv2d(c, c, 3, 1, 1, bias=False)))

    return images(nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), block(16), block(16), classifier(16)))


class Dense(nn.Module):

    def __init__(self, channels, growth, layers):
        super().__init__()
        widths = [channels + i * growth for i in range(layers)]
        self.layers = nn.ModuleList(
            nn.Sequential(nn.BatchNorm2d(width), nn.ReLU(), nn.Conv2d(width, growth, 3, 1, 1))
            for width in widths)

    def forward(self, x):
        features = [x]
        for layer in self.layers:
            features.append(layer(torch.cat(features, 1)))
        return torch.cat(features, 1)


@model
def densenet():
    return images(
        nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), Dense(8, 4, 3), conv_bn(20, 10, 1), nn.AvgPool2d(2),
                      Dense(10, 4, 2), classifier(18)))


def inception_block(c):
    return Branches(conv_bn(c, 8, 1), nn.Sequential(conv_bn(c, 6, 1), conv_bn(6, 8, 3)),
                    nn.Sequential(conv_bn(c, 4, 1), conv_bn(4, 8, 5)),
                    nn.Sequential(nn.MaxPool2d(3, 1, 1), conv_bn(c, 8, 1)))


@model
def inception():
    return images(
        nn.Sequential(conv_bn(3, 16, 3, 2), inception_block(16), inception_block(32),
                      nn.MaxPool2d(3, 2, ceil_mode=True), classifier(32)))


@model
def inception_factored():

    def seven(c):
        row, column = nn.Conv2d(c, 8, (1, 7), padding=(0, 3)), nn.Conv2d(8, 8, (7, 1), padding=(3, 0))
        return nn.Sequential(row, nn.ReLU(), column)

    return images(
        nn.Sequential(conv_bn(3, 8), Branches(seven(8), nn.AvgPool2d(3, 1, 1)), seven(16), classifier(8)))


@model
def squeezenet():

    def fire(c1, squeezed, c2):
        return nn.Sequential(
            nn.Conv2d(c1, squeezed, 1), nn.ReLU(True),
            Branches(nn.Sequential(nn.Conv2d(squeezed, c2, 1), nn.ReLU(True)),
                     nn.Sequential(nn.Conv2d(squeezed, c2, 3, padding=1), nn.ReLU(True))))

    return images(
        nn.Sequential(nn.Conv2d(3, 16, 3, 2), nn.MaxPool2d(3, 2, ceil_mode=True), fire(16, 4, 8),
                      fire(16, 4, 12), nn.Conv2d(24, 10, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten()))


@model
def mobilenet_v1():

    def separable(c1, c2, stride):
        return nn.Sequential(conv_bn(c1, c1, 3, stride, c1, nn.ReLU6), conv_bn(c1, c2, 1, act=nn.ReLU6))

    return images(
        nn.Sequential(conv_bn(3, 8, 3, 2), separable(8, 16, 1), separable(16, 24, 2), classifier(24)))


def inverted(c1, c2, stride, wide=4, act=nn.ReLU6, excite=None, kernel=3):
    c = c1 * wide
    body = nn.Sequential(conv_bn(c1, c, 1, act=act), conv_bn(c, c, kernel, stride, c, act),
                         *([excite(c)] if excite else []), conv_bn(c, c2, 1, act=None))
    return Residual(body) if c1 == c2 and stride == 1 else body


@model
def mobilenet_v2():
    return images(
        nn.Sequential(conv_bn(3, 8, 3, 2, act=nn.ReLU6), inverted(8, 12, 2), inverted(12, 12, 1),
                      conv_bn(12, 32, 1), classifier(32)))


@model
def mobilenet_v3():

    def excite(c):
        return Excite(c, 8, gate=nn.Hardsigmoid)

    return images(
        nn.Sequential(conv_bn(3, 8, 3, 2, act=nn.Hardswish), inverted(8, 12, 2, 3, nn.Hardswish, excite, 5),
                      inverted(12, 12, 1, 3, nn.ReLU, excite), classifier(12)))


@model
def efficientnet():

    def excite(c):
        return Excite(c, 4, nn.SiLU)

    return images(
        nn.Sequential(conv_bn(3, 8, 3, 2, act=nn.SiLU), inverted(8, 12, 2, 4, nn.SiLU, excite),
                      inverted(12, 12, 1, 4, nn.SiLU, excite, 5), classifier(12)))


@model
def regnet():

    def block(c1, c2, stride):
        body = nn.Sequential(conv_bn(c1, c2, 1), conv_bn(c2, c2, 3, stride, c2 // 8), Excite(c2, 4),
                             conv_bn(c2, c2, 1, act=None))
        return Residual(body, conv_bn(c1, c2, 1, stride, act=None), nn.ReLU())

    return images(nn.Sequential(conv_bn(3, 16, 3, 2), block(16, 24, 2), block(24, 48, 2), classifier(48)))


class LayerNorm2d(nn.LayerNorm):

    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class ConvNeXtBlock(nn.Module):

    def __init__(self, c):
        super().__init__()
        self.depth, self.norm = nn.Conv2d(c, c, 7, padding=3, groups=c), nn.LayerNorm(c, 1e-6)
        self.up, self.down = nn.Linear(c, 4 * c), nn.Linear(4 * c, c)
        self.gamma = nn.Parameter(torch.full((c, ), 0.1))

    def forward(self, x):
        y = self.norm(self.depth(x).permute(0, 2, 3, 1))
        return x + (self.gamma * self.down(F.gelu(self.up(y)))).permute(0, 3, 1, 2)


@model
def convnext():
    return images(
        nn.Sequential(nn.Conv2d(3, 12, 4, 4), LayerNorm2d(12), ConvNeXtBlock(12), LayerNorm2d(12),
                      nn.Conv2d(12, 24, 2, 2), ConvNeXtBlock(24), classifier(24)))


class GlobalResponse(nn.Module):
    """ConvNeXt V2's normalisation by the channels' norms."""

    def __init__(self, c):
        super().__init__()
        self.scale, self.shift = nn.Parameter(torch.randn(c)), nn.Parameter(torch.randn(c))

    def forward(self, x):
        norms = torch.norm(x, p=2, dim=(1, 2), keepdim=True)
        return self.scale * (x * norms / (norms.mean(-1, keepdim=True) + 1e-6)) + self.shift + x


@model
def convnext_v2():

    class Last(nn.Module):

        def __init__(self):
            super().__init__()
            self.stem, self.response = nn.Conv2d(3, 8, 2, 2), GlobalResponse(8)

        def forward(self, x):
            return self.response(self.stem(x).permute(0, 2, 3, 1))

    return images(Last())


@model
def shufflenet():

    class Unit(nn.Module):

        def __init__(self, c):
            super().__init__()
            self.way = nn.Sequential(conv_bn(c // 2, c // 2, 1), conv_bn(c // 2, c // 2, 3, 1, c // 2, None))
            self.shuffle = nn.ChannelShuffle(2)

        def forward(self, x):
            kept, changed = x.chunk(2, 1)
            return self.shuffle(torch.cat([kept, self.way(changed)], 1))

    return images(nn.Sequential(conv_bn(3, 16, 3, 2), Unit(16), Unit(16), classifier(16)))


@model
def ghostnet():

    class Ghost(nn.Module):

        def __init__(self, c1, c2):
            super().__init__()
            self.first, self.cheap = conv_bn(c1, c2 // 2, 1), conv_bn(c2 // 2, c2 // 2, 3, groups=c2 // 2)
            self.width = c2 - 1

        def forward(self, x):
            y = self.first(x)
            return torch.cat([y, self.cheap(y)], 1)[:, :self.width]

    return images(nn.Sequential(Ghost(3, 16), conv_bn(15, 8), classifier(8)))


@model
def repvgg():

    class Block(nn.Module):

        def __init__(self, c):
            super().__init__()
            self.three, self.one, self.same = (conv_bn(c, c, 3,
                                                       act=None), conv_bn(c, c, 1,
                                                                          act=None), nn.BatchNorm2d(c))

        def forward(self, x):
            return F.relu(self.three(x) + self.one(x) + self.same(x))

    return images(nn.Sequential(conv_bn(3, 8, 3, 2), Block(8), Block(8), classifier(8)))


@model
def mlp_mixer():

    class Mixer(nn.Module):

        def __init__(self, tokens, c):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(c), nn.LayerNorm(c)
            self.across = nn.Sequential(nn.Linear(tokens, 24), nn.GELU(), nn.Linear(24, tokens))
            self.along = nn.Sequential(nn.Linear(c, 24), nn.GELU(), nn.Linear(24, c))

        def forward(self, x):
            x = x + self.across(self.norm1(x).transpose(1, 2)).transpose(1, 2)
            return x + self.along(self.norm2(x))

    body = nn.Sequential(nn.Conv2d(3, 12, 8, 8), nn.Flatten(2))

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.patches, self.mix, self.head = body, Mixer(16, 12), nn.Linear(12, 5)

        def forward(self, x):
            return self.head(self.mix(self.patches(x).transpose(1, 2)).mean(1))

    return images(Net(), second=(3, 32, 32))


@model
def poolformer():

    class Pool(nn.Module):

        def forward(self, x):
            return F.avg_pool2d(x, 3, 1, 1, count_include_pad=False) - x

    block = Residual(nn.Sequential(nn.GroupNorm(1, 12), Pool()))
    mlp = Residual(nn.Sequential(nn.GroupNorm(1, 12), nn.Conv2d(12, 24, 1), nn.GELU(), nn.Conv2d(24, 12, 1)))
    return images(nn.Sequential(nn.Conv2d(3, 12, 7, 4, 2), block, mlp, classifier(12)))


class ViT(nn.Module):

    def __init__(self, c=24, depth=2):
        super().__init__()
        self.patch, self.token = nn.Conv2d(3, c, 8, 8), nn.Parameter(torch.randn(1, 1, c))
        self.place = nn.Parameter(torch.randn(1, 17, c))
        layer = nn.TransformerEncoderLayer(c, 4, 48, activation="gelu", batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, depth, norm=nn.LayerNorm(c), enable_nested_tensor=False)
        self.head = nn.Linear(c, 10)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.place
        return self.head(self.body(x)[:, 0])


@model
def vit():
    return images(ViT(), second=(3, 32, 32))


def windows(x, size):
    """b×h×w×c → (b·number of windows)×size²×c."""
    b, h, w, c = x.shape
    x = x.view(b, h // size, size, w // size, size, c).permute(0, 1, 3, 2, 4, 5)
    return x.reshape(-1, size * size, c)


class SwinBlock(nn.Module):

    def __init__(self, c, heads, size, shift):
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(c), nn.Linear(c, 3 * c), nn.Linear(c, c)
        self.heads, self.size, self.shift = heads, size, shift
        self.table = nn.Parameter(torch.randn((2 * size - 1)**2, heads))
        at = torch.stack(torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")).flatten(1)
        gap = (at[:, :, None] - at[:, None]) + size - 1
        self.register_buffer("index", gap[0] * (2 * size - 1) + gap[1])

    def forward(self, x):
        b, h, w, c = x.shape
        y = torch.roll(self.norm(x), (-self.shift, -self.shift), (1, 2))
        y = windows(y, self.size)
        q, k, v = self.qkv(y).reshape(y.shape[0], y.shape[1], 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) * (c // self.heads)**-0.5
        scores = scores + self.table[self.index.view(-1)].view(*self.index.shape, -1).permute(2, 0, 1)
        y = self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
        y = y.view(b, h // self.size, w // self.size, self.size, self.size, c)
        y = y.permute(0, 1, 3, 2, 4, 5).reshape(b, h, w, c)
        return x + torch.roll(y, (self.shift, self.shift), (1, 2))


@model
def swin():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.patch, self.one, self.two = nn.Conv2d(3, 16, 4, 4), SwinBlock(16, 2, 4,
                                                                               0), SwinBlock(16, 2, 4, 2)
            self.merge, self.head = nn.Linear(64, 32, bias=False), nn.Linear(32, 5)

        def forward(self, x):
            x = self.two(self.one(self.patch(x).permute(0, 2, 3, 1)))
            x = torch.cat([x[:, i::2, j::2] for j in (0, 1) for i in (0, 1)], -1)
            return self.head(self.merge(x).mean((1, 2)))

    return images(Net())


@model
def coatnet():

    class Relative(nn.Module):

        def __init__(self, c):
            super().__init__()
            self.attend, self.norm = nn.MultiheadAttention(c, 2, batch_first=True), nn.LayerNorm(c)

        def forward(self, x):
            y = self.norm(x.flatten(2).transpose(1, 2))
            y = self.attend(y, y, y, need_weights=False)[0]
            return x + y.transpose(1, 2).unflatten(2, x.shape[2:])

    return images(
        nn.Sequential(conv_bn(3, 16, 3, 2, act=nn.GELU), inverted(16, 16, 1), nn.MaxPool2d(2), Relative(16),
                      classifier(16)))


@model
def bilinear_cnn():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.body, self.head = conv_bn(3, 6, 3, 2), nn.Linear(36, 5)

        def forward(self, x):
            y = self.body(x).flatten(2)
            y = torch.bmm(y, y.transpose(1, 2)).flatten(1) / y.shape[2]
            return self.head(F.normalize(torch.sign(y) * torch.sqrt(y.abs() + 1e-5)))

    return images(Net())
