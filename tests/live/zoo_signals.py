# SPDX-License-Identifier: Apache-2.0
"""Architectures for zoo.py: audio codecs, vocoders, speech. `MODELS` maps a name to what makes
(module, inputs, inputs of another size)."""

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations
from zoo_parts import net, param, signals

MODELS = {}


def model(make):
    MODELS[make.__name__] = make
    return make


# ---- codecs and vocoders --------------------------------------------------------------------------


def causal_conv(c1, c2, kernel, stride=1, dilation=1):
    """EnCodec's convolution: weight norm and padding by reflection on the left."""
    conv = parametrizations.weight_norm(nn.Conv1d(c1, c2, kernel, stride, dilation=dilation))
    return net(lambda self, x: self.conv(F.pad(x, (self.left, 0), mode="reflect")),
               conv=conv,
               left=(kernel - 1) * dilation - (stride - 1))


def quantise(self, x):
    """Residual vector quantisation: each book codes what the books before have left."""
    left, found, codes = x.transpose(1, 2), torch.zeros_like(x.transpose(1, 2)), []
    for book in self.books:
        gaps = left.pow(2).sum(-1, keepdim=True) - 2 * left @ book.weight.t() + book.weight.pow(2).sum(1)
        code = (-gaps).max(-1).indices
        value = book(code)
        left, found = left - value, found + value
        codes.append(code)
    return torch.stack(codes), found.transpose(1, 2)


@model
def encodec():

    def forward(self, x):
        scale = x.pow(2).mean((1, 2), keepdim=True).sqrt() + 1e-8
        y = self.down(x / scale)
        y = y + self.time(y.permute(2, 0, 1))[0].permute(1, 2, 0)
        codes, y = self.quantise(y)
        return codes, self.up(y)[..., :x.shape[-1]] * scale

    down = nn.Sequential(causal_conv(1, 8, 7), nn.ELU(), causal_conv(8, 8, 3, dilation=2), nn.ELU(),
                         causal_conv(8, 12, 8, 4))
    books = net(quantise, books=[nn.Embedding(16, 12) for _ in range(3)])
    up = nn.Sequential(parametrizations.weight_norm(nn.ConvTranspose1d(12, 8, 8, 4)), nn.ELU(),
                       nn.Conv1d(8, 1, 7, padding=3), nn.Tanh())
    return signals(net(forward, down=down, time=nn.LSTM(12, 12, 2), quantise=books, up=up), (1, 1, 160),
                   (2, 1, 200))


def snake(channels):
    return net(lambda self, x: x + (self.alpha + 1e-9).reciprocal() * torch.sin(self.alpha * x).pow(2),
               alpha=nn.Parameter(torch.rand(1, channels, 1) + 0.5))


@model
def descript_codec():
    """Snake activations, and a book in few dimensions that is compared by cosine."""

    def forward(self, x):
        x = F.pad(x, (0, -x.shape[-1] % 8))
        y = self.down(x)
        small = self.into(y).permute(0, 2, 1).reshape(-1, 4)
        near = F.normalize(small) @ F.normalize(self.book.weight).t()
        code = near.max(1)[1].view(x.shape[0], -1)
        return code, self.up(self.out(F.embedding(code, self.book.weight).transpose(1, 2)))

    down = nn.Sequential(nn.Conv1d(1, 8, 7, padding=3), snake(8), nn.Conv1d(8, 16, 16, 8, 4))
    up = nn.Sequential(snake(16), nn.ConvTranspose1d(16, 8, 16, 8, 4), snake(8), nn.Conv1d(8, 1, 7,
                                                                                           padding=3))
    return signals(
        net(forward,
            down=down,
            into=nn.Conv1d(16, 4, 1),
            book=nn.Embedding(32, 4),
            out=nn.Conv1d(4, 16, 1),
            up=up), (1, 1, 96), (2, 1, 160))


@model
def hifi_gan():

    def forward(self, mel):
        y = self.start(mel)
        for up, blocks in zip(self.ups, self.blocks):
            y = up(F.leaky_relu(y, 0.1))
            y = sum(y + block(F.leaky_relu(y, 0.1)) for block in blocks) / len(blocks)
        return torch.tanh(self.end(F.leaky_relu(y)))

    norm = nn.utils.weight_norm
    ups = [norm(nn.ConvTranspose1d(c, c // 2, 8, 4, 2)) for c in (16, 8)]
    blocks = [
        nn.ModuleList(
            norm(nn.Conv1d(c, c, k, dilation=d, padding=(k - 1) * d // 2))
            for k, d in ((3, 1), (3, 3), (5, 2))) for c in (8, 4)
    ]
    return signals(
        net(forward,
            start=nn.Conv1d(10, 16, 7, padding=3),
            ups=ups,
            blocks=blocks,
            end=nn.Conv1d(4, 1, 7, padding=3)), (1, 10, 9), (2, 10, 14))


@model
def spectral_vocoder():
    """iSTFTNet: magnitude and phase of a short-time Fourier transform, then its inverse."""

    def forward(self, mel):
        y = self.body(mel)
        size, phase = torch.exp(y[:, :9]), torch.sin(y[:, 9:])
        return torch.istft(size * torch.exp(phase * 1j), 16, 4, 16, window=self.window)

    return signals(
        net(forward,
            body=nn.Sequential(nn.Conv1d(10, 16, 3, padding=1), nn.LeakyReLU(), nn.Conv1d(16, 18, 1)),
            window=torch.hann_window(16)), (1, 10, 12), (2, 10, 20))


@model
def harmonic_source():
    """The source of a neural source-filter vocoder: sines of multiples of a pitch."""

    def forward(self, pitch):
        f0 = F.interpolate(pitch[:, None], scale_factor=8.0).transpose(1, 2)
        radians = f0 * torch.arange(1, 6) / 800 % 1
        phase = torch.cumsum(radians, 1) * 2 * math.pi
        voiced = (f0 > 60).float()
        return torch.tanh(self.mix(torch.sin(phase) * 0.1 * voiced + (1 - voiced) * 0.03))

    def pitch(*shape):
        return (torch.rand(*shape) * 200)

    return net(forward, mix=nn.Linear(5, 1)), (pitch(1, 10), ), (pitch(2, 15), )


# ---- speech ---------------------------------------------------------------------------------------


@model
def fast_speech():
    """Each sound is repeated as often as its predicted duration says."""

    def forward(self, tokens):
        y = self.encoder(self.embed(tokens))
        often = torch.clamp(torch.round(torch.exp(self.duration(y).squeeze(-1))), 1, 5).long()
        ends = often.cumsum(1)
        frames = torch.arange(40)
        path = (frames[None, None] < ends[..., None]) & (frames[None, None] >= (ends - often)[..., None])
        y = path.transpose(1, 2).float() @ y
        return self.decoder(y), often

    def layer():
        return (nn.TransformerEncoderLayer(16, 2, 32, batch_first=True))

    return net(forward,
               embed=nn.Embedding(30, 16),
               encoder=layer(),
               duration=nn.Linear(16, 1),
               decoder=nn.Sequential(layer(), nn.Linear(16, 10))), (torch.randint(0, 30,
                                                                                  (1, 7)), ), (torch.randint(
                                                                                      0, 30, (3, 9)), )


@model
def length_regulator():
    """repeat_interleave by durations, as Kokoro and FastSpeech 2 do for one text."""

    def forward(self, tokens):
        y = self.embed(tokens)[0]
        often = torch.sigmoid(self.duration(y)).sum(-1).round().clamp(min=1).long()
        y = torch.repeat_interleave(y, often, dim=0)
        return self.out(y)

    return net(forward, embed=nn.Embedding(30, 16), duration=nn.Linear(16, 8),
               out=nn.Linear(16, 10)), (torch.randint(0, 30, (1, 7)), ), (torch.randint(0, 30, (1, 11)), )


@model
def style_tts_block():
    """Instance norm with gain and bias of a style, and two convolutions."""

    def forward(self, x, style):
        gain, bias = self.affine(style).unsqueeze(-1).chunk(2, 1)
        y = F.leaky_relu((1 + gain) * F.instance_norm(x) + bias, 0.2)
        y = self.pool(y)
        return (F.interpolate(x, scale_factor=2, mode="nearest") + self.conv(y)) / math.sqrt(2)

    parts = {
        "affine": nn.Linear(6, 16),
        "pool": nn.ConvTranspose1d(8, 8, 3, 2, 1, 1, groups=8),
        "conv": nn.Conv1d(8, 8, 3, padding=1)
    }
    return net(forward, **parts), (torch.randn(1, 8,
                                               12), torch.randn(1, 6)), (torch.randn(2, 8,
                                                                                     17), torch.randn(2, 6))


@model
def tacotron_attention():
    """Location-sensitive attention and a decoder of two cells, unrolled."""

    def forward(self, memory):
        n, length = memory.shape[0], memory.shape[1]
        frame, h, c = memory.new_zeros(n, 4), memory.new_zeros(n, 12), memory.new_zeros(n, 12)
        context, past = memory.new_zeros(n, 8), memory.new_zeros(n, length)
        keys, frames = self.key(memory), []
        for _ in range(4):
            h, c = self.cell(torch.cat([F.relu(self.pre(frame)), context], -1), (h, c))
            place = self.place(past.unsqueeze(1)).transpose(1, 2)
            energy = self.energy(torch.tanh(self.query(h).unsqueeze(1) + keys + self.lay(place))).squeeze(-1)
            weights = energy.softmax(-1)
            past = past + weights
            context = torch.bmm(weights.unsqueeze(1), memory).squeeze(1)
            frame = self.out(torch.cat([h, context], -1))
            frames.append(frame)
        return torch.stack(frames, 1), past

    return signals(
        net(forward,
            key=nn.Linear(8, 6),
            pre=nn.Linear(4, 8),
            cell=nn.LSTMCell(16, 12),
            place=nn.Conv1d(1, 3, 5, padding=2, bias=False),
            lay=nn.Linear(3, 6),
            query=nn.Linear(12, 6),
            energy=nn.Linear(6, 1),
            out=nn.Linear(20, 4)), (1, 9, 8), (3, 13, 8))


def res2(self, x):
    """Res2Net: each part of the channels also sees the part before."""
    parts, out = x.chunk(4, 1), []
    for at, part in enumerate(parts):
        out.append(part if at == 0 else self.convs[at - 1](part + out[-1] if at > 1 else part))
    return torch.cat(out, 1)


@model
def ecapa_tdnn():

    def forward(self, x):
        y = self.start(x)
        z = self.res(y)
        z = y + z * torch.sigmoid(self.gate(z.mean(2, keepdim=True)))
        y = F.relu(self.join(torch.cat([y, z], 1)))
        mean, deviation = y.mean(2, keepdim=True), y.var(2, keepdim=True).clamp(min=1e-4).sqrt()
        seen = torch.cat([y, mean.expand_as(y), deviation.expand(-1, -1, y.shape[2])], 1)
        weight = self.attend(seen).softmax(2)
        mean = (y * weight).sum(2)
        spread = ((y**2 * weight).sum(2) - mean**2).clamp(min=1e-4).sqrt()
        return F.normalize(self.head(torch.cat([mean, spread], 1)))

    def tdnn(a, b, k, d=1):
        return (nn.Sequential(nn.Conv1d(a, b, k, padding=(k - 1) * d // 2, dilation=d), nn.ReLU(),
                              nn.BatchNorm1d(b)))

    return signals(
        net(forward,
            start=tdnn(10, 16, 5),
            res=net(res2, convs=[tdnn(4, 4, 3, 2) for _ in range(3)]),
            gate=nn.Conv1d(16, 16, 1),
            join=nn.Conv1d(32, 24, 1),
            attend=nn.Sequential(nn.Conv1d(72, 8, 1), nn.Tanh(), nn.Conv1d(8, 24, 1)),
            head=nn.Sequential(nn.BatchNorm1d(48), nn.Linear(48, 12))), (1, 10, 20), (3, 10, 31))


@model
def log_mel():
    """The front of Whisper: a spectrogram in mel bands, logarithms, a range below the loudest."""

    def forward(self, wave):
        spectrum = torch.stft(wave, 32, 8, window=self.window, return_complex=True)
        power = spectrum[..., :-1].abs()**2
        bands = torch.clamp(self.bands @ power, min=1e-10).log10()
        bands = torch.maximum(bands, bands.amax((1, 2), keepdim=True) - 8.0)
        return self.conv((bands + 4.0) / 4.0)

    return signals(
        net(forward, window=torch.hann_window(32), bands=torch.rand(6, 17), conv=nn.Conv1d(6, 8, 3, 2, 1)),
        (1, 160), (2, 240))


@model
def speech_enhancer():
    """DCCRN: a complex mask on a spectrum, and back to the wave."""

    def forward(self, wave):
        spectrum = torch.stft(wave, 32, 16, 32, self.window, return_complex=True)
        y = self.body(torch.view_as_real(spectrum).permute(0, 3, 1, 2))
        size, phase = torch.tanh(torch.hypot(y[:, 0], y[:, 1])), torch.atan2(y[:, 1], y[:, 0])
        masked = torch.polar(spectrum.abs() * size, spectrum.angle() + phase)
        return torch.istft(masked, 32, 16, 32, self.window, length=wave.shape[-1])

    body = nn.Sequential(nn.Conv2d(2, 8, 3, padding=1), nn.PReLU(), nn.Conv2d(8, 2, 3, padding=1))
    return signals(net(forward, window=torch.hann_window(32), body=body), (1, 320), (2, 480))


@model
def conv_tasnet():

    def forward(self, wave):
        y = F.relu(self.encode(wave.unsqueeze(1)))
        z = self.separate((y - y.mean((1, 2), keepdim=True)) / (y.var(
            (1, 2), keepdim=True, unbiased=False) + 1e-8).sqrt())
        masks = torch.sigmoid(z).unflatten(1, (2, 8))
        parts = self.decode((masks * y.unsqueeze(1)).flatten(0, 1)).squeeze(1)
        return parts.unflatten(0, (wave.shape[0], 2))

    separate = nn.Sequential(nn.Conv1d(8, 12, 1), nn.PReLU(), nn.GroupNorm(1, 12, eps=1e-8),
                             nn.Conv1d(12, 12, 3, padding=2, dilation=2, groups=12), nn.PReLU(),
                             nn.Conv1d(12, 16, 1))
    return signals(
        net(forward,
            encode=nn.Conv1d(1, 8, 8, 4, bias=False),
            separate=separate,
            decode=nn.ConvTranspose1d(8, 1, 8, 4, bias=False)), (1, 80), (2, 120))


@model
def sinc_net():
    """Band filters by two learned frequencies each."""

    def forward(self, wave):
        low = self.low.abs() + 0.02
        high = torch.clamp(low + self.wide.abs(), max=0.5)
        left = (torch.sin(2 * math.pi * high * self.n) - torch.sin(2 * math.pi * low * self.n)) / (self.n / 2)
        filters = torch.cat([left, 2 * (high - low), left.flip(1)], 1) * self.window
        return torch.log1p(F.max_pool1d(F.conv1d(wave.unsqueeze(1), filters.unsqueeze(1)).abs(), 3))

    return signals(
        net(forward,
            low=nn.Parameter(torch.rand(6, 1) * 0.2),
            wide=nn.Parameter(torch.rand(6, 1) * 0.2),
            n=torch.arange(-7, 0).view(1, -1) * 1.0,
            window=torch.hamming_window(15)), (1, 60), (3, 90))


@model
def wav_features():
    """wav2vec 2: grouped positions, and products with quantised frames."""

    def forward(self, wave):
        y = self.features(wave.unsqueeze(1)).transpose(1, 2)
        y = self.norm(y)
        place = F.gelu(self.place(y.transpose(1, 2))[:, :, :-1]).transpose(1, 2)
        y = self.layer(y + place)
        at = self.vote(y).unflatten(-1, (2, 4)).argmax(-1)
        picks = F.one_hot(at, 4).to(y.dtype)
        return y, (picks.unsqueeze(-1) * self.book).sum(-2).flatten(2)

    features = nn.Sequential(nn.Conv1d(1, 8, 10, 5, bias=False), nn.GroupNorm(8, 8), nn.GELU(),
                             nn.Conv1d(8, 8, 3, 2, bias=False), nn.GELU())
    return signals(
        net(forward,
            features=features,
            norm=nn.LayerNorm(8),
            place=parametrizations.weight_norm(nn.Conv1d(8, 8, 4, padding=2, groups=4), dim=2),
            layer=nn.TransformerEncoderLayer(8, 2, 16, batch_first=True),
            vote=nn.Linear(8, 8),
            book=param(2, 4, 3)), (1, 120), (2, 180))
