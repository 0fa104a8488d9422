// SPDX-License-Identifier: Apache-2.0
// Value: what a node's argument or a node's result can be. One type for both: in a graph, arguments
// hold VALUE_NODE where a run holds values.
//
// Small by value (24 bytes); everything larger is refcounted and immutable once shared. Nesting is
// capped at limits.max_nested_values by whoever builds values from client data, so walking them
// recursively is bounded.
#pragma once
#include "core/base/text.h"
#include "core/tensor/tensor.h"

typedef enum ValueKind {
        VALUE_NONE,
        VALUE_BOOL,
        VALUE_INT, // Python int and SymInt
        VALUE_FLOAT,
        VALUE_COMPLEX,
        VALUE_STR,
        VALUE_DTYPE,
        VALUE_DEVICE, // str holds "cpu"
        VALUE_LAYOUT, // str holds "torch.strided"
        VALUE_MEMORY_FORMAT,
        VALUE_ELLIPSIS,
        VALUE_SLICE, // seq of three
        VALUE_LIST,
        VALUE_TUPLE, // seq->fields set: a named tuple (torch.return_types.max)
        VALUE_SIZE,  // torch.Size: a tuple of ints that prints as torch.Size([...])
        VALUE_DICT,  // dict
        // a value inside of torch.vmap: seq of what it is for each index, tag the level of nesting;
        // only the walk looks into it (core/eval/batch.h)
        VALUE_BATCH,
        VALUE_TENSOR,
        VALUE_GRAPH,   // a child graph (branches of cond)
        VALUE_NODE,    // graphs only: another node's result
        VALUE_DYNAMIC, // recording only: not known before data is there
        VALUE_ABSENT,  // binder only: argument not given and without default
} ValueKind;

typedef enum MemoryFormat {
        MEMORY_FORMAT_CONTIGUOUS,
        MEMORY_FORMAT_CHANNELS_LAST,
        MEMORY_FORMAT_CHANNELS_LAST_3D,
        MEMORY_FORMAT_PRESERVE
} MemoryFormat;

typedef struct Str {
        RefCount ref;
        uint32_t n;
        char text[]; // NUL-terminated
} Str;

typedef struct Seq Seq;
typedef struct Dict Dict;
struct Graph;
struct Node;

typedef struct Value {
        ValueKind kind;
        // a mark on a number that only the emitter which set it can read (Emitter.runtime_scalars);
        // copies keep it; 0: none
        uint32_t tag;
        union {
                bool b;
                int64_t i;
                double f;
                struct {
                        double re, im;
                } c;
                Dtype dtype;
                MemoryFormat memory_format;
                Str *str;
                Seq *seq;
                Dict *dict;
                Tensor *tensor;
                struct Graph *graph;
                struct Node *node; // borrowed: owned by the graph that holds the argument
        };
} Value;

struct Seq {
        RefCount ref;
        uint32_t n;
        const char *const *fields; // static or graph-lived names of a named tuple; NULL otherwise
        Value items[];
};
struct Dict {
        RefCount ref;
        uint32_t n;
        struct DictItem {
                Str *key;
                Value value;
        } items[]; // insertion order
};

typedef struct ValueSpan {
        const Value *items;
        uint32_t n;
} ValueSpan;

static inline Value value_none(void)
{
        return (Value){ .kind = VALUE_NONE };
}
static inline Value value_bool(bool b)
{
        return (Value){ .kind = VALUE_BOOL, .b = b };
}
static inline Value value_int(int64_t i)
{
        return (Value){ .kind = VALUE_INT, .i = i };
}
static inline Value value_float(double f)
{
        return (Value){ .kind = VALUE_FLOAT, .f = f };
}
static inline Value value_dtype(Dtype dtype)
{
        return (Value){ .kind = VALUE_DTYPE, .dtype = dtype };
}
static inline Value value_tensor_take(Tensor *take_tensor)
{
        return (Value){ .kind = VALUE_TENSOR, .tensor = take_tensor };
}
static inline Value value_seq_take(ValueKind kind, Seq *take_seq)
{
        return (Value){ .kind = kind, .seq = take_seq };
}
static inline bool value_is_number(Value value)
{
        return value.kind >= VALUE_BOOL && value.kind <= VALUE_COMPLEX;
}
static inline bool value_is_one(Value value)
{
        return (value.kind == VALUE_INT && value.i == 1) || (value.kind == VALUE_FLOAT && value.f == 1.0);
}
static inline bool value_is_sequence(Value value)
{
        return value.kind >= VALUE_LIST && value.kind <= VALUE_SIZE;
}

Value value_ref(Value value); // counts what it holds; returns it
void value_unref(Value value);
// unref, then VALUE_NONE: for _cleanup_(value_clear)
void value_clear(Value *value);
Status value_str_new(const char *text, size_t n, Value *out_value); // kind VALUE_STR
Status str_new(const char *text, size_t n, Str **out_str);
// `n` items, all VALUE_NONE, to be filled before sharing.
Status seq_new(uint32_t n, Seq **out_seq);
Status dict_new(uint32_t n, Dict **out_dict);
Seq *seq_unref(Seq *seq);
Dict *dict_unref(Dict *dict);
DEFINE_CLEANUP(Seq, seq_unref)
DEFINE_CLEANUP(Dict, dict_unref)
// NULL if absent; borrowed
const Value *dict_get(const Dict *dict, const char *key);
// a list, tuple or size of ints
Status value_ints_new(ValueKind kind, const int64_t *items, uint32_t n, Value *out_value);
// A number as a 0-dim tensor marked `wrapped` (bool, int64, float64 -> promoted as a number;
// complex128).
Status value_wrap_number(Value number, Budget *budget, Tensor **out_tensor);
// Nesting within limits.max_nested_values and at most VALUE_MAX_ITEMS items in all, where an item
// shared by two containers counts twice: STATUS_TOO_LARGE. Every container that a run builds from
// others passes here before anything walks it. At most VALUE_MAX_ITEMS steps.
enum { VALUE_MAX_ITEMS = 65536 };
Status value_check_nesting(Value value);
// Calls visit on every leaf (non-container) of the value, in order; stops at the first failure.
Status value_walk(Value value, Status (*visit)(void *context, const Value *leaf), void *context);
// Rebuilds a value with every leaf replaced by map(leaf). Containers are new, unless nothing was
// replaced.
Status value_map(Value value, Status (*map)(void *context, const Value *leaf, Value *out), void *context,
                 Value *out_value);
const char *value_kind_name(ValueKind kind); // "int", "Tensor", "list": Python's words
// A bool, int, float, string (its first `most_bytes`) or None as JSON; a float that is not finite
// as a string. Of another kind its name.
void value_add_literal(Value literal, uint32_t most_bytes, Text *text);
