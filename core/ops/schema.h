// SPDX-License-Identifier: Apache-2.0
// Operator schemas as PyTorch writes them ("aten::add.Tensor(Tensor self, Tensor other, *, Scalar
// alpha=1) -> Tensor"), parsed once at start, and the binder that lays call arguments out in schema
// order.
#pragma once
#include "core/base/arena.h"
#include "core/graph/graph.h"

typedef enum ArgType {
        ARG_TENSOR,
        ARG_SCALAR, // bool, int, float, complex
        ARG_INT,    // int, SymInt
        ARG_FLOAT,  // takes ints too
        ARG_BOOL,
        ARG_STR,
        ARG_DTYPE, // ScalarType
        ARG_LAYOUT,
        ARG_DEVICE,
        ARG_MEMORY_FORMAT,
        ARG_GENERATOR, // only None
        ARG_ANY,       // Python-side rows: anything
        ARG_GRAPH,
} ArgType;

typedef struct SchemaArg {
        const char *name;
        ArgType type;
        bool is_list;       // Tensor[], int[], Scalar[] ...
        bool item_optional; // Tensor?[]
        bool optional;      // T?
        bool kwarg_only;
        bool varargs;    // Python-side rows "(Tensor self, *int[] size)": trailing positionals gather here
        bool is_written; // (a!)
        bool is_alias;   // (a), (a!)
        bool has_default;
        int list_size; // int[2]: a single int is repeated; 0 = none
        Value default_value;
} SchemaArg;

typedef struct SchemaReturn {
        ArgType type;
        bool is_list;
        bool is_alias; // (a), (a!): an argument, or a view of one
} SchemaReturn;

typedef enum ReturnShape { RETURN_NOTHING, RETURN_ONE, RETURN_TUPLE, RETURN_LIST } ReturnShape;

typedef struct Schema {
        const char *text;                 // as written
        const char *ns, *name, *overload; // "aten", "add", "Tensor" ("default" when empty)
        SchemaArg *args;
        uint32_t n_args, n_tensor_args;
        uint32_t n_positional; // arguments before the keyword-only ones
        ReturnShape returns;
        uint32_t n_returns;
        const char *const *return_names;  // named tuple fields; NULL if unnamed
        const SchemaReturn *return_types; // n_returns
} Schema;

Status schema_parse(const char *text, Arena *arena, Schema *out_schema);

// Arguments as a node has them.
typedef struct CallArgs {
        const Value *args;
        uint32_t n_args;
        const struct DictItem *kwargs;
        uint32_t n_kwargs;
} CallArgs;

enum { SCHEMA_MAX_ARGS = 40 };

typedef enum BindMode {
        BIND_STRICT,  // numbers do not fit Tensor slots
        BIND_NUMBERS, // they do (wrapped numbers)
} BindMode;
// Lays `call` out in schema order into out_args[schema->n_args]; values are borrowed (defaults from
// the schema). VALUE_NODE and VALUE_DYNAMIC fit anything (checks at upload). `input` is accepted
// for `self`, as in Python. Gathers x.view(2, 3) into a first int-list argument; one more value
// than fits, an unknown keyword, a missing argument or a wrong type fails with STATUS_VALUE in
// PyTorch's manner, naming op and argument. A gathered list is the one value that is not borrowed:
// after a successful bind call schema_release when the arguments are no longer needed (cheap when
// nothing was gathered). SCHEMA_GATHERED in `given` marks it; emit() ignores that bit.
Status schema_bind(const Schema *schema, const CallArgs *call, BindMode mode, Value *out_args,
                   uint64_t *out_given);
#define SCHEMA_GATHERED ((uint64_t)1 << 63)
void schema_release(const Schema *schema, Value *args, uint64_t given);
// As above without a message: for choosing among overloads.
bool schema_fits(const Schema *schema, const CallArgs *call, BindMode mode);
// schema_bind without a message: false where it would fail.
bool schema_try_bind(const Schema *schema, const CallArgs *call, BindMode mode, Value *out_args,
                     uint64_t *out_given);
