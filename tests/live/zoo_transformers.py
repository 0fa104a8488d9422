# SPDX-License-Identifier: Apache-2.0
"""Models of transformers for zoo_packages.py: one small configuration per model type.

`shrink` sets what it knows of a configuration, and `arguments` makes a configuration with it. Not
every type can be shrunk so far, so forms that change less and larger inputs are tried after it, until
PyTorch runs one. Inputs are those that `forward` asks for, by their names, then all that have a maker;
`fitting` changes their sizes as the model's errors say. zoo_types.py has what some types need besides.
"""

import contextlib
import functools
import importlib
import inspect
import itertools
import re
import sys
import unittest.mock

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from zoo_parts import made_on_meta
from zoo_types import ARGUMENTS, OWN, SETTINGS

DEPTHS = {
    name: 2
    for name in ("num_hidden_layers", "num_layers", "n_layer", "n_layers", "encoder_layers", "decoder_layers",
                 "num_decoder_layers", "depth")
}
TOKENS = {
    "vocab_size": 64, "vocab_size_per_layer_input": 64, "pad_token_id": 0, "bos_token_id": 1,
    "eos_token_id": 2, "decoder_start_token_id": 1, "image_token_id": 62, "image_token_index": 62,
    "video_token_id": 61, "vision_start_token_id": 60, "vision_end_token_id": 63, "use_cache": False
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
    "mamba_d_head": 8, "rotary_dim": 8, "n_group": 1, "topk_group": 1, "out_hidden_size": 32,
    "encoder_hidden_size": 32, "upsample_groups": 32, "n_shared_experts": 1, "mm_tokens_per_image": 4,
    "num_kv_shared_layers": 0, "cross_hidden_size": 32, "top_k_experts": 2, "projection_size": 32,
    "text_hidden_size": 32, "projection_hidden_size": 32
}
HEADS = {"head_dim": 8, "d_kv": 8, "state_size": 4}
ALIKE = {"num_key_value_heads": 4}  # as many as heads
SIDES = {
    "image_size": 64, **{name: WIDTHS[name]
                         for name in ("num_experts", "num_local_experts", "n_routed_experts")}
}
FORMS = ({**DEPTHS, **TOKENS, **WIDTHS, **HEADS}, {**DEPTHS, **TOKENS, **WIDTHS, **ALIKE},
         {**DEPTHS, **TOKENS, **SIDES}, {**DEPTHS, **TOKENS}, {})
UNSET = ("prediction_length", "context_length", "n_routed_experts", "num_experts_per_tok", "n_shared_experts",
         "head_dim", "vocab_size", "num_experts", "moe_intermediate_size", "top_k_experts")  # None
SIZES = (((1, 8), (2, 12)), ((1, 96), (2, 128)))
SOUNDS = ("features last, samples without a channel", "frames last, samples with a channel")


def settable(config, small):
    """What `small` names of this configuration."""
    found = {}
    for name, value in small.items():
        with contextlib.suppress(Exception):  # properties, and attributes that layers have each
            now = getattr(config, name, None)
            if (isinstance(now, int) or (now is None and name in UNSET)) and not (
                    name == "image_size" and now < value):
                found[name] = value
    return found


def inner_configs(config):
    return {name: inner for name, inner in vars(config).items() if hasattr(inner, "model_type")}


def arguments(config, small):
    """What `small` names, here and inside, as arguments to make such a configuration with: what
    follows from them, say a list with an entry for each layer, is then made to fit."""
    return settable(config, small) | {
        name: {"model_type": inner.model_type, **arguments(inner, small)}
        for name, inner in inner_configs(config).items()
    }


def shrink(config, small):
    """Sets what `small` names, here and in the configurations inside."""
    for name, value in settable(config, small).items():
        with contextlib.suppress(Exception):
            setattr(config, name, value)
    if "hidden_size" in small:
        with contextlib.suppress(Exception):
            shrink_lists(config)
    for inner in inner_configs(config).values():
        shrink(inner, small)
    return config


def shrink_lists(config):
    """What a configuration of two small layers has lists for: which layers a picture's features are
    taken from, how many numbers of a head turn with time, height and width, and sizes of pictures."""
    if getattr(config, "deepstack_visual_indexes", None):
        config.deepstack_visual_indexes = [0]
    if getattr(config, "image_grid_pinpoints", None):
        config.image_grid_pinpoints = [[64, 64]]
    rope = getattr(config, "rope_parameters", None)
    if isinstance(rope, dict):
        head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        half = int(head * (rope.get("partial_rotary_factor") or 1)) // 2
        rope["mrope_section"] = [half - half // 3 * 2, half // 3, half // 3]


def call(body, named):
    """Lists of numbers, which an export has as constants, become tensors but for sizes of pictures."""
    return body(**{
        name: torch.tensor(value) if isinstance(value, list) and name != "image_sizes" else value
        for name, value in named.items()
    })


class ByName(nn.Module):
    """A model called with named inputs in a fixed order. A cache is none of its outputs."""

    def __init__(self, body, names):
        super().__init__()
        self.body, self.names = body, names

    def forward(self, *values):
        found = call(self.body, dict(zip(self.names, values)))
        if isinstance(found, dict) and found.get("cache") is not None:
            return {name: value for name, value in found.items() if name != "cache"}
        return found


def first_of(config, names, default):
    """The first of these attributes that the configuration, or one inside of it, has."""
    for name in names:
        for holder in (config, *(getattr(config, part, None) for part in ("vision_config", "text_config",
                                                                          "audio_config", "encoder_config"))):
            value = getattr(holder, name, None)
            if value:
                return value[0] if isinstance(value, (list, tuple)) else value
    return default


class Inputs:
    """What inputs of these names are: `of(name)` draws one, None if the name says nothing."""

    def __init__(self, config, accepted, batch, length, sound):
        self.config, self.accepted = config, accepted
        self.batch, self.length, self.sound = batch, length, sound

    def of(self, name):
        name = ALIASES.get(name, name)
        return getattr(self, name)() if hasattr(Inputs, name) and not name.startswith("_") else None

    def tokens(self):
        return torch.randint(3, 60, (self.batch, min(self.length, 16)))

    def attention_mask(self):
        sounds = "input_features" in self.accepted and "input_ids" not in self.accepted
        return self.input_features_mask() if sounds else torch.ones_like(self.tokens())

    def grid_thw(self):
        """Pictures in patches: (time, height, width). There is one for all rows of text, for torch.export
        does not take how attention splits several. Exports have such sizes as constants, so an input of
        sizes is a list of numbers."""
        return [[1, 4, 4 * self.batch]]

    def patches(self):
        """The numbers of each patch of `grid_thw`, in one row."""
        vision = getattr(self.config, "vision_config", None) or self.config
        numbers = first_of(vision, ("in_channels", "in_chans", "num_channels"), 3) * vision.patch_size**2
        numbers *= first_of(vision, ("temporal_patch_size", ), 1)
        return torch.randn(sum(height * width for _, height, width in self.grid_thw()), numbers)

    def hidden_states(self):
        return self.patches() if "grid_thw" in self.accepted else None

    def pixel_values_videos(self):
        size = first_of(self.config, ("image_size", "crop_size"), 32)
        frames = first_of(self.config, ("frames_per_clip", "num_frames"), 4)
        return torch.randn(self.batch, frames, 3, size, size)

    def pixel_values(self):
        if "image_grid_thw" in self.accepted or "grid_thw" in self.accepted:
            return self.patches()
        size = first_of(self.config, ("image_size", ), 32)
        size = max(size, 224 if self.length > 16 else 32) if not hasattr(self.config, "image_size") else size
        channels = first_of(self.config, ("num_channels", "in_channels"), 3)
        if "spatial_shapes" in self.accepted:
            return torch.randn(self.batch, 16, channels * first_of(self.config, ("patch_size", ), 8)**2)
        tiles = 5 if getattr(self.config, "image_grid_pinpoints", None) else 1
        several = tiles > 1 or "pixel_attention_mask" in self.accepted
        sides = getattr(self.config, "image_size", None)
        sides = sides if isinstance(sides, (list, tuple)) else (size, size)
        return torch.randn(self.batch, *([tiles] if several else []), channels, *sides)

    def spatial_shapes(self):
        return [[4, 4]] * self.batch

    def merge_sizes(self):
        return [2] * len(self.grid_thw())

    def image_sizes(self):
        pixels = self.pixel_values()
        return [[64, 64] if pixels.dim() == 5 else list(pixels.shape[-2:])] * self.batch

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

    def inputs_embeds(self):
        others = {"input_ids", "input_features", "input_values", "pixel_values"}
        width = first_of(self.config, ("hidden_size", ), None)
        wanted = width and not others & self.accepted.keys()
        return torch.randn(self.batch, self.length, width) if wanted else None

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

    def input_features_mask(self):
        features = self.input_features()
        return torch.ones(self.batch, features.shape[1 if self.sound == SOUNDS[0] else 2], dtype=torch.long)


ALIASES = {
    "input_ids": "tokens", "decoder_input_ids": "tokens", "qformer_input_ids": "tokens",
    "image_grid_thw": "grid_thw", "target_sizes": "spatial_shapes", "image_merge_sizes": "merge_sizes"
}
WANTED = ("attention_mask", "past_time_features", "past_observed_mask", "bbox", "target_sizes")


def inputs_of(module, batch, length, sound, every):
    config, accepted = module.config, inspect.signature(module.forward).parameters
    main = module.main_input_name
    names = [main] if isinstance(main, str) else list(main)
    names += [name for name, value in accepted.items() if value.default is value.empty
              and value.kind not in (value.VAR_KEYWORD, value.VAR_POSITIONAL)]
    own = OWN.get(config.model_type, {})
    names += list(own)
    text = "input_ids" in names and "input_ids" in accepted
    names += [name for name in WANTED if name != "attention_mask" or text]
    if getattr(config, "is_encoder_decoder", False):
        names.append("decoder_input_ids")
    if getattr(config, "vision_config", None) is not None and hasattr(config, "text_config"):
        names += ["pixel_values", "image_grid_thw", "image_sizes", "spatial_shapes", "image_merge_sizes"]
    names += accepted if every else []
    makers = Inputs(config, accepted, batch, length, sound)
    drawn = {
        name: own[name](makers) if name in own else makers.of(name)
        for name in dict.fromkeys(names) if name in accepted or name in own
    }
    return {name: value for name, value in drawn.items() if value is not None}


def with_pictures(module, named, words):
    """The inputs with as many tokens that stand for pictures as the model says that it wants, or None."""
    counts = re.search(r"tokens: \d+, features:? (\d+)", words)
    token = first_of(module.config, ("image_token_id", "image_token_index"), None)
    if not counts or token is None:
        return None
    rows, width = len(named["input_ids"]), first_of(module.config.text_config, ("hidden_size", ), 1)
    for count in (int(counts[1]) // rows, int(counts[1]) // rows // width):
        ids = torch.cat([torch.full((rows, count), token), named["input_ids"]], 1)
        more = {**named, "input_ids": ids, "attention_mask": torch.ones_like(ids)}
        accepted = inspect.signature(module.forward).parameters
        if "mm_token_type_ids" in accepted or hasattr(module, "get_rope_index"):  # places of three sides
            more["position_ids"] = torch.arange(ids.shape[1]).expand(3, *ids.shape).clone()
        with contextlib.suppress(ValueError):
            call(module, more)
            return more
    return None


def in_frames(config, named, words):
    """The inputs with several pictures each where the model wants five dimensions, or None."""
    pixels = named.get("pixel_values")
    if pixels is None or pixels.dim() != 4 or not re.search("expected 5, got 4|must be a 5D tensor", words):
        return None
    frames = first_of(config, ("num_frames", ), 2)
    return {**named, "pixel_values": torch.randn(len(pixels), frames, *pixels.shape[1:])}


# An error's words, and the dimensions of inputs that they may be about.
FITS = ((r"cannot be multiplied \(\d+x(?P<has>\d+) and (?P<wants>\d+)x\d+\)", (-1, )),
        (r"to have (?P<wants>\d+) channels, but got (?P<has>\d+) channels", (1, -1)),
        (r"normalized_shape=\[(?P<wants>\d+)\].*size\[.*?(?P<has>\d+)\]$", (-1, )),
        (r"tensor a \((?P<has>\d+)\) must match .* tensor b \((?P<wants>\d+)\) at .* 2$", (2, )))


def resized(named, words):
    """The inputs with as many numbers for each patch, frame or picture as the model says that it wants, or
    None."""
    for pattern, axes in FITS:
        found = re.search(pattern, words)
        for axis in axes if found else ():
            changed = {
                name: torch.randn(*value.shape[:axis], int(found["wants"]), *value.shape[axis:][1:])
                for name, value in named.items() if isinstance(value, torch.Tensor)
                and value.is_floating_point() and value.dim() > 1 and value.shape[axis] == int(found["has"])
            }
            if changed:
                return {**named, **changed}
    return None


@sdpa_kernel(SDPBackend.MATH)  # which checks numbers of heads and masks; the others read past their ends
def fitting(module, named):
    """The inputs that the model runs with, its errors being followed three times."""
    for _ in range(3):
        try:
            call(module, named)
            return named
        except (RuntimeError, ValueError) as error:
            words = str(error)
            changed = with_pictures(module, named, words) or in_frames(module.config, named, words)
            changed = changed or resized(named, words)
            if changed is None:
                raise
            named = changed
    call(module, named)
    return named


# Functions of transformers that compute with the sizes of pictures, and the names of inputs that hold their
# results, where those were computed before. torch.export does not take the functions themselves.
SIZED = {
    "get_vision_cu_seqlens": ("cu_seqlens", ), "get_vision_attention_seqlens": ("cu_seqlens", "max_seqlen"),
    "get_vision_position_ids": ("position_ids", ), "get_vision_nearest_position_ids": ("position_ids", ),
    "get_vision_window_index": ("window_index", "cu_window_seqlens"),
    "get_vision_interpolation_indices_and_weights": ("interp_indices", "interp_weights"),
    "get_vision_bilinear_indices_and_weights": ("bilinear_indices", "bilinear_weights")
}


def with_sized(module, named):
    """The inputs of a model of pictures, alone or with text, with what SIZED names."""
    rooms, found = {sys.modules[type(part).__module__] for part in module.modules()}, {}
    prefix = "image_" if "input_ids" in named else ""

    def recording(function, names):

        def recorded(*args, **kwargs):
            results = function(*args, **kwargs)
            if kwargs.get("kwargs") is not None:
                found.update(zip(names, results if isinstance(results, tuple) else (results, )))
            return results

        return recorded

    with contextlib.ExitStack() as stack:
        for room, name in itertools.product(rooms, SIZED):
            if name in vars(room):
                own = recording(getattr(room, name), SIZED[name])
                stack.enter_context(unittest.mock.patch.object(room, name, own))
        call(module, named)
    more = {
        **named,
        **{prefix + name: value for name, value in found.items() if isinstance(value, torch.Tensor)}
    }
    try:
        call(module, more)
    except (TypeError, ValueError, RuntimeError):  # it does not take them beside text
        return named
    return more


def bare_model(kind, config):
    """What AutoModel makes; where it fails, the class itself made with what it takes: the configuration or
    a part of it."""
    import transformers
    from transformers.models.auto.configuration_auto import model_type_to_module_name
    from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES
    try:
        return transformers.AutoModel.from_config(config)
    except (AttributeError, ValueError):
        name, folder = MODEL_MAPPING_NAMES[kind], model_type_to_module_name(kind)
        room = importlib.import_module(f"transformers.models.{folder}.modeling_{folder}")
        model = getattr(room, name) if isinstance(name, str) else type(None)
        wanted = getattr(model, "config_class", ())
        taken = [part for part in (config, *inner_configs(config).values()) if isinstance(part, wanted)]
        if len(taken) != 1:
            raise
        return model(taken[0])


def made(kind, form, anew):
    """A model with the configuration shrunk, `anew` with one that is made small."""
    import transformers
    from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES
    own = ARGUMENTS.get(kind, {})
    config = transformers.AutoConfig.for_model(kind, **own)
    if anew:
        config = transformers.AutoConfig.for_model(kind, **{**arguments(config, form), **own})
    shrink(config, form)
    for path, value in SETTINGS.get(kind, {}).items():
        *inner, name = path.split(".")
        setattr(functools.reduce(getattr, inner, config), name, value)
    if not isinstance(MODEL_MAPPING_NAMES[kind], str) and not config.architectures:
        config.architectures = list(MODEL_MAPPING_NAMES[kind][:1])
    module = made_on_meta(lambda: bare_model(kind, config)).eval()
    for weight in module.parameters():  # a router of zeros gives ties, whose order is free
        if weight.dim() > 1 and weight.is_floating_point() and not weight.any():
            weight.normal_(std=0.02)
    return module


def language_model(kind):
    """(module, inputs, inputs of another size) of the first form that PyTorch makes and runs."""
    error = None
    for form, anew in [*itertools.product(FORMS[:-1], (False, True)), (FORMS[-1], False)]:
        try:
            module = made(kind, form, anew)
        except Exception as caught:
            error = error or caught
            continue
        sounds = SOUNDS if module.main_input_name in ("input_features", "input_values") else SOUNDS[:1]
        for sizes, sound, every in itertools.product(SIZES, sounds, (False, True)):
            try:
                first, second = (fitting(module, inputs_of(module, *size, sound, every)) for size in sizes)
                if {"grid_thw", "image_grid_thw"} & first.keys():
                    first, second = (with_sized(module, named) for named in (first, second))
                return ByName(module, list(first)), tuple(first.values()), tuple(second.values())
            except Exception as caught:
                error = error or caught
    raise error


def language_names():
    from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES
    return sorted(MODEL_MAPPING_NAMES)
