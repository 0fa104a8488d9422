// SPDX-License-Identifier: Apache-2.0
// vmap_rows.c: torch._functorch.predispatch.*, where a region of torch.vmap begins and ends in an
// exported graph. core/eval/batch.h says what happens between the two.
#include "core/ops/arguments.h"
#include <string.h>
#include "core/targets/py.h"

static Status items_new(Emitter *emitter, int64_t n, const char *name, Seq **out)
{
        if (n < 0 || n > VALUE_MAX_ITEMS)
                return fail(STATUS_TOO_LARGE, "%s: vmap over %ld rows; up to %d can be served", name, (long)n,
                            VALUE_MAX_ITEMS);
        TRY(run_poll(emitter->ctx));
        return seq_new(n == 0 ? 1 : (uint32_t)n, out);
}

// Stands for the rows of a tensor that has none: what is computed from it is left out in the end.
static Status stand_in(Emitter *emitter, const Tensor *self, int64_t dim, Value *out)
{
        int64_t size[MAX_RANK];
        int rank = 0;
        _cleanup_(value_clear) Value shape = value_none();
        for (int i = 0; i < self->meta.rank; i++) {
                if (i != dim)
                        size[rank++] = self->meta.size[i];
        }
        TRY(value_ints_new(VALUE_LIST, size, (uint32_t)rank, &shape));
        return EMIT(emitter, "aten::zeros", out, shape, value_dtype(self->meta.dtype));
}

static Status add_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Value self = call->args[SELF];
        int64_t dim, level;
        TRY(value_as_int(emitter, call->args[PY_ADD_BATCH_DIM], "batch_dim", &dim));
        TRY(value_as_int(emitter, call->args[PY_ADD_BATCH_LEVEL], "level", &level));
        if (self.kind != VALUE_TENSOR || level < 1 || level > UINT32_MAX)
                return fail(STATUS_VALUE, "_add_batch_dim: a tensor and a level from 1 on are wanted");
        int64_t rank = self.tensor->meta.rank;
        if (dim < -rank || dim >= rank)
                return fail(STATUS_SHAPE, "_add_batch_dim: dimension %ld of a tensor of %ld dimensions",
                            (long)dim, (long)rank);
        dim += dim < 0 ? rank : 0;
        _cleanup_(seq_unrefp) Seq *seq = NULL;
        int64_t n = self.tensor->meta.size[dim];
        TRY(items_new(emitter, n, call->schema->name, &seq));
        if (n == 0)
                TRY(stand_in(emitter, self.tensor, dim, &seq->items[0]));
        for (uint32_t i = 0; i < n; i++)
                TRY(ATEN(emitter, "aten::select", &seq->items[i], self, value_int(dim), value_int(i)));
        *out = (Value){ .kind = VALUE_BATCH, .tag = (uint32_t)level, .seq = take_ptr(seq) };
        return STATUS_OK;
}

// A value that does not depend on the index is the same for each.
static Status items_of(Emitter *emitter, const OpCall *call, int64_t n, Value *out)
{
        Value self = call->args[SELF];
        Seq *seq;
        if (self.kind == VALUE_BATCH) {
                *out = value_ref(value_seq_take(VALUE_LIST, self.seq));
                return STATUS_OK;
        }
        TRY(items_new(emitter, n, call->schema->name, &seq));
        for (uint32_t i = 0; i < seq->n; i++)
                seq->items[i] = value_ref(self);
        *out = value_seq_take(VALUE_LIST, seq);
        return STATUS_OK;
}

static Status remove_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        int64_t n;
        Value dim = call->args[PY_REMOVE_BATCH_OUT_DIM];
        _cleanup_(value_clear) Value items = value_none();
        _cleanup_(value_clear) Value stacked = value_none();
        TRY(value_as_int(emitter, call->args[PY_REMOVE_BATCH_SIZE], "batch_size", &n));
        TRY(items_of(emitter, call, n, &items));
        if (n > 0)
                return ATEN(emitter, "aten::stack", out, items, dim);
        TRY(ATEN(emitter, "aten::stack", &stacked, items, dim));
        return ATEN(emitter, "aten::narrow", out, stacked, dim, value_int(0), value_int(0));
}

static Status nothing_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        (void)emitter, (void)call;
        *out = value_none();
        return STATUS_OK;
}

static Status begin_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        const char *randomness = arg_text(call, PY_NESTING_RANDOMNESS);
        if (randomness == NULL || strcmp(randomness, "error") != 0)
                return fail(STATUS_UNSUPPORTED,
                            "torch.vmap(randomness=\"%s\") is not supported: draw random "
                            "numbers outside of the mapped function",
                            randomness == NULL ? "None" : randomness);
        return nothing_expand(emitter, call, out);
}

#define PREDISPATCH "torch._functorch.predispatch."
static const PyRow rows[] = {
        { PREDISPATCH "lazy_load_decompositions", "py::lazy_load_decompositions() -> Any",
          .expand = nothing_expand },
        { PREDISPATCH "_vmap_increment_nesting",
          "py::_vmap_increment_nesting(Any batch_size, Any randomness) -> Any", .expand = begin_expand },
        { PREDISPATCH "_vmap_decrement_nesting", "py::_vmap_decrement_nesting() -> Any",
          .expand = nothing_expand },
        { PREDISPATCH "_add_batch_dim", "py::_add_batch_dim(Any self, Any batch_dim, Any level) -> Any",
          .expand = add_expand, .needs = "aten::select aten::zeros" },
        { PREDISPATCH "_remove_batch_dim",
          "py::_remove_batch_dim(Any self, Any level, Any batch_size, Any out_dim) -> Any",
          .expand = remove_expand, .needs = "aten::stack aten::narrow" },
};
const PyTable py_vmap_rows = PY_TABLE(rows);
