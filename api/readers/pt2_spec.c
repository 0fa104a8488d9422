// SPDX-License-Identifier: Apache-2.0
// pt2_spec.c: what the exporter recorded of a value. Sizes are constants or sympy expressions; an
// expression is kept in infix spelling, parsed once per graph and spelling. Recorded metas are
// hints for showing and for the signature; real shapes come from running.
#include "api/readers/pt2_parts.h"

#include <string.h>
#include "core/graph/expr.h"

static const struct {
        int64_t code;
        Dtype dtype;
        const char *name;
} dtype_codes[] = {
        { 1, DTYPE_U8, "uint8" },
        { 2, DTYPE_I8, "int8" },
        { 3, DTYPE_I16, "int16" },
        { 4, DTYPE_I32, "int32" },
        { 5, DTYPE_I64, "int64" },
        { 6, DTYPE_F16, "float16" },
        { 7, DTYPE_F32, "float32" },
        { 8, DTYPE_F64, "float64" },
        { 9, DTYPE_NONE, "complex32" },
        { 10, DTYPE_C64, "complex64" },
        { 11, DTYPE_C128, "complex128" },
        { 12, DTYPE_BOOL, "bool" },
        { 13, DTYPE_BF16, "bfloat16" },
        { 28, DTYPE_U16, "uint16" },
        { 29, DTYPE_F8E4M3FN, "float8_e4m3fn" },
        { 30, DTYPE_F8E5M2, "float8_e5m2" },
        { 31, DTYPE_F8E4M3FNUZ, "float8_e4m3fnuz" },
        { 32, DTYPE_F8E5M2FNUZ, "float8_e5m2fnuz" },
        { 33, DTYPE_F8E8M0FNU, "float8_e8m0fnu" },
        { 34, DTYPE_U32, "uint32" },
        { 35, DTYPE_U64, "uint64" },
};

Dtype pt2_dtype(int64_t code)
{
        for (size_t i = 0; i < ARRAY_LENGTH(dtype_codes); i++) {
                if (dtype_codes[i].code == code)
                        return dtype_codes[i].dtype;
        }
        return DTYPE_NONE;
}

const char *pt2_dtype_name(int64_t code)
{
        for (size_t i = 0; i < ARRAY_LENGTH(dtype_codes); i++) {
                if (dtype_codes[i].code == code)
                        return dtype_codes[i].name;
        }
        return NULL;
}

// The infix spelling of an expression. An expression that the parser does not know is kept as text:
// it is shown, not computed.
static Status infix_of(Pt2Graph *graph, const char *srepr, const char **out_infix)
{
        const char *known = string_map_get(&graph->infix, srepr);
        if (known != NULL) {
                *out_infix = known;
                return STATUS_OK;
        }
        Expr *expr;
        Text text = { 0 };
        Status status = expr_parse(srepr, graph->scratch, &expr);
        if (status == STATUS_OK)
                status = expr_print(expr, &text);
        const char *spelling = status == STATUS_OK ? text.data : srepr;
        const char *copy = arena_text(&graph->graph->arena, spelling, strlen(spelling));
        text_deinit(&text);
        if (status_class(status) == STATUS_CLASS_INTERNAL)
                return status;
        if (copy == NULL)
                return fail_memory();
        TRY(string_map_set(&graph->infix, srepr, (void *)(uintptr_t)copy, NULL));
        *out_infix = copy;
        return STATUS_OK;
}

static Status read_expr(Pt2Graph *graph, Arena *scratch, JsonReader *reader, SymDim *out_dim)
{
        static const char *const names[] = { "expr_str", "hint" };
        JsonText raw, fields[2];
        TRY(json_read_raw(reader, &raw.text, &raw.n));
        TRY(json_text_fields(raw, "a symbolic size", scratch, names, 2, fields));
        const char *srepr;
        TRY(json_text_string(fields[0], scratch, &srepr));
        if (srepr == NULL)
                return fail(STATUS_MALFORMED, "a symbolic size has no \"expr_str\"");
        *out_dim = (SymDim){ .value = -1 };
        if (fields[1].n != 0) {
                _cleanup_(json_closep) JsonReader *hint = NULL;
                TRY(json_text_open(fields[1], scratch, &hint));
                const char *tag;
                TRY(json_union_enter(hint, &tag));
                if (strcmp(tag, "as_int") == 0)
                        TRY(json_read_int(hint, &out_dim->value));
        }
        return infix_of(graph, srepr, &out_dim->expr);
}

Status pt2_read_sym_int(Pt2Graph *graph, Arena *scratch, JsonReader *reader, SymDim *out_dim)
{
        const char *tag;
        TRY(json_union_enter(reader, &tag));
        *out_dim = (SymDim){ 0 };
        if (strcmp(tag, "as_int") == 0)
                TRY(json_read_int(reader, &out_dim->value));
        else if (strcmp(tag, "as_expr") == 0 && graph != NULL)
                TRY(read_expr(graph, scratch, reader, out_dim));
        else
                return fail(STATUS_MALFORMED, "\"%s\" cannot be a size here", tag);
        return json_union_leave(reader, tag);
}

static Status read_sym_ints(Pt2Graph *graph, Arena *scratch, JsonText text, SymDim out_dims[MAX_RANK],
                            int *out_n)
{
        int n = 0;
        _cleanup_(json_closep) JsonReader *reader = NULL;
        TRY(json_text_open(text, scratch, &reader));
        TRY(json_enter_array(reader));
        for (;; n++) {
                bool more;
                SymDim dim;
                TRY(json_next_item(reader, &more));
                if (!more)
                        break;
                TRY(pt2_read_sym_int(graph, scratch, reader, &dim));
                if (n < MAX_RANK)
                        out_dims[n] = dim;
        }
        *out_n = n;
        return STATUS_OK;
}

Status pt2_read_tensor_meta(Pt2Graph *graph, Arena *scratch, JsonText text, Pt2TensorMeta *out_meta)
{
        static const char *const names[] = { "dtype", "sizes", "strides", "storage_offset", "layout" };
        JsonText fields[5];
        Pt2TensorMeta meta = { 0 };
        TRY(json_text_fields(text, "a tensor's description", scratch, names, 5, fields));
        if (fields[0].n == 0 || fields[1].n == 0 || fields[2].n == 0)
                return fail(STATUS_MALFORMED,
                            "a tensor's description lacks \"dtype\", \"sizes\" or \"strides\"");
        TRY(json_text_int(fields[0], scratch, 0, &meta.dtype_code));
        meta.dtype = pt2_dtype(meta.dtype_code);
        TRY(read_sym_ints(graph, scratch, fields[1], meta.size, &meta.rank));
        TRY(read_sym_ints(graph, scratch, fields[2], meta.stride, &meta.n_strides));
        if (meta.n_strides != meta.rank)
                return fail(STATUS_MALFORMED, "a tensor's description has %d sizes and %d strides", meta.rank,
                            meta.n_strides);
        if (meta.rank > MAX_RANK)
                meta.rank = -1;
        if (fields[3].n != 0) {
                _cleanup_(json_closep) JsonReader *reader = NULL;
                SymDim offset;
                TRY(json_text_open(fields[3], scratch, &reader));
                TRY(pt2_read_sym_int(graph, scratch, reader, &offset));
                meta.storage_offset = offset.expr == NULL ? offset.value : -1;
        }
        TRY(json_text_int(fields[4], scratch, 7, &meta.layout));
        *out_meta = meta;
        return STATUS_OK;
}

Status pt2_spec_new(Pt2Graph *graph, const Pt2TensorMeta *meta, TensorSpec **out_spec)
{
        *out_spec = NULL;
        if (meta->dtype == DTYPE_NONE || meta->rank < 0)
                return STATUS_OK;
        TensorSpec *spec = arena_alloc(&graph->graph->arena, sizeof(*spec));
        if (spec == NULL)
                return fail_memory();
        spec->dtype = meta->dtype;
        spec->rank = meta->rank;
        memcpy(spec->size, meta->size, sizeof(spec->size));
        *out_spec = spec;
        return STATUS_OK;
}
