// SPDX-License-Identifier: Apache-2.0
// mvit_rows.c: functions of torchvision's MViT that torch.fx.trace leaves whole.
#include "core/ops/compose.h"
#include "core/targets/operators.h"

// ---- a dimension that is there while a block runs ----
static Status unsqueeze_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value x = NAMED(&c, "x");
        int64_t rank = compose_meta(&c, x)->rank, target = compose_int(&c, "target_dim");
        if (rank != target && rank + 1 != target)
                return fail(STATUS_VALUE, "Unsupported input dimension %ld", (long)rank);
        if (rank + 1 == target)
                x = OP(&c, "aten::unsqueeze", x, NAMED(&c, "expand_dim"));
        return compose_end(&c, compose_tuple(&c, (Value[]){ x, value_int(rank) }, 2), out);
}

static Status squeeze_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value x = NAMED(&c, "x");
        int64_t target = compose_int(&c, "target_dim");
        if (target > 0 && compose_int(&c, "tensor_dim") == target - 1)
                x = OP(&c, "aten::squeeze.dim", x, NAMED(&c, "expand_dim"));
        return compose_end(&c, x, out);
}

// ---- what is added in place: the first token, of the class, stands for no place ----
static Value without_first(Compose *c, Value x, int dim)
{
        return OP(c, "aten::slice.Tensor", x, value_int(dim), value_int(1));
}

static Status shortcut_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value x = NAMED(&c, "x"), shortcut = NAMED(&c, "shortcut");
        if (compose_bool(&c, "residual_with_cls_embed"))
                OP(&c, "aten::add_.Tensor", x, shortcut);
        else
                OP(&c, "aten::add_.Tensor", without_first(&c, x, 2), without_first(&c, shortcut, 2));
        return compose_end(&c, x, out);
}

// ---- biases by relative positions ----
enum { DIMS = 3 }; // time, height, width

static Status grid(Compose *c, const char *name, int64_t out_size[DIMS])
{
        int64_t size[MAX_RANK];
        bool fine = compose_int_list(c, name, size) == DIMS;
        for (int d = 0; d < DIMS && fine; d++) {
                fine = size[d] > 0 && size[d] < INT32_MAX / 2;
                out_size[d] = size[d];
        }
        return fine || compose_failed(c) ? STATUS_OK
                                         : fail(STATUS_VALUE, "_add_rel_pos: %s must have three sizes", name);
}

// The embeddings of all distances, from the largest below 0, resized to as many as there are.
static Value resized(Compose *c, Value embedding, int64_t n)
{
        if (compose_meta(c, embedding)->rank > 0 && compose_meta(c, embedding)->size[0] == n)
                return embedding;
        Value channels =
                OP(c, "aten::unsqueeze", OP(c, "aten::permute", embedding, INTS(c, 1, 0)), value_int(0));
        channels = OP(c, "aten::upsample_linear1d", channels, INTS(c, n), value_bool(false));
        return OP(c, "aten::permute", OP(c, "aten::squeeze.dim", channels, value_int(0)), INTS(c, 1, 0));
}

// [q, k, channels]: the embedding of the distance from each place of the queries to each of the
// keys, in steps of the finer grid.
static Value distances(Compose *c, Value embedding, int64_t q, int64_t k)
{
        double q_step = q < k ? (double)k / (double)q : 1, k_step = k < q ? (double)q / (double)k : 1;
        Value rows = OP(c, "aten::unsqueeze", OP(c, "aten::arange", value_int(q)), value_int(1)),
              columns = OP(c, "aten::unsqueeze", OP(c, "aten::arange", value_int(k)), value_int(0));
        rows = OP(c, "aten::mul.Scalar", rows, value_float(q_step));
        columns = OP(c, "aten::add.Scalar", columns, value_float(1.0 - (double)k));
        columns = OP(c, "aten::mul.Scalar", columns, value_float(k_step));
        Value places =
                OP(c, "aten::to.dtype", OP(c, "aten::sub.Tensor", rows, columns), value_dtype(DTYPE_I64));
        return OP(c, "aten::index.Tensor", resized(c, embedding, 2 * (q > k ? q : k) - 1),
                  compose_list(c, &places, 1));
}

// Each query times the embeddings of one axis at its place: "bythwc,hkc->bythwk" for heights.
static Value products(Compose *c, const char *equation, Value q, Value embeddings)
{
        return OP(c, "aten::einsum", compose_text(c, equation),
                  compose_list(c, (Value[]){ q, embeddings }, 2));
}

static Value with_ones(Compose *c, Value x, int first, int second)
{
        return OP(c, "aten::unsqueeze", OP(c, "aten::unsqueeze", x, value_int(first)), value_int(second));
}

static Status relative_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        int64_t q[DIMS], k[DIMS];
        Value attn = NAMED(&c, "attn"), queries = NAMED(&c, "q");
        TRY(grid(&c, "q_thw", q));
        TRY(grid(&c, "k_thw", k));
        if (compose_meta(&c, queries)->rank != 4)
                return fail(STATUS_SHAPE, "_add_rel_pos: q must have four dimensions");
        const int64_t *size = compose_meta(&c, queries)->size;
        int64_t n = size[0], heads = size[1], channels = size[3];
        Value time = distances(&c, NAMED(&c, "rel_pos_t"), q[0], k[0]),
              height = distances(&c, NAMED(&c, "rel_pos_h"), q[1], k[1]),
              width = distances(&c, NAMED(&c, "rel_pos_w"), q[2], k[2]);
        Value at = OP(&c, "aten::reshape", without_first(&c, queries, 2),
                      INTS(&c, n, heads, q[0], q[1], q[2], channels));
        // [n, heads, time, height, width, key's time, key's height, key's width]
        Value bias = OP(&c, "aten::add.Tensor",
                        with_ones(&c, products(&c, "bythwc,hkc->bythwk", at, height), 5, 7),
                        with_ones(&c, products(&c, "bythwc,wkc->bythwk", at, width), 5, 5));
        bias = OP(&c, "aten::add.Tensor", bias,
                  with_ones(&c, products(&c, "bythwc,tkc->bythwk", at, time), 6, 7));
        bias = OP(&c, "aten::flatten.using_ints", OP(&c, "aten::flatten.using_ints", bias, value_int(5)),
                  value_int(2), value_int(4));
        OP(&c, "aten::add_.Tensor", without_first(&c, without_first(&c, attn, 2), 3), bias);
        return compose_end(&c, attn, out);
}

#define MVIT "torchvision.models.video.mvit."
static const PyRow rows[] = {
        { MVIT "_unsqueeze", "py::mvit_unsqueeze(Tensor x, int target_dim, int expand_dim) -> Any",
          .expand = unsqueeze_expand },
        { MVIT "_squeeze",
          "py::mvit_squeeze(Tensor x, int target_dim, int expand_dim, int tensor_dim) -> Tensor",
          .expand = squeeze_expand },
        { MVIT "_add_shortcut",
          "py::mvit_add_shortcut(Tensor(a!) x, Tensor shortcut, bool residual_with_cls_embed) -> Tensor(a)",
          .expand = shortcut_expand },
        { MVIT "_add_rel_pos",
          "py::mvit_add_rel_pos(Tensor(a!) attn, Tensor q, int[] q_thw, int[] k_thw, "
          "Tensor rel_pos_h, Tensor rel_pos_w, Tensor rel_pos_t) -> Tensor(a)",
          .expand = relative_expand },
};
const PyTable py_mvit_rows = PY_TABLE(rows);
