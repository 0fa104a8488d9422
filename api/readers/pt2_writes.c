// SPDX-License-Identifier: Apache-2.0
// pt2_writes.c: which state may be written by a run. A flow analysis over the nodes in order: per
// node, the set of states its result may share storage with, as a union-find forest of nodes; an
// operator that writes marks the set of its target. Conservative: an operator that may return its
// argument counts as a view, and the results of higher-order operators alias all their operands. A
// state that is marked for nothing only loses constant folding.
#include "api/readers/pt2_parts.h"

#include <string.h>

typedef struct Writes {
        Graph *graph;
        uint32_t *root; // per node index: parent in the forest; itself for a root
        bool *written;  // per root
} Writes;

static uint32_t find_root(Writes *writes, uint32_t node)
{
        while (writes->root[node] != node) {
                writes->root[node] = writes->root[writes->root[node]];
                node = writes->root[node];
        }
        return node;
}

static void unite(Writes *writes, uint32_t a, uint32_t b)
{
        a = find_root(writes, a);
        b = find_root(writes, b);
        if (a == b)
                return;
        uint32_t kept = MIN(a, b), gone = MAX(a, b);
        writes->root[gone] = kept;
        writes->written[kept] = writes->written[kept] || writes->written[gone];
}

// "torch.ops.aten.add_.Tensor" -> "add_" (not NUL-terminated); n = 0 for targets that are no
// overload.
static const char *op_name(const char *target, size_t *out_n)
{
        *out_n = 0;
        if (strncmp(target, "torch.ops.", 10) != 0)
                return target;
        const char *name = strchr(target + 10, '.');
        if (name == NULL)
                return target;
        name++;
        *out_n = strcspn(name, ".");
        return name;
}

// Whether `words`, which begins and ends with a space, holds the name between two spaces.
static bool is_word_of(const char *name, size_t n, const char *words)
{
        for (const char *at = words + 1; *at != '\0'; at += strcspn(at, " ") + 1) {
                if (strcspn(at, " ") == n && memcmp(at, name, n) == 0)
                        return true;
        }
        return false;
}

// Operators whose result may share storage with an argument: views, and those that return their
// argument when nothing is to be done.
static bool may_alias(const char *name, size_t n)
{
        static const char words[] =
                " _conj _neg_view _reshape_alias _to_copy _unsafe_view adjoint alias alpha_dropout "
                "as_strided atleast_1d "
                "atleast_2d atleast_3d broadcast_tensors broadcast_to chunk col_indices conj contiguous "
                "crow_indices cpu "
                "detach diagonal dropout dsplit einsum expand expand_as feature_alpha_dropout "
                "feature_dropout flatten "
                "hsplit imag indices lift lift_fresh linalg_diagonal mH mT matrix_H meshgrid moveaxis "
                "movedim narrow "
                "numpy_T permute pin_memory pixel_shuffle pixel_unshuffle positive ravel real rename reshape "
                "reshape_as "
                "resolve_conj resolve_neg select slice slice_inverse split split_with_sizes squeeze "
                "sum_to_size swapaxes "
                "swapdims t tensor_split to transpose type_as unbind unflatten unfold unsafe_chunk "
                "unsafe_split "
                "unsafe_split_with_sizes unsqueeze values view view_as view_as_complex view_as_real vsplit "
                "channel_shuffle ";
        return is_word_of(name, n, words);
}

// Operators that write arguments other than the first, whatever their flags say.
static bool writes_any_argument(const char *name, size_t n)
{
        static const char words[] =
                " batch_norm native_batch_norm cudnn_batch_norm miopen_batch_norm _native_batch_norm_legit "
                "_batch_norm_impl_index _batch_norm_with_update instance_norm rrelu_with_noise "
                "fused_moving_avg_obs_fake_quant _fused_moving_avg_obs_fq_helper ";
        return is_word_of(name, n, words);
}

// ---- the walk ----
typedef struct Touch {
        Writes *writes;
        uint32_t node; // result to unite with; UINT32_MAX: mark as written instead
} Touch;

static Status touch_leaf(void *context, const Value *leaf)
{
        Touch *touch = context;
        if (leaf->kind != VALUE_NODE)
                return STATUS_OK;
        if (touch->node == UINT32_MAX)
                touch->writes->written[find_root(touch->writes, leaf->node->index)] = true;
        else
                unite(touch->writes, touch->node, leaf->node->index);
        return STATUS_OK;
}

static Status touch_value(Writes *writes, Value value, uint32_t node)
{
        Touch touch = { .writes = writes, .node = node };
        return value_walk(value, touch_leaf, &touch);
}

static Status touch_inputs(Writes *writes, const Node *node, uint32_t as)
{
        TRY(touch_value(writes, node->args, as));
        return touch_value(writes, node->kwargs, as);
}

// "add_", "__ior__"; not "__or__".
static bool is_inplace(const char *name, size_t n)
{
        if (n > 5 && memcmp(name, "__i", 3) == 0)
                return true;
        return n >= 2 && name[n - 1] == '_' && name[n - 2] != '_';
}

// Normalisations whose arguments 3 and 4 are running statistics and whose argument 5 says whether
// they are written.
static bool has_running_stats(const char *name, size_t n)
{
        static const char words[] = " batch_norm native_batch_norm _native_batch_norm_legit instance_norm "
                                    "_batch_norm_impl_index ";
        return is_word_of(name, n, words);
}

static bool is_known_inference(const Node *node, const char *name, size_t n)
{
        if (!has_running_stats(name, n) || node->args.seq->n < 6)
                return false;
        Value training = node->args.seq->items[5];
        return training.kind == VALUE_BOOL && !training.b;
}

static bool writes_somewhere(const Graph *graph);

static Status visit_node(Writes *writes, const Node *node)
{
        size_t n;
        const char *name = op_name(node->target, &n);
        if (node->op != OP_CALL_FUNCTION)
                return STATUS_OK;
        if (strcmp(node->target, "_operator.getitem") == 0)
                return touch_inputs(writes, node, node->index);
        if (n == 0)
                return strncmp(node->target, "torch._functorch.", 17) == 0
                               ? touch_inputs(writes, node, node->index)
                               : STATUS_OK;
        if (strncmp(node->target, "torch.ops.higher_order.", 23) == 0) {
                bool writing = false;
                for (uint32_t i = 0; i < node->args.seq->n; i++) {
                        const Value *arg = &node->args.seq->items[i];
                        const Module *child = arg->kind == VALUE_NODE && arg->node->op == OP_GET_ATTR
                                                      ? graph_module(writes->graph, arg->node->target)
                                                      : NULL;
                        writing = writing ||
                                  (child != NULL && child->graph != NULL && writes_somewhere(child->graph));
                }
                if (writing)
                        TRY(touch_inputs(writes, node, UINT32_MAX));
                return touch_inputs(writes, node, node->index);
        }
        const Value *out = dict_get(node->kwargs.dict, "out");
        if (out != NULL)
                TRY(touch_value(writes, *out, UINT32_MAX));
        if (is_inplace(name, n)) {
                const Value *self = node->args.seq->n > 0 ? &node->args.seq->items[0]
                                                          : dict_get(node->kwargs.dict, "self");
                if (self != NULL) {
                        TRY(touch_value(writes, *self, UINT32_MAX));
                        TRY(touch_value(writes, *self, node->index));
                }
        }
        if (has_running_stats(name, n) && node->args.seq->n >= 6) {
                if (!is_known_inference(node, name, n)) {
                        TRY(touch_value(writes, node->args.seq->items[3], UINT32_MAX));
                        TRY(touch_value(writes, node->args.seq->items[4], UINT32_MAX));
                }
        } else if (writes_any_argument(name, n)) {
                TRY(touch_inputs(writes, node, UINT32_MAX));
        }
        return may_alias(name, n) ? touch_inputs(writes, node, node->index) : STATUS_OK;
}

// Whether any operator of a child graph writes anything. Nesting is bounded by
// limits.max_child_graphs.
static bool writes_somewhere(const Graph *graph)
{
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                const Node *node = graph->nodes[i];
                size_t n;
                const char *name = op_name(node->target, &n);
                if (node->op == OP_CALL_FUNCTION && n >= 2 &&
                    (is_inplace(name, n) || writes_any_argument(name, n)) &&
                    !is_known_inference(node, name, n))
                        return true;
        }
        for (uint32_t i = 0; i < graph->n_modules; i++) {
                if (graph->modules[i]->graph != NULL && writes_somewhere(graph->modules[i]->graph))
                        return true;
        }
        return false;
}

// Spreads the mark over all states that share a storage (tied weights).
static Status spread(Graph *graph)
{
        uint32_t n_written = 0;
        for (uint32_t i = 0; i < graph->n_state; i++)
                n_written += graph->state[i].written;
        if (n_written == 0)
                return STATUS_OK;
        StringMap storages = { 0 };
        Status status = STATUS_OK;
        Arena keys;
        arena_init(&keys, 0);
        for (int pass = 0; pass < 2 && status == STATUS_OK; pass++) {
                for (uint32_t i = 0; i < graph->n_state && status == STATUS_OK; i++) {
                        State *state = &graph->state[i];
                        if (pass == 0 && !state->written)
                                continue;
                        const char *key = arena_format(&keys, "%p", (void *)state->tensor->storage);
                        if (key == NULL)
                                status = fail_memory();
                        else if (pass == 0)
                                status = string_map_set(&storages, key, state, NULL);
                        else if (string_map_get(&storages, key) != NULL)
                                state->written = true;
                }
        }
        string_map_deinit(&storages);
        arena_deinit(&keys);
        return status;
}

static Status mark_states(Writes *writes)
{
        const Signature *signature = &writes->graph->signature;
        for (uint32_t i = 0; i < signature->n_inputs; i++) {
                Input *input = &signature->inputs[i];
                State *state = input->kind == INPUT_STATE ? graph_state(writes->graph, input->path) : NULL;
                bool written = writes->written[find_root(writes, input->placeholder->index)];
                if (state != NULL && written)
                        state->written = true;
                input->written = written;
        }
        for (uint32_t i = 0; i < signature->n_outputs; i++) {
                const Output *output = &signature->outputs[i];
                State *state = output->kind == OUTPUT_STATE_MUTATION
                                       ? graph_state(writes->graph, output->target)
                                       : NULL;
                if (state != NULL)
                        state->written = true;
        }
        return spread(writes->graph);
}

Status pt2_mark_writes(Graph *graph)
{
        _cleanup_(freep) uint32_t *root = new_array(graph->n_nodes, sizeof(*root));
        _cleanup_(freep) bool *written = new_array(graph->n_nodes, sizeof(*written));
        if (root == NULL || written == NULL)
                return fail_memory();
        Writes writes = { .graph = graph, .root = root, .written = written };
        for (uint32_t i = 0; i < graph->n_nodes; i++)
                root[i] = i;
        for (uint32_t i = 0; i < graph->n_nodes; i++)
                TRY(visit_node(&writes, graph->nodes[i]));
        return mark_states(&writes);
}
