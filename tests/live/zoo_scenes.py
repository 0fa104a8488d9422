# SPDX-License-Identifier: Apache-2.0
"""Architectures for zoo.py: diffusion, restoration, matching, flow, poses, masks, anomalies.
`MODELS` maps a name to what makes (module, inputs, inputs of another size)."""

import math

import torch
import torch.nn.functional as F
from torch import nn
from zoo_parts import net, param

MODELS = {}


def model(make):
    MODELS[make.__name__] = make
    return make


def images(module, channels=3, first=(1, 32, 32), second=(2, 48, 32)):
    """The module with one input of images in two sizes."""
    return (module, *((torch.randn(n, channels, h, w), ) for n, h, w in (first, second)))


def conv(a, b, kernel=3, stride=1, **named):
    return nn.Conv2d(a, b, kernel, stride, kernel // 2, **named)


# ---- diffusion ------------------------------------------------------------------------------------


def time_embedding(t, size):
    freq = torch.exp(-math.log(10000) * torch.arange(size // 2, dtype=torch.float32) / (size // 2))
    angle = t[:, None].float() * freq[None]
    return torch.cat([angle.cos(), angle.sin()], -1)


@model
def dit():
    """Transformer of diffusion: patches, and a norm whose gain, bias and gate follow from the time."""

    def forward(self, x, t, label):
        n, _, h, w = x.shape
        y = self.patch(x).flatten(2).transpose(1, 2) + self.place
        c = self.time(time_embedding(t, 8)) + self.labels(label)
        shift, scale, gate, shift2, scale2, gate2 = self.mod(F.silu(c)).unsqueeze(1).chunk(6, -1)
        z = F.layer_norm(y, (16, ), eps=1e-6) * (1 + scale) + shift
        q, k, v = self.qkv(z).reshape(n, -1, 3, 2, 8).permute(2, 0, 3, 1, 4).unbind(0)
        y = y + gate * F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, -1, 16)
        y = y + gate2 * self.mlp(F.layer_norm(y, (16, ), eps=1e-6) * (1 + scale2) + shift2)
        y = self.out(y).reshape(n, h // 2, w // 2, 2, 2, 4)
        return torch.einsum("nhwpqc->nchpwq", y).reshape(n, 4, h, w)

    parts = {
        "patch": nn.Conv2d(4, 16, 2, 2),
        "place": param(1, 16, 16),
        "time": nn.Sequential(nn.Linear(8, 16), nn.SiLU(), nn.Linear(16, 16)),
        "labels": nn.Embedding(11, 16),
        "mod": nn.Linear(16, 96),
        "qkv": nn.Linear(16, 48),
        "out": nn.Linear(16, 16),
        "mlp": nn.Sequential(nn.Linear(16, 32), nn.GELU("tanh"), nn.Linear(32, 16))
    }

    def make(n):
        return ((torch.randn(n, 4, 8, 8), torch.randint(0, 1000, (n, )), torch.randint(0, 11, (n, ))))

    return net(forward, **parts), make(1), make(3)


@model
def two_stream_diffusion():
    """Flux and SD 3: text and picture attend together with rotary places of three axes."""

    def forward(self, picture, text, ids):
        axes = [
            ids[..., i, None].double() / 100**(torch.arange(2, dtype=torch.float64) / 2) for i in range(2)
        ]
        angle = torch.cat(axes, -1)
        turn = torch.stack([angle.cos(), -angle.sin(), angle.sin(), angle.cos()], -1)
        turn = turn.unflatten(-1, (2, 2)).float().unsqueeze(1)

        def heads(layer, norm, x):
            q, k, v = layer(x).unflatten(-1, (3, 2, 8)).permute(2, 0, 3, 1, 4)
            return norm(q), norm(k), v

        q, k, v = (torch.cat(two, 2)
                   for two in zip(heads(self.text, self.norm, text), heads(self.picture, self.norm, picture)))

        def rotate(x):
            x = x.reshape(*x.shape[:-1], -1, 1, 2)
            return (turn[..., 0] * x[..., 0] + turn[..., 1] * x[..., 1]).flatten(-2)

        y = F.scaled_dot_product_attention(rotate(q), rotate(k), v).transpose(1, 2).flatten(2)
        return self.out(y[:, text.shape[1]:]), self.out(y[:, :text.shape[1]])

    parts = {
        "text": nn.Linear(16, 48),
        "picture": nn.Linear(16, 48),
        "norm": nn.RMSNorm(8),
        "out": nn.Linear(16, 16)
    }

    def make(n, a, b):
        return ((torch.randn(n, a, 16), torch.randn(n, b, 16), torch.randint(0, 9, (n, a + b, 2))))

    return net(forward, **parts), make(1, 6, 4), make(2, 9, 5)


def res_block(a, b):

    def forward(self, x, t):
        y = self.one(F.silu(self.norm1(x))) + self.time(F.silu(t))[:, :, None, None]
        return self.short(x) + self.two(F.silu(self.norm2(y)))

    return net(forward,
               norm1=nn.GroupNorm(4, a),
               one=conv(a, b),
               time=nn.Linear(16, b),
               norm2=nn.GroupNorm(4, b),
               two=conv(b, b),
               short=nn.Conv2d(a, b, 1))


@model
def latent_diffusion():
    """A U-Net with cross attention to a text, and two steps of DDIM with guidance."""

    def unet(self, x, t, text):
        t = self.time(time_embedding(t, 16))
        a = self.down(x, t)
        b = self.middle(F.avg_pool2d(a, 2), t)
        n, c, h, w = b.shape
        seq = self.norm(b.flatten(2).transpose(1, 2))
        b = b + self.attend(seq, text, text)[0].transpose(1, 2).reshape(n, c, h, w)
        up = F.interpolate(b, scale_factor=2.0, mode="nearest")
        return self.out(self.up(torch.cat([up, a], 1), t))

    def forward(self, x, text):
        for t, before in ((800, 400), (400, 0)):
            at = torch.full((2 * x.shape[0], ), t)
            noise, guided = self.unet(x.repeat(2, 1, 1, 1), at, torch.cat([torch.zeros_like(text),
                                                                           text])).chunk(2)
            noise = noise + 3.0 * (guided - noise)
            clean = (x - (1 - self.alpha[t]).sqrt() * noise) / self.alpha[t].sqrt()
            x = self.alpha[before].sqrt() * clean.clamp(-1, 1) + (1 - self.alpha[before]).sqrt() * noise
        return x

    body = net(unet,
               time=nn.Linear(16, 16),
               down=res_block(4, 8),
               middle=res_block(8, 16),
               norm=nn.LayerNorm(16),
               attend=nn.MultiheadAttention(16, 2, kdim=6, vdim=6, batch_first=True),
               up=res_block(24, 8),
               out=conv(8, 4))
    alpha = torch.cumprod(1 - torch.linspace(0.00085**0.5, 0.012**0.5, 1000)**2, 0)

    def make(n, h):
        return ((torch.randn(n, 4, h, 8), torch.randn(n, 5, 6)))

    return net(forward, unet=body, alpha=alpha), make(1, 8), make(2, 12)


@model
def latent_decoder():
    """The decoder of a VAE of pictures: attention over places, resizing, group norm."""

    def forward(self, z):
        y = self.start(z / 0.18215)
        n, c, h, w = y.shape
        q, k, v = self.qkv(F.group_norm(y, 4, eps=1e-6)).flatten(2).chunk(3, 1)
        y = y + (v @ (torch.bmm(q.transpose(1, 2), k) * c**-0.5).softmax(-1).transpose(1, 2)).view(n, c, h, w)
        y = self.up(F.interpolate(y, scale_factor=2, mode="nearest"))
        return (self.out(F.silu(y)) / 2 + 0.5).clamp(0, 1).mul(255).round().to(torch.uint8)

    return images(net(forward, start=conv(4, 8), qkv=nn.Conv2d(8, 24, 1), up=conv(8, 8), out=conv(8, 3)), 4,
                  (1, 6, 6), (2, 8, 6))


@model
def flow_matching():
    """Euler steps of a learned velocity by while_loop."""

    def forward(self, x):

        def more(at, x):
            return at < 4

        def step(at, x):
            t = (at / 4.0).expand(x.shape[0], 1)
            return at + 1, x + self.field(torch.cat([x, t], 1)) / 4

        return torch._higher_order_ops.while_loop(more, step, (torch.tensor(0), x))[1]

    return net(forward, field=nn.Sequential(nn.Linear(4, 12), nn.SiLU(),
                                            nn.Linear(12, 3))), (torch.randn(2, 3), ), (torch.randn(5, 3), )


# ---- restoration ----------------------------------------------------------------------------------


def dense_block(self, x):
    seen = [x]
    for layer in self.layers[:-1]:
        seen.append(F.leaky_relu(layer(torch.cat(seen, 1)), 0.2, inplace=True))
    return self.layers[-1](torch.cat(seen, 1)) * 0.2 + x


@model
def esrgan():
    """Residual in residual dense blocks, and pixels from channels."""

    def forward(self, x):
        y = self.start(F.pixel_unshuffle(x, 2))
        y = y + self.trunk(y)
        y = F.leaky_relu(self.up(F.interpolate(y, scale_factor=2, mode="nearest")), 0.2)
        return F.pixel_shuffle(self.end(y), 2)

    blocks = [
        net(dense_block, layers=[conv(8 + 4 * i, 4 if i < 2 else 8) for i in range(3)]) for _ in range(2)
    ]
    return images(
        net(forward, start=conv(12, 8), trunk=nn.Sequential(*blocks), up=conv(8, 8), end=conv(8, 12)), 3,
        (1, 16, 16), (2, 24, 16))


@model
def restormer():
    """Attention between channels, and gated depthwise layers."""

    def forward(self, x):
        n, c, h, w = x.shape
        q, k, v = self.depth(self.qkv(F.group_norm(x, 1))).chunk(3, 1)
        q, k, v = (t.reshape(n, 2, c // 2, h * w) for t in (q, k, v))
        weight = (F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-2, -1) * self.heat).softmax(-1)
        x = x + self.out((weight @ v).reshape(n, c, h, w))
        a, b = self.gate(x).chunk(2, 1)
        return x + self.out(F.gelu(a) * b)

    return images(
        net(forward,
            qkv=nn.Conv2d(8, 24, 1, bias=False),
            depth=conv(24, 24, groups=24, bias=False),
            heat=nn.Parameter(torch.ones(2, 1, 1)),
            out=nn.Conv2d(8, 8, 1),
            gate=conv(8, 16)), 8, (1, 8, 8), (2, 12, 8))


@model
def swin_ir():
    """Shifted windows with cosine attention and a bias from a small net (Swin 2)."""

    def forward(self, x):
        n, h, w, c = x.shape
        y = torch.roll(x, (-2, -2), (1, 2)).view(n, h // 4, 4, w // 4, 4, c)
        y = y.permute(0, 1, 3, 2, 4, 5).reshape(-1, 16, c)
        q, k, v = self.qkv(y).unflatten(-1, (3, 2, c // 2)).permute(2, 0, 3, 1, 4)
        scale = torch.clamp(self.heat, max=math.log(100.0)).exp()
        score = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-2, -1) * scale
        bias = 16 * torch.sigmoid(self.bias(self.table)[self.index.view(-1)].view(16, 16, 2).permute(2, 0, 1))
        y = ((score + bias).softmax(-1) @ v).transpose(1, 2).reshape(-1, 4, 4, c)
        y = y.view(n, h // 4, w // 4, 4, 4, c).permute(0, 1, 3, 2, 4, 5).reshape(n, h, w, c)
        return torch.roll(y, (2, 2), (1, 2))

    at = torch.stack(torch.meshgrid(torch.arange(4), torch.arange(4), indexing="ij")).flatten(1)
    gap = (at[:, :, None] - at[:, None]).permute(1, 2, 0) + 3
    table = torch.stack(torch.meshgrid(torch.arange(-3.0, 4), torch.arange(-3.0, 4), indexing="ij"),
                        -1).view(-1, 2)
    table = table.sign() * torch.log2(table.abs() + 1) / 3
    module = net(forward,
                 qkv=nn.Linear(8, 24),
                 heat=nn.Parameter(torch.full((2, 1, 1), 2.0)),
                 bias=nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2, bias=False)),
                 table=table,
                 index=gap[..., 0] * 7 + gap[..., 1])
    return module, (torch.randn(1, 8, 8, 8), ), (torch.randn(2, 8, 12, 8), )


@model
def wavelet_net():
    """Haar wavelets by strided slices, gains in each band, and back."""

    def forward(self, x):
        a, b, c, d = x[..., ::2, ::2], x[..., 1::2, ::2], x[..., ::2, 1::2], x[..., 1::2, 1::2]
        bands = torch.cat([a + b + c + d, a - b + c - d, a + b - c - d, a - b - c + d], 1) / 2
        a, b, c, d = torch.tensor_split(self.body(bands), 4, 1)
        out = torch.zeros_like(x)
        out[..., ::2, ::2], out[..., 1::2, ::2] = (a + b + c + d) / 2, (a - b + c - d) / 2
        out[..., ::2, 1::2], out[..., 1::2, 1::2] = (a + b - c - d) / 2, (a - b - c + d) / 2
        return out

    return images(net(forward, body=nn.Conv2d(12, 12, 1)), 3, (1, 16, 16), (2, 24, 16))


@model
def laplacian_pyramid():

    def forward(self, x):
        kernel, levels = self.kernel.expand(3, 1, 5, 5), []

        def blur(t):
            return (F.conv2d(F.pad(t, (2, 2, 2, 2), mode="reflect"), kernel, groups=3))

        for _ in range(2):
            small = blur(x)[:, :, ::2, ::2]
            levels.append(x - F.interpolate(small, size=x.shape[-2:], mode="bicubic", align_corners=False))
            x = small
        edges = self.edges(levels[0].mean(1, keepdim=True))
        return x, levels[1], torch.atan2(edges[:, :1], edges[:, 1:]), torch.linalg.vector_norm(edges, dim=1)

    row = torch.tensor([1.0, 4, 6, 4, 1]) / 16
    return images(
        net(forward,
            kernel=torch.outer(row, row),
            edges=nn.Conv2d(1, 2, 3, padding=1, padding_mode="replicate")))


# ---- matching, flow, poses ------------------------------------------------------------------------


@model
def raft():
    """All pairs of features, looked up around a flow that a convolutional GRU moves."""

    def forward(self, one, two):
        a, b = self.features(one), self.features(two)
        n, c, h, w = a.shape
        pairs = (a.flatten(2).transpose(1, 2) @ b.flatten(2) / math.sqrt(c)).view(n * h * w, 1, h, w)
        levels = [pairs, F.avg_pool2d(pairs, 2)]
        y, x = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        start = torch.stack([x, y]).float().expand(n, -1, -1, -1)
        at, state = start.clone(), torch.tanh(self.state(one))
        for _ in range(2):
            seen = []
            for level, volume in enumerate(levels):
                size = torch.tensor([volume.shape[-1] - 1, volume.shape[-2] - 1])
                grid = at.permute(0, 2, 3, 1).reshape(-1, 1, 1, 2) / 2**level + self.around
                seen.append(F.grid_sample(volume, 2 * grid / size - 1, align_corners=True).view(n, h, w, -1))
            y = torch.cat([*seen, (at - start).permute(0, 2, 3, 1)], -1).permute(0, 3, 1, 2)
            z, r = torch.sigmoid(self.gates(torch.cat([state, y], 1))).chunk(2, 1)
            state = (1 - z) * state + z * torch.tanh(self.new(torch.cat([r * state, y], 1)))
            at = at + self.move(state)
        mask = self.mask(state).view(n, 1, 9, 4, 4, h, w).softmax(2)
        parts = F.unfold(4 * (at - start), 3, padding=1).view(n, 2, 9, 1, 1, h, w)
        return (mask * parts).sum(2).permute(0, 1, 4, 2, 5, 3).reshape(n, 2, 4 * h, 4 * w)

    near = torch.stack(torch.meshgrid(torch.arange(-1.0, 2), torch.arange(-1.0, 2), indexing="ij"), -1)
    parts = {
        "features": nn.Sequential(conv(3, 8, 7, 4), nn.InstanceNorm2d(8), nn.ReLU(), conv(8, 8)),
        "state": conv(3, 6, 7, 4),
        "around": near[None],
        "gates": conv(26, 12),
        "new": conv(26, 6),
        "move": conv(6, 2),
        "mask": nn.Conv2d(6, 144, 1)
    }

    def make(n, h, w):
        return ((torch.randn(n, 3, h, w), torch.randn(n, 3, h, w)))

    return net(forward, **parts), make(1, 32, 32), make(2, 32, 40)


@model
def cost_volume():
    """Stereo: features shifted by each disparity, convolutions in three dimensions, a soft minimum."""

    def forward(self, left, right):
        a, b = self.features(left), self.features(right)
        volume = a.new_zeros(a.shape[0], 16, 4, a.shape[2], a.shape[3])
        for d in range(4):
            if d > 0:
                volume[:, :8, d, :, d:], volume[:, 8:, d, :, d:] = a[..., d:], b[..., :-d]
            else:
                volume[:, :8, d], volume[:, 8:, d] = a, b
        cost = self.match(volume)
        cost = F.interpolate(cost, [8, left.shape[2], left.shape[3]], mode="trilinear")
        return (F.softmax(-cost.squeeze(1), 1) * torch.arange(8.0).view(1, 8, 1, 1)).sum(1)

    match = nn.Sequential(nn.Conv3d(16, 8, 3, padding=1), nn.BatchNorm3d(8), nn.ReLU(),
                          nn.Conv3d(8, 1, 3, padding=1))

    def make(n, w):
        return ((torch.randn(n, 3, 16, w), torch.randn(n, 3, 16, w)))

    return net(forward, features=conv(3, 8, 5, 2), match=match), make(1, 24), make(2, 32)


@model
def dense_matching():
    """LoFTR: linear attention, a dual softmax, and pairs that choose each other."""

    def forward(self, one, two):
        a, b = (self.body(x).flatten(2).transpose(1, 2) for x in (one, two))
        q, k = F.elu(self.q(a)) + 1, F.elu(self.k(b)) + 1
        kv = torch.einsum("nsd,nsv->ndv", k, b)
        a = self.norm(a + torch.einsum("nld,ndv,nl->nlv", q, kv, 1
                                       / (torch.einsum("nld,nd->nl", q, k.sum(1)) + 1e-6)))
        score = torch.einsum("nlc,nsc->nls", a, b) / 8
        sure = F.softmax(score, 1) * F.softmax(score, 2)
        mutual = (sure == sure.max(2, keepdim=True)[0]) * (sure == sure.max(1, keepdim=True)[0])
        found, place = mutual.max(2)
        return sure, found, torch.where(found, place, -1)

    def make(n, h):
        return ((torch.randn(n, 3, h, 16), torch.randn(n, 3, 16, 16)))

    return net(forward, body=conv(3, 8, 4, 4), q=nn.Linear(8, 8), k=nn.Linear(8, 8),
               norm=nn.LayerNorm(8)), make(1, 16), make(2, 24)


@model
def super_point():
    """Points of interest from cells, thinned by maxima, with descriptors read between pixels."""

    def forward(self, x):
        y = self.body(x)
        score = self.points(y).softmax(1)[:, :-1].permute(0, 2, 3, 1)
        n, h, w, _ = score.shape
        score = score.reshape(n, h, w, 4, 4).permute(0, 1, 3, 2, 4).reshape(n, h * 4, w * 4)
        top = F.max_pool2d(score, 5, 1, 2) == score
        best, at = torch.where(top, score, 0.0).flatten(1).topk(6)
        row = torch.div(at, w * 4, rounding_mode="floor")
        place = torch.stack([at % (w * 4), row], -1).float()
        grid = (place + 0.5) / torch.tensor([w * 4, h * 4]) * 2 - 1
        read = F.grid_sample(F.normalize(self.words(y)),
                             grid.unsqueeze(1),
                             mode="bilinear",
                             align_corners=False)
        return place, best, F.normalize(read.squeeze(2), dim=1)

    return images(
        net(forward,
            body=nn.Sequential(conv(1, 8, 3, 2), nn.ReLU(), conv(8, 12, 3, 2)),
            points=nn.Conv2d(12, 17, 1),
            words=nn.Conv2d(12, 8, 1)), 1)


@model
def pose_net():
    """Heat maps of joints: the means of their softmax, and their peaks moved by a quarter."""

    def forward(self, x):
        heat = self.body(x)
        n, c, h, w = heat.shape
        p = heat.flatten(2).softmax(-1).view(n, c, h, w)
        soft = torch.stack([(p.sum(2) * torch.arange(w)).sum(-1), (p.sum(3) * torch.arange(h)).sum(-1)], -1)
        best, at = heat.flatten(2).max(-1)
        padded = F.pad(heat, (1, 1, 1, 1)).flatten(2)
        centre = (at // w + 1) * (w + 2) + at % w + 1
        step = torch.sign(
            padded.gather(2, (centre + 1).unsqueeze(-1)) - padded.gather(2, (centre - 1).unsqueeze(-1)))
        return soft, best, torch.stack([at % w, at // w], -1) + 0.25 * step

    return images(
        net(forward, body=nn.Sequential(conv(3, 12, 3, 2), nn.ReLU(), nn.ConvTranspose2d(12, 5, 4, 2, 1))))


@model
def six_d_pose():
    """Turns from six numbers by Gram-Schmidt, quaternions, and points projected by a camera."""

    def forward(self, x, points):
        six, move = self.head(x).split([6, 3], -1)
        a = F.normalize(six[:, :3], dim=-1)
        b = F.normalize(six[:, 3:] - (a * six[:, 3:]).sum(-1, keepdim=True) * a, dim=-1)
        turn = torch.stack([a, b, torch.linalg.cross(a, b)], -2)
        moved = points @ turn.mT + move[:, None] + torch.tensor([0.0, 0, 6])
        seen = moved @ self.camera.t()
        trace = turn.diagonal(dim1=-2, dim2=-1).sum(-1)
        angle = torch.acos(((trace - 1) / 2).clamp(-1 + 1e-6, 1 - 1e-6))
        return seen[..., :2] / seen[..., 2:], angle, torch.linalg.det(turn), torch.linalg.inv(turn)

    camera = torch.tensor([[50.0, 0, 16], [0, 50, 16], [0, 0, 1]])

    def make(n, p):
        return ((torch.randn(n, 5), torch.randn(n, p, 3)))

    return net(forward, head=nn.Linear(5, 9), camera=camera), make(1, 4), make(3, 7)


@model
def homography():
    """Four moved corners, the system of eight equations, and the picture seen through it."""

    def forward(self, x):
        n = x.shape[0]
        moved = self.corners + 0.2 * torch.tanh(self.head(x)).view(n, 4, 2)
        u, v = self.corners.expand(n, 4, 2).unbind(-1)
        one, zero = torch.ones_like(u), torch.zeros_like(u)
        a, b = moved.unbind(-1)
        first = torch.stack([u, v, one, zero, zero, zero, -u * a, -v * a], -1)
        other = torch.stack([zero, zero, zero, u, v, one, -u * b, -v * b], -1)
        h = torch.linalg.solve(torch.cat([first, other], 1), torch.cat([a, b], 1))
        h = torch.cat([h, torch.ones(n, 1)], 1).view(n, 3, 3)
        ys, xs = torch.meshgrid(torch.linspace(-1, 1, 16), torch.linspace(-1, 1, 16), indexing="ij")
        places = torch.stack([xs, ys, torch.ones_like(xs)], -1).view(1, -1, 3) @ h.transpose(1, 2)
        return F.grid_sample(x, (places[..., :2] / places[..., 2:]).view(n, 16, 16, 2),
                             padding_mode="border",
                             align_corners=True)

    head = nn.Sequential(nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(48, 8))
    return images(net(forward, corners=torch.tensor([[-1.0, -1], [1, -1], [-1, 1], [1, 1]]), head=head))


@model
def deformable_attention():
    """Deformable DETR: few places per query in features of two sizes."""

    def forward(self, small, large, query):
        n, count = query.shape[:2]
        point = torch.sigmoid(self.point(query))
        weight = self.weight(query).view(n, count, 2, 8).softmax(-1)
        move = self.move(query).view(n, count, 2, 2, 4, 2)
        read = []
        for level, x in enumerate((small, large)):
            size = torch.tensor([x.shape[-1], x.shape[-2]])
            grid = 2 * (point[:, :, None, None] + move[:, :, :, level] / size) - 1
            grid = grid.transpose(1, 2).flatten(0, 1)
            value = self.value(x).unflatten(1, (2, 4)).flatten(0, 1)
            read.append(F.grid_sample(value, grid, mode="bilinear", padding_mode="zeros",
                                      align_corners=False))
        read = torch.stack(read, -2).flatten(-2)
        y = (read * weight.transpose(1, 2).reshape(n * 2, 1, count, 8)).sum(-1)
        return self.out(y.view(n, 8, count).transpose(1, 2))

    parts = {
        "point": nn.Linear(8, 2),
        "weight": nn.Linear(8, 16),
        "move": nn.Linear(8, 32),
        "value": nn.Conv2d(8, 8, 1),
        "out": nn.Linear(8, 8)
    }

    def make(n, q):
        return ((torch.randn(n, 8, 5, 6), torch.randn(n, 8, 10, 12), torch.randn(n, q, 8)))

    return net(forward, **parts), make(1, 4), make(2, 7)


@model
def siamese_tracker():
    """The features of a pattern are the kernels over those of a scene, sample by sample."""

    def forward(self, pattern, scene):
        k, x = self.body(pattern), self.body(scene)
        n, c = k.shape[:2]
        y = F.conv2d(x.reshape(1, n * c, *x.shape[2:]), k.reshape(n * c, 1, *k.shape[2:]), groups=n * c)
        return self.head(y.view(n, c, *y.shape[2:]))

    def make(n, h):
        return ((torch.randn(n, 3, 16, 16), torch.randn(n, 3, h, 32)))

    return net(forward, body=nn.Sequential(conv(3, 8, 3, 2), nn.ReLU(), conv(8, 8)),
               head=nn.Conv2d(8, 2, 1)), make(1, 32), make(2, 40)


# ---- masks, places, anomalies ---------------------------------------------------------------------


@model
def mask_former():
    """Queries attend where the masks of the layer before say so; masks are products with pixels."""

    def forward(self, x):
        pixels = self.body(x)
        y = pixels.flatten(2).transpose(1, 2)
        q = self.queries.weight.unsqueeze(0).repeat(x.shape[0], 1, 1)
        for layer in self.layers:
            mask = torch.einsum("nqc,nchw->nqhw", self.mask(q), pixels).flatten(2).sigmoid() < 0.5
            mask = mask & ~mask.all(-1, keepdim=True)
            q = q + layer(q, y, y, attn_mask=mask.repeat_interleave(2, 0))[0]
        masks = torch.einsum("nqc,nchw->nqhw", self.mask(q), pixels)
        return self.classes(q), F.interpolate(masks, scale_factor=4, mode="bilinear", align_corners=False)

    return images(
        net(forward,
            body=nn.Sequential(conv(3, 8, 3, 2), nn.ReLU(), conv(8, 8, 3, 2)),
            queries=nn.Embedding(5, 8),
            layers=[nn.MultiheadAttention(8, 2, batch_first=True) for _ in range(2)],
            mask=nn.Linear(8, 8),
            classes=nn.Linear(8, 4)))


@model
def text_detector():
    """DBNet: probability and threshold maps, joined by a steep sigmoid."""

    def forward(self, x):
        a = self.one(x)
        b = self.two(a)
        y = torch.cat([a, F.interpolate(b, size=a.shape[2:])], 1)
        p, t = torch.sigmoid(self.p(y)), torch.sigmoid(self.t(y))
        return torch.cat([p, t, torch.reciprocal(1 + torch.exp(-50 * (p - t)))], 1)

    def up():
        return (nn.Sequential(nn.ConvTranspose2d(20, 6, 2, 2), nn.BatchNorm2d(6), nn.ReLU(), conv(6, 1)))

    return images(net(forward, one=conv(3, 8, 3, 2), two=conv(8, 12, 3, 2), p=up(), t=up()))


@model
def net_vlad():

    def forward(self, x):
        y = F.normalize(self.body(x), p=2, dim=1)
        weight = self.weigh(y).flatten(2).softmax(1)
        y = y.flatten(2)
        gaps = y.unsqueeze(1) - self.centres.unsqueeze(0).unsqueeze(-1)
        v = F.normalize((gaps * weight.unsqueeze(2)).sum(-1), p=2, dim=2)
        return F.normalize(v.flatten(1), p=2, dim=1), y.clamp(min=1e-6).pow(3).mean(-1).pow(1 / 3)

    return images(net(forward, body=conv(3, 8, 3, 4), weigh=nn.Conv2d(8, 5, 1), centres=param(5, 8)))


@model
def mobile_vit():
    """Attention between pixels of the same place in their patches, by unfold and fold."""

    def forward(self, x):
        n, c, h, w = x.shape
        y = F.unfold(x, (2, 2), stride=(2, 2)).reshape(n, c, 4, -1).permute(0, 2, 3, 1)
        y = self.layer(y.reshape(n * 4, -1, c)).reshape(n, 4, -1, c)
        y = F.fold(y.permute(0, 3, 1, 2).reshape(n, c * 4, -1), (h, w), (2, 2), stride=(2, 2))
        return self.join(torch.cat([x, y], 1))

    return images(
        net(forward,
            layer=nn.TransformerEncoderLayer(8, 2, 16, activation=F.silu, batch_first=True, norm_first=True),
            join=conv(16, 8)), 8, (1, 8, 8), (2, 12, 8))


@model
def involution():
    """Kernels that follow from the pixel."""

    def forward(self, x):
        n, c, h, w = x.shape
        weight = self.span(F.relu(self.reduce(x))).view(n, 2, 1, 9, h, w)
        return (weight * F.unfold(x, 3, padding=1).view(n, 2, c // 2, 9, h, w)).sum(3).view(n, c, h, w)

    return images(net(forward, reduce=nn.Conv2d(8, 4, 1), span=nn.Conv2d(4, 18, 1)), 8, (1, 8, 8),
                  (2, 12, 10))


@model
def anomaly_distance():
    """PaDiM and PatchCore: distances from normal features, by covariance and by neighbours."""

    def forward(self, x):
        y = self.body(x)
        y = torch.cat([y, F.avg_pool2d(y, 3, 1, 1)], 1).permute(0, 2, 3, 1)
        gap = y - self.mean
        far = torch.sqrt(torch.einsum("nhwc,cd,nhwd->nhw", gap, self.inverse, gap))
        rows = y.flatten(0, 2)
        near, at = torch.cdist(rows, self.memory).topk(3, largest=False)
        weight = 1 - torch.softmax(near, 1)[:, 0]
        return F.interpolate(far.unsqueeze(1), size=x.shape[-2:], mode="bilinear"), weight * near[:, 0], at[:,
                                                                                                            0]

    square = torch.randn(8, 8)
    return images(
        net(forward,
            body=conv(3, 4, 5, 4),
            mean=torch.randn(8),
            inverse=square @ square.t() / 8 + torch.eye(8),
            memory=torch.randn(12, 8)))
