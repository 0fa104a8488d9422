// SPDX-License-Identifier: Apache-2.0
// rules.c: rules as JSON to derived graphs.
#include <criterion/criterion.h>
#include <string.h>
#include "api/readers/fx_json.h"
#include "api/readers/rules.h"
#include "core/graph/print.h"
#include "core/targets/targets.h"

static const char chain[] =
        "{\"format\": \"fx/1\", \"nodes\": ["
        "{\"op\": \"placeholder\", \"name\": \"x\", \"target\": \"x\"},"
        "{\"op\": \"call_function\", \"name\": \"neg\", \"target\": \"torch.neg\", \"args\": [\"%x\"]},"
        "{\"op\": \"call_method\", \"name\": \"sigmoid\", \"target\": \"sigmoid\", \"args\": [\"%neg\"]},"
        "{\"op\": \"output\", \"name\": \"output\", \"target\": \"output\", \"args\": [\"%sigmoid\"]}]}";

typedef struct Derived {
        Graph *base, *graph;
        Recipe recipe;
} Derived;

static void derived_deinit(Derived *derived)
{
        graph_unref(derived->base);
        graph_unref(derived->graph);
        recipe_deinit(&derived->recipe);
}

static Status derive(const char *rules, bool as_state, Derived *out)
{
        Arena arena;
        JsonReader *json;
        arena_init(&arena, 0);
        *out = (Derived){ .graph = NULL };
        cr_assert_eq(targets_init(), STATUS_OK);
        cr_assert_eq(fx_json_read(chain, strlen(chain), NULL, &out->base), STATUS_OK);
        cr_assert_eq(json_open(rules, strlen(rules), 32, 0, &arena, &json), STATUS_OK);
        Status status = recipe_read_overrides(json, NULL, &out->recipe);
        json_close(json);
        arena_deinit(&arena);
        return status != STATUS_OK
                       ? status
                       : recipe_derive(&out->recipe, out->base, NULL, as_state, NULL, &out->graph);
}

static void prints(const char *rules, bool as_state, const char *want)
{
        _cleanup_(derived_deinit) Derived derived;
        Text text = { 0 };
        cr_assert_eq(derive(rules, as_state, &derived), STATUS_OK, "%s", failure_current()->message);
        for (uint32_t i = 0; i < derived.graph->n_nodes; i++) {
                const Node *node = derived.graph->nodes[i];
                text_addf(&text, "%s=%s", node->name, node->target);
                value_print_repr(node->args, &text);
                text_addf(&text, "<%s ", node_origin(node));
        }
        cr_expect_str_eq(text.data, want);
        text_deinit(&text);
}

#define CONSTANT "[{\"match\": {\"name\": \"neg\"}, \"constant\": [1.5, 2]}]"

Test(edit_rules, a_constant_is_a_hidden_input_or_state)
{
        prints(CONSTANT, false,
               "x=x()<x value_of_rule=value_of_rule()<value_of_rule sigmoid=sigmoid(value_of_rule,)<sigmoid "
               "output=output(sigmoid,)<output ");
        prints(CONSTANT, true,
               "x=x()<x value_of_rule=value_of_rule()<value_of_rule sigmoid=sigmoid(value_of_rule,)<sigmoid "
               "output=output(sigmoid,)<output ");
        _cleanup_(derived_deinit) Derived derived;
        cr_assert_eq(derive(CONSTANT, false, &derived), STATUS_OK);
        const Signature *signature = &derived.graph->signature;
        cr_expect_eq(signature->n_inputs, 2);
        cr_expect_eq(signature->n_user_inputs, 1);
        cr_expect_eq(signature->n_arguments, 1);
        cr_expect(!signature->inputs[0].hidden && signature->inputs[1].hidden);
        cr_expect_eq(signature->inputs[1].spec.size[0].value, 2);
        cr_expect_eq(derived.graph->n_state, 0);
        derived_deinit(&derived);
        cr_assert_eq(derive(CONSTANT, true, &derived), STATUS_OK);
        cr_expect_eq(derived.graph->signature.n_inputs, 1);
        cr_assert_eq(derived.graph->n_state, 1);
        cr_expect_eq(tensor_data(derived.graph->state[0].tensor),
                     tensor_data(derived.recipe.hidden[0].tensor));
}

Test(edit_rules, a_recipe_is_the_same_whatever_its_white_space_and_its_tensors_values)
{
        _cleanup_(derived_deinit) Derived one, other;
        cr_assert_eq(derive(CONSTANT, false, &one), STATUS_OK);
        cr_assert_eq(derive("[ {\"match\":{ \"name\" :\"neg\"},\n\"constant\":{\"shape\": [2], \"data\": "
                            "[0.5, 1e9]} }]",
                            false, &other),
                     STATUS_OK);
        cr_expect_str_eq(one.recipe.text.data, other.recipe.text.data);
        cr_expect_str_eq(one.recipe.text.data,
                         "\"overrides\":[{\"match\":{\"name\":\"neg\"},\"constant\":{\"dtype\":\"float32\","
                         "\"shape\":[2]}}]");
}

Test(edit_rules, rules_match_authored_nodes_and_act_in_order)
{
        prints("[{\"match\": {\"target\": \"torch.neg\"}, \"retarget\": \"torch.sigmoid\"},"
               "{\"match\": {\"target\": \"torch.sigmoid\"}, \"passthrough\": 0}]",
               false, "x=x()<x neg=torch.sigmoid(x,)<neg output=output(neg,)<output ");
        _cleanup_(derived_deinit) Derived derived;
        cr_assert_eq(derive("[{\"match\": {\"name\": \"neg\"}, \"passthrough\": 0},"
                            "{\"match\": {\"name\": \"neg\"}, \"retarget\": \"torch.abs\"}]",
                            false, &derived),
                     STATUS_VALUE);
        cr_expect_str_eq(failure_current()->argument, "overrides[1]");
        cr_expect_str_eq(failure_current()->node, "neg");
}
