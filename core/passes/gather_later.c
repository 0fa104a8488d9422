// SPDX-License-Identifier: Apache-2.0
// gather_later.c. Match: a linear layer with a constant weight that reads rows picked by an index,
// or the concatenation of such rows and others, as layers that send messages along a graph's edges
// do. Rewrite: the layer on the rows that are picked from, then picked; of a concatenation, the sum
// of the parts' products. Taken where at most half the multiplications are left: rows are picked
// more than once.
#include "core/passes/passes.h"
#include "core/kernels/dense.h"
#include "core/kernels/numeric_policy.h"
#include "core/ops/arguments.h"
#include "core/passes/rewrite.h"

enum { MOST_PARTS = 8 };

// Some columns of the layer's input.
typedef struct Part {
        Recorded *rows;       // what is multiplied
        RecordedCall *gather; // picks among the products; NULL: rows are the input's own
        int64_t column, n_columns;
} Part;

typedef struct Match {
        RecordedCall *linear, *cat; // cat NULL: the input is one part
        Recorded *weight;
        Part parts[MOST_PARTS];
        int n_parts;
} Match;

static bool is_matrix(const Recorded *value)
{
        return value != NULL && is_packed_type(&value->tensor.meta) && value->tensor.meta.rank == 2;
}

// Whether the call picks rows of a matrix, by one list of positions.
static bool picks_rows(const RecordedCall *call)
{
        int64_t dim;
        OpRole role = op_role(&call->call);
        if (call->removed || call->call.n_outs != 1 || !is_matrix(rewrite_arg(call, SELF)) ||
            !call_is_movable(call))
                return false;
        if (role == ROLE_INDEX_SELECT)
                return arg_int(&call->call, INDEX_SELECT_DIM, &dim) == STATUS_OK && (dim == 0 || dim == -2);
        if (role != ROLE_INDEX || arg_list_length(&call->call, INDEX_INDICES) != 1)
                return false;
        const Tensor *index = arg_list_tensor(&call->call, INDEX_INDICES, 0);
        return index != NULL && index->meta.rank == 1 &&
               (index->meta.dtype == DTYPE_I64 || index->meta.dtype == DTYPE_I32);
}

static bool add_part(Match *match, Recorded *value, int64_t column)
{
        if (!is_matrix(value) || match->n_parts == MOST_PARTS)
                return false;
        Part part = { .rows = value, .column = column, .n_columns = value->tensor.meta.size[1] };
        if (value->from == FROM_CALL && picks_rows(value->call)) {
                part.gather = value->call;
                part.rows = rewrite_arg(value->call, SELF);
        }
        match->parts[match->n_parts++] = part;
        return part.n_columns > 0 && meta_numel(&part.rows->tensor.meta) > 0;
}

static bool add_parts(Match *match, const Uses *uses, Recorded *input)
{
        RecordedCall *call = input->from == FROM_CALL ? input->call : NULL;
        int64_t dim, column = 0;
        if (call == NULL || op_role(&call->call) != ROLE_CAT)
                return add_part(match, input, 0);
        if (call->removed || uses_only_reader(uses, input) != match->linear || !call_is_movable(call) ||
            arg_int(&call->call, CAT_DIM, &dim) != STATUS_OK || (dim != 1 && dim != -1))
                return false;
        for (uint32_t i = 0; i < arg_list_length(&call->call, CAT_TENSORS); i++) {
                Recorded *value = recorded_of(arg_list_tensor(&call->call, CAT_TENSORS, i));
                if (!add_part(match, value, column))
                        return false;
                column += match->parts[match->n_parts - 1].n_columns;
        }
        match->cat = call;
        return column == input->tensor.meta.size[1];
}

// Multiplications and the results that are moved may not be more than before.
static bool is_worth_it(const Match *match)
{
        const TensorMeta *out = &match->linear->outs[0]->tensor.meta;
        int64_t before = 0, after = 0;
        for (int i = 0; i < match->n_parts; i++) {
                before += saturating_product(out->size[0], match->parts[i].n_columns);
                after += meta_numel(&match->parts[i].rows->tensor.meta);
        }
        return after <= before / 2 && match->n_parts * out->size[1] <= 2 * match->weight->tensor.meta.size[1];
}

static bool find(const Uses *uses, RecordedCall *linear, Match *out)
{
        Match match = { .linear = linear, .weight = rewrite_arg(linear, LINEAR_WEIGHT) };
        Recorded *input = rewrite_arg(linear, SELF);
        if (!is_matrix(input) || !is_matrix(match.weight) || !recorded_is_constant(match.weight) ||
            match.weight->tensor.storage->data == NULL || match.weight->tensor.meta.stride[1] != 1 ||
            !call_is_movable(linear) || !add_parts(&match, uses, input) || !is_worth_it(&match))
                return false;
        *out = match;
        return true;
}

// ---- calls ----
// A call in front of the layer, or in its place (`replaces`). *out_value NULL: declined.
static Status insert(Recording *recording, const Match *match, NewCall *new_call, bool replaces,
                     Recorded **out_value)
{
        RecordedCall *made, *chain[] = { match->linear, match->cat };
        new_call->stands_for = chain;
        new_call->n_stands_for = match->cat == NULL ? 1 : 2;
        new_call->outs = replaces ? match->linear->outs : NULL;
        new_call->n_outs = 1;
        new_call->replaces = replaces;
        TRY(recording_insert(recording, match->linear, new_call, &made));
        *out_value = made == NULL ? NULL : made->outs[0];
        return STATUS_OK;
}

static Status multiply(Recording *recording, const Match *match, const Part *part, Recorded **out_value)
{
        const Tensor *whole = &match->weight->tensor;
        TensorMeta meta = whole->meta;
        Recorded *weight;
        meta.size[1] = part->n_columns;
        TRY(recording_add_value(recording, FROM_LITERAL, whole->storage, &meta, whole->offset + part->column,
                                &weight));
        Value bias = match->linear->call.args[LINEAR_BIAS];
        Value args[] = { rewrite_tensor(part->rows), rewrite_tensor(weight),
                         part == match->parts ? value_ref(bias) : value_none() };
        NewCall new_call = { .overload = match->linear->overload, .take_args = args };
        return insert(recording, match, &new_call, false, out_value);
}

static Status pick(Recording *recording, const Match *match, const RecordedCall *gather, Recorded **value)
{
        Value args[SCHEMA_MAX_ARGS];
        args[SELF] = rewrite_tensor(*value);
        for (uint32_t i = 1; i < gather->call.n_args; i++)
                args[i] = value_ref(gather->call.args[i]);
        NewCall new_call = { .overload = gather->overload, .take_args = args, .given = gather->call.given };
        TRY(insert(recording, match, &new_call, match->n_parts == 1, value));
        return *value == NULL ? STATUS_OK : recording_add_nodes(recording, (*value)->call, gather);
}

static Status add(Recording *recording, const Match *match, const Recorded *other, bool is_last,
                  Recorded **sum)
{
        Value args[] = { rewrite_tensor(*sum), rewrite_tensor(other), value_int(1) };
        NewCall new_call = { .overload = op_for(ROLE_ADD), .take_args = args };
        return insert(recording, match, &new_call, is_last, sum);
}

// Their checks of positions are made by those that have come instead.
static void drop_gathers(const Uses *uses, const Match *match)
{
        for (int i = 0; i < match->n_parts; i++) {
                RecordedCall *gather = match->parts[i].gather;
                if (gather != NULL && uses_only_reader(uses, gather->outs[0]) ==
                                              (match->cat == NULL ? match->linear : match->cat))
                        gather->removed = true;
        }
}

// Calls that are left over when one is declined are read by nobody.
static Status rewrite(Recording *recording, const Uses *uses, const Match *match)
{
        Recorded *sum = NULL, *part;
        for (int i = 0; i < match->n_parts; i++) {
                TRY(multiply(recording, match, &match->parts[i], &part));
                if (part != NULL && match->parts[i].gather != NULL)
                        TRY(pick(recording, match, match->parts[i].gather, &part));
                if (part != NULL && i > 0)
                        TRY(add(recording, match, part, i == match->n_parts - 1, &sum));
                else
                        sum = part;
                if (part == NULL || sum == NULL)
                        return STATUS_OK;
        }
        drop_gathers(uses, match);
        return STATUS_OK;
}

Status pass_gather_later(Recording *recording, PassContext *context)
{
        _cleanup_(uses_deinit) Uses uses = { 0 };
        TRY(uses_count(recording, &uses));
        for (uint32_t i = 0; i < recording->n_calls; i++) {
                RecordedCall *call = recording->calls[i];
                Match match;
                if (call->removed || op_role(&call->call) != ROLE_LINEAR || call->call.n_outs != 1)
                        continue;
                TRY(run_poll(context->poll));
                if (find(&uses, call, &match))
                        TRY(rewrite(recording, &uses, &match));
        }
        recording_compact(recording);
        return STATUS_OK;
}
