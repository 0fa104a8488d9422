# SPDX-License-Identifier: Apache-2.0
"""Models of packages for zoo.py, with weights drawn here: `models(package)` maps names to what makes
(module, inputs, inputs of another size). A package that is not installed has none."""

import functools
import importlib.util

import torch
from torch import nn
from zoo_parts import made_on_meta
from zoo_transformers import language_model, language_names

ROIS = "(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width"
OPERATORS = [
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    f"roi_align{ROIS}, int sampling_ratio, bool aligned) -> Tensor", f"roi_pool{ROIS}) -> (Tensor, Tensor)",
    f"ps_roi_align{ROIS}, int sampling_ratio) -> (Tensor, Tensor)", f"ps_roi_pool{ROIS}) -> (Tensor, Tensor)",
    "deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, "
    "SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, "
    "SymInt offset_groups, bool use_mask) -> Tensor",
    *(f"_{name}_backward(Tensor grad) -> Tensor"
      for name in ("roi_align", "roi_pool", "ps_roi_align", "ps_roi_pool", "deform_conv2d"))
]


@functools.cache
def declare_operators():
    """Declares the operators of torchvision, without kernels, where its wheel cannot load them: the
    wheel wants CUDA's libraries, and its models can be imported without."""
    folder = importlib.util.find_spec("torchvision").submodule_search_locations[0]
    try:
        torch.ops.load_library(f"{folder}/_C.so")
    except OSError:
        library = torch.library.Library("torchvision", "DEF")
        for schema in OPERATORS:
            library.define(schema)
        return library
    return None


# ---- torchvision -----------------------------------------------------------------------------


class Detector(nn.Module):
    """What the detection models do behind their backbones, in a form that torch.export takes: boxes
    around anchors, the best that do not overlap, and a head on the regions of the features."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, 8, 3, 2, 1))
        self.scores, self.moves = nn.Conv2d(8, 2, 1), nn.Conv2d(8, 8, 1)
        self.head = nn.Linear(8 * 9, 5)

    def forward(self, image):
        features = self.features(image)
        height, width = features.shape[-2:]
        y, x = torch.meshgrid(torch.arange(height) * 4.0, torch.arange(width) * 4.0, indexing="ij")
        corners = torch.stack([x, y, x + 12, y + 16], -1).reshape(-1, 1, 4).expand(-1, 2, 4)
        moves = self.moves(features).permute(0, 2, 3, 1).reshape(-1, 2, 4)
        boxes = (corners + 8 * moves).reshape(-1, 4).clamp(min=0.0)
        scores = self.scores(features).permute(0, 2, 3, 1).reshape(-1)
        inside = torch.where(boxes[:, 2] > boxes[:, 0] + 1)[0]
        boxes, scores = boxes[inside], scores[inside]
        kept = torch.ops.torchvision.nms(boxes, scores, 0.5)
        boxes = boxes[kept]
        rois = torch.cat([torch.zeros_like(boxes[:, :1]), boxes], 1)
        regions = torch.ops.torchvision.roi_align(features, rois, 0.25, 3, 3, 2, True)
        return boxes, scores[kept], self.head(regions.flatten(1)).softmax(1)


def vision_model(name):
    if name == "detector":
        return Detector(), (torch.randn(1, 3, 64, 64), ), (torch.randn(1, 3, 64, 64), )
    from torchvision import models
    room = models.get_model_builder(name).__module__
    backbone = {"weights_backbone": None} if "segmentation" in room else {}
    make = functools.partial(models.get_model, name, weights=None, **backbone)
    module = made_on_meta(make)
    if "video" in room:
        frames, size = (16, 224) if name.startswith(("mvit", "swin", "s3d")) else (8, 64)
        return module, (torch.randn(1, 3, frames, size, size), ), (torch.randn(2, 3, frames, size, size), )
    if name.startswith("raft"):
        return (module, (torch.randn(1, 3, 128,
                                     128), torch.randn(1, 3, 128,
                                                       128)), (torch.randn(2, 3, 128,
                                                                           160), torch.randn(2, 3, 128, 160)))
    size = 224 if name.startswith(("vit", "swin", "maxvit")) else 299 if name.startswith("inc") else 96
    more = size if size == 224 else size + 32
    return module, (torch.randn(1, 3, size, size), ), (torch.randn(2, 3, more, size), )


def vision_names():
    """All but those whose inputs are lists of pictures and whose outputs are detections: torch.export
    does not take them as they are. "detector" stands for them."""
    from torchvision import models
    return ["detector"] + [
        name for name in models.list_models()
        if "detection" not in str(models.get_model_builder(name).__module__) and "quantized" not in name
    ]


# ---- timm ------------------------------------------------------------------------------------

SMALL_NAMES = [
    "test_", "zepto", "atto", "femto", "pico", "nano", "xxs", "micro", "tiny", "_xs", "mini", "lite", "_s_",
    "small", "_s", "18", "_m"
]


def family_names():
    """The model of each family whose name says that it is small."""
    import timm

    def rank(name):
        return next((at for at, word in enumerate(SMALL_NAMES) if word in name), len(SMALL_NAMES)), len(name)

    return [
        min(timm.list_models(module=family), key=rank) for family in timm.list_modules()
        if timm.list_models(module=family)
    ]


def family_model(name):
    import timm
    module = made_on_meta(functools.partial(timm.create_model, name, pretrained=False))
    channels, height, width = module.default_cfg["input_size"]
    if not module.default_cfg.get("fixed_input_size") and min(height, width) >= 192:
        height = width = 160
    return module, (torch.randn(1, channels, height, width), ), (torch.randn(2, channels, height, width), )


PACKAGES = {
    "torchvision": (vision_names, vision_model), "timm": (family_names, family_model), "transformers":
    (language_names, language_model)
}


def models(package):
    if importlib.util.find_spec(package) is None:
        print(f"{package} is not installed: its models are left out")
        return {}
    if importlib.util.find_spec("torchvision") is not None:  # that timm and transformers import, too
        declare_operators()
    names, make = PACKAGES[package]
    return {name: functools.partial(make, name) for name in names()}
