// SPDX-License-Identifier: Apache-2.0
#include "api/readers/packed_on.h"
#include <string.h>

// PyTorch's operator, and ours with the argument packed_on.
static const struct {
        const char *from, *to;
} operators[] = {
        { "torch.ops.aten._weight_int4pack_mm_for_cpu",
          "torch.ops.fxserve.weight_int4pack_mm_for_cpu.default" },
        { "torch.ops.aten._convert_weight_to_int4pack_for_cpu",
          "torch.ops.fxserve.convert_weight_to_int4pack_for_cpu.default" },
};

static const char *told_name(const Node *node) // NULL: another operator
{
        for (size_t i = 0; node->op == OP_CALL_FUNCTION && i < ARRAY_LENGTH(operators); i++) {
                size_t n = strlen(operators[i].from);
                if (strncmp(node->target, operators[i].from, n) == 0 &&
                    (node->target[n] == '\0' || strcmp(node->target + n, ".default") == 0))
                        return operators[i].to;
        }
        return NULL;
}

// The node's keyword arguments and one more.
static Status with_processor(const Node *node, const char *packed_on, Value *out_kwargs)
{
        const Dict *old = node->kwargs.dict;
        _cleanup_(dict_unrefp) Dict *dict = NULL;
        TRY(dict_new(old->n + 1, &dict));
        for (uint32_t i = 0; i < old->n; i++) {
                TRY(str_new(old->items[i].key->text, strlen(old->items[i].key->text), &dict->items[i].key));
                dict->items[i].value = value_ref(old->items[i].value);
        }
        TRY(str_new("packed_on", strlen("packed_on"), &dict->items[old->n].key));
        TRY(value_str_new(packed_on, strlen(packed_on), &dict->items[old->n].value));
        *out_kwargs = (Value){ .kind = VALUE_DICT, .dict = take_ptr(dict) };
        return STATUS_OK;
}

static Status tell(Edit *edit, Node *node, const char *to, const char *packed_on)
{
        const TensorSpec *spec = node->spec; // in the session's memory; the result's stays what it was
        Value kwargs;
        TRY(edit_step(edit));
        TRY(with_processor(node, packed_on, &kwargs));
        TRY(edit_set_args(edit, node, value_ref(node->args), kwargs));
        TRY(edit_set_call(edit, node, OP_CALL_FUNCTION, to));
        return spec == NULL ? STATUS_OK : edit_set_spec(edit, node, spec);
}

Status packed_on_tell(Edit *edit, const char *packed_on)
{
        bool any = false;
        for (Node *node = edit_first(edit); node != NULL; node = edit_next(node)) {
                const char *to = told_name(node);
                if (to == NULL || dict_get(node->kwargs.dict, "packed_on") != NULL)
                        continue;
                any = true;
                TRY(tell(edit, node, to, packed_on));
        }
        return any ? STATUS_OK
                   : failure_at_argument(
                             fail(STATUS_INPUT,
                                  "no node of the graph calls aten._weight_int4pack_mm_for_cpu or "
                                  "aten._convert_weight_to_int4pack_for_cpu"),
                             "packed_on");
}
