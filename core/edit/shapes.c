// SPDX-License-Identifier: Apache-2.0
// shapes.c: shapes of a graph's inputs as text, "x:1,3,224,224;y:2".
#include <string.h>
#include "core/edit/edit.h"

static Status bad_shapes(const char *at)
{
        return fail(STATUS_VALUE,
                    "shapes of inputs are given as x:1,3,224,224 (several: x:1,3;y:2); at \"%.60s\"", at);
}

static Status read_sizes(const char **at, EditShape *out)
{
        while (**at >= '0' && **at <= '9') {
                int64_t size = 0;
                if (out->rank == MAX_RANK)
                        return fail(STATUS_VALUE, "a shape has more than %d dimensions", MAX_RANK);
                for (; **at >= '0' && **at <= '9'; (*at)++)
                        if (!mul_i64(size, 10, &size) || !add_i64(size, **at - '0', &size))
                                return bad_shapes(*at);
                out->size[out->rank++] = size;
                if (**at != ',')
                        break;
                (*at)++;
                if (**at < '0' || **at > '9')
                        return bad_shapes(*at);
        }
        return STATUS_OK;
}

static Status find_input(const Graph *graph, const char *name, size_t n, const Input **out_input)
{
        for (uint32_t i = 0; i < graph->signature.n_inputs; i++) {
                const Input *input = &graph->signature.inputs[i];
                const char *target = input->placeholder->target;
                if (input->kind == INPUT_USER && strncmp(target, name, n) == 0 && target[n] == '\0') {
                        *out_input = input;
                        return STATUS_OK;
                }
        }
        return fail(STATUS_INPUT, "shapes of inputs: there is no input \"%.*s\"", (int)MIN(n, (size_t)200),
                    name);
}

Status edit_read_shapes(const Graph *graph, const char *text, EditShape *shapes, uint32_t *out_n)
{
        uint32_t n = 0;
        for (const char *at = text; at != NULL && *at != '\0';) {
                size_t length = strcspn(at, ":;,");
                if (at[length] != ':' || length == 0 || n == EDIT_MAX_SHAPES)
                        return bad_shapes(at);
                EditShape *shape = &shapes[n++];
                const Input *input;
                *shape = (EditShape){ .dtype = DTYPE_NONE };
                TRY(find_input(graph, at, length, &input));
                shape->placeholder = input->placeholder;
                for (uint32_t i = 0; i + 1 < n; i++)
                        if (shapes[i].placeholder == shape->placeholder)
                                return fail(STATUS_VALUE, "shapes of inputs: \"%s\" is there twice",
                                            shape->placeholder->target);
                at += length + 1;
                TRY(read_sizes(&at, shape));
                if (*at != '\0' && *at != ';')
                        return bad_shapes(at);
                if (input->value_kind == VALUE_INT)
                        return fail(STATUS_SHAPE, "shapes of inputs: \"%s\" is a number",
                                    shape->placeholder->target);
                at += *at == ';';
        }
        *out_n = n;
        return STATUS_OK;
}
