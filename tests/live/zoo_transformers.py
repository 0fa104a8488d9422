# SPDX-License-Identifier: Apache-2.0
"""Models of transformers for zoo_packages.py: one small configuration per model type.

`shrink` sets what it knows of a configuration. Not every type can be shrunk so far, so forms that
change less and larger inputs are tried after it, until PyTorch runs one. Inputs are those that
`forward` asks for, by their names.
"""

import contextlib
import inspect
import re

import torch
from torch import nn
from zoo_parts import made_on_meta

DEPTHS = {
    name: 2
    for name in ("num_hidden_layers", "num_layers", "n_layer", "n_layers", "encoder_layers", "decoder_layers",
                 "num_decoder_layers")
}
TOKENS = {
    "vocab_size": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1,
    "image_token_id": 62, "image_token_index": 62, "use_cache": False
}
WIDTHS = {
    "hidden_size": 32, "d_model": 32, "n_embd": 32, "dim": 32, "embed_dim": 32, "intermediate_size": 48,
    "ffn_dim": 48, "d_ff": 48, "n_inner": 48, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48,
    "moe_intermediate_size": 16, "num_attention_heads": 4, "n_head": 4, "n_heads": 4, "num_heads": 4,
    "encoder_attention_heads": 4, "decoder_attention_heads": 4, "num_key_value_heads": 2,
    "max_position_embeddings": 64, "n_positions": 64, "max_source_positions": 16, "max_target_positions": 16,
    "num_mel_bins": 8, "image_size": 32, "patch_size": 8, "num_experts": 4, "num_local_experts": 4,
    "n_routed_experts": 4, "num_experts_per_tok": 2, "projection_dim": 16, "embedding_size": 16,
    "num_query_tokens": 4, "context_length": 16, "prediction_length": 4, "mamba_n_heads": 8,
    "mamba_d_head": 8, "rotary_dim": 8, "n_group": 1, "topk_group": 1
}
HEADS = {"head_dim": 8, "d_kv": 8, "state_size": 4}
ALIKE = {"num_key_value_heads": 4}  # as many as heads
SIDES = {
    "image_size": 64, **{name: WIDTHS[name]
                         for name in ("num_experts", "num_local_experts", "n_routed_experts")}
}
FORMS = ({**DEPTHS, **TOKENS, **WIDTHS, **HEADS}, {**DEPTHS, **TOKENS, **WIDTHS, **ALIKE},
         {**DEPTHS, **TOKENS, **SIDES}, {**DEPTHS, **TOKENS}, {})
UNSET = ("prediction_length", "context_length", "n_routed_experts", "num_experts_per_tok")  # None
SIZES = (((1, 8), (2, 12)), ((1, 96), (2, 128)))
SOUNDS = ("features last, samples without a channel", "frames last, samples with a channel")


def shrink(config, small):
    """Sets what `small` names, here and in the configurations inside."""
    for name, value in small.items():
        with contextlib.suppress(Exception):  # properties, and attributes that layers have each
            now = getattr(config, name, None)
            if (isinstance(now, int) or (now is None and name in UNSET)) and not (
                    name == "image_size" and now < value):
                setattr(config, name, value)
    for inner in list(vars(config).values()):
        if hasattr(inner, "model_type"):
            shrink(inner, small)
    return config


class ByName(nn.Module):
    """A model called with named inputs in a fixed order."""

    def __init__(self, body, names):
        super().__init__()
        self.body, self.names = body, names

    def forward(self, *values):
        return self.body(**dict(zip(self.names, values)))


def first_of(config, names, default):
    """The first of these attributes that the configuration, or one inside of it, has."""
    for name in names:
        for holder in (config, *(getattr(config, part, None) for part in ("vision_config", "text_config",
                                                                          "audio_config"))):
            value = getattr(holder, name, None)
            if value:
                return value[0] if isinstance(value, (list, tuple)) else value
    return default


class Inputs:
    """What inputs of these names are: `of(name)` draws one, None if the name says nothing."""

    def __init__(self, config, batch, length, sound):
        self.config, self.batch, self.length, self.sound = config, batch, length, sound

    def of(self, name):
        name = {"input_ids": "tokens", "decoder_input_ids": "tokens"}.get(name, name)
        return getattr(self, name)() if hasattr(Inputs, name) and not name.startswith("_") else None

    def tokens(self):
        return torch.randint(3, 60, (self.batch, min(self.length, 16)))

    def attention_mask(self):
        return torch.ones_like(self.tokens())

    def pixel_values(self):
        size = first_of(self.config, ("image_size", ), 32)
        size = max(size, 224 if self.length > 16 else 32) if not hasattr(self.config, "image_size") else size
        return torch.randn(self.batch, first_of(self.config, ("num_channels", "in_channels"), 3), size, size)

    def input_values(self):
        bins, frames = (first_of(self.config, (name, ), 0) for name in ("num_mel_bins", "max_length"))
        if bins and frames > 20:  # a spectrogram
            return torch.randn(self.batch, frames, bins)
        samples = torch.randn(self.batch, 400 * self.length)
        return samples if self.sound == SOUNDS[0] else samples.unsqueeze(1)

    def input_features(self):
        bins = first_of(self.config, ("num_mel_bins", "feature_size", "input_dim"), 80)
        frames = 2 * first_of(self.config, ("max_source_positions", ), self.length * 4)
        shape = (frames, bins) if self.sound == SOUNDS[0] else (bins, frames)
        return torch.randn(self.batch, *shape)

    def bbox(self):
        corners = torch.randint(0, 30, (self.batch, min(self.length, 16), 2))
        return torch.cat([corners, corners + 5], -1)

    def query_embeds(self):
        return torch.randn(self.batch, 4, self.config.hidden_size)

    def past_values(self):
        channels = first_of(self.config, ("num_input_channels", ), 0)
        steps = first_of(self.config, ("context_length", ), 16)
        lags = getattr(self.config, "lags_sequence", None)
        return torch.randn(self.batch, steps + (max(lags) if lags else 0), *([channels] if channels else []))

    def past_time_features(self):
        return torch.randn(*self.past_values().shape[:2], first_of(self.config, ("num_time_features", ), 0))

    def past_observed_mask(self):
        return torch.ones_like(self.past_values())


WANTED = ("attention_mask", "past_time_features", "past_observed_mask", "bbox")


def inputs_of(module, batch, length, sound):
    config, accepted = module.config, inspect.signature(module.forward).parameters
    names = [module.main_input_name]
    names += [name for name, value in accepted.items() if value.default is value.empty
              and value.kind not in (value.VAR_KEYWORD, value.VAR_POSITIONAL)]
    names += [name for name in WANTED if name != "attention_mask" or "input_ids" in names]
    if getattr(config, "is_encoder_decoder", False):
        names.append("decoder_input_ids")
    if getattr(config, "vision_config", None) is not None and hasattr(config, "text_config"):
        names.append("pixel_values")
    makers = Inputs(config, batch, length, sound)
    drawn = {name: makers.of(name) for name in dict.fromkeys(names) if name in accepted}
    return {name: value for name, value in drawn.items() if value is not None}


def with_pictures(module, named):
    """The inputs with as many tokens that stand for pictures as the model says that it wants."""
    try:
        module(**named)
    except ValueError as error:
        counts = re.search(r"tokens: \d+, features:? (\d+)", str(error))
        token = first_of(module.config, ("image_token_id", "image_token_index"), None)
        if not counts or token is None:
            raise
        rows, width = len(named["input_ids"]), first_of(module.config.text_config, ("hidden_size", ), 1)
        for count in (int(counts[1]) // rows, int(counts[1]) // rows // width):
            ids = torch.cat([torch.full((rows, count), token), named["input_ids"]], 1)
            more = {**named, "input_ids": ids, "attention_mask": torch.ones_like(ids)}
            with contextlib.suppress(ValueError):
                module(**more)
                return more
        raise
    return named


def made(kind, form):
    import transformers
    config = shrink(transformers.AutoConfig.for_model(kind), form)
    module = made_on_meta(lambda: transformers.AutoModel.from_config(config)).eval()
    for weight in module.parameters():  # a router of zeros gives ties, whose order is free
        if weight.dim() > 1 and weight.is_floating_point() and not weight.any():
            weight.normal_(std=0.02)
    return module


def language_model(kind):
    """(module, inputs, inputs of another size) of the first form that PyTorch makes and runs."""
    error = None
    for form in FORMS:
        try:
            module = made(kind, form)
        except Exception as caught:
            error = error or caught
            continue
        sounds = SOUNDS if module.main_input_name in ("input_features", "input_values") else SOUNDS[:1]
        for sizes, sound in ((sizes, sound) for sizes in SIZES for sound in sounds):
            try:
                first, second = (with_pictures(module, inputs_of(module, *size, sound)) for size in sizes)
                return ByName(module, list(first)), tuple(first.values()), tuple(second.values())
            except Exception as caught:
                error = error or caught
    raise error


def language_names():
    from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES
    return sorted(MODEL_MAPPING_NAMES)
