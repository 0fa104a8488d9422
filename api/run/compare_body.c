// SPDX-License-Identifier: Apache-2.0
// compare_body.c: the body of POST /v1/compare. Inputs and rules stay JSON text: they become run
// bodies, which the codec of runs reads.
#include <math.h>
#include <string.h>
#include "api/run/compare.h"
#include "api/run/run_private.h"
#include "core/base/limits.h"

#define SIDE_WANTED                                                                                          \
        "a side is {\"graph\": \"m\"}, with \"version\", \"mode\", \"overrides\" and \"steps\" if wanted"

static Status read_flag(JsonReader *reader, const char *key, bool *out)
{
        if (json_peek(reader) != JSON_TRUE && json_peek(reader) != JSON_FALSE)
                return fail(STATUS_VALUE, "\"%s\" is true or false", key);
        return json_read_bool(reader, out);
}

static Status read_name(JsonReader *reader, const char *key, const char **out)
{
        if (json_peek(reader) != JSON_STRING)
                return fail(STATUS_VALUE, "\"%s\" is a text", key);
        return json_read_string(reader, out, NULL);
}

static Status read_whole(JsonReader *reader, const char *key, int64_t least, int64_t *out)
{
        NumberKind kind = NUMBER_NONE;
        double number;
        if (json_peek(reader) == JSON_NUMBER)
                TRY(json_read_number(reader, &kind, out, &number));
        if (kind != NUMBER_INT || *out < least)
                return fail(STATUS_VALUE, "\"%s\" is a whole number from %lld on", key, (long long)least);
        return STATUS_OK;
}

// ---- a side ----
static Status read_version(JsonReader *reader, CompareWish *wish)
{
        if (json_peek(reader) != JSON_STRING)
                return read_whole(reader, "version", 1, &wish->version);
        TRY(json_read_string(reader, &wish->alias, NULL));
        return route_is_alias(wish->alias) && strlen(wish->alias) <= STORE_NAME_MAX
                       ? STATUS_OK
                       : fail(STATUS_VALUE, "\"version\" is a number from 1 on, or an alias");
}

static Status read_mode(JsonReader *reader, CompareWish *wish)
{
        const char *name;
        TRY(read_name(reader, "mode", &name));
        if (strcmp(name, "eager") != 0 && strcmp(name, "compiled") != 0)
                return fail(STATUS_VALUE, "\"mode\" of a side is eager or compiled, not \"%.64s\"", name);
        wish->mode = name[0] == 'e' ? RUN_MODE_EAGER : RUN_MODE_COMPILED;
        return STATUS_OK;
}

static Status read_precision(JsonReader *reader, CompareWish *wish)
{
        const char *name;
        int choice;
        TRY(read_name(reader, "precision", &name));
        TRY(param_choose(PARAM_PRECISION, name, &choice));
        wish->precision = (Precision)choice;
        return STATUS_OK;
}

static Status read_wish_member(JsonReader *reader, const char *key, CompareWish *wish)
{
        if (strcmp(key, "graph") == 0)
                return read_name(reader, key, &wish->graph);
        if (strcmp(key, "version") == 0)
                return read_version(reader, wish);
        if (strcmp(key, "mode") == 0)
                return read_mode(reader, wish);
        if (strcmp(key, "precision") == 0)
                return read_precision(reader, wish);
        if (strcmp(key, "tolerance") == 0)
                return run_read_nonnegative(reader, key, &wish->tolerance);
        if (strcmp(key, "overrides") == 0)
                return json_read_raw(reader, &wish->overrides, &wish->n_overrides);
        if (strcmp(key, "leaf") == 0)
                return json_read_raw(reader, &wish->leaf, &wish->n_leaf);
        if (strcmp(key, "steps") == 0)
                return json_read_raw(reader, &wish->steps, &wish->n_steps);
        if (strcmp(key, "samples") == 0)
                return read_whole(reader, key, 0, &wish->sample);
        return fail(STATUS_UNKNOWN_MEMBER,
                    "unknown member \"%.64s\"; a side has: graph, version, mode, precision, tolerance, "
                    "steps, overrides, leaf, or samples alone",
                    key);
}

static Status check_wish(const CompareWish *wish, bool is_a)
{
        bool more = wish->version != 0 || wish->alias != NULL || wish->mode != RUN_MODE_AUTO ||
                    wish->precision != PRECISION_F32 || wish->tolerance >= 0 || wish->overrides != NULL ||
                    wish->leaf != NULL || wish->steps != NULL;
        if (wish->graph == NULL && wish->sample < 0)
                return fail(STATUS_VALUE, SIDE_WANTED);
        if (wish->sample >= 0 && (wish->graph != NULL || more))
                return fail(STATUS_VALUE, "\"samples\" stands alone in its side: they are those of \"a\"");
        if (wish->sample >= 0 && is_a)
                return fail(STATUS_VALUE, "\"a\" is a graph; \"samples\" may be \"b\"");
        if (wish->tolerance >= 0 && (wish->overrides != NULL || wish->leaf != NULL || wish->steps != NULL))
                return fail(STATUS_VALUE, RUN_TOLERANCE_OF_WHOLE);
        return STATUS_OK;
}

static Status read_wish(JsonReader *reader, bool is_a, CompareWish *wish)
{
        const char *key;
        bool more;
        *wish = (CompareWish){ .sample = -1, .tolerance = -1, .mode = RUN_MODE_AUTO };
        if (json_peek(reader) != JSON_OBJECT)
                return fail(STATUS_VALUE, SIDE_WANTED);
        TRY(json_enter_object(reader));
        for (;;) {
                TRY(json_next_key(reader, &key, &more));
                if (!more)
                        break;
                TRY(run_check_value(reader));
                TRY(read_wish_member(reader, key, wish));
        }
        TRY(check_wish(wish, is_a));
        if (wish->mode == RUN_MODE_AUTO)
                wish->mode = wish->precision == PRECISION_F32 && wish->tolerance <= 0 ? RUN_MODE_EAGER
                                                                                      : RUN_MODE_COMPILED;
        return wish->mode == RUN_MODE_EAGER && (wish->precision != PRECISION_F32 || wish->tolerance > 0)
                       ? fail(STATUS_VALUE, RUN_EAGER_IS_F32)
                       : STATUS_OK;
}

// ---- the body ----
static Status read_inputs(JsonReader *reader, CompareBody *body)
{
        const char *text;
        if (json_peek(reader) != JSON_STRING) {
                body->source = COMPARE_GIVEN;
                return json_read_raw(reader, &body->inputs, &body->n_inputs);
        }
        TRY(json_read_string(reader, &text, NULL));
        if (strcmp(text, "example") != 0 && strcmp(text, "samples") != 0)
                return fail(STATUS_VALUE,
                            "\"inputs\" has the values of a run, or is \"example\" or \"samples\", not "
                            "\"%.64s\"",
                            text);
        body->source = text[0] == 'e' ? COMPARE_EXAMPLE : COMPARE_SAMPLES;
        return STATUS_OK;
}

static Status read_form(JsonReader *reader, CompareBody *body)
{
        const char *name;
        TRY(read_name(reader, "form", &name));
        if (strcmp(name, "json") != 0 && strcmp(name, "text") != 0)
                return fail(STATUS_VALUE, "\"form\" is json or text, not \"%.64s\"", name);
        body->as_text = name[0] == 't';
        return STATUS_OK;
}

static Status read_nodes(JsonReader *reader, CompareBody *body)
{
        TRY(read_flag(reader, "nodes", &body->nodes));
        body->no_nodes = !body->nodes;
        return STATUS_OK;
}

static Status read_deadline(JsonReader *reader, CompareBody *body)
{
        TRY(read_whole(reader, "deadline_ms", 1, &body->deadline_ms));
        return body->deadline_ms <= limits.run_deadline_ms
                       ? STATUS_OK
                       : fail(STATUS_VALUE, "\"deadline_ms\" is a whole number from 1 to %lld",
                              (long long)limits.run_deadline_ms);
}

static Status read_times(JsonReader *reader, CompareBody *body)
{
        TRY(read_whole(reader, "times", 1, &body->n_times));
        return body->n_times <= COMPARE_TIMES_MAX
                       ? STATUS_OK
                       : fail(STATUS_VALUE, "\"times\" is a whole number from 1 to %d", COMPARE_TIMES_MAX);
}

static Status read_member(JsonReader *reader, const char *key, CompareBody *body)
{
        if (strcmp(key, "a") == 0 || strcmp(key, "b") == 0) {
                body->has_side[key[0] - 'a'] = true;
                return read_wish(reader, key[0] == 'a', &body->sides[key[0] - 'a']);
        }
        if (strcmp(key, "inputs") == 0)
                return read_inputs(reader, body);
        if (strcmp(key, "nodes") == 0)
                return read_nodes(reader, body);
        if (strcmp(key, "rtol") == 0)
                return run_read_nonnegative(reader, key, &body->rule.rtol);
        if (strcmp(key, "atol") == 0)
                return run_read_nonnegative(reader, key, &body->rule.atol);
        if (strcmp(key, "equal_nan") == 0)
                return read_flag(reader, key, &body->rule.equal_nan);
        if (strcmp(key, "form") == 0)
                return read_form(reader, body);
        if (strcmp(key, "deadline_ms") == 0)
                return read_deadline(reader, body);
        if (strcmp(key, "seed") == 0)
                return read_whole(reader, key, 0, &body->seed);
        if (strcmp(key, "times") == 0)
                return read_times(reader, body);
        return fail(STATUS_UNKNOWN_MEMBER,
                    "unknown member \"%.64s\"; it knows a, b, inputs, nodes, rtol, atol, equal_nan, form, "
                    "deadline_ms, seed, times",
                    key);
}

static Status check_body(CompareBody *body)
{
        bool rtol = !isnan(body->rule.rtol), atol = !isnan(body->rule.atol);
        if (!body->has_side[0] || !body->has_side[1])
                return fail(STATUS_VALUE, "the body needs \"a\" and \"b\": " SIDE_WANTED);
        if (rtol != atol)
                return fail(STATUS_VALUE,
                            "Both 'rtol' and 'atol' must be either specified or omitted, but got no %s.",
                            rtol ? "atol" : "rtol");
        body->rule.given = rtol;
        if (body->sides[1].sample >= 0 && body->n_times > 0)
                return fail(STATUS_VALUE, "a sample as \"b\" does not run; leave \"times\" out");
        if (body->sides[1].sample >= 0 && body->source == COMPARE_GIVEN)
                return fail(STATUS_VALUE, "a sample as \"b\" has its own inputs; leave \"inputs\" out");
        if (body->sides[1].sample >= 0)
                body->source = COMPARE_SAMPLES;
        return STATUS_OK;
}

Status compare_read_body(JsonReader *reader, CompareBody *out_body)
{
        const char *key;
        bool more;
        *out_body = (CompareBody){ .source = COMPARE_EXAMPLE,
                                   .rule = { .rtol = NAN, .atol = NAN },
                                   .deadline_ms = limits.run_deadline_ms,
                                   .seed = -1 };
        TRY(run_check_value(reader));
        if (json_peek(reader) != JSON_OBJECT)
                return fail(STATUS_MALFORMED, "the body is an object: {\"a\": {\"graph\": \"m\"}, "
                                              "\"b\": ...}");
        TRY(json_enter_object(reader));
        for (;;) {
                TRY(json_next_key(reader, &key, &more));
                if (!more)
                        break;
                TRY(run_check_value(reader));
                TRY(failure_at_argument(read_member(reader, key, out_body), key));
        }
        TRY(json_finish(reader));
        return check_body(out_body);
}
