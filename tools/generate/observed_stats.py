# SPDX-License-Identifier: Apache-2.0
"""fxserve::stats in PyTorch's own words: torch.ops.fxserve.stats for scripts that import this.

What it gives is laid out as core/ops/observe.c says."""

import torch

BINS = 32
NAN = float("nan")

library = torch.library.Library("fxserve", "DEF")
library.define("stats(Tensor self) -> Tensor")


def split(whole):
    """The nearest double of an int, and what is missing."""
    return float(whole), float(whole - int(float(whole)))


def stats(tensor):
    values = tensor.double().flatten()
    finite = values[values.isfinite()]
    extremes = [NAN, NAN, 0.0, 0.0]
    mean, std, start, end = NAN, NAN, NAN, NAN
    counts = torch.zeros(BINS, dtype=torch.float64)
    if finite.numel():
        extremes = [finite.min().item(), finite.max().item(), 0.0, 0.0]
        mean, std = finite.mean().item(), finite.std().item()
        counts = finite.histc(BINS)
        start, end = extremes[:2]
        if start == end:
            start, end = start - 1, end + 1
        if not tensor.is_floating_point():
            low, high = (split(int(tensor.flatten().long().min())), split(int(tensor.flatten().long().max())))
            extremes = [low[0], high[0], low[1], high[1]]
    head = [tensor.is_floating_point(), tensor.numel(), values.isnan().sum(), values.isinf().sum(),
            (values == 0).sum(), *extremes, mean, std, start, end]
    return torch.cat([torch.tensor([float(item) for item in head], dtype=torch.float64), counts])


library.impl("stats", stats, "CompositeExplicitAutograd")
