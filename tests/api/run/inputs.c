// SPDX-License-Identifier: Apache-2.0
// Inputs of bodies for graphs whose only argument is a dict of very many tensors.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include "api/formats/npz.h"
#include "api/readers/fx_json.h"
#include "api/run/run.h"
#include "core/base/clock.h"
#include "core/targets/targets.h"

// Keys of more than 300 bytes that differ at their ends.
enum { MANY = 20000, KEY = 308 };

static Graph *graph;

static void key_of(int i, char out[KEY])
{
        memset(out, 'k', KEY);
        snprintf(out + 302, KEY - 302, "%05d", i);
}

// Of all keys, from the last one to the first.
static void add_dict(const char *value, Text *out)
{
        char key[KEY];
        for (int i = MANY; i-- > 0;) {
                key_of(i, key);
                text_addf(out, "\"%s\": %s%s", key, value, i > 0 ? ", " : "");
        }
}

static void add_repeated(const char *text, Text *out)
{
        for (int i = 0; i < MANY; i++)
                text_addf(out, "%s%s", i > 0 ? ", " : "", text);
}

static void init(void)
{
        Text text = { 0 };
        cr_assert_eq(ops_init(), STATUS_OK);
        cr_assert_eq(targets_init(), STATUS_OK);
        text_add(&text, "{\"format\": \"fx/1\", \"nodes\": [");
        for (int i = 0; i < MANY; i++)
                text_addf(&text, "{\"op\": \"placeholder\", \"name\": \"x_%d\", \"target\": \"x_%d\"}, ", i,
                          i);
        text_add(&text, "{\"op\": \"output\", \"args\": [{\"$tuple\": [\"%x_7\"]}]}], \"signature\": "
                        "{\"argument_names\": [\"d\"], \"outputs\": [{\"kind\": \"user\"}], "
                        "\"out_tree\": {\"tuple\": [\"*\"]}, \"inputs\": [");
        add_repeated("{\"kind\": \"user\", \"type\": \"Tensor\"}", &text);
        text_add(&text, "], \"in_tree\": {\"tuple\": [{\"tuple\": [{\"dict\": {");
        add_dict("\"*\"", &text);
        text_add(&text, "}}]}, {\"dict\": {}}]}}}");
        cr_assert_eq(text_status(&text), STATUS_OK);
        cr_assert_eq(fx_json_read(text.data, text.n, NULL, &graph), STATUS_OK, "%s",
                     failure_current()->message);
        text_deinit(&text);
}

static void deinit(void)
{
        graph = graph_unref(graph);
}

TestSuite(inputs, .init = init, .fini = deinit, .timeout = 120);

static Storage *json_body(void)
{
        Text text = { 0 };
        Storage *body;
        text_add(&text, "{\"inputs\": {\"d\": {");
        add_dict("[1.5]", &text);
        text_add(&text, "}}}");
        cr_assert_eq(text_status(&text), STATUS_OK);
        size_t n = text.n;
        cr_assert_eq(storage_adopt(text_take(&text), n, true, NULL, NULL, &body), STATUS_OK);
        return body;
}

static Status add_bytes(void *context, const uint8_t *data, size_t n)
{
        text_add_n(context, (const char *)data, n);
        return STATUS_OK;
}

static Storage *npz_body(void)
{
        static char names[MANY][KEY + 2];
        static NamedTensor named[MANY];
        ApiReply reply = { .status = 0 };
        Tensor *tensor;
        TensorMeta meta;
        Text text = { 0 };
        Storage *body;
        meta_init(&meta, DTYPE_F32, 1, (const int64_t[]){ 1 });
        cr_assert_eq(tensor_new(&meta, NULL, &tensor), STATUS_OK);
        *(float *)tensor_data(tensor) = 1.5F;
        for (int i = 0; i < MANY; i++) {
                memcpy(names[i], "d.", 2);
                key_of(MANY - 1 - i, names[i] + 2);
                named[i] = (NamedTensor){ .name = names[i], .tensor = tensor };
        }
        cr_assert_eq(npz_write(named, MANY, &reply), STATUS_OK, "%s", failure_current()->message);
        cr_assert_eq(api_reply_each(&reply, add_bytes, &text), STATUS_OK);
        size_t n = text.n;
        cr_assert_eq(storage_adopt(text_take(&text), n, true, NULL, NULL, &body), STATUS_OK);
        tensor_unref(tensor);
        api_reply_deinit(&reply);
        return body;
}

// The number of inputs that were given.
static Status decode(Storage *take_body, int64_t deadline_ns, uint32_t *out_n)
{
        ApiCall call = { .route = &routes[ROUTE_RUN], .body = take_body };
        RunCall run;
        run_call_init(&run);
        run.task.graph = graph_ref(graph);
        run.task.ctx.deadline_ns = deadline_ns;
        Status status = run_decode(&call, &run);
        *out_n = 0;
        for (uint32_t i = 0; i < run.task.n_inputs; i++)
                *out_n += run.task.inputs[i].kind == VALUE_TENSOR;
        run_call_deinit(&run);
        api_call_deinit(&call);
        return status;
}

Test(inputs, a_dict_of_very_many_long_keys_is_read_from_json)
{
        uint32_t n;
        cr_assert_eq(decode(json_body(), 0, &n), STATUS_OK, "%s", failure_current()->message);
        cr_assert_eq(n, MANY);
}

Test(inputs, a_dict_of_very_many_long_keys_is_read_from_an_archive)
{
        uint32_t n;
        cr_assert_eq(decode(npz_body(), 0, &n), STATUS_OK, "%s", failure_current()->message);
        cr_assert_eq(n, MANY);
}

Test(inputs, reading_stops_at_the_deadline)
{
        uint32_t n;
        cr_assert_eq(decode(json_body(), clock_ns() - 1, &n), STATUS_DEADLINE);
        cr_assert_eq(n, 0);
        cr_assert_eq(decode(npz_body(), clock_ns() - 1, &n), STATUS_DEADLINE);
        cr_assert_eq(n, 0);
}

// ---- names of very many dots ----
static void add_dots(const char *word, int n, Text *out)
{
        for (int i = 0; i < n; i++)
                text_addf(out, "%s.", word);
}

// {"k.k": {"q.q. ... end": x_0}, "a.a. ... end": x_1}
static void takes_dotted(int n_dots)
{
        Text text = { 0 };
        text_add(&text,
                 "{\"format\": \"fx/1\", \"nodes\": ["
                 "{\"op\": \"placeholder\", \"name\": \"x_0\", \"target\": \"x_0\"}, "
                 "{\"op\": \"placeholder\", \"name\": \"x_1\", \"target\": \"x_1\"}, "
                 "{\"op\": \"output\", \"args\": [{\"$tuple\": [\"%x_0\"]}]}], \"signature\": "
                 "{\"argument_names\": [\"d\"], \"outputs\": [{\"kind\": \"user\"}], "
                 "\"out_tree\": {\"tuple\": [\"*\"]}, \"inputs\": ["
                 "{\"kind\": \"user\", \"type\": \"Tensor\"}, {\"kind\": \"user\", \"type\": "
                 "\"Tensor\"}], \"in_tree\": {\"tuple\": [{\"tuple\": [{\"dict\": {\"k.k\": {\"dict\": "
                 "{\"");
        add_dots("q", 40, &text);
        text_add(&text, "end\": \"*\"}}, \"");
        add_dots("a", n_dots, &text);
        text_add(&text, "end\": \"*\"}}]}, {\"dict\": {}}]}}}");
        cr_assert_eq(text_status(&text), STATUS_OK);
        graph = graph_unref(graph);
        cr_assert_eq(fx_json_read(text.data, text.n, NULL, &graph), STATUS_OK, "%s",
                     failure_current()->message);
        text_deinit(&text);
}

// A safetensors file of one number, called "d.", the word so many times, and `end`.
static Storage *dotted_body(const char *first, const char *word, int n_dots, const char *end)
{
        Text text = { 0 }, file = { 0 };
        Storage *body;
        text_addf(&text, "{\"d.%s", first);
        add_dots(word, n_dots, &text);
        text_addf(&text, "%s\": {\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [0, 4]}}", end);
        uint64_t n_header = text.n;
        text_add_n(&file, (const char *)&n_header, sizeof(n_header));
        text_add_n(&file, text.data, text.n);
        text_add_n(&file, "\0\0\0\0", 4);
        cr_assert_eq(text_status(&file), STATUS_OK);
        size_t n = file.n;
        cr_assert_eq(storage_adopt(text_take(&file), n, true, NULL, NULL, &body), STATUS_OK);
        text_deinit(&text);
        return body;
}

Test(inputs, a_key_is_found_in_front_of_very_many_dots)
{
        uint32_t n;
        takes_dotted(100);
        cr_assert_eq(decode(dotted_body("k.k.", "q", 40, "end"), 0, &n), STATUS_OK, "%s",
                     failure_current()->message);
        cr_assert_eq(n, 1);
        cr_assert_eq(decode(dotted_body("", "a", 100, "end"), 0, &n), STATUS_OK, "%s",
                     failure_current()->message);
        cr_assert_eq(n, 1);
}

// Looking for a key at each of the dots would take minutes.
Test(inputs, a_name_of_very_many_dots_that_is_nowhere_is_refused, .timeout = 60)
{
        enum { DOTS = 2000000 };
        uint32_t n;
        takes_dotted(DOTS);
        cr_assert_eq(decode(dotted_body("", "a", DOTS, "END"), 0, &n), STATUS_INPUT);
}
