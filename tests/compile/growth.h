// SPDX-License-Identifier: Apache-2.0
// A random graph while it grows: what was made, on which tensors, and calls on it. See random.c.
#pragma once
#include <criterion/criterion.h>
#include "core/eval/eager.h"
#include "tests/kernels/sample.h"

enum { MAX_MADE = 120, MAX_INPUTS = 6, MAX_SAID = 16, MAX_ELEMENTS = 70000, MAX_RESULTS = 5 };

typedef struct Made {
        Node *node;
        Tensor *tensor; // what an eager run has there
        bool rounded;   // a product took part
        bool read;      // stands in some call
        bool hidden;    // weights and places: no operator takes them by chance
} Made;

typedef struct Said { // a call that was made
        const char *name;
        int flags;
        Value args[4];
        uint32_t n;
} Said;

typedef struct Growth {
        Sample sample;
        Graph *graph;
        EagerEmitter *eager;
        Made made[MAX_MADE];
        int n_made, n_inputs, n_states;
        Value inputs[MAX_INPUTS];
        Said said[MAX_SAID];
        uint32_t n_said;
        int rank; // of the shape that most tensors broadcast to
        int64_t size[4];
} Growth;

enum { EXACT = 1, PRODUCT = 2 }; // EXACT: reads nothing that was rounded
typedef bool (*Wanted)(Dtype dtype);

// Uniform in [low, high].
int64_t pick(Growth *growth, int64_t low, int64_t high);
// Filled by the graph's own sequence of numbers; `scale` for floats.
Tensor *random_tensor(Growth *growth, Dtype dtype, int rank, const int64_t *size, double scale);
// Remembers what a node gives. Tensors named take_ are taken.
Made *hold(Growth *growth, Node *node, Tensor *take_tensor);
void add_input(Growth *growth, Tensor *take_tensor);
Made *add_state(Growth *growth, Tensor *take_tensor);
// State that no operator takes by chance.
Made *hidden_state(Growth *growth, Tensor *take_tensor);
Made *state_of(Growth *growth, int rank, const int64_t *size, double scale);
// What `node` made.
Made *made_of(Growth *growth, const Node *node);
// Tries the call on the tensors there are; NULL, and no node, where it is refused.
Made *call(Growth *growth, const char *name, int flags, const Value *args, uint32_t n);
Value of(const Made *made);
bool any_dtype(Dtype dtype);
// Mostly what nobody has read yet, so that chains become long; `with`: mostly of a shape that goes
// with it (may be NULL).
const Made *any_of(Growth *growth, Wanted wanted, const Made *with);
Value list_of(const int64_t *items, uint32_t n);
// `first`: what the call's first argument is; NULL for that itself.
Value argument(Growth *growth, char code, const Made *first);

#define CALL(growth, name, flags, ...)                                                                       \
        call(growth, name, flags, (Value[]){ __VA_ARGS__ },                                                  \
             (uint32_t)(sizeof((Value[]){ __VA_ARGS__ }) / sizeof(Value)))
