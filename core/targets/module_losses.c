// SPDX-License-Identifier: Apache-2.0
// module_losses.c: torch.nn loss classes.
#include "core/targets/module_table.h"

#define PAIR    "nn::forward(Tensor input, Tensor target) -> Tensor"
#define OLD     "Any size_average=None, Any reduce=None, "
#define OLD_END "str reduction='mean'"
static const ModuleClass rows[] = {
        { "torch.nn.MSELoss", "nn::MSELoss(" OLD OLD_END ") -> ()", "", PAIR,
          .emits = "F.mse_loss a0 a1 c0 c1 c2" },
        { "torch.nn.L1Loss", "nn::L1Loss(" OLD OLD_END ") -> ()", "", PAIR,
          .emits = "F.l1_loss a0 a1 c0 c1 c2" },
        { "torch.nn.SmoothL1Loss", "nn::SmoothL1Loss(" OLD OLD_END ", float beta=1.0) -> ()", "", PAIR,
          .emits = "F.smooth_l1_loss a0 a1 c0 c1 c2 c3" },
        { "torch.nn.HuberLoss", "nn::HuberLoss(" OLD_END ", float delta=1.0) -> ()", "", PAIR,
          .emits = "F.huber_loss a0 a1 c0 c1" },
        { "torch.nn.KLDivLoss", "nn::KLDivLoss(" OLD OLD_END ", bool log_target=False) -> ()", "", PAIR,
          .emits = "F.kl_div a0 a1 c0 c1 c2 c3" },
        { "torch.nn.SoftMarginLoss", "nn::SoftMarginLoss(" OLD OLD_END ") -> ()", "", PAIR,
          .emits = "F.soft_margin_loss a0 a1 c0 c1 c2" },
        { "torch.nn.CrossEntropyLoss",
          "nn::CrossEntropyLoss(Any weight=None, Any size_average=None, int ignore_index=-100, Any "
          "reduce=None, " OLD_END ", float label_smoothing=0.0) -> ()",
          "weight??", PAIR, .emits = "F.cross_entropy a0 a1 s0 c1 c2 c3 c4 c5" },
        { "torch.nn.NLLLoss",
          "nn::NLLLoss(Any weight=None, Any size_average=None, int ignore_index=-100, Any "
          "reduce=None, " OLD_END ") -> ()",
          "weight??", PAIR, .emits = "F.nll_loss a0 a1 s0 c1 c2 c3 c4" },
        { "torch.nn.NLLLoss2d",
          "nn::NLLLoss2d(Any weight=None, Any size_average=None, int ignore_index=-100, Any "
          "reduce=None, " OLD_END ") -> ()",
          "weight??", PAIR, .emits = "F.nll_loss a0 a1 s0 c1 c2 c3 c4" },
        { "torch.nn.BCELoss", "nn::BCELoss(Any weight=None, " OLD OLD_END ") -> ()", "weight??", PAIR,
          .emits = "F.binary_cross_entropy a0 a1 s0 c1 c2 c3" },
        { "torch.nn.BCEWithLogitsLoss",
          "nn::BCEWithLogitsLoss(Any weight=None, " OLD OLD_END ", Any pos_weight=None) -> ()",
          "weight?? pos_weight??", PAIR, .emits = "F.binary_cross_entropy_with_logits a0 a1 s0 c1 c2 c3 s1" },
        { "torch.nn.HingeEmbeddingLoss", "nn::HingeEmbeddingLoss(float margin=1.0, " OLD OLD_END ") -> ()",
          "", PAIR, .emits = "F.hinge_embedding_loss a0 a1 c0 c1 c2 c3" },
        { "torch.nn.MarginRankingLoss", "nn::MarginRankingLoss(float margin=0.0, " OLD OLD_END ") -> ()", "",
          "nn::forward(Tensor input1, Tensor input2, Tensor target) -> Tensor",
          .emits = "F.margin_ranking_loss a0 a1 a2 c0 c1 c2 c3" },
        { "torch.nn.CosineEmbeddingLoss", "nn::CosineEmbeddingLoss(float margin=0.0, " OLD OLD_END ") -> ()",
          "", "nn::forward(Tensor input1, Tensor input2, Tensor target) -> Tensor",
          .emits = "F.cosine_embedding_loss a0 a1 a2 c0 c1 c2 c3" },
        { "torch.nn.TripletMarginLoss",
          "nn::TripletMarginLoss(float margin=1.0, float p=2.0, float eps=1e-06, bool swap=False, " OLD
                  OLD_END ") -> ()",
          "", "nn::forward(Tensor anchor, Tensor positive, Tensor negative) -> Tensor",
          .emits = "F.triplet_margin_loss a0 a1 a2 c0 c1 c2 c3 c4 c5 c6" },
        { "torch.nn.CTCLoss",
          "nn::CTCLoss(int blank=0, str reduction='mean', bool zero_infinity=False) -> ()", "",
          "nn::forward(Tensor log_probs, Tensor targets, Any input_lengths, Any target_lengths) -> Tensor",
          .emits = "F.ctc_loss a0 a1 a2 a3 c0 c1 c2" },
        { "torch.nn.MultiMarginLoss",
          "nn::MultiMarginLoss(int p=1, float margin=1.0, Any weight=None, " OLD OLD_END ") -> ()",
          "weight??", PAIR, .emits = "F.multi_margin_loss a0 a1 c0 c1 s0 c3 c4 c5" },
        { "torch.nn.PoissonNLLLoss",
          "nn::PoissonNLLLoss(bool log_input=True, bool full=False, Any size_average=None, float eps=1e-08, "
          "Any reduce=None, " OLD_END ") -> ()",
          "", "nn::forward(Tensor log_input, Tensor target) -> Tensor",
          .emits = "F.poisson_nll_loss a0 a1 c0 c1 c2 c3 c4 c5" },
        { "torch.nn.GaussianNLLLoss",
          "nn::GaussianNLLLoss(bool full=False, float eps=1e-06, " OLD_END ") -> ()", "",
          "nn::forward(Tensor input, Tensor target, Any var) -> Tensor",
          .emits = "F.gaussian_nll_loss a0 a1 a2 c0 c1 c2" },
        { "torch.nn.MultiLabelMarginLoss", "nn::MultiLabelMarginLoss(" OLD OLD_END ") -> ()", "", PAIR,
          .emits = "F.multilabel_margin_loss a0 a1 c0 c1 c2" },
        { "torch.nn.MultiLabelSoftMarginLoss",
          "nn::MultiLabelSoftMarginLoss(Any weight=None, " OLD OLD_END ") -> ()", "weight??", PAIR,
          .emits = "F.multilabel_soft_margin_loss a0 a1 s0 c1 c2 c3" },
        { "torch.nn.TripletMarginWithDistanceLoss",
          "nn::TripletMarginWithDistanceLoss(float margin=1.0, bool swap=False, " OLD_END ") -> ()", "",
          "nn::forward(Tensor anchor, Tensor positive, Tensor negative) -> Tensor",
          .emits = "F.triplet_margin_with_distance_loss a0 a1 a2 none c0 c1 c2" },
};
const ModuleTable loss_classes = MODULE_TABLE(rows);
