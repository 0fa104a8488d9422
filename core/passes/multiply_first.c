// SPDX-License-Identifier: Apache-2.0
// multiply_first.c. Match: a linear layer with a constant weight that reads rows picked by an
// index, or a convolution of one tap that reads a resized image, or either of them on the
// concatenation of such inputs and others, as in layers that send messages along a graph's edges
// and heads that put images of several sizes together. Rewrite: the layer on what is picked from
// or resized, then picked or resized; of a concatenation, the sum of the parts' products. Taken
// where at most half the multiplications are left.
#include "core/passes/passes.h"
#include "core/kernels/copy.h"
#include "core/kernels/dense.h"
#include "core/kernels/numeric_policy.h"
#include "core/ops/arguments.h"
#include "core/ops/conv.h"
#include "core/passes/rewrite.h"

enum { MOST_PARTS = 8 };

// Some channels of the layer's input: columns of a matrix.
typedef struct Part {
        Recorded *from;       // what is multiplied
        RecordedCall *spread; // picks among the products, or resizes them; NULL: nothing has to
        int64_t channel, n_channels;
} Part;

typedef struct Match {
        PassContext *context;
        RecordedCall *layer, *cat; // cat NULL: the input is one part
        Recorded *weight;
        int rank; // of inputs and results: 2, rows; 4, images
        Part parts[MOST_PARTS];
        int n_parts;
} Match;

static bool has_rank(const Recorded *value, int rank)
{
        return value != NULL && is_packed_type(&value->tensor.meta) && value->tensor.meta.rank == rank;
}

// Whether the call picks rows of a matrix, by one list of positions.
static bool picks_rows(const RecordedCall *call)
{
        int64_t dim;
        OpRole role = op_role(&call->call);
        if (role == ROLE_INDEX_SELECT)
                return arg_int(&call->call, INDEX_SELECT_DIM, &dim) == STATUS_OK && (dim == 0 || dim == -2);
        if (role != ROLE_INDEX || arg_list_length(&call->call, INDEX_INDICES) != 1)
                return false;
        const Tensor *index = arg_list_tensor(&call->call, INDEX_INDICES, 0);
        return index != NULL && index->meta.rank == 1 &&
               (index->meta.dtype == DTYPE_I64 || index->meta.dtype == DTYPE_I32);
}

// Whether fewer rows or pixels become `value`, in each channel from that channel alone and in the
// same way: channels may be multiplied before.
static bool spreads(const Match *match, const Recorded *value)
{
        const RecordedCall *call = value->call;
        const Recorded *from = rewrite_arg(call, SELF);
        if (call->removed || call->call.n_outs != 1 || !has_rank(from, match->rank) ||
            !call_is_movable(call) || meta_numel(&from->tensor.meta) >= meta_numel(&value->tensor.meta))
                return false;
        return match->rank == 2 ? picks_rows(call) : op_role(&call->call) == ROLE_RESAMPLE;
}

static bool add_part(Match *match, Recorded *value, int64_t channel)
{
        if (!has_rank(value, match->rank) || match->n_parts == MOST_PARTS)
                return false;
        Part part = { .from = value, .channel = channel, .n_channels = value->tensor.meta.size[1] };
        if (value->from == FROM_CALL && spreads(match, value)) {
                part.spread = value->call;
                part.from = rewrite_arg(value->call, SELF);
        }
        match->parts[match->n_parts++] = part;
        return part.n_channels > 0 && meta_numel(&part.from->tensor.meta) > 0;
}

static bool add_parts(Match *match, const Uses *uses, Recorded *input)
{
        RecordedCall *call = input->from == FROM_CALL ? input->call : NULL;
        int64_t dim, channel = 0;
        if (call == NULL || op_role(&call->call) != ROLE_CAT)
                return add_part(match, input, 0);
        if (call->removed || uses_only_reader(uses, input) != match->layer || !call_is_movable(call) ||
            arg_int(&call->call, CAT_DIM, &dim) != STATUS_OK || (dim != 1 && dim != 1 - match->rank))
                return false;
        for (uint32_t i = 0; i < arg_list_length(&call->call, CAT_TENSORS); i++) {
                Recorded *value = recorded_of(arg_list_tensor(&call->call, CAT_TENSORS, i));
                if (!add_part(match, value, channel))
                        return false;
                channel += match->parts[match->n_parts - 1].n_channels;
        }
        match->cat = call;
        return channel == input->tensor.meta.size[1];
}

// Multiplications and the results that are moved may not be more than before.
static bool is_worth_it(const Match *match)
{
        const TensorMeta *out = &match->layer->outs[0]->tensor.meta;
        int64_t n_results = meta_numel(out) / out->size[1], before = 0, after = 0;
        for (int i = 0; i < match->n_parts; i++) {
                before += saturating_product(n_results, match->parts[i].n_channels);
                after += meta_numel(&match->parts[i].from->tensor.meta);
        }
        return after <= before / 2 && match->n_parts * out->size[1] <= 2 * match->weight->tensor.meta.size[1];
}

// The bias goes where nothing is resized, if there is such a part: resizing rounds.
static int part_of_bias(const Match *match)
{
        for (int i = 0; i < match->n_parts; i++)
                if (match->parts[i].spread == NULL)
                        return i;
        return 0;
}

// Whether results have the same infinities and NaNs. Resizing multiplies by zero and subtracts:
// what is infinite before it may be NaN behind it. Inputs meet that in both orders.
static bool keeps_infinities(const Match *match)
{
        const Recorded *bias = rewrite_arg(match->layer, LINEAR_BIAS);
        bool spread_bias = bias != NULL && match->parts[part_of_bias(match)].spread != NULL;
        return match->rank == 2 ||
               (rewrite_is_finite(match->weight) && (!spread_bias || rewrite_is_finite(bias)));
}

// Parts of a kernel are copied, columns of a matrix are not.
static bool has_room(const Recording *recording, const Match *match)
{
        size_t n_bytes = (size_t)meta_numel(&match->weight->tensor.meta) * sizeof(float);
        return match->rank == 2 || passes_may_add(recording, match->context->folded_bytes, n_bytes);
}

// Whether a row has the same bits in every batch. Sums of parts have others than one product, and
// rows that are picked from a constant may become worth it with their number.
static bool keeps_bits(const Match *match)
{
        for (int i = 0; i < match->n_parts && match->cat != NULL; i++)
                if (match->parts[i].spread != NULL && recorded_is_constant(match->parts[i].from))
                        return false;
        return true;
}

// A linear layer, or a convolution whose results are those of one pixel each.
static bool is_layer(const RecordedCall *call, int rank)
{
        ConvArgs args;
        if (op_role(&call->call) == ROLE_LINEAR)
                return rank == 2;
        if (rank != 4 || op_role(&call->call) != ROLE_CONV || conv_args(&call->call, &args) != STATUS_OK ||
            args.transposed || !args.batched || args.groups != 1 || args.spatial != 2)
                return false;
        const int64_t *taps = rewrite_arg(call, CONV_WEIGHT)->tensor.meta.size + 2;
        for (int i = 0; i < args.spatial; i++)
                if (taps[i] != 1 || args.stride[i] != 1 || args.padding[i] != 0 || args.padding_after[i] != 0)
                        return false;
        return true;
}

static bool find(const Recording *recording, PassContext *context, const Uses *uses, RecordedCall *layer,
                 Match *out)
{
        Recorded *input = rewrite_arg(layer, SELF);
        Match match = { .context = context, .layer = layer, .weight = rewrite_arg(layer, LINEAR_WEIGHT) };
        match.rank = input == NULL ? 0 : input->tensor.meta.rank;
        if (!has_rank(input, match.rank) || !has_rank(match.weight, match.rank) ||
            !recorded_is_constant(match.weight) || match.weight->tensor.storage->data == NULL ||
            !is_layer(layer, match.rank) || (match.rank == 2 && match.weight->tensor.meta.stride[1] != 1) ||
            !call_is_movable(layer) || meta_numel(&layer->outs[0]->tensor.meta) == 0 ||
            !add_parts(&match, uses, input) || !is_worth_it(&match) || !keeps_infinities(&match) ||
            !keeps_bits(&match) || !has_room(recording, &match))
                return false;
        *out = match;
        return true;
}

// ---- calls ----
// A call in front of the layer, or in its place (`replaces`). *out_value NULL: declined.
static Status insert(Recording *recording, const Match *match, NewCall *new_call, bool replaces,
                     Recorded **out_value)
{
        RecordedCall *made, *chain[] = { match->layer, match->cat };
        new_call->stands_for = chain;
        new_call->n_stands_for = match->cat == NULL ? 1 : 2;
        new_call->outs = replaces ? match->layer->outs : NULL;
        new_call->n_outs = 1;
        new_call->replaces = replaces;
        TRY(recording_insert(recording, match->layer, new_call, &made));
        *out_value = made == NULL ? NULL : made->outs[0];
        return STATUS_OK;
}

// The call of `like` with other arguments in front, which are taken. What spreads the products of
// the only part comes in the layer's place.
static Status insert_alike(Recording *recording, const Match *match, const RecordedCall *like,
                           const Value *taken, uint32_t n_taken, Recorded **out_value)
{
        Value args[SCHEMA_MAX_ARGS];
        for (uint32_t i = 0; i < like->call.n_args; i++)
                args[i] = i < n_taken ? taken[i] : value_ref(like->call.args[i]);
        NewCall new_call = { .overload = like->overload, .take_args = args, .given = like->call.given };
        return insert(recording, match, &new_call, like != match->layer && match->n_parts == 1, out_value);
}

// Convolutions want their weights one after another; linear layers take columns of a matrix.
static Status part_weight(Recording *recording, const Match *match, const Part *part, Recorded **out_weight)
{
        const Tensor *whole = &match->weight->tensor;
        Tensor columns = *whole;
        columns.meta.size[1] = part->n_channels;
        columns.offset += part->channel * whole->meta.stride[1];
        if (match->rank == 2)
                return recording_add_value(recording, FROM_LITERAL, whole->storage, &columns.meta,
                                           columns.offset, out_weight);
        TensorMeta meta = columns.meta;
        meta_set_contiguous(&meta);
        TRY(rewrite_constant(recording, &meta, out_weight));
        Region from = region_of(&columns.meta, tensor_data(&columns)),
               to = region_of(&meta, tensor_data(&(*out_weight)->tensor));
        match->context->folded_bytes += (*out_weight)->tensor.storage->n_bytes;
        return copy_region(match->context->poll, &from, &to);
}

// Some channels of the layer.
static Status multiply(Recording *recording, const Match *match, const Part *part, bool has_bias,
                       Recorded **out_value)
{
        Recorded *weight;
        TRY(part_weight(recording, match, part, &weight));
        Value bias = match->layer->call.args[LINEAR_BIAS];
        Value taken[] = { rewrite_tensor(part->from), rewrite_tensor(weight),
                          has_bias ? value_ref(bias) : value_none() };
        return insert_alike(recording, match, match->layer, taken, 3, out_value);
}

static Status spread(Recording *recording, const Match *match, const RecordedCall *call, Recorded **value)
{
        Value taken = rewrite_tensor(*value);
        TRY(insert_alike(recording, match, call, &taken, 1, value));
        return *value == NULL ? STATUS_OK : recording_add_nodes(recording, (*value)->call, call);
}

static Status add(Recording *recording, const Match *match, const Recorded *other, bool is_last,
                  Recorded **sum)
{
        Value args[] = { rewrite_tensor(*sum), rewrite_tensor(other), value_int(1) };
        NewCall new_call = { .overload = op_for(ROLE_ADD), .take_args = args };
        return insert(recording, match, &new_call, is_last, sum);
}

// Checks of positions are made by the calls that have come instead.
static void drop_spreads(const Uses *uses, const Match *match)
{
        for (int i = 0; i < match->n_parts; i++) {
                RecordedCall *call = match->parts[i].spread;
                if (call != NULL &&
                    uses_only_reader(uses, call->outs[0]) == (match->cat == NULL ? match->layer : match->cat))
                        call->removed = true;
        }
}

// Calls that are left over when one is declined are read by nobody.
static Status rewrite(Recording *recording, const Uses *uses, const Match *match)
{
        Recorded *sum = NULL, *part;
        int with_bias = part_of_bias(match);
        for (int i = 0; i < match->n_parts; i++) {
                TRY(multiply(recording, match, &match->parts[i], i == with_bias, &part));
                if (part != NULL && match->parts[i].spread != NULL)
                        TRY(spread(recording, match, match->parts[i].spread, &part));
                if (part != NULL && i > 0)
                        TRY(add(recording, match, part, i == match->n_parts - 1, &sum));
                else
                        sum = part;
                if (part == NULL || sum == NULL)
                        return STATUS_OK;
        }
        drop_spreads(uses, match);
        return STATUS_OK;
}

Status pass_multiply_first(Recording *recording, PassContext *context)
{
        _cleanup_(uses_deinit) Uses uses = { 0 };
        TRY(uses_count(recording, &uses));
        for (uint32_t i = 0; i < recording->n_calls; i++) {
                RecordedCall *call = recording->calls[i];
                Match match;
                OpRole role = op_role(&call->call);
                if (call->removed || (role != ROLE_LINEAR && role != ROLE_CONV) || call->call.n_outs != 1)
                        continue;
                TRY(run_poll(context->poll));
                if (find(recording, context, &uses, call, &match))
                        TRY(rewrite(recording, &uses, &match));
        }
        recording_compact(recording);
        return STATUS_OK;
}
