// SPDX-License-Identifier: Apache-2.0
// segments.c: segment_reduce. Segments lie one behind the other along a dimension; each element is
// added to that of its segment by scatter_reduce.
#include <math.h>
#include <string.h>
#include "core/ops/compose.h"

typedef struct SegmentKind {
        const char *name, *other_name; // of `reduce`
        const char *scatter;           // of scatter_reduce
        double empty;                  // the result of a segment without elements
} SegmentKind;
static const SegmentKind kinds[] = {
        { "sum", "sum", "sum", 0 },           { "mean", "mean", "sum", 0 },
        { "max", "amax", "amax", -INFINITY }, { "min", "amin", "amin", INFINITY },
        { "prod", "prod", "prod", 1 },
};

static const SegmentKind *find_kind(const char *text)
{
        for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++) {
                if (strcmp(kinds[i].name, text) == 0 || strcmp(kinds[i].other_name, text) == 0)
                        return &kinds[i];
        }
        return NULL;
}

// `bounds`: lengths or offsets. Their last dimension is *out_axis of the data, those before are the
// data's.
static Status check(Compose *c, const TensorMeta *data, int *out_axis)
{
        if (compose_has(c, "indices"))
                return fail(STATUS_UNSUPPORTED,
                            "segment_reduce(): indices based reduction is not supported yet.");
        if (!compose_has(c, "lengths") && !compose_has(c, "offsets"))
                return fail(STATUS_VALUE, "segment_reduce(): Either lengths or offsets must be defined.");
        if (!dtype_is_float(data->dtype))
                return fail(STATUS_DTYPE, "\"_segment_reduce_cpu\" not implemented for '%s'",
                            dtype_words(data->dtype));
        const TensorMeta *bounds =
                compose_meta(c, NAMED(c, compose_has(c, "offsets") ? "offsets" : "lengths"));
        if (bounds->dtype != DTYPE_I64 && bounds->dtype != DTYPE_I32)
                return fail(STATUS_DTYPE, "\"_segment_reduce_lengths_cpu_kernel1\" not implemented for '%s'",
                            dtype_words(bounds->dtype));
        TRY(dim_wrap(compose_int(c, "axis"), data->rank, out_axis));
        if (*out_axis != bounds->rank - 1)
                return fail(STATUS_VALUE,
                            "segment_reduce(): Expected axis to be the last dimension of lengths but got %d.",
                            *out_axis);
        if (bounds->size[*out_axis] == 0)
                return fail(STATUS_SHAPE, "segment_reduce(): there are no lengths");
        for (int d = 0; d < *out_axis; d++) {
                if (bounds->size[d] != data->size[d])
                        return fail(STATUS_SHAPE,
                                    "segment_reduce(): dimension %d of lengths has %ld elements, of data %ld",
                                    d, (long)bounds->size[d], (long)data->size[d]);
        }
        return STATUS_OK;
}

static void require(Compose *c, Value holds, const char *words)
{
        OP(c, "aten::_assert_async.msg", OP(c, "aten::all", holds), compose_text(c, words));
}

// Where segments begin, and where the last one ends: [..., segments + 1]. PyTorch checks lengths
// unless it is told not to; that they lie within the data is checked here always.
static Value find_offsets(Compose *c, int64_t n)
{
        static const char sums[] = "segment_reduce(): Expected all rows of lengths along axis to sum to "
                                   "data.size(lengths.dim()-1) when !unsafe.";
        const Value last = value_int(-1);
        const bool has_offsets = compose_has(c, "offsets"),
                   exact = !has_offsets && !compose_bool(c, "unsafe");
        Value offsets = compose_cast(c, NAMED(c, has_offsets ? "offsets" : "lengths"), DTYPE_I64);
        if (!has_offsets) {
                Value zero = OP(c, "aten::zeros_like",
                                OP(c, "aten::slice.Tensor", offsets, last, value_int(0), value_int(1)));
                Value ends = OP(c, "aten::cumsum", offsets, last);
                offsets = OP(c, "aten::cat", compose_list(c, (Value[]){ zero, ends }, 2), last);
        }
        require(c, OP(c, "aten::ge.Scalar", OP(c, "aten::diff", offsets), value_int(0)),
                "lengths contains negative value!");
        Value first = OP(c, "aten::select.int", offsets, last, value_int(0));
        Value end = OP(c, "aten::select.int", offsets, last, last);
        require(c, OP(c, "aten::ge.Scalar", first, value_int(0)),
                "segment_reduce(): a segment begins before the data");
        require(c, OP(c, exact ? "aten::eq.Scalar" : "aten::le.Scalar", end, value_int(n)), sums);
        return offsets;
}

// With dimensions of 1 for those of `data` behind `axis`.
static Value along(Compose *c, Value x, const TensorMeta *data, int axis)
{
        for (int d = axis + 1; d < data->rank; d++)
                x = OP(c, "aten::unsqueeze", x, value_int(-1));
        return x;
}

static Status segment_reduce_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value data = NAMED(&c, "data"), initial = NAMED(&c, "initial");
        const TensorMeta *meta = compose_meta(&c, data);
        const SegmentKind *kind = find_kind(NAMED(&c, "reduce").str->text);
        int axis;
        if (kind == NULL)
                return fail(STATUS_VALUE,
                            "reduce argument must be either sum, prod, mean, amax or amin, got %.64s",
                            NAMED(&c, "reduce").str->text);
        TRY(check(&c, meta, &axis));
        TensorMeta shape = *meta;
        const int64_t n = meta->size[axis];
        Value offsets = find_offsets(&c, n), at = value_int(axis);
        const int64_t n_segments = compose_meta(&c, offsets)->size[axis] - 1;
        // Elements before the first segment go to the first row, those behind the last to the last.
        shape.size[axis] = n_segments + 2;
        Value rows =
                OP(&c, "aten::full", compose_ints(&c, shape.size, shape.rank),
                   initial.kind == VALUE_NONE ? value_float(kind->empty) : initial, value_dtype(meta->dtype));
        Value place = OP(&c, "aten::expand", OP(&c, "aten::arange", value_int(n)),
                         compose_ints(&c, meta->size, axis + 1));
        Value row = OP(&c, "aten::searchsorted.Tensor", offsets, OP(&c, "aten::contiguous", place),
                       value_bool(false), value_bool(true));
        row = OP(&c, "aten::expand", along(&c, row, meta, axis), compose_ints(&c, meta->size, meta->rank));
        rows = OP(&c, "aten::scatter_reduce.two", rows, at, row, data, compose_text(&c, kind->scatter));
        rows = OP(&c, "aten::slice.Tensor", rows, at, value_int(1), value_int(n_segments + 1));
        if (strcmp(kind->name, "mean") == 0) {
                Value length = along(&c, OP(&c, "aten::diff", offsets), meta, axis);
                Value mean = OP(&c, "aten::div.Tensor", rows, compose_cast(&c, length, meta->dtype));
                Value is_empty = OP(&c, "aten::eq.Scalar", length, value_int(0));
                rows = initial.kind == VALUE_NONE ? mean : OP(&c, "aten::where.self", is_empty, rows, mean);
        }
        return compose_end(
                &c,
                OP(&c, "aten::clone", rows,
                   (Value){ .kind = VALUE_MEMORY_FORMAT, .memory_format = MEMORY_FORMAT_CONTIGUOUS }),
                out);
}

const OpDef segments_ops[] = {
        { "aten::segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, "
          "Tensor? "
          "offsets=None, int axis=0, bool unsafe=False, Scalar? initial=None) -> Tensor",
          0, .expand = segment_reduce_expand, .traits = TRAIT_FRESH },
};
OP_FILE(segments_ops);
