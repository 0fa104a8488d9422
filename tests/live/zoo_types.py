# SPDX-License-Identifier: Apache-2.0
"""What single model types of transformers need besides what zoo_transformers.py knows.

OWN has inputs by their names, each made from an Inputs; ARGUMENTS what a configuration is made with,
SETTINGS what is set in it afterwards.
"""

import torch


def normal(own, *sizes):
    return torch.randn(own.batch, *sizes)


def ones(own, *sizes, dtype=torch.long):
    return torch.ones(own.batch, *sizes, dtype=dtype)


def behind(own, count, token):
    """Tokens behind `count` of one that stands for a picture or a sound."""
    return torch.cat([torch.full((own.batch, count), token), own.tokens()], 1)


# Inputs that nothing but the model type tells.
OWN = {
    "blip_2_qformer": {"encoder_hidden_states": lambda own: normal(own, 16, own.config.encoder_hidden_size)},
    "blt": {"patch_lengths": lambda own: torch.tensor([[1] + [4] * (own.length // 4)] * own.batch)},
    "clap": {"input_features": lambda own: normal(own, 1, 1001, 64)},
    "decision_transformer": {
        "states": lambda own: normal(own, own.length, 17),
        "actions": lambda own: normal(own, own.length, 4),
        "rewards": lambda own: normal(own, own.length, 1),
        "returns_to_go": lambda own: normal(own, own.length, 1),
        "timesteps": lambda own: torch.arange(own.length).expand(own.batch, -1).clone()
    },
    "deepseek_vl_hybrid": {"high_res_pixel_values": lambda own: own.pixel_values()},
    "dia": {"decoder_input_ids": lambda own: torch.randint(3, 60, (own.batch, own.length, 9))},
    **{kind: {
        "pixel_values": lambda own: normal(own, 3, 64, 64),
        "input_points": lambda own: torch.rand(own.batch, 1, 2, 2) * 64,
        "input_labels": lambda own: ones(own, 1, 2)
    } for kind in ("edgetam", "sam2")},
    "gemma3n": {"pixel_values": lambda own: normal(own, 3, 64, 64)},
    "gemma3n_audio": {
        "audio_mel": lambda own: normal(own, 8 * own.length, own.config.input_feat_size),
        "audio_mel_mask": lambda own: ~ones(own, 8 * own.length, dtype=torch.bool)
    },
    "gemma4_audio": {
        "input_features": lambda own: normal(own, 8 * own.length, 128),
        "attention_mask": lambda own: ones(own, 8 * own.length, dtype=torch.bool)
    },
    "gemma4_vision": {
        "pixel_values": lambda own: torch.rand(own.batch, 36, 3 * own.config.patch_size**2),
        "pixel_position_ids":
            lambda own: torch.cartesian_prod(*[torch.arange(6)] * 2).repeat(own.batch, 1, 1)
    },
    "granite_docling": {"pixel_attention_mask": lambda own: ones(own, 1, dtype=torch.bool)},
    "idefics": {
        "pixel_values": lambda own: normal(own, 1, 3, 32, 32),
        "image_attention_mask": lambda own: torch.ones(*own.tokens().shape, 1, dtype=torch.long)
    },
    **{kind: {"pixel_values": lambda own: torch.randn(len(own.patches()), 16, 16, 3)}
       for kind in ("inkling2", "inkling2_loop", "inkling2_vision")},
    "instructblip": {"input_ids": lambda own: own.tokens()},
    "instructblipvideo": {
        "input_ids": lambda own: behind(own, 8, 61),
        "attention_mask": lambda own: torch.ones_like(behind(own, 8, 61))
    },
    "kosmos-2": {
        "input_ids": lambda own: own.tokens(),
        "image_embeds_position_mask":
            lambda own: (torch.arange(own.tokens().shape[1]) < 4).long().repeat(own.batch, 1)
    },
    "kyutai_speech_to_text": {"input_ids": lambda own: torch.randint(3, 60, (own.batch, own.length, 33))},
    "luke": {
        "entity_ids": lambda own: torch.randint(1, 60, (own.batch, 3)),
        "entity_position_ids": lambda own: torch.randint(0, 8, (own.batch, 3, 2)),
        "entity_attention_mask": lambda own: ones(own, 3)
    },
    "lxmert": {
        "visual_feats": lambda own: normal(own, 6, 2048),
        "visual_pos": lambda own: torch.rand(own.batch, 6, 4)
    },
    **{kind: {"pixel_values": lambda own: torch.randn(1, 3, 8, 128 * own.batch)}
       for kind in ("minicpm_ocr_vision", "minicpmv4_7_vision")},
    "mllama": {
        "pixel_values": lambda own: normal(own, 1, 4, 3, 32, 32),
        "aspect_ratio_ids": lambda own: 6 * ones(own, 1),
        "aspect_ratio_mask": lambda own: ones(own, 1, 4),
        "cross_attention_mask": lambda own: torch.ones(*own.tokens().shape, 1, 4, dtype=torch.long)
    },
    "molmo2": {
        "input_ids": lambda own: behind(own, 4, 61),
        "attention_mask": lambda own: torch.ones_like(behind(own, 4, 61)),
        "pixel_values": lambda own: normal(own, 16, 192),
        "image_token_pooling": lambda own: torch.arange(16 * own.batch).reshape(-1, 4),
        "image_grids": lambda own: [[2, 2, 0, 0]] * own.batch
    },
    "muse_glimmer_assistant": {
        "noise_embeds": lambda own: normal(own, 16, own.config.hidden_size),
        "context_hidden_states": lambda own: normal(own, own.length, 2 * own.config.hidden_size),
        "attention_mask": lambda own: ones(own, 1, 16, 16 + own.length, dtype=torch.bool)
    },
    "muse_spark_audio": {"input_values": lambda own: normal(own, 240 * own.length)},
    **{kind: {"input_ids": lambda own: torch.randint(3, 60, (4 * own.batch, own.length))}
       for kind in ("musicgen_decoder", "musicgen_melody_decoder")},
    "nemotron3_5_transcribe_audio": {"input_features": lambda own: normal(own, 8 * own.length, 8)},
    **{kind: {
        "input_values": lambda own: normal(own, 1, 320 * own.length),
        "input_features": lambda own: normal(own, own.length, 160)
    } for kind in ("neucodec", "xcodec2")},
    "oneformer": {"task_inputs": lambda own: torch.randint(3, 60, (own.batch, 77))},
    "pe_audio": {"input_values": lambda own: normal(own, 1, 400 * own.length)},
    **{kind: {
        "input_values": lambda own: normal(own, 1, 400 * own.length),
        "pixel_values_videos": lambda own: normal(own, 4, 3, 32, 32)
    } for kind in ("pe_audio_video", "pe_audio_video_encoder")},
    "perceiver": {"inputs": lambda own: normal(own, 24, own.config.d_model)},
    "perception_lm": {"pixel_values": lambda own: normal(own, 1, 3, 28, 28)},
    "pi0": {
        "action_embeds": lambda own: normal(own, 5, own.config.dit_config.hidden_size),
        "input_ids": lambda own: behind(own, 16, 62),
        "attention_mask": lambda own: torch.ones_like(behind(own, 16, 62)),
        "pixel_values": lambda own: normal(own, 1, 3, 32, 32),
        "pixel_attention_mask": lambda own: ones(own, 1, dtype=torch.bool)
    },
    "qwen3_asr_encoder": {
        "input_features": lambda own: normal(own, 8, 200), "input_features_mask": lambda own: ones(own, 200)
    },
    "seggpt": {
        name: lambda own: normal(own, 3, 32, 32)
        for name in ("pixel_values", "prompt_pixel_values", "prompt_masks")
    },
    "speecht5": {
        name: lambda own: normal(own, own.length, own.config.hidden_size)
        for name in ("input_values", "decoder_input_values")
    },
    "timesfm": {
        "past_values": lambda own: normal(own, 8 * own.length),
        "past_values_padding": lambda own: 0 * ones(own, 8 * own.length),
        "freq": lambda own: 0 * ones(own, 1)
    },
    "tvp": {  # one row: PyTorch runs it with no more
        "input_ids": lambda own: own.tokens()[:1],
        "attention_mask": lambda own: torch.ones_like(own.tokens()[:1]),
        "pixel_values": lambda own: torch.randn(1, 2, 3, 64, 64)
    },
    "uvdoc": {"pixel_values": lambda own: normal(own, 3, 320, 320)},
    "vibevoice_acoustic_tokenizer": {
        "input_values": lambda own: normal(own, 1, 800 * own.length), "sample": lambda own: False
    },
    "vibevoice_acoustic_tokenizer_decoder": {
        "hidden_states": lambda own: normal(own, own.config.hidden_size, own.length)
    },
    "vibevoice_acoustic_tokenizer_encoder": {"hidden_states": lambda own: normal(own, 1, 800 * own.length)},
    **{kind: {
        "input_ids": lambda own: behind(own, 2, 61),
        "attention_mask": lambda own: torch.ones_like(behind(own, 2, 61)),
        "input_values": lambda own: normal(own, 1, 6400),
        "padding_mask": lambda own: ones(own, 6400, dtype=torch.bool), "sample": lambda own: False
    } for kind in ("vibevoice", "vibevoice_asr")},
    "voxtral_realtime_text": {"t_cond": lambda own: torch.randn(1, 1, own.config.hidden_size)},
    **{kind: {"latents": lambda own: normal(own, own.config.hidden_size, own.length)}
       for kind in ("mimi_decoder", "pocket_tts_audio_tokenizer_decoder")},
    **{kind: {"pixel_values": lambda own: own.patches().reshape(-1, 3, 8, 8)}
       for kind in ("kimi_k25", "kimi_k25_vision", "paddleocr_vl")},
    **{kind: {"pixel_attention_mask": lambda own: ones(own, 16)}
       for kind in ("lfm2_vl", "siglip2", "siglip2_vision_model")}
}
# What a configuration has to be made with.
COMPASS = {
    "num_hidden_layers": 2, "layer_types": ["sliding_attention", "full_attention"],
    "rope_parameters": {name: {"rope_type": "default", "rope_theta": 1e4}
                        for name in ("sliding_attention", "full_attention")}
}
GEMMA4 = {
    "num_hidden_layers": 2, "layer_types": ["sliding_attention", "full_attention"], "num_kv_shared_layers": 0,
    "head_dim": 8, "global_head_dim": 16, "hidden_size": 32, "intermediate_size": 48,
    "num_attention_heads": 4, "num_key_value_heads": 2, "num_global_key_value_heads": 2
}
REPVIT = {
    "backbone_config": {
        "model_type": "timm_wrapper", "architecture": "repvit_m1", "num_classes": 10,
        "model_args": {"in_chans": 3, "features_only": True, "out_indices": [0, 1, 2, 3]}
    }
}
PE_CORE = {
    "model_type": "timm_wrapper", "architecture": "vit_pe_core_base_patch16_224", "num_classes": 10,
    "model_args": {
        "embed_dim": 32, "num_heads": 4, "depth": 2, "img_size": [32, 32], "ref_feat_shape": [2, 2]
    }
}
PE_VIDEO = {"video_config": {"model_type": "pe_video_encoder", "vision_config": PE_CORE}}
HGNET = {
    "model_type": "hgnet_v2", "out_features": ["stage1", "stage2", "stage3", "stage4"],
    "hidden_sizes": [16, 32, 48, 64], "stem_channels": [3, 8, 16], "stage_in_channels": [16, 16, 32, 48],
    "stage_mid_channels": [8, 8, 8, 8], "stage_out_channels": [16, 32, 48, 64]
}
STRIPES = {"reduce_channel": [1, 1, 0], "return_channel": [1, 1, 0]}
for ratio, side in ("long", 7), ("mid", 5), ("short", 3):
    STRIPES[f"vertical_long_to_small_conv_{ratio}ratio"] = [[side, 1], [1, 1], [side // 2, 0]]
    STRIPES[f"horizontal_small_to_long_conv_{ratio}ratio"] = [[1, side], [1, 1], [0, side // 2]]
    STRIPES[f"symmetric_conv_long_{ratio}ratio"] = [[side, side], [1, 1], [side // 2, side // 2]]
ARGUMENTS = {
    "aria": {"projector_patch_to_query_dict": {16: 4}},
    "cohere_compass": {"text_config": COMPASS}, "cohere_compass_text": COMPASS,
    "deepseek_vl_hybrid": {
        "high_res_vision_config": {"model_type": "sam_vision_model", "global_attn_indexes": [1]}
    },
    "depth_pro": {
        "intermediate_hook_ids": [1, 0], "intermediate_feature_dims": [10, 8], "fusion_hidden_size": 16,
        "scaled_images_ratios": [0.5, 1.0], "scaled_images_overlap_ratios": [0.0, 0.2],
        "scaled_images_feature_dims": [12, 12], "merge_padding_value": 1
    },
    "edgetam": {"vision_config": REPVIT}, "edgetam_vision_model": REPVIT,
    "emu3": {"vocabulary_map": {"<image>": 62, "<|extra_200|>": 61,
                                **{f"<|visual token {at:06}|>": 3 + at for at in range(8)}}},
    "gemma3n": {
        "vision_soft_tokens_per_image": 4,
        "vision_config": {"model_type": "gemma3n_vision", "architecture": "test_resnet", "num_classes": 10}
    },
    "gemma3n_vision": {"architecture": "test_resnet"},
    **{kind: {"text_config": GEMMA4} for kind in ("gemma4", "gemma4_unified")},
    **{f"{kind}_text": GEMMA4 for kind in ("gemma4", "gemma4_unified")},
    "granite4_vision": {
        "deepstack_layer_map": [[0, 0]], "downsample_rate": "1/2", "spatial_target_layers": [1]
    },
    "informer": {"prediction_length": 4},
    "lw_detr": {
        "projector_scale_factors": [1.0], "num_queries": 6,
        "backbone_config": {
            "model_type": "lw_detr_vit", "num_hidden_layers": 2, "out_indices": [1, 2], "num_windows": 4,
            "window_block_indices": [0]
        }
    },
    "mllama": {
        "vision_config": {
            "intermediate_layers_indices": [0], "num_global_layers": 1, "vision_output_dim": 64,
            "attention_heads": 4
        },
        "text_config": {"cross_attention_layers": [1]}
    },
    "molmo2": {
        "vision_config": {"image_size": [32, 32], "patch_size": 8, "num_hidden_layers": 2},
        "adapter_config": {"vision_feature_layer": [1, 0]}
    },
    "muse_glimmer_assistant": {"target_layer_ids": [0, 1]},
    "muse_spark_audio": {
        "num_hidden_layers": 2, "patch_sizes": [16, 6], "hidden_sizes": [16, 32], "depths": [1, 1]
    },
    "pe_audio_video": {"audio_video_config": PE_VIDEO}, "pe_audio_video_encoder": PE_VIDEO,
    "pe_video": PE_VIDEO, "pe_video_encoder": {"vision_config": PE_CORE},
    "perception_lm": {
        "vision_config": {
            **PE_CORE, "model_args": {
                **PE_CORE["model_args"], "img_size": [28, 28], "patch_size": 14, "global_pool": ""
            }
        }
    },
    # With the usual range all scores are alike, and rounding decides which are the best.
    "pp_doclayout_v3": {"initializer_range": 0.5}, "pp_doclayout_v4": {"initializer_range": 0.2},
    "pp_ocrv6_medium_det": {
        "intraclass_block_config": STRIPES, "kernel_list": [3, 2, 2], "scale_factor_list": [1, 2, 4, 8],
        "backbone_config": HGNET
    },
    "pp_ocrv6_small_det": {
        "layer_list_out_channels": [48, 96, 192, 384],
        "backbone_config": {
            "model_type": "pp_lcnet_v3", "scale": 0.75, "divisor": 16,
            "out_features": ["stage2", "stage3", "stage4", "stage5"]
        }
    },
    "seggpt": {
        "image_size": [64, 32], "patch_size": 8, "pretrain_image_size": 32, "merge_index": 0,
        "intermediate_hidden_state_indices": [0, 1]
    },
    "timm_backbone": {"backbone": "test_resnet"},
    "tvp": {
        "max_img_size": 64, "visual_prompt_size": 16, "num_frames": 2,
        "backbone_config": {
            "model_type": "resnet", "out_features": ["stage4"], "embedding_size": 16,
            "hidden_sizes": [16, 16, 32, 32], "depths": [1, 1, 1, 1]
        }
    },
    "uvdoc": {"backbone_config": {"model_type": "uvdoc_backbone", "out_indices": [1, 2, 3, 4, 5, 6]}},
    "vipllava": {"vision_feature_layers": [-2, -1]},
    "xmod": {"default_language": "en_XX"},
    **{kind: {"num_hidden_layers": 4, "layers_block_type": ["linear_attention", "hybrid"] * 2}
       for kind in ("zamba", "zamba2")}
}
# Settings without which a model type's own configuration makes no model that runs.
SPEECH = {"num_filters": 4, "depths": [1] * 7}
PROMPTS = {"prompt_encoder_config.image_size": 64, "prompt_encoder_config.patch_size": 16}
SETTINGS = {
    "apertus1p5": {
        "vision_config.base_channels": 32, "vision_config.codebook_size": 16,
        "vision_config.num_res_blocks": 1, "image_token_offset": 8
    },
    "blip-2": {"image_token_index": 62},
    "blt": {
        "patch_in_forward": False, "encoder_hash_byte_group_vocab": 64, "global_config.hidden_size": 64,
        "global_config.head_dim": 16, "encoder_config.hidden_size_global": 64,
        "decoder_config.hidden_size_global": 64
    },
    "chameleon": {
        "vocabulary_map": {"<image>": 62, **{f"IMGIMG{letter}Z": 3 + at for at, letter in enumerate("ABCD")}}
    },
    "clap": {"audio_config.num_mel_bins": 64, "audio_config.hidden_size": 768},
    "dbrx": {"attn_config.rope_theta": 1e4, "attn_config.clip_qkv": 8.0},
    "deepseek_ocr2": {"text_config.mlp_layer_types": ["dense", "sparse"],
                      "vision_config.sam_config.downsample_channels": [64, 32]},
    "depth_pro": {"patch_size": 32},
    "dots3_note": {
        "vision_config.adapter_in_dim": 32, "vision_config.adapter_out_dim": 32,
        "audio_config.adapter_input_size": 32, "audio_config.adapter_out_dim": 32
    },
    "edgetam": {
        "vision_config.fpn_hidden_size": 32,
        "vision_config.backbone_feature_sizes": [[16, 16], [8, 8], [4, 4]], **PROMPTS
    },
    "ernie4_5_vl_moe": {
        "text_config.rope_parameters": {"rope_type": "default", "rope_theta": 5e5, "mrope_section": [1, 1, 2]}
    },
    "esm": {"pad_token_id": 0, "mask_token_id": 61},
    "fast_vlm": {"vision_config.hidden_size": 3072},
    "florence2": {"vision_config.projection_dim": 32},
    "gemma3n": {"vision_config.hidden_size": 96},
    "informer": {"distil": False},
    "instructblip": {"image_token_index": 62}, "instructblipvideo": {"video_token_index": 61},
    "kosmos-2": {"latent_query_num": 4},
    "kyutai_speech_to_text": {"audio_pad_token_id": 0},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"]},
    "luke": {"entity_vocab_size": 64, "entity_emb_size": 32},
    "mamba2": {"num_heads": 8},
    "moonshine_streaming": {"num_key_value_heads": 4},
    **{kind: {"out_hidden_size": 128, "projector_hidden_size": 32}
       for kind in ("muse_glimmer", "muse_spark")},
    "nemotron": {"num_key_value_heads": 2},
    **{kind: {"num_key_value_heads": 4}
       for kind in ("nemotron3_5_transcribe_asr_audio", "nemotron3_5_transcribe_word_timestamp",
                    "nemotron3_diarization_audio")},
    "nemotron3_5_transcribe_audio": {
        "asr_config.num_key_value_heads": 4, "diarization_config.audio_config.num_key_value_heads": 4,
        "diarization_config.head_config.audio_hidden_size": 32
    },
    **{kind: {"quantization_dim": 64, "num_key_value_heads": 4} for kind in ("neucodec", "xcodec2")},
    "paligemma": {"vision_config.projection_dim": 32},
    "perceiver": {"d_latents": 32, "num_latents": 16, "num_self_attends_per_block": 2},
    "pi0": {"vlm_config.vision_config.projection_dim": 32},
    "qwen2_5_omni_thinker": {"vision_start_token_id": 60},
    "qwen3_omni_moe_thinker": {"vision_start_token_id": 60},
    "sam2": {
        "vision_config.backbone_config.hidden_size": 16, "vision_config.backbone_config.image_size": [64, 64],
        "vision_config.backbone_config.embed_dim_per_stage": [16, 32, 64, 128],
        "vision_config.backbone_channel_list": [128, 64, 32, 16], "vision_config.fpn_hidden_size": 32,
        "vision_config.backbone_feature_sizes": [[16, 16], [8, 8], [4, 4]], **PROMPTS
    },
    "step3p7": {"text_config.sliding_window": 8},
    "t5gemma2_encoder": {"text_config.dropout_rate": 0.0},
    "unlimited_ocr": {"vision_config.sam_config.downsample_channels": [64, 32]},
    "vibevoice": {
        "audio_token_id": 61, **{f"{part}.{name}": value for name, value in SPEECH.items()
                                 for part in ("audio_config", "semantic_model_config")}
    },
    **{f"vibevoice_acoustic_tokenizer{part}": SPEECH for part in ("", "_decoder", "_encoder")},
    "vibevoice_asr": {
        "audio_token_id": 61, **{f"{part}_tokenizer_encoder_config.{name}": value
                                 for name, value in SPEECH.items() for part in ("acoustic", "semantic")}
    },
    "xclip": {"vision_config.mit_hidden_size": 16},
    **{kind: {
        "num_hidden_layers": 4, "attention_hidden_size": 64, "attention_head_dim": 16,
        "num_key_value_heads": 4, "mamba_headdim": 8
    } for kind in ("zamba", "zamba2")}
}
