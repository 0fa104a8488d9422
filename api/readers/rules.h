// SPDX-License-Identifier: Apache-2.0
// Rules as JSON, read in two goes. Every request is read into a Recipe: one pass, which takes out
// the tensors and the names of other graphs. Its text is the key of the derived graph. Only when
// that graph is not there yet, the recipe's text is read into rules.
#pragma once
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/edit/rule.h"
#include "core/engine/engine.h"

typedef struct Recipe {
        Text leaf; // the value of "leaf" in canonical text; empty: calls of child graphs stay
        // members of an object without its braces, without white space. In place of a tensor stand
        // its dtype and shape
        Text text;
        Value *hidden; // tensors in the order in which they stand in the text; counted
        uint32_t n_hidden, hidden_capacity;
        char **called; // names of other graphs, in this order too; owned
        uint32_t n_called, called_capacity;
        uint32_t n_rules;
        uint32_t n_given;   // of `hidden`, the first ones: values of "initial_env"
        Engine *engine;     // whose kept values may be named; NULL: none
        const char *caller; // borrowed: who kept them; set with `engine`
} Recipe;
void recipe_deinit(Recipe *recipe);
// Reads a tensor, or the value that an earlier run kept: {"run": "<id>", "node": "relu"}.
Status recipe_read_tensor(JsonReader *reader, const Recipe *recipe, Budget *budget, Tensor **out_tensor);
// Puts in front of the recipe what comes before the rules: "leaf", and the partial run: values of
// nodes (a recipe's text and tensors, without the key; may be empty) and the last node (or NULL).
Status recipe_begin_with(Recipe *recipe, Recipe *given, const char *until);
// The value of one more node for `given`. Takes the tensor, also on failure.
Status recipe_give(Recipe *given, const char *node, Tensor *take_tensor);
// Reads the value of "leaf".
Status recipe_read_leaf(JsonReader *reader, Recipe *recipe);
// Reads the value of "overrides". Tensors are charged to `budget`.
Status recipe_read_overrides(JsonReader *reader, Budget *budget, Recipe *recipe);

typedef struct RuleList {
        Arena arena;
        EditRule *items;
        uint32_t n;
} RuleList;
void rule_list_deinit(RuleList *list);
// `called` holds the graphs with the recipe's names, in their order. The list borrows them and the
// nodes of `graph`, which the rules name.
Status rules_read(const Recipe *recipe, const Graph *graph, const Graph *const *called, RuleList *out_list);
// The graph that the recipe makes of `base`, finished and resolved. The recipe's tensors are hidden
// inputs behind the base's, in their order; or, `as_state`, state of the new graph. Ends when
// `poll`, which may be NULL, says so.
Status recipe_derive(const Recipe *recipe, const Graph *base, const Graph *const *called, bool as_state,
                     const RunContext *poll, Graph **out_graph);
