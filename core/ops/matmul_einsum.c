// SPDX-License-Identifier: Apache-2.0
// matmul_einsum.c: einsum. Every operand is brought to one order of labels (those of the result,
// then those summed over; a label it lacks has size 1), and operands are joined from left to right
// by batched products. At most MAX_RANK labels in all.
#include "core/ops/arguments.h"
#include "core/ops/emitter.h"
#include <ctype.h>
#include <string.h>

enum { MAX_OPERANDS = 32, MAX_SUBSCRIPTS = 16, N_LABELS = 52, ELLIPSIS = N_LABELS };

typedef struct Subscripts {
        int n;
        int8_t label[MAX_SUBSCRIPTS]; // 0..51, or ELLIPSIS
} Subscripts;

typedef struct Einsum {
        uint32_t n_operands;
        Subscripts operands[MAX_OPERANDS], result;
        int ellipsis_rank;   // dimensions that "..." stands for
        int place[N_LABELS]; // canonical position of a label; -1: not used
        int ellipsis_place;
        int n_out, n_total;     // canonical dimensions: of the result, all
        int last_use[MAX_RANK]; // last operand with a size other than 1 there
} Einsum;

static int label_of(char c)
{
        return c >= 'a' && c <= 'z' ? c - 'a' : c >= 'A' && c <= 'Z' ? c - 'A' + 26 : -1;
}

// One term up to ',' , "->" or the end; *text moves past it.
static Status parse_term(const char **text, Subscripts *out)
{
        bool ellipsis = false;
        out->n = 0;
        for (; **text != '\0' && **text != ',' && **text != '-'; (*text)++) {
                char c = **text;
                if (isspace((unsigned char)c))
                        continue;
                if (out->n == MAX_SUBSCRIPTS)
                        return fail(STATUS_VALUE,
                                    "einsum(): more than %d subscripts for one operand are not supported",
                                    MAX_SUBSCRIPTS);
                if (c == '.') {
                        if (ellipsis || strncmp(*text, "...", 3) != 0)
                                return fail(STATUS_VALUE,
                                            "einsum(): found '.' that is not part of any ellipsis");
                        *text += 2;
                        ellipsis = true;
                        out->label[out->n++] = ELLIPSIS;
                        continue;
                }
                if (label_of(c) < 0)
                        return fail(STATUS_VALUE,
                                    "einsum(): invalid subscript given, subscripts must be in [a-zA-Z]");
                out->label[out->n++] = (int8_t)label_of(c);
        }
        return STATUS_OK;
}

static void implicit_result(Einsum *einsum)
{
        int count[N_LABELS + 1] = { 0 };
        for (uint32_t i = 0; i < einsum->n_operands; i++) {
                for (int k = 0; k < einsum->operands[i].n; k++)
                        count[einsum->operands[i].label[k]]++;
        }
        einsum->result.n = 0;
        if (count[ELLIPSIS] > 0)
                einsum->result.label[einsum->result.n++] = ELLIPSIS;
        // Alphabetical with capitals first, as PyTorch orders them.
        for (int i = 0; i < N_LABELS && einsum->result.n < MAX_SUBSCRIPTS; i++) {
                int label = (i + 26) % N_LABELS;
                if (count[label] == 1)
                        einsum->result.label[einsum->result.n++] = (int8_t)label;
        }
}

static Status parse(const char *equation, uint32_t n_operands, Einsum *einsum)
{
        const char *at = equation;
        if (n_operands == 0)
                return fail(STATUS_VALUE, "einsum(): must provide at least one operand");
        if (n_operands > MAX_OPERANDS)
                return fail(STATUS_VALUE, "einsum(): more than %d operands are not supported", MAX_OPERANDS);
        for (uint32_t i = 0;; i++) {
                if (i >= n_operands)
                        return fail(STATUS_VALUE,
                                    "einsum(): fewer operands were provided than specified in the equation");
                TRY(parse_term(&at, &einsum->operands[i]));
                einsum->n_operands = i + 1;
                if (*at != ',')
                        break;
                at++;
        }
        if (einsum->n_operands < n_operands)
                return fail(STATUS_VALUE,
                            "einsum(): more operands were provided than specified in the equation");
        if (*at == '\0') {
                implicit_result(einsum);
                return STATUS_OK;
        }
        if (strncmp(at, "->", 2) != 0)
                return fail(STATUS_VALUE, "einsum(): found '-' that is not part of any '->'");
        at += 2;
        TRY(parse_term(&at, &einsum->result));
        return *at == '\0' ? STATUS_OK
                           : fail(STATUS_VALUE, "einsum(): invalid subscript in the output of the equation");
}

// ---- the canonical order ----
static Status count_ellipsis(const OpCall *call, Einsum *einsum)
{
        for (uint32_t i = 0; i < einsum->n_operands; i++) {
                const Subscripts *term = &einsum->operands[i];
                int named = 0, rank = arg_list_tensor(call, EINSUM_TENSORS, i)->meta.rank;
                for (int k = 0; k < term->n; k++)
                        named += term->label[k] != ELLIPSIS;
                bool ellipsis = named < term->n;
                if (ellipsis ? rank < named : rank != named)
                        return fail(STATUS_SHAPE,
                                    "einsum(): the number of subscripts in the equation (%d) %s the number "
                                    "of dimensions (%d) for operand %u%s",
                                    named, ellipsis ? "is more than" : "does not match", rank, i,
                                    ellipsis ? "" : " and no ellipsis was given");
                if (ellipsis)
                        einsum->ellipsis_rank = MAX(einsum->ellipsis_rank, rank - named);
        }
        return STATUS_OK;
}

static Status assign_places(Einsum *einsum)
{
        bool used[N_LABELS] = { false };
        for (int i = 0; i < N_LABELS; i++)
                einsum->place[i] = -1;
        einsum->ellipsis_place = -1;
        for (uint32_t i = 0; i < einsum->n_operands; i++) {
                for (int k = 0; k < einsum->operands[i].n; k++) {
                        if (einsum->operands[i].label[k] != ELLIPSIS)
                                used[einsum->operands[i].label[k]] = true;
                }
        }
        int at = 0;
        for (int k = 0; k < einsum->result.n; k++) {
                int label = einsum->result.label[k];
                if (label == ELLIPSIS) {
                        einsum->ellipsis_place = at;
                        at += einsum->ellipsis_rank;
                } else if (!used[label]) {
                        return fail(STATUS_VALUE,
                                    "einsum(): output subscript %c does not appear in the equation for any "
                                    "input operand",
                                    label < 26 ? 'a' + label : 'A' + label - 26);
                } else if (einsum->place[label] >= 0) {
                        return fail(STATUS_VALUE,
                                    "einsum(): output subscript %c appears more than once in the output",
                                    label < 26 ? 'a' + label : 'A' + label - 26);
                } else {
                        einsum->place[label] = at++;
                }
        }
        einsum->n_out = at;
        if (einsum->ellipsis_place < 0) {
                einsum->ellipsis_place = at;
                at += einsum->ellipsis_rank;
        }
        for (int label = 0; label < N_LABELS; label++) {
                if (used[label] && einsum->place[label] < 0)
                        einsum->place[label] = at++;
        }
        einsum->n_total = at;
        if (at > MAX_RANK)
                return fail(STATUS_UNSUPPORTED,
                            "einsum() over %d different dimensions is not supported; at most %d are", at,
                            MAX_RANK);
        return STATUS_OK;
}

// ---- emitting ----
static Status emit_dims(Emitter *emitter, const char *name, Value input, const int64_t *dims, int n,
                        Value *out)
{
        _cleanup_(value_clear) Value list = value_none();
        TRY(value_ints_new(VALUE_LIST, dims, (uint32_t)n, &list));
        return EMIT(emitter, name, out, input, list);
}

// Releases the owned `*value` and stores `next`.
static void replace(Value *value, Value next)
{
        value_clear(value);
        *value = next;
}

static const TensorMeta *meta_of(Value value)
{
        return &value.tensor->meta;
}

// The canonical place of every dimension of operand `i`.
static int operand_places(const Einsum *einsum, uint32_t i, int own_rank, int8_t *place_of)
{
        const Subscripts *term = &einsum->operands[i];
        int rank = 0, named = 0;
        for (int k = 0; k < term->n; k++)
                named += term->label[k] != ELLIPSIS;
        for (int k = 0; k < term->n; k++) {
                if (term->label[k] != ELLIPSIS) {
                        place_of[rank++] = (int8_t)einsum->place[term->label[k]];
                        continue;
                }
                int dims = own_rank - named;
                for (int d = 0; d < dims; d++)
                        place_of[rank++] =
                                (int8_t)(einsum->ellipsis_place + einsum->ellipsis_rank - dims + d);
        }
        return rank;
}

static bool find_repeat(const int8_t *place_of, int rank, int *out_a, int *out_b)
{
        for (int a = 0; a < rank; a++) {
                for (int b = a + 1; b < rank; b++) {
                        if (place_of[a] == place_of[b]) {
                                *out_a = a;
                                *out_b = b;
                                return true;
                        }
                }
        }
        return false;
}

// Repeated labels take the diagonal, which PyTorch puts last.
static Status take_diagonals(Emitter *emitter, uint32_t i, int8_t *place_of, int *inout_rank,
                             Value *inout_value)
{
        int a, b;
        while (find_repeat(place_of, *inout_rank, &a, &b)) {
                const TensorMeta *meta = meta_of(*inout_value);
                if (meta->size[a] != meta->size[b])
                        return fail(STATUS_SHAPE,
                                    "einsum(): a subscript is repeated for operand %u but the sizes don't "
                                    "match, %ld != %ld",
                                    i, (long)meta->size[b], (long)meta->size[a]);
                Value next;
                TRY(EMIT(emitter, "aten::diagonal", &next, *inout_value, value_int(0), value_int(a),
                         value_int(b)));
                replace(inout_value, next);
                int8_t place = place_of[a];
                int rank = *inout_rank;
                memmove(place_of + b, place_of + b + 1, (size_t)(rank - b - 1));
                memmove(place_of + a, place_of + a + 1, (size_t)(rank - a - 2));
                *inout_rank = rank - 1;
                place_of[rank - 2] = place;
        }
        return STATUS_OK;
}

// Operand `i` in canonical order; labels it lacks get size 1.
static Status canonical(Emitter *emitter, const Einsum *einsum, uint32_t i, Value operand, Value *out)
{
        int8_t place_of[MAX_RANK] = { 0 };
        int rank = operand_places(einsum, i, meta_of(operand)->rank, place_of), n = 0;
        _cleanup_(value_clear) Value value = value_ref(operand);
        TRY(take_diagonals(emitter, i, place_of, &rank, &value));
        int64_t order[MAX_RANK];
        uint32_t has = 0;
        for (int place = 0; place < einsum->n_total; place++) {
                for (int d = 0; d < rank; d++) {
                        if (place_of[d] == place)
                                order[n++] = d;
                }
        }
        for (int d = 0; d < rank; d++)
                has |= 1u << place_of[d];
        Value next;
        TRY(emit_dims(emitter, "aten::permute", value, order, n, &next));
        replace(&value, next);
        for (int place = 0; place < einsum->n_total; place++) {
                if ((has >> place & 1) != 0)
                        continue;
                TRY(EMIT(emitter, "aten::unsqueeze", &next, value, value_int(place)));
                replace(&value, next);
        }
        *out = value;
        value = value_none();
        return STATUS_OK;
}

static Status check_sizes(const Einsum *einsum, const Value *operands)
{
        for (int d = 0; d < einsum->n_total; d++) {
                int64_t seen = 1;
                for (uint32_t i = 0; i < einsum->n_operands; i++) {
                        int64_t size = meta_of(operands[i])->size[d];
                        if (size != 1 && seen != 1 && size != seen)
                                return fail(STATUS_SHAPE,
                                            "einsum(): a subscript has size %ld for operand %u which does "
                                            "not broadcast with previously "
                                            "seen size %ld",
                                            (long)size, i, (long)seen);
                        seen = size == 1 ? seen : size;
                }
        }
        return STATUS_OK;
}

// ---- joining two operands ----
typedef struct Pair {
        int64_t left[MAX_RANK], right[MAX_RANK], back[MAX_RANK]; // orders of dimensions
        int64_t shape[MAX_RANK];                                 // of the product before it is put back
        int64_t batch, rows, depth, columns;
} Pair;

static void describe_pair(const TensorMeta *a, const TensorMeta *b, uint32_t summed, Pair *pair)
{
        int rank = a->rank, n = 0;
        int kinds[MAX_RANK]; // 0 batch, 1 left only, 2 summed, 3 right only
        *pair = (Pair){ .batch = 1, .rows = 1, .depth = 1, .columns = 1 };
        for (int d = 0; d < rank; d++)
                kinds[d] = (summed >> d & 1) != 0               ? 2
                           : a->size[d] != 1 && b->size[d] != 1 ? 0
                           : a->size[d] != 1                    ? 1
                                                                : 3;
        static const int left_order[] = { 0, 1, 2, 3 }, right_order[] = { 0, 2, 3, 1 };
        for (int k = 0, l = 0, r = 0; k < 4; k++) {
                for (int d = 0; d < rank; d++) {
                        if (kinds[d] == left_order[k])
                                pair->left[l++] = d;
                        if (kinds[d] == right_order[k])
                                pair->right[r++] = d;
                }
        }
        int64_t *sizes[] = { &pair->batch, &pair->rows, &pair->depth, &pair->columns };
        for (int d = 0; d < rank; d++)
                *sizes[kinds[d]] *= kinds[d] == 3 ? b->size[d] : a->size[d];
        for (int i = 0; i < rank; i++) {
                int d = (int)pair->left[i];
                pair->shape[n++] = kinds[d] == 2 ? 1 : kinds[d] == 3 ? b->size[d] : a->size[d];
                pair->back[d] = i;
        }
}

static Status join(Emitter *emitter, Value a, Value b, uint32_t summed, Value *out)
{
        if (summed == 0)
                return EMIT(emitter, "aten::mul.Tensor", out, a, b);
        int rank = meta_of(a)->rank;
        Pair pair;
        describe_pair(meta_of(a), meta_of(b), summed, &pair);
        _cleanup_(value_clear) Value left = value_none(), right = value_none(), left3 = value_none(),
                                     right3 = value_none(), product = value_none(), wide = value_none();
        TRY(emit_dims(emitter, "aten::permute", a, pair.left, rank, &left));
        TRY(emit_dims(emitter, "aten::reshape", left, (int64_t[]){ pair.batch, pair.rows, pair.depth }, 3,
                      &left3));
        TRY(emit_dims(emitter, "aten::permute", b, pair.right, rank, &right));
        TRY(emit_dims(emitter, "aten::reshape", right, (int64_t[]){ pair.batch, pair.depth, pair.columns }, 3,
                      &right3));
        TRY(EMIT(emitter, "aten::bmm", &product, left3, right3));
        TRY(emit_dims(emitter, "aten::reshape", product, pair.shape, rank, &wide));
        return emit_dims(emitter, "aten::permute", wide, pair.back, rank, out);
}

static int dims_of_mask(uint32_t mask, int64_t *out_dims)
{
        int n = 0;
        for (int d = 0; d < MAX_RANK; d++) {
                if ((mask >> d & 1) != 0)
                        out_dims[n++] = d;
        }
        return n;
}

static Status sum_dims(Emitter *emitter, uint32_t mask, Value *inout_value)
{
        int64_t dims[MAX_RANK];
        int n = dims_of_mask(mask, dims);
        if (n == 0)
                return STATUS_OK;
        _cleanup_(value_clear) Value list = value_none();
        Value next;
        TRY(value_ints_new(VALUE_LIST, dims, (uint32_t)n, &list));
        TRY(EMIT(emitter, "aten::sum.dim_IntList", &next, *inout_value, list, value_bool(true)));
        replace(inout_value, next);
        return STATUS_OK;
}

// Joins operand i to `*inout_left`, summing what no later operand has.
static Status step(Emitter *emitter, const Einsum *einsum, uint32_t i, Value *inout_left, Value *inout_right)
{
        uint32_t both = 0, left_only = 0, right_only = 0;
        for (int d = einsum->n_out; d < einsum->n_total; d++) {
                if (einsum->last_use[d] > (int)i)
                        continue;
                bool a = meta_of(*inout_left)->size[d] != 1, b = meta_of(*inout_right)->size[d] != 1;
                if (a && b)
                        both |= 1u << d;
                else if (a)
                        left_only |= 1u << d;
                else if (b)
                        right_only |= 1u << d;
        }
        TRY(sum_dims(emitter, left_only, inout_left));
        TRY(sum_dims(emitter, right_only, inout_right));
        Value next;
        TRY(join(emitter, *inout_left, *inout_right, both, &next));
        replace(inout_left, next);
        return STATUS_OK;
}

static Status contract(Emitter *emitter, Einsum *einsum, Value *operands, Value *out)
{
        for (int d = 0; d < einsum->n_total; d++) {
                for (uint32_t i = 0; i < einsum->n_operands; i++) {
                        if (meta_of(operands[i])->size[d] != 1)
                                einsum->last_use[d] = (int)i;
                }
        }
        for (uint32_t i = 1; i < einsum->n_operands; i++)
                TRY(step(emitter, einsum, i, &operands[0], &operands[i]));
        uint32_t contracted = 0, rest = 0;
        for (int d = einsum->n_out; d < einsum->n_total; d++) {
                contracted |= 1u << d;
                if (meta_of(operands[0])->size[d] != 1)
                        rest |= 1u << d;
        }
        int64_t dims[MAX_RANK];
        int n = dims_of_mask(contracted, dims);
        if (einsum->n_operands == 1 && n > 0) // a sum, also over one element: integers become int64
                return emit_dims(emitter, "aten::sum.dim_IntList", operands[0], dims, n, out);
        TRY(sum_dims(emitter, rest, &operands[0]));
        if (n > 0)
                return emit_dims(emitter, "aten::squeeze.dims", operands[0], dims, n, out);
        *out = operands[0];
        operands[0] = value_none();
        return STATUS_OK;
}

static Status einsum_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Einsum einsum = { 0 };
        TRY(parse(arg_text(call, EINSUM_EQUATION), arg_list_length(call, EINSUM_TENSORS), &einsum));
        TRY(count_ellipsis(call, &einsum));
        TRY(assign_places(&einsum));
        Value operands[MAX_OPERANDS];
        for (uint32_t i = 0; i < MAX_OPERANDS; i++)
                operands[i] = value_none();
        Status status = STATUS_OK;
        for (uint32_t i = 0; i < einsum.n_operands && status == STATUS_OK; i++)
                status = canonical(emitter, &einsum, i, call->args[EINSUM_TENSORS].seq->items[i],
                                   &operands[i]);
        if (status == STATUS_OK)
                status = check_sizes(&einsum, operands);
        if (status == STATUS_OK)
                status = contract(emitter, &einsum, operands, out);
        for (uint32_t i = 0; i < MAX_OPERANDS; i++)
                value_clear(&operands[i]);
        return status;
}

const OpDef matmul_einsum_ops[] = {
        { "aten::einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor", 0,
          .expand = einsum_expand, .traits = TRAIT_MAY_SHARE },
};
OP_FILE(matmul_einsum_ops);
