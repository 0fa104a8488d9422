// SPDX-License-Identifier: Apache-2.0
// What holds for every row of routes.def and parameters.def.
#include <criterion/criterion.h>
#include <string.h>
#include "api/call.h"

static bool has_parameter(const Route *route, const char *name)
{
        for (const uint8_t *id = route->parameters; *id != PARAM_NONE; id++)
                if (strcmp(parameters[*id].name, name) == 0)
                        return true;
        return false;
}

static bool is_placeholder(const char *name, size_t n)
{
        for (int i = 1; i < PARAM_COUNT; i++)
                if (parameters[i].place == IN_PATH && strlen(parameters[i].name) == n &&
                    memcmp(parameters[i].name, name, n) == 0)
                        return true;
        return false;
}

Test(table, rows_of_routes_do_not_contradict_themselves)
{
        for (const Route *route = routes; route < routes + ROUTE_COUNT; route++) {
                cr_expect_eq(route->handler == routes[ROUTE_RUN].handler, route->kind == KIND_RUN, "%s",
                             route->id);
                bool has_graph = route_has(route, BRINGS_GRAPH) || route_has(route, NEEDS_GRAPH) ||
                                 route_has(route, NEEDS_SESSION);
                cr_expect(route->kind != KIND_RUN || has_graph, "%s", route->id);
                cr_expect(route->kind == KIND_RUN || !route_has(route, BRINGS_GRAPH), "%s", route->id);
                if ((route->needs & (NEEDS_VERSION | SHOWS_DAMAGE)) && !route_has(route, AS_SAGEMAKER))
                        cr_expect(strstr(route->path, "{name}") != NULL, "%s", route->id);
                cr_expect(route->kind != KIND_PROBE || !route_has(route, NEEDS_VERSION), "%s", route->id);
                cr_expect_eq(route->body->media != NULL, route->method[0] == 'P', "%s", route->id);
                cr_expect_not_null(route->body->limits[0], "%s", route->id);
                cr_expect_not_null(route->body->inflated[0], "%s", route->id);
                cr_expect_neq(route->statuses[0], 0, "%s", route->id);
                cr_expect(route->words[0] != '\0', "%s", route->id);
                cr_expect_not_null(route->reply[0].type, "%s", route->id);
        }
}

Test(table, names_of_a_route_s_parameters_differ_and_its_placeholders_are_known)
{
        for (const Route *route = routes; route < routes + ROUTE_COUNT; route++) {
                cr_assert_eq(route->parameters[ROUTE_MAX_PARAMETERS], PARAM_NONE, "%s", route->id);
                for (const uint8_t *id = route->parameters; *id != PARAM_NONE; id++) {
                        cr_expect_neq(parameters[*id].place, IN_PATH, "%s", route->id);
                        for (const uint8_t *other = route->parameters; other < id; other++)
                                cr_expect_str_neq(parameters[*id].name, parameters[*other].name, "%s",
                                                  route->id);
                }
                for (const char *at = strchr(route->path, '{'); at != NULL; at = strchr(at + 1, '{'))
                        cr_expect(is_placeholder(at + 1, strcspn(at + 1, "}")), "%s: %s", route->id, at);
        }
}

Test(table, every_parameter_is_of_a_path_or_of_some_route_and_defaults_are_allowed)
{
        for (int i = 1; i < PARAM_COUNT; i++) {
                const Parameter *row = &parameters[i];
                bool used = row->place == IN_PATH;
                for (const Route *route = routes; route < routes + ROUTE_COUNT; route++)
                        used |= memchr(route->parameters, i, strlen((const char *)route->parameters)) != NULL;
                cr_expect(used, "%s", row->name);
                if (row->type == TYPE_CHOICE && row->fallback != NO_DEFAULT)
                        cr_expect(row->fallback >= 0 && row->fallback < row->n_names, "%s", row->name);
                if (row->type == TYPE_INT && row->limit == NULL && row->fallback != NO_DEFAULT)
                        cr_expect(row->fallback >= row->min && row->fallback <= row->max, "%s", row->name);
                for (int k = 0; k < row->n_names; k++)
                        cr_expect_not_null(row->names[k], "%s", row->name);
        }
}

Test(table, route_next_goes_over_all_routes_once_with_those_of_a_path_together)
{
        bool seen[ROUTE_COUNT] = { false };
        const char *before = "";
        size_t n = 0;
        for (const Route *route = route_next(NULL); route != NULL; route = route_next(route)) {
                cr_assert(!seen[route - routes], "%s comes again", route->id);
                seen[route - routes] = true;
                cr_expect_eq(strcmp(route->path, before) != 0, route == route_first_with_path(route), "%s",
                             route->id);
                before = route->path;
                n++;
        }
        cr_assert_eq(n, ROUTE_COUNT);
}

static Status parse(const char *target, ApiCall *call)
{
        char allow[64];
        memset(call, 0, sizeof(*call));
        return route_parse("GET", target, call, allow);
}

Test(table, what_a_query_leaves_out_is_the_row_s_default)
{
        ApiCall call;
        int64_t limit = -1, slowest = -1;
        int form = -1;
        cr_assert_eq(parse("/v1/profiles", &call), STATUS_OK);
        cr_assert(has_parameter(call.route, "limit"));
        cr_assert_eq(param_int(&call, PARAM_LIMIT, &limit), STATUS_OK);
        cr_assert_eq(limit, 100);
        cr_assert_eq(param_int(&call, PARAM_SLOWEST, &slowest), STATUS_OK);
        cr_assert_eq(slowest, -1);
        api_call_deinit(&call);
        cr_assert_eq(parse("/v1/graphs/g/text", &call), STATUS_OK);
        cr_assert_eq(param_choice(&call, PARAM_TEXT_FORM, &form), STATUS_OK);
        cr_assert_eq(form, 0);
        api_call_deinit(&call);
}

Test(table, a_value_out_of_range_is_refused_with_what_is_allowed)
{
        ApiCall call;
        int64_t limit = 7;
        int form = 7;
        cr_assert_eq(parse("/v1/profiles?limit=1001", &call), STATUS_OK);
        cr_assert_eq(param_int(&call, PARAM_LIMIT, &limit), STATUS_VALUE);
        cr_assert_str_eq(failure_current()->message,
                         "query parameter \"limit\" is a number from 1 to 1000, not \"1001\"");
        cr_assert_eq(limit, 7);
        api_call_deinit(&call);
        cr_assert_eq(parse("/v1/graphs/g/text?form=png", &call), STATUS_OK);
        cr_assert_eq(param_choice(&call, PARAM_TEXT_FORM, &form), STATUS_VALUE);
        cr_assert_str_eq(failure_current()->message,
                         "\"form\" is graph, code, readable, tabular, dot or json, not \"png\"");
        cr_assert_eq(form, 7);
        api_call_deinit(&call);
        cr_assert_eq(param_choose(PARAM_MODE, "fast", &form), STATUS_VALUE);
        cr_assert_str_eq(failure_current()->message,
                         "\"mode\" is \"auto\", \"compiled\" or \"eager\", not \"fast\"");
}
