// SPDX-License-Identifier: Apache-2.0
// split.c: decides which nodes join the eager tail. A program runs all its calls first and then the
// tail, in whatever order the nodes stand in the graph. The results are those of the authored order
// if no call has an effect on an earlier node of the tail, nor the other way round.
//
// For every node left out, the split notes: the bytes that it may touch, whether it may write them,
// whether its result may share them, whether it may draw random numbers or end the run. A call
// conflicts with an earlier node of the tail if
//   it writes bytes that the node touches,
//   it reads bytes that the node may write,
//   both may draw random numbers, or
//   both may end the run (checks that stop it).
// The node of such a call joins the tail, and the graph is recorded again. node_effects says what a
// node may do. It may name too many effects, never too few.
//
// One difference to the authored order remains: if a call and an earlier node of the tail both
// fail, the failure of the call is reported.
#include "core/compile/split.h"

#include <string.h>
#include "core/base/limits.h"
#include "core/compile/tail_bytes.h"
#include "core/ops/lazy.h"
#include "core/targets/targets.h"

struct Split {
        const Graph *graph;
        const RunContext *poll;
        const Recording *recording;
        WalkSplit walk;
        bool *left, *left_before; // by node: left out, in this attempt and before it
        bool failed;              // a node was left out after it had recorded some calls
        bool has_lazy;            // the tail reads a conjugate view, in this attempt
        bool asks_number;         // such a node takes a runtime scalar; kept from attempt to attempt
        bool state_written;       // some state of the graph, or of a child graph, may be written
        TailBytes bytes;          // bytes that nodes left out touch, in this attempt
        BytesSet *results;        // by node left out: bytes that its result may share
        uint32_t first_draw;
        uint32_t first_halt; // of a node of the tail that may end the run
        bool *walked;        // by node: recorded, and computed by the tail as well (get_attr, plain inputs)
        bool *is_met;        // by node: walked or kept
        const Node **kept;
        Value *kept_values; // counted
        uint32_t n_kept, kept_capacity, kept_values_capacity;
};

// ---- life ----
static void forget_kept(Split *split)
{
        for (uint32_t i = 0; i < split->n_kept; i++)
                value_unref(split->kept_values[i]);
        split->n_kept = 0;
}

Split *split_free(Split *split)
{
        if (split == NULL)
                return NULL;
        forget_kept(split);
        free(split->left);
        free(split->left_before);
        free(split->walked);
        free(split->is_met);
        free(split->results);
        free(split->kept);
        free(split->kept_values);
        tail_bytes_deinit(&split->bytes);
        free(split);
        return NULL;
}

static Status leave(void *context, const Node *node, const Value *values);

Status split_new(const Graph *graph, const RunContext *poll, Split **out_split)
{
        _cleanup_(split_freep) Split *split = calloc(1, sizeof(*split));
        if (split == NULL)
                return fail_memory();
        uint32_t n = graph->n_nodes;
        tail_bytes_init(&split->bytes);
        split->graph = graph;
        split->poll = poll;
        split->left = new_array(n, sizeof(bool));
        split->left_before = new_array(n, sizeof(bool));
        split->walked = new_array(n, sizeof(bool));
        split->is_met = new_array(n, sizeof(bool));
        split->results = new_array(n, sizeof(BytesSet));
        if (split->left == NULL || split->left_before == NULL || split->walked == NULL ||
            split->is_met == NULL || split->results == NULL)
                return fail_memory();
        split->state_written = graph_writes_state(graph);
        split->walk = (WalkSplit){ .left = split->left, .leave = leave, .context = split };
        *out_split = take_ptr(split);
        return STATUS_OK;
}

void split_start(Split *split, const Recording *recording)
{
        uint32_t n = split->graph->n_nodes;
        split->recording = recording;
        split->failed = split->has_lazy = false;
        split->first_draw = split->first_halt = NEVER;
        tail_bytes_clear(&split->bytes);
        forget_kept(split);
        memcpy(split->left_before, split->left, n * sizeof(bool));
        memset(split->walked, 0, n * sizeof(bool));
        memset(split->is_met, 0, n * sizeof(bool));
        memset(split->results, 0, n * sizeof(BytesSet));
}

const WalkSplit *split_walk(const Split *split)
{
        return &split->walk;
}

bool split_gave_up(const Split *split)
{
        return split->failed;
}

bool split_asks_number(const Split *split)
{
        return split->asks_number;
}

bool split_is_whole(const Split *split)
{
        for (uint32_t i = 0; i < split->graph->n_nodes; i++) {
                if (split->left[i])
                        return false;
        }
        return true;
}

// ---- bytes ----
// NULL when no node of the tail touches them.
static const Bytes *find_bytes(const Split *split, const Recorded *value)
{
        return value == NULL ? NULL : tail_bytes_find(&split->bytes, tail_bytes_key(&value->tensor));
}

static const Bytes *state_bytes(const Split *split)
{
        return tail_bytes_find(&split->bytes, NULL);
}

// ---- what a node of the tail reads ----
typedef struct Leaving {
        Split *split;
        const Node *node;
        const Value *values;
        BytesSet reads;
        bool reads_state;
} Leaving;

static Status touch_leaf(void *context, const Value *leaf)
{
        Leaving *leaving = context;
        uint32_t index;
        leaving->reads_state |= leaf->kind == VALUE_GRAPH;
        if (leaf->kind != VALUE_TENSOR || leaf->tensor->storage == NULL)
                return STATUS_OK;
        TRY(tail_bytes_index(&leaving->split->bytes, tail_bytes_key(leaf->tensor), &index));
        return bytes_set_add(&leaving->split->bytes, &leaving->reads, index);
}

// Whether the tail can compute the node's value itself, equal to an eager run's.
static bool runs_by_itself(const Node *node, Value value)
{
        if (node->op == OP_GET_ATTR)
                return true;
        if (node->op != OP_PLACEHOLDER || value_is_sequence(value) || value.kind == VALUE_DICT)
                return false;
        return value.kind != VALUE_TENSOR ||
               (recorded_of(value.tensor) != NULL && recorded_of(value.tensor)->from == FROM_STATE);
}

static bool mark(Split *split, uint32_t node)
{
        bool fresh = !split->left[node];
        split->left[node] = true;
        return fresh;
}

Status split_keep(Split *split, const Node *node, Value value)
{
        if (value.kind == VALUE_DYNAMIC || split->left[node->index] || split->is_met[node->index])
                return STATUS_OK;
        split->is_met[node->index] = true;
        if (value_is_lazy(value)) { // the calls hand over bytes; the tail makes the view itself
                mark(split, node->index);
                split->has_lazy = true;
                return STATUS_OK;
        }
        if (runs_by_itself(node, value)) {
                split->walked[node->index] = true;
                return STATUS_OK;
        }
        TRY(array_reserve(&split->kept, &split->kept_capacity, split->n_kept + 1, sizeof(*split->kept)));
        TRY(array_reserve(&split->kept_values, &split->kept_values_capacity, split->n_kept + 1,
                          sizeof(*split->kept_values)));
        split->kept[split->n_kept] = node;
        split->kept_values[split->n_kept++] = value_ref(value);
        return STATUS_OK;
}

static Status read_input(void *context, Node *input)
{
        Leaving *leaving = context;
        const Value *value = &leaving->values[input->index];
        if (value->kind == VALUE_DYNAMIC)
                return bytes_set_merge(&leaving->split->bytes, &leaving->reads,
                                       &leaving->split->results[input->index]);
        TRY(value_walk(*value, touch_leaf, leaving));
        return split_keep(leaving->split, input, *value);
}

static void note_touched(Split *split, const BytesSet *reads, uint32_t at, bool writes)
{
        for (uint32_t w = 0; w < reads->n_words; w++) {
                for (uint64_t bits = reads->words[w]; bits != 0; bits &= bits - 1) {
                        Bytes *bytes = &split->bytes.items[64 * w + (uint32_t)__builtin_ctzll(bits)];
                        bytes->touched = MIN(bytes->touched, at);
                        bytes->written = writes ? MIN(bytes->written, at) : bytes->written;
                }
        }
}

static Status note_number(void *context, Node *input)
{
        const Leaving *leaving = context;
        leaving->split->asks_number |= leaving->values[input->index].tag != 0;
        return STATUS_OK;
}

static Status reads_left(void *context, Node *input)
{
        const Leaving *leaving = context;
        return leaving->values[input->index].kind == VALUE_DYNAMIC ? STATUS_DYNAMIC : STATUS_OK;
}

static Status read_leaf(void *context, const Value *leaf)
{
        return leaf->kind == VALUE_NODE ? read_input(context, leaf->node) : STATUS_OK;
}

// The bytes of the first argument only.
static Status find_first(const Leaving *leaving, BytesSet *out_set)
{
        Leaving first = { .split = leaving->split, .node = leaving->node, .values = leaving->values };
        if (leaving->node->args.seq->n == 0) { // self was passed as a keyword
                *out_set = leaving->reads;
                return STATUS_OK;
        }
        TRY(value_walk(leaving->node->args.seq->items[0], read_leaf, &first));
        *out_set = first.reads;
        return STATUS_OK;
}

static Status leave(void *context, const Node *node, const Value *values)
{
        Split *split = context;
        Leaving leaving = {
                .split = split, .node = node, .values = values, .reads_state = node->op == OP_CALL_MODULE
        };
        TRY(run_poll(split->poll));
        // A node that failed half-way: discard the calls that it recorded so far.
        if (!split->left_before[node->index] && node_visit_inputs(node, reads_left, &leaving) == STATUS_OK) {
                split->failed = true;
                TRY(node_visit_inputs(node, note_number, &leaving));
                mark(split, split->graph->output->index); // with a tail, the tail makes the result
        }
        TRY(node_visit_inputs(node, read_input, &leaving));
        if (leaving.reads_state && split->state_written) {
                uint32_t index;
                TRY(tail_bytes_index(&split->bytes, NULL, &index));
                TRY(bytes_set_add(&split->bytes, &leaving.reads, index));
        }
        uint32_t effects = node_effects(split->graph, node);
        BytesSet shared = leaving.reads;
        if ((effects & NODE_MOVES) != 0 && leaving.reads.n_words > 0)
                return fail(STATUS_DYNAMIC,
                            "a node that runs on real numbers changes the geometry of a tensor in place");
        note_touched(split, &leaving.reads, node->index, (effects & NODE_WRITES) != 0);
        if ((effects & (NODE_WRITES | NODE_WRITES_FIRST)) == NODE_WRITES_FIRST) {
                TRY(find_first(&leaving, &shared));
                note_touched(split, &shared, node->index, true);
        }
        if ((effects & NODE_DRAWS) != 0)
                split->first_draw = MIN(split->first_draw, node->index);
        if ((effects & NODE_HALTS) != 0)
                split->first_halt = MIN(split->first_halt, node->index);
        if ((effects & NODE_SHARES) != 0)
                split->results[node->index] = shared;
        return STATUS_OK;
}

// ---- conflicts ----
typedef struct Conflict {
        const Split *split;
        uint32_t at; // index of the call's node
        bool found, reads_state;
} Conflict;

static Status look_at_read(void *context, Recorded *value)
{
        Conflict *conflict = context;
        const Bytes *bytes = find_bytes(conflict->split, value);
        conflict->found |= bytes != NULL && conflict->at > bytes->written;
        conflict->reads_state |= value != NULL && tail_bytes_key(&value->tensor) == NULL;
        return STATUS_OK;
}

static bool writes_argument(const RecordedCall *call, uint32_t i)
{
        return call->call.schema->args[i].is_written || (i == 0 && call->call.inplace);
}

// Bytes that the call writes but did not allocate.
static void look_at_writes(const RecordedCall *call, Conflict *conflict, bool *out_writes_state)
{
        for (uint32_t i = 0; i < call->call.n_args; i++) {
                if (!writes_argument(call, i) || call->call.args[i].kind != VALUE_TENSOR)
                        continue;
                const Recorded *self = recorded_of(call->call.args[i].tensor);
                const Bytes *bytes = find_bytes(conflict->split, self);
                conflict->found |= bytes != NULL && conflict->at > bytes->touched;
                *out_writes_state |= tail_bytes_key(&self->tensor) == NULL;
        }
}

// The first failure in authored order is the one to report, so a check that follows a check of the
// tail belongs to the tail, too.
static bool halts(const RecordedCall *call)
{
        return (call->call.op->flags & OP_INTERNAL) != 0 && (call->call.op->flags & OP_EFFECT) != 0;
}

static Status mark_conflicts(Split *split, bool *out_again)
{
        const Recording *recording = split->recording;
        bool writes_state = false;
        bool touches_state = state_bytes(split) != NULL;
        for (int pass = 0; pass < 2; pass++) {
                for (uint32_t i = 0; i < recording->n_calls; i++) {
                        const RecordedCall *call = recording->calls[i];
                        if (!call->computes || call->n_nodes == 0)
                                continue;
                        bool call_writes_state = false;
                        Conflict conflict = { .split = split, .at = call->nodes[0]->index };
                        TRY(recorded_visit_inputs(call, look_at_read, &conflict));
                        look_at_writes(call, &conflict, &call_writes_state);
                        conflict.found |=
                                (call->call.op->flags & OP_RANDOM) != 0 && conflict.at > split->first_draw;
                        conflict.found |= halts(call) && conflict.at > split->first_halt;
                        // Calls and tail would each have a copy of the state.
                        writes_state |= call_writes_state;
                        conflict.found |=
                                touches_state && writes_state && (conflict.reads_state || call_writes_state);
                        if (conflict.found)
                                *out_again |= mark(split, conflict.at);
                }
                if (!writes_state || !touches_state)
                        break; // else scan again, for reads before the first write
        }
        return STATUS_OK;
}

static Status look_for_state(void *context, const Value *leaf)
{
        *(bool *)context |= leaf->kind == VALUE_TENSOR && leaf->tensor->storage != NULL &&
                            tail_bytes_key(leaf->tensor) == NULL;
        return STATUS_OK;
}

// The tail has its own copy of state that it writes, so it must make the views of that copy, too.
static void mark_views_of_state(Split *split, bool *out_again)
{
        const Bytes *state = state_bytes(split);
        for (uint32_t i = 0; state != NULL && state->written != NEVER && i < split->n_kept; i++) {
                bool found = false;
                (void)value_walk(split->kept_values[i], look_for_state, &found);
                if (found)
                        *out_again |= mark(split, split->kept[i]->index);
        }
}

// unsqueeze_ and the like record no call. They must not change the geometry of a tensor that the
// tail reads, perhaps under another name.
static Status check_moves(const Split *split)
{
        uint32_t at = 0;
        while (!split->left[at])
                at++;
        for (; at < split->graph->n_nodes; at++) {
                const Node *node = split->graph->nodes[at];
                TRY(run_poll(split->poll));
                if (!split->left[at] && node_is_call(node) &&
                    (node_effects(split->graph, node) & NODE_MOVES) != 0)
                        return fail(STATUS_DYNAMIC,
                                    "%s changes the geometry of a tensor in place behind nodes that run on "
                                    "real numbers",
                                    node->name);
        }
        return STATUS_OK;
}

Status split_settle(Split *split, bool *out_again)
{
        *out_again = split->failed || split->has_lazy;
        if (!split->failed) {
                TRY(mark_conflicts(split, out_again));
                mark_views_of_state(split, out_again);
        }
        return *out_again || split_is_whole(split) ? STATUS_OK : check_moves(split);
}

// ---- the tail ----
// The calls' bytes that the tail may write are barriers to the passes, as if a call wrote them.
static Status mark_written(Split *split)
{
        for (uint32_t i = 0; i < split->bytes.n; i++) {
                const Bytes *bytes = &split->bytes.items[i];
                if (bytes->written == NEVER || bytes->storage == NULL)
                        continue;
                Buffer *buffer = buffer_of(bytes->storage);
                if (buffer == NULL)
                        return fail(STATUS_DYNAMIC, "a node that runs on real numbers writes to a constant");
                buffer->written = buffer->written_later = true;
        }
        const Bytes *state = state_bytes(split);
        for (uint32_t i = 0; i < split->recording->n_buffers && state != NULL && state->written != NEVER;
             i++) {
                Buffer *buffer = split->recording->buffers[i];
                if (buffer->kind == BUFFER_STATE)
                        buffer->written = buffer->written_later = true;
        }
        return STATUS_OK;
}

Status split_finish(Split *split, Recording *recording, ValueSpan *out_values)
{
        uint32_t n = split->graph->n_nodes;
        TRY(mark_written(split));
        EagerTail *tail = arena_alloc(&recording->arena, sizeof(*tail));
        if (tail == NULL)
                return fail_memory();
        tail->skip = arena_array(&recording->arena, n, sizeof(bool));
        tail->nodes = arena_array(&recording->arena, n, sizeof(Node *));
        tail->known = arena_array(&recording->arena, split->n_kept, sizeof(Node *));
        if (tail->skip == NULL || tail->nodes == NULL || tail->known == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < n; i++) {
                tail->skip[i] = !split->left[i] && !split->walked[i];
                if (!tail->skip[i])
                        tail->nodes[tail->n_nodes++] = split->graph->nodes[i];
        }
        for (uint32_t i = 0; i < split->n_kept; i++)
                tail->known[tail->n_known++] = split->kept[i];
        recording->tail = tail;
        *out_values = (ValueSpan){ split->kept_values, split->n_kept };
        return STATUS_OK;
}
