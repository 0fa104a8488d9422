# SPDX-License-Identifier: Apache-2.0
"""Architectures for zoo.py whose results are pictures, boxes or samples: segmentation, detection,
super resolution, generators. `MODELS` maps a name to what makes (module, inputs, other inputs)."""

import torch
import torch.nn.functional as F
from torch import nn

from zoo_vision import Residual, classifier, conv_bn, images

MODELS = {}


def model(make):
    MODELS[make.__name__] = make
    return make


class UNet(nn.Module):
    """`up` makes the layer that doubles the sizes of c channels; odd sizes are padded."""

    def __init__(self, up, width=8, classes=3):
        super().__init__()
        w = width
        self.down1, self.down2, self.middle = conv_bn(3, w), conv_bn(w, 2 * w), conv_bn(2 * w, 4 * w)
        self.up1, self.up2 = up(4 * w, 2 * w), up(2 * w, w)
        self.merge1, self.merge2, self.head = conv_bn(4 * w, 2 * w), conv_bn(2 * w,
                                                                             w), nn.Conv2d(w, classes, 1)

    def join(self, skip, x):
        dy, dx = skip.shape[2] - x.shape[2], skip.shape[3] - x.shape[3]
        return torch.cat([skip, F.pad(x, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])], 1)

    def forward(self, x):
        one = self.down1(x)
        two = self.down2(F.max_pool2d(one, 2))
        x = self.middle(F.max_pool2d(two, 2))
        x = self.merge1(self.join(two, self.up1(x)))
        return self.head(self.merge2(self.join(one, self.up2(x))))


@model
def unet_transposed():
    return images(UNet(lambda a, b: nn.ConvTranspose2d(a, b, 2, 2)), second=(2, 44, 32))


@model
def unet_bilinear():
    return images(
        UNet(lambda a, b: nn.Sequential(nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True),
                                        nn.Conv2d(a, b, 1))), second=(2, 48, 32))


@model
def unet_nearest():
    return images(
        UNet(lambda a, b: nn.Sequential(nn.UpsamplingNearest2d(scale_factor=2), nn.Conv2d(a, b, 1))))


@model
def unet_3d():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.down = nn.Sequential(nn.Conv3d(1, 4, 3, padding=1), nn.InstanceNorm3d(4, affine=True),
                                      nn.ReLU())
            self.middle, self.up = nn.Conv3d(4, 8, 3, 2, 1), nn.ConvTranspose3d(8, 4, 2, 2)
            self.head = nn.Conv3d(8, 2, 1)

        def forward(self, x):
            one = self.down(x)
            return self.head(torch.cat([one, self.up(F.leaky_relu(self.middle(one)))], 1)).softmax(1)

    return Net(), (torch.randn(1, 1, 8, 8, 8), ), (torch.randn(2, 1, 8, 12, 8), )


@model
def unet_attention():

    class Gate(nn.Module):

        def __init__(self):
            super().__init__()
            self.x, self.g, self.psi = nn.Conv2d(8, 4, 1, 2), nn.Conv2d(16, 4, 1), nn.Conv2d(4, 1, 1)
            self.one, self.two = conv_bn(3, 8), conv_bn(8, 16, 3, 2)

        def forward(self, x):
            skip = self.one(x)
            gate = torch.sigmoid(self.psi(F.relu(self.x(skip) + self.g(self.two(skip)))))
            return skip * F.interpolate(gate, size=skip.shape[2:], mode="bilinear", align_corners=False)

    return images(Gate())


@model
def segnet():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.one, self.two, self.head = conv_bn(3, 8), conv_bn(8, 8), nn.Conv2d(8, 2, 1)

        def forward(self, x):
            y, at = F.max_pool2d(self.one(x), 2, return_indices=True)
            return self.head(F.max_unpool2d(self.two(y), at, 2))

    return images(Net())


@model
def deeplab():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(conv_bn(3, 8, 3, 2), conv_bn(8, 16, 3, 2))
            ways = [nn.Conv2d(16, 8, 3, padding=rate, dilation=rate) for rate in (2, 4, 6)]
            self.ways = nn.ModuleList([nn.Conv2d(16, 8, 1), *ways])
            self.pooled, self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1),
                                                   nn.Conv2d(16, 8, 1)), nn.Conv2d(40, 4, 1)

        def forward(self, x):
            y = self.body(x)
            ways = [F.relu(way(y)) for way in self.ways]
            ways.append(F.interpolate(self.pooled(y), y.shape[2:], mode="bilinear", align_corners=False))
            y = self.head(torch.cat(ways, 1))
            return {"out": F.interpolate(y, x.shape[2:], mode="bilinear", align_corners=False)}

    return images(Net())


@model
def pspnet():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.body = conv_bn(3, 8, 3, 2)
            self.ways = nn.ModuleList(
                nn.Sequential(nn.AdaptiveAvgPool2d(n), nn.Conv2d(8, 2, 1)) for n in (1, 2, 3, 6))

        def forward(self, x):
            y = self.body(x)
            ways = [
                F.interpolate(way(y), y.shape[2:], mode="bilinear", align_corners=True) for way in self.ways
            ]
            return torch.cat([y, *ways], 1).argmax(1)

    return images(Net())


class Pyramid(nn.Module):
    """FPN, and with `again` the way up of PAN."""

    def __init__(self, again=False):
        super().__init__()
        self.stages = nn.ModuleList([conv_bn(3, 8, 3, 2), conv_bn(8, 16, 3, 2), conv_bn(16, 24, 3, 2)])
        self.lateral = nn.ModuleList(nn.Conv2d(c, 8, 1) for c in (8, 16, 24))
        self.smooth = nn.ModuleList(nn.Conv2d(8, 8, 3, padding=1) for _ in range(3))
        self.again = nn.ModuleList(nn.Conv2d(8, 8, 3, 2, 1) for _ in range(2)) if again else None

    def forward(self, x):
        features = []
        for stage in self.stages:
            x = stage(x)
            features.append(x)
        out = [self.lateral[2](features[2])]
        for at in (1, 0):
            up = F.interpolate(out[0], size=features[at].shape[-2:], mode="nearest")
            out.insert(0, self.lateral[at](features[at]) + up)
        out = [smooth(y) for smooth, y in zip(self.smooth, out)]
        for at, down in enumerate(self.again or []):
            out[at + 1] = out[at + 1] + down(out[at])
        return tuple(out)


@model
def fpn():
    return images(Pyramid())


@model
def pan():
    return images(Pyramid(True))


@model
def ssd():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.body, self.box, self.score = Pyramid(), nn.Conv2d(8, 4 * 4, 3, 1,
                                                                   1), nn.Conv2d(8, 4 * 3, 3, 1, 1)

        def forward(self, x):
            boxes, scores = [], []
            for y in self.body(x):
                boxes.append(self.box(y).permute(0, 2, 3, 1).reshape(x.shape[0], -1, 4))
                scores.append(self.score(y).permute(0, 2, 3, 1).reshape(x.shape[0], -1, 3))
            boxes, scores = torch.cat(boxes, 1), torch.cat(scores, 1).softmax(-1)
            centre, size = boxes[..., :2] * 0.1, torch.exp(boxes[..., 2:] * 0.2).clamp(max=10)
            best, label = scores.max(-1)
            return torch.cat([centre - size / 2, centre + size / 2],
                             -1), best.topk(20)[0], label.float().mean()

    return images(Net())


@model
def yolo():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.body, self.head = Pyramid(True), nn.ModuleList(nn.Conv2d(8, 3 * 9, 1) for _ in range(3))
            self.register_buffer("anchors", torch.rand(3, 3, 2) * 20)

        def forward(self, x):
            out = []
            for at, (y, head) in enumerate(zip(self.body(x), self.head)):
                y = head(y)
                b, _, h, w = y.shape
                y = y.view(b, 3, 9, h, w).permute(0, 1, 3, 4, 2).sigmoid()
                gy, gx = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
                grid = torch.stack((gx, gy), 2).view(1, 1, h, w, 2).float()
                y[..., 0:2] = (y[..., 0:2] * 2 - 0.5 + grid) * 2**(at + 1)
                y[..., 2:4] = (y[..., 2:4] * 2)**2 * self.anchors[at].view(1, 3, 1, 1, 2)
                out.append(y.reshape(b, -1, 9))
            return torch.cat(out, 1)

    return images(Net())


@model
def yolo_dfl():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.body, self.box, self.score = conv_bn(3, 8, 3, 4,
                                                      act=nn.SiLU), nn.Conv2d(8, 64, 1), nn.Conv2d(8, 5, 1)

        def forward(self, x):
            y = self.body(x)
            b, _, h, w = y.shape
            box = self.box(y).view(b, 4, 16, h * w).transpose(2, 1).softmax(1)
            box = (box * torch.arange(16.0).view(1, 16, 1, 1)).sum(1)
            lt, rb = box.chunk(2, 1)
            sy, sx = torch.meshgrid(torch.arange(h) + 0.5, torch.arange(w) + 0.5, indexing="ij")
            points = torch.stack((sx, sy), -1).view(-1, 2).T.unsqueeze(0)
            a, z = points - lt, points + rb
            return torch.cat([(a + z) / 2, z - a, self.score(y).flatten(2).sigmoid()], 1)

    return images(Net())


@model
def centernet():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.body, self.heat, self.size = conv_bn(3, 8, 3, 4), nn.Conv2d(8, 2, 1), nn.Conv2d(8, 2, 1)

        def forward(self, x):
            y = self.body(x)
            heat = self.heat(y).sigmoid()
            heat = heat * (heat == F.max_pool2d(heat, 3, 1, 1))
            score, at = heat.flatten(1).topk(5)
            size = self.size(y).flatten(2).gather(2, (at % y[0, 0].numel()).unsqueeze(1).expand(-1, 2, -1))
            return score, size

    return images(Net())


@model
def detr():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.body, self.query = conv_bn(3, 16, 3, 8), nn.Parameter(torch.randn(6, 16))
            self.rows, self.columns = nn.Parameter(torch.randn(20, 8)), nn.Parameter(torch.randn(20, 8))
            self.attend = nn.Transformer(16, 2, 1, 1, 32, batch_first=True)
            self.score, self.box = nn.Linear(16, 4), nn.Linear(16, 4)

        def forward(self, x):
            y = self.body(x)
            h, w = y.shape[-2:]
            place = torch.cat(
                [self.columns[:w].unsqueeze(0).repeat(h, 1, 1), self.rows[:h].unsqueeze(1).repeat(1, w, 1)],
                -1).flatten(0, 1)
            y = self.attend(place + y.flatten(2).transpose(1, 2), self.query.expand(x.shape[0], -1, -1))
            return {"logits": self.score(y), "boxes": self.box(y).sigmoid()}

    return images(Net())


@model
def retina_tracker():

    class Net(nn.Module):
        """A Siamese tracker: the template's features are the filter."""

        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Conv2d(3, 4, 3, 2), nn.ReLU())

        def forward(self, template, search):
            z, x = self.body(template), self.body(search)
            b, c, h, w = x.shape
            y = F.conv2d(x.reshape(1, b * c, h, w), z.reshape(b * c, 1, *z.shape[2:]), groups=b * c)
            return y.view(b, c, *y.shape[2:]).sum(1)

    return (Net(), (torch.randn(2, 3, 9, 9), torch.randn(2, 3, 32,
                                                         32)), (torch.randn(2, 3, 9,
                                                                            9), torch.randn(2, 3, 48, 40)))


@model
def hourglass():

    class Hourglass(nn.Module):

        def __init__(self, depth):
            super().__init__()
            self.skip, self.low = conv_bn(8, 8), conv_bn(8, 8)
            self.inner = Hourglass(depth - 1) if depth else conv_bn(8, 8)

        def forward(self, x):
            low = self.inner(self.low(F.max_pool2d(x, 2, 2)))
            return self.skip(x) + F.interpolate(low, scale_factor=2.0)

    return images(nn.Sequential(conv_bn(3, 8, 3, 2), Hourglass(2), nn.Conv2d(8, 5, 1)))


@model
def espcn():
    return images(
        nn.Sequential(nn.Conv2d(3, 16, 5, 1, 2), nn.Tanh(), nn.Conv2d(16, 12, 3, 1, 1), nn.PixelShuffle(2)))


@model
def edsr():
    body = Residual(nn.Sequential(nn.Conv2d(8, 8, 3, 1, 1), nn.PReLU(), nn.Conv2d(8, 8, 3, 1, 1)))
    return images(
        nn.Sequential(nn.PixelUnshuffle(2), nn.Conv2d(12, 8, 3, 1, 1), body, nn.Conv2d(8, 48, 3, 1, 1),
                      nn.PixelShuffle(4), nn.Upsample(scale_factor=1.5, mode="bicubic")))


@model
def dcgan_generator():
    layers = [
        nn.ConvTranspose2d(16, 16, 4, 1, 0, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(True),
        nn.ConvTranspose2d(16, 8, 4, 2, 1, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(True),
        nn.ConvTranspose2d(8, 3, 4, 2, 1),
        nn.Tanh()
    ]
    return nn.Sequential(*layers), (torch.randn(1, 16, 1, 1), ), (torch.randn(3, 16, 1, 1), )


@model
def gan_discriminator():
    norm = nn.utils.parametrizations.spectral_norm
    return images(
        nn.Sequential(norm(nn.Conv2d(3, 8, 4, 2, 1)), nn.LeakyReLU(0.2), norm(nn.Conv2d(8, 16, 4, 2, 1)),
                      nn.LeakyReLU(0.2), classifier(16, 1), nn.Sigmoid()))


@model
def cyclegan_generator():

    def block():
        return Residual(
            nn.Sequential(nn.ReflectionPad2d(1), nn.Conv2d(16, 16, 3), nn.InstanceNorm2d(16), nn.ReLU(),
                          nn.ReflectionPad2d(1), nn.Conv2d(16, 16, 3), nn.InstanceNorm2d(16)))

    return images(
        nn.Sequential(nn.ReflectionPad2d(3), nn.Conv2d(3, 8, 7), nn.InstanceNorm2d(8), nn.ReLU(),
                      nn.Conv2d(8, 16, 3, 2, 1), block(), block(),
                      nn.ConvTranspose2d(16, 8, 3, 2, 1, output_padding=1), nn.ReLU(), nn.ReplicationPad2d(3),
                      nn.Conv2d(8, 3, 7), nn.Tanh()))


class Modulated(nn.Module):
    """StyleGAN2's convolution with weights made per image."""

    def __init__(self):
        super().__init__()
        self.weight, self.style = nn.Parameter(torch.randn(1, 6, 8, 3, 3)), nn.Linear(12, 8)

    def forward(self, x, style):
        b, c, h, w = x.shape
        weight = self.weight * self.style(style).view(b, 1, c, 1, 1)
        weight = weight * torch.rsqrt(weight.pow(2).sum([2, 3, 4]) + 1e-8).view(b, -1, 1, 1, 1)
        y = F.conv2d(x.reshape(1, b * c, h, w), weight.reshape(b * 6, c, 3, 3), padding=1, groups=b)
        return y.view(b, 6, h, w)


@model
def stylegan():
    return (Modulated(), (torch.randn(1, 8, 8, 8), torch.randn(1, 12)), (torch.randn(1, 8, 12,
                                                                                     8), torch.randn(1, 12)))


@model
def vae():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.encode = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.SiLU(), nn.Flatten(),
                                        nn.Linear(8 * 256, 16))
            self.decode = nn.Sequential(nn.Linear(8, 8 * 256), nn.Unflatten(1, (8, 16, 16)), nn.SiLU(),
                                        nn.ConvTranspose2d(8, 3, 3, 2, 1, 1), nn.Sigmoid())

        def forward(self, x, noise):
            mean, log = self.encode(x).chunk(2, 1)
            kl = -0.5 * torch.sum(1 + log - mean.pow(2) - log.exp(), 1)
            return self.decode(mean + noise * torch.exp(0.5 * log)), kl

    return (Net(), (torch.randn(1, 3, 32, 32), torch.randn(1, 8)), (torch.randn(3, 3, 32,
                                                                                32), torch.randn(3, 8)))


@model
def vq_vae():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.encode, self.codes = nn.Conv2d(3, 8, 4, 4), nn.Embedding(12, 8)
            self.decode = nn.ConvTranspose2d(8, 3, 4, 4)

        def forward(self, x):
            z = self.encode(x).permute(0, 2, 3, 1)
            flat = z.reshape(-1, 8)
            gap = flat.pow(2).sum(
                1, keepdim=True) + self.codes.weight.pow(2).sum(1) - 2 * flat @ self.codes.weight.T
            z = z + (self.codes(gap.argmin(1)).view(z.shape) - z)
            return self.decode(z.permute(0, 3, 1, 2))

    return images(Net())


@model
def diffusion_unet():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.time, self.start = nn.Sequential(nn.Linear(16, 16), nn.SiLU(),
                                                  nn.Linear(16, 8)), nn.Conv2d(3, 8, 3, 1, 1)
            self.norm, self.qkv, self.end = nn.GroupNorm(4, 8), nn.Conv1d(8, 24, 1), nn.Conv2d(8, 3, 3, 1, 1)

        def forward(self, x, t):
            rate = torch.exp(torch.arange(8) * (-torch.log(torch.tensor(10000.0)) / 8))
            angle = t[:, None].float() * rate
            y = self.start(x) + self.time(torch.cat([angle.sin(), angle.cos()], -1))[:, :, None, None]
            b, c, h, w = y.shape
            q, k, v = self.qkv(self.norm(y).flatten(2)).chunk(3, 1)
            scores = torch.einsum("bct,bcs->bts", q * c**-0.25, k * c**-0.25).softmax(-1)
            y = y + torch.einsum("bts,bcs->bct", scores, v).reshape(b, c, h, w)
            return self.end(F.silu(y))

    return (Net(), (torch.randn(1, 3, 8, 8), torch.tensor([7])), (torch.randn(2, 3, 8,
                                                                              12), torch.tensor([3, 900])))


@model
def real_nvp():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.scale, self.shift = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x):
            a, b = x.chunk(2, 1)
            s = torch.tanh(self.scale(a))
            y = torch.cat([a, b * s.exp() + self.shift(a)], 1)[:, torch.tensor([7, 6, 5, 4, 3, 2, 1, 0])]
            base = torch.distributions.Normal(torch.zeros(8), torch.ones(8), validate_args=False)
            return y, base.log_prob(y).sum(1) + s.sum(1)

    return Net(), (torch.randn(3, 8), ), (torch.randn(5, 8), )


@model
def stn():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.where, self.head = nn.Sequential(conv_bn(3, 4, 3, 4), classifier(4, 6)), classifier(3)

        def forward(self, x):
            theta = self.where(x).view(-1, 2, 3) * 0.2 + torch.eye(2, 3)
            x = F.grid_sample(x, F.affine_grid(theta, x.shape, align_corners=False), align_corners=False)
            return self.head(x), x

    return images(Net())


@model
def flow_warp():

    class Net(nn.Module):
        """Optical flow: a cost volume, and one picture warped by the flow."""

        def __init__(self):
            super().__init__()
            self.body, self.flow = nn.Conv2d(3, 8, 3, 1, 1), nn.Conv2d(9, 2, 3, 1, 1)

        def forward(self, one, two):
            a, b = self.body(one), F.pad(self.body(two), [1] * 4)
            h, w = a.shape[2:]
            cost = torch.stack([(a * b[:, :, i:i + h, j:j + w]).mean(1) for i in range(3) for j in range(3)],
                               1)
            flow = self.flow(cost).permute(0, 2, 3, 1)
            grid = torch.stack(
                torch.meshgrid(torch.linspace(-1, 1, w), torch.linspace(-1, 1, h), indexing="xy"), -1)
            return F.grid_sample(two, grid + flow * 0.1, mode="bilinear", padding_mode="border",
                                 align_corners=True)

    return (Net(), (torch.randn(1, 3, 16, 16), torch.randn(1, 3, 16,
                                                           16)), (torch.randn(2, 3, 16,
                                                                              24), torch.randn(2, 3, 16, 24)))


@model
def style_loss():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.body = conv_bn(3, 8)

        def forward(self, x, y):

            def gram(picture):
                z = self.body(picture).flatten(2)
                return torch.einsum("bci,bdi->bcd", z, z) / z.shape[2]

            return F.mse_loss(gram(x), gram(y)), F.l1_loss(x, y, reduction="none").mean((1, 2, 3))

    return (Net(), (torch.randn(1, 3, 16, 16), torch.randn(1, 3, 16,
                                                           16)), (torch.randn(2, 3, 16,
                                                                              24), torch.randn(2, 3, 16, 24)))


@model
def non_local():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.theta, self.phi, self.g, self.out = (nn.Conv2d(3, 4, 1), nn.Conv2d(3, 4, 1),
                                                      nn.Conv2d(3, 4, 1), nn.Conv2d(4, 3, 1))

        def forward(self, x):
            pooled = F.max_pool2d(x, 2)
            scores = torch.baddbmm(torch.zeros(1),
                                   self.theta(x).flatten(2).transpose(1, 2),
                                   self.phi(pooled).flatten(2))
            y = torch.bmm(scores.softmax(-1), self.g(pooled).flatten(2).transpose(1, 2)).transpose(1, 2)
            return x + self.out(y.reshape(x.shape[0], 4, x.shape[2], x.shape[3]))

    return images(Net())


@model
def video_3d():
    body = nn.Sequential(nn.Conv3d(3, 8, (1, 3, 3), (1, 2, 2), (0, 1, 1)), nn.BatchNorm3d(8), nn.ReLU(),
                         nn.Conv3d(8, 8, (3, 1, 1), padding=(1, 0, 0)), nn.MaxPool3d((1, 2, 2)),
                         nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(8, 5))
    return body, (torch.randn(1, 3, 4, 16, 16), ), (torch.randn(2, 3, 8, 16, 20), )


@model
def convlstm():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.gates = nn.Conv2d(3 + 4, 16, 3, 1, 1)

        def forward(self, x):
            h = c = torch.zeros(x.shape[0], 4, *x.shape[3:])
            for t in range(3):
                i, f, o, g = self.gates(torch.cat([x[:, t], h], 1)).chunk(4, 1)
                c = f.sigmoid() * c + i.sigmoid() * g.tanh()
                h = o.sigmoid() * c.tanh()
            return h

    return Net(), (torch.randn(1, 3, 3, 8, 8), ), (torch.randn(2, 3, 3, 8, 12), )


@model
def capsules():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.body, self.weight = nn.Conv2d(3, 16, 9, 8), nn.Parameter(torch.randn(5, 64 // 2, 6, 8) * 0.1)

        def squash(self, x):
            size = (x**2).sum(-1, keepdim=True)
            return size / (1 + size) * x / (size.sqrt() + 1e-8)

        def forward(self, x):
            u = self.squash(self.body(x).reshape(x.shape[0], -1, 8))[:, :18]
            votes = torch.matmul(self.weight[:, :u.shape[1]], u[:, None, :, :, None]).squeeze(-1)
            logits = torch.zeros(votes.shape[:3])
            for _ in range(2):
                y = self.squash((logits.softmax(1).unsqueeze(-1) * votes).sum(2))
                logits = logits + (votes * y.unsqueeze(2)).sum(-1)
            return torch.linalg.vector_norm(y, dim=-1)

    return images(Net(), second=(3, 32, 32))
