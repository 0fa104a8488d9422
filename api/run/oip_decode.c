// SPDX-License-Identifier: Apache-2.0
// Infer requests of the Open Inference Protocol: JSON, then the bytes of its binary inputs, back to
// back in their order. The header Inference-Header-Content-Length says where the JSON ends,
// whatever the Content-Type says; without it the whole body is JSON, and with 0 the body is the
// single input.
#include <string.h>
#include "api/formats/borrow.h"
#include "api/formats/tensor_json.h"
#include "api/run/oip.h"
#include "api/run/run_private.h"
#include "core/base/limits.h"
#include "core/engine/batch.h"

#define OIP_INPUTS_WANTED "a request needs \"inputs\": a list, which may be empty"

OipRun *oip_run_free(OipRun *oip)
{
        if (oip != NULL) {
                arena_deinit(&oip->arena);
                free(oip->wanted);
                free(oip);
        }
        return NULL;
}

// ---- values of parameters; the reader stands before one ----
static Status read_flag(JsonReader *reader, const char *name, bool *out)
{
        if (json_peek(reader) != JSON_TRUE && json_peek(reader) != JSON_FALSE)
                return fail(STATUS_VALUE, "parameter \"%s\" is true or false", name);
        return json_read_bool(reader, out);
}

static Status read_count(JsonReader *reader, const char *name, int64_t *out)
{
        NumberKind kind = NUMBER_NONE;
        double number;
        if (json_peek(reader) == JSON_NUMBER)
                TRY(json_read_number(reader, &kind, out, &number));
        if (kind != NUMBER_INT || *out < 0)
                return fail(STATUS_VALUE, "parameter \"%s\" is a whole number from 0 on", name);
        return STATUS_OK;
}

typedef Status (*ReadParameter)(void *context, JsonReader *reader, const char *name, bool *out_known);

// An object of parameters; those that `read` does not know are skipped, and so is null.
static Status read_parameters(JsonReader *reader, ReadParameter read, void *context)
{
        bool more, known = false;
        if (json_peek(reader) != JSON_OBJECT)
                return fail(STATUS_VALUE, "\"parameters\" is an object");
        TRY(json_enter_object(reader));
        for (;;) {
                const char *name;
                TRY(json_next_key(reader, &name, &more));
                if (!more)
                        return STATUS_OK;
                TRY(run_check_value(reader));
                if (json_peek(reader) == JSON_NULL) {
                        TRY(json_read_null(reader));
                        continue;
                }
                TRY(failure_at_argument(read(context, reader, name, &known), name));
                if (!known)
                        TRY(json_skip(reader));
        }
}

static Status keep_text(JsonReader *reader, OipRun *oip, const char *member, const char **out)
{
        const char *text;
        size_t n;
        if (json_peek(reader) != JSON_STRING)
                return fail(STATUS_VALUE, "\"%s\" is a text", member);
        TRY(json_read_string(reader, &text, &n));
        *out = arena_text(&oip->arena, text, n);
        return *out == NULL ? fail_memory() : STATUS_OK;
}

// ---- inputs ----
typedef struct OipInput {
        RunCall *run;
        const char *name;
        int64_t n_bytes; // of a binary input; -1: it is in the JSON
} OipInput;

static Status read_input_parameter(void *context, JsonReader *reader, const char *name, bool *out_known)
{
        OipInput *input = context;
        *out_known = strcmp(name, "binary_data_size") == 0;
        return *out_known ? read_count(reader, name, &input->n_bytes) : STATUS_OK;
}

static Status read_input_member(void *context, JsonReader *reader, const char *key, bool *out_known)
{
        OipInput *input = context;
        *out_known = true;
        if (strcmp(key, "name") == 0)
                return keep_text(reader, input->run->oip, key, &input->name);
        if (strcmp(key, "parameters") == 0)
                return read_parameters(reader, read_input_parameter, input);
        *out_known = false;
        return STATUS_OK;
}

static Status fail_bytes(size_t n, const TensorMeta *meta)
{
        char shape[256];
        return fail(STATUS_SHAPE, "%zu bytes do not fit shape %s of %s, which needs %lld", n,
                    shape_text(meta->rank, meta->size, shape, sizeof(shape)), dtype_info[meta->dtype].oip,
                    (long long)meta_numel(&meta[0]) * dtype_info[meta->dtype].bytes);
}

static Status tensor_of_bytes(RunCall *run, ByteSpan bytes, const TensorJsonDescription *said, Tensor **out)
{
        TensorMeta meta;
        int64_t numel;
        size_t needed;
        if (said->dtype == DTYPE_NONE || said->rank < 0)
                return fail(STATUS_INPUT, "an input needs \"datatype\" and \"shape\"");
        TRY(shape_numel(said->rank, said->shape, &numel));
        meta_init(&meta, said->dtype, said->rank, said->shape);
        if (!mul_size((size_t)numel, dtype_info[said->dtype].bytes, &needed) || needed != bytes.n)
                return fail_bytes(bytes.n, &meta);
        return borrow_tensor(run->call->body, bytes, &meta, &run->task.budget, out);
}

// The next bytes behind the JSON.
static Status take_blob(RunCall *run, int64_t n, ByteSpan *out)
{
        OipRun *oip = run->oip;
        ByteSpan body = body_span(run->call->body);
        if (!oip->has_header && n > 0)
                return fail(STATUS_INPUT, "binary data needs the header Inference-Header-Content-Length: the "
                                          "number of bytes of JSON in front of it");
        if ((uint64_t)n > body.n - MIN(oip->blob_at, body.n))
                return fail(STATUS_INPUT,
                            "\"binary_data_size\" is %lld, but only %zu bytes of the body are left",
                            (long long)n, body.n - MIN(oip->blob_at, body.n));
        *out = (ByteSpan){ body.data + oip->blob_at, (size_t)n };
        oip->blob_at += oip->has_header ? (size_t)n : 0;
        return STATUS_OK;
}

// Everything that was said is read: its bytes, unless its data were in the JSON.
static Status settle_input(const OipInput *input, const TensorJsonDescription *said, Tensor **tensor)
{
        ByteSpan bytes;
        if (input->name == NULL)
                return fail(STATUS_INPUT, "an input needs \"name\"");
        if (said->dtype == DTYPE_NONE || said->rank < 0)
                return fail(STATUS_INPUT, "an input needs \"datatype\" and \"shape\"");
        if (*tensor != NULL && input->n_bytes > 0)
                return fail(STATUS_INPUT, "an input has either \"data\" or \"binary_data_size\", not both");
        if (*tensor != NULL)
                return STATUS_OK;
        if (input->n_bytes < 0)
                return fail(STATUS_INPUT,
                            "an input needs \"data\", or \"binary_data_size\" in its parameters");
        TRY(take_blob(input->run, input->n_bytes, &bytes));
        return tensor_of_bytes(input->run, bytes, said, tensor);
}

static Status read_input(JsonReader *reader, RunCall *run)
{
        OipInput input = { .run = run, .n_bytes = -1 };
        TensorJsonMore more = { read_input_member, &input };
        TensorJsonDescription said;
        _cleanup_(tensor_unrefp) Tensor *tensor = NULL;
        if (json_peek(reader) != JSON_OBJECT)
                return fail(STATUS_INPUT,
                            "an input is an object: {\"name\", \"shape\", \"datatype\", \"data\"}");
        Status status = tensor_json_read_oip(reader, &run->task.budget, &more, &tensor, &said);
        if (status == STATUS_OK)
                status = settle_input(&input, &said, &tensor);
        if (status != STATUS_OK)
                return input.name == NULL ? status : run_name_input(status, input.name);
        return run_take_tensor(run, input.name, take_ptr(tensor));
}

// ---- outputs ----
static Status read_output_parameter(void *context, JsonReader *reader, const char *name, bool *out_known)
{
        OipWanted *wanted = context;
        *out_known = true;
        if (strcmp(name, "classification") == 0)
                return read_count(reader, name, &wanted->classes);
        *out_known = strcmp(name, "binary_data") == 0;
        wanted->says_binary |= *out_known;
        return *out_known ? read_flag(reader, name, &wanted->binary) : STATUS_OK;
}

static Status add_wanted(OipRun *oip, const OipWanted *wanted)
{
        if (wanted->name == NULL)
                return fail(STATUS_INPUT, "an output needs \"name\"");
        for (uint32_t i = 0; i < oip->n_wanted; i++)
                if (strcmp(oip->wanted[i].name, wanted->name) == 0)
                        return fail(STATUS_VALUE, "output \"%.64s\" is asked for twice", wanted->name);
        if (oip->n_wanted == OIP_MAX_OUTPUTS)
                return fail(STATUS_TOO_LARGE, "more than %d outputs are asked for", OIP_MAX_OUTPUTS);
        TRY(array_reserve(&oip->wanted, &oip->capacity, oip->n_wanted + 1, sizeof(*wanted)));
        oip->wanted[oip->n_wanted++] = *wanted;
        return STATUS_OK;
}

static Status read_output(JsonReader *reader, RunCall *run)
{
        OipWanted wanted = { .name = NULL };
        bool more;
        if (json_peek(reader) != JSON_OBJECT)
                return fail(STATUS_INPUT, "an output is an object: {\"name\": ...}");
        TRY(json_enter_object(reader));
        for (;;) {
                const char *key;
                TRY(json_next_key(reader, &key, &more));
                if (!more)
                        return add_wanted(run->oip, &wanted);
                TRY(run_check_value(reader));
                if (json_peek(reader) == JSON_NULL)
                        TRY(json_read_null(reader));
                else if (strcmp(key, "name") == 0)
                        TRY(keep_text(reader, run->oip, key, &wanted.name));
                else if (strcmp(key, "parameters") == 0)
                        TRY(read_parameters(reader, read_output_parameter, &wanted));
                else
                        TRY(json_skip(reader));
        }
}

// ---- the request ----
// 0 and "" stand for none. Numbers reach beyond 63 bits.
static Status read_sequence_id(JsonReader *reader, OipRun *oip)
{
        const char *text = "";
        size_t n = 0, digits = 0;
        bool is_text = json_peek(reader) == JSON_STRING;
        if (is_text)
                TRY(json_read_string(reader, &text, &n));
        else if (json_peek(reader) == JSON_NUMBER)
                TRY(json_read_raw(reader, &text, &n));
        while (!is_text && digits < n && text[digits] >= '0' && text[digits] <= '9')
                digits++;
        if (is_text ? n > OIP_SEQUENCE_MAX : n == 0 || digits != n || n > 20)
                return fail(
                        STATUS_VALUE,
                        "parameter \"sequence_id\" is a whole number of up to 64 bits, or a text of up to %d "
                        "bytes",
                        OIP_SEQUENCE_MAX);
        if (n == 0 || (!is_text && n == 1 && text[0] == '0'))
                return STATUS_OK;
        oip->sequence = arena_format(&oip->arena, "%s%.*s", is_text ? "s" : "i", (int)n, text);
        return oip->sequence == NULL ? fail_memory() : STATUS_OK;
}

static Status read_sequence(JsonReader *reader, const char *name, OipRun *oip, bool *out_known)
{
        if (strcmp(name, "sequence_id") == 0)
                return read_sequence_id(reader, oip);
        if (strcmp(name, "sequence_start") == 0)
                return read_flag(reader, name, &oip->starts);
        if (strcmp(name, "sequence_end") == 0)
                return read_flag(reader, name, &oip->ends);
        *out_known = false;
        return STATUS_OK;
}

static Status settle_sequence(RunCall *run)
{
        const OipRun *oip = run->oip;
        if (oip->sequence != NULL)
                return run_take_sequence(run, oip->sequence, oip->starts, oip->ends);
        if (!oip->starts && !oip->ends)
                return STATUS_OK;
        return fail(STATUS_VALUE,
                    "\"sequence_start\" and \"sequence_end\" need a \"sequence_id\" that is not 0");
}

// `timeout` is in microseconds.
static Status read_timeout(JsonReader *reader, const char *name, RunCall *run)
{
        int64_t us;
        TRY(read_count(reader, name, &us));
        if (us > 0)
                run->task.deadline_ms = MIN(run->task.deadline_ms, us / 1000 + (us % 1000 != 0));
        return STATUS_OK;
}

static Status read_request_parameter(void *context, JsonReader *reader, const char *name, bool *out_known)
{
        RunCall *run = context;
        const char *text;
        int64_t number;
        *out_known = true;
        if (strcmp(name, "binary_data_output") == 0)
                return read_flag(reader, name, &run->oip->binary);
        if (strcmp(name, "profile") == 0)
                return read_flag(reader, name, &run->profile_in_reply);
        if (strcmp(name, "timeout") == 0)
                return read_timeout(reader, name, run);
        if (strcmp(name, "priority") == 0) {
                TRY(read_count(reader, name, &number));
                run->priority = MIN(number, (int64_t)BATCH_PRIORITIES);
                return STATUS_OK;
        }
        if (strcmp(name, "seed") == 0) {
                TRY(read_count(reader, name, &number));
                run_take_seed(run, number);
                return STATUS_OK;
        }
        if (strcmp(name, "mode") == 0 || strcmp(name, "precision") == 0) {
                ParameterId id = name[0] == 'm' ? PARAM_MODE : PARAM_PRECISION;
                if (json_peek(reader) != JSON_STRING)
                        return fail(STATUS_VALUE, "parameter \"%s\" is a text", parameters[id].name);
                TRY(json_read_string(reader, &text, NULL));
                return run_take_choice(run, id, text);
        }
        if (strcmp(name, "tolerance") == 0)
                return run_read_tolerance(reader, run);
        if (strncmp(name, "sequence_", 9) == 0)
                return read_sequence(reader, name, run->oip, out_known);
        if (strncmp(name, "triton_", 7) == 0)
                return fail(STATUS_VALUE, "parameter \"%.64s\": names that begin with triton_ are reserved",
                            name);
        *out_known = false;
        return STATUS_OK;
}

static Status read_list(JsonReader *reader, const char *member, RunCall *run,
                        Status (*read)(JsonReader *reader, RunCall *run))
{
        bool more;
        if (json_peek(reader) != JSON_ARRAY)
                return fail(STATUS_INPUT, "\"%s\" is a list", member);
        TRY(json_enter_array(reader));
        for (;;) {
                TRY(json_next_item(reader, &more));
                if (!more)
                        return STATUS_OK;
                TRY(run_check_value(reader));
                TRY(read(reader, run));
        }
}

static Status read_member(JsonReader *reader, const char *key, RunCall *run)
{
        if (json_peek(reader) == JSON_NULL)
                return json_read_null(reader);
        if (strcmp(key, "id") == 0)
                return keep_text(reader, run->oip, key, &run->oip->id);
        if (strcmp(key, "parameters") == 0)
                return read_parameters(reader, read_request_parameter, run);
        if (strcmp(key, "outputs") == 0)
                return read_list(reader, key, run, read_output);
        if (strcmp(key, "inputs") != 0)
                return json_skip(reader);
        run->oip->has_inputs = true;
        return read_list(reader, key, run, read_input);
}

static Status read_request(JsonReader *reader, RunCall *run)
{
        bool more;
        size_t n_inputs = 0;
        TRY(run_check_value(reader));
        if (json_peek(reader) != JSON_OBJECT)
                return fail(STATUS_INPUT, "a request is an object: {\"inputs\": [...]}");
        TRY(json_enter_object(reader));
        for (;;) {
                const char *key;
                TRY(json_next_key(reader, &key, &more));
                if (!more)
                        break;
                TRY(run_check_value(reader));
                size_t before = json_tell(reader);
                bool inputs = strcmp(key, "inputs") == 0;
                TRY(read_member(reader, key, run));
                n_inputs += inputs ? json_tell(reader) - before : 0;
        }
        size_t end = json_tell(reader);
        TRY(json_finish(reader));
        if (end - n_inputs > (size_t)limits.max_envelope)
                return fail(STATUS_TOO_LARGE,
                            "the request without its inputs is %zu bytes; the limit is %lld (max_envelope in "
                            "GET /v1)",
                            end - n_inputs, (long long)limits.max_envelope);
        if (!run->oip->has_inputs)
                return fail(STATUS_INPUT, OIP_INPUTS_WANTED);
        return STATUS_OK;
}

static Status read_header(ByteSpan header, RunCall *run)
{
        Arena arena;
        JsonReader *reader = NULL;
        const char *text = (const char *)header.data;
        arena_init_charged(&arena, (size_t)limits.max_envelope * 4, &run->task.budget);
        Status status = run_check_lists(text, header.n);
        if (status == STATUS_OK)
                status = json_open(text, header.n, (int)limits.max_json_depth_run + MAX_RANK, 0, &arena,
                                   &reader);
        if (status == STATUS_OK)
                status = read_request(reader, run);
        json_close(reader);
        arena_deinit(&arena);
        return status;
}

// ---- the body is the single input ----
// The sizes that its bytes leave: one may be open.
static Status shape_of_bytes(const TensorSpec *spec, size_t n_bytes, TensorJsonDescription *out)
{
        int64_t known = 1, numel;
        int open = -1, n_open = 0;
        *out = (TensorJsonDescription){ .dtype = spec->dtype, .rank = spec->rank };
        if (spec->dtype == DTYPE_NONE || spec->rank < 0)
                return fail(STATUS_INPUT, "the graph does not say what its input looks like: send its shape "
                                          "and datatype in a JSON header");
        for (int d = 0; d < spec->rank; d++) {
                out->shape[d] = spec->size[d].value;
                if (spec->size[d].expr != NULL) {
                        open = d;
                        n_open++;
                } else {
                        TRY(shape_numel(1, &out->shape[d], &numel));
                        known = mul_i64(known, numel, &known) ? known : 0;
                }
        }
        if (n_open > 1)
                return fail(STATUS_INPUT, "the input has %d open sizes: send its shape in a JSON header",
                            n_open);
        size_t row = (size_t)MAX(known, 1) * dtype_info[spec->dtype].bytes;
        if (open >= 0)
                out->shape[open] = (int64_t)(n_bytes / row);
        return STATUS_OK;
}

static Status read_raw(RunCall *run)
{
        TensorJsonDescription said;
        Tensor *tensor;
        ByteSpan body = body_span(run->call->body);
        if (run->task.n_inputs != 1 || run->task.user[0]->kind != INPUT_USER)
                return fail(STATUS_INPUT, "a body without JSON is one input, but this graph takes %u",
                            run->task.n_inputs);
        const Input *input = run->task.user[0];
        TRY(shape_of_bytes(&input->spec, body.n, &said));
        TRY(run_name_input(tensor_of_bytes(run, body, &said, &tensor), input->placeholder->name));
        run->oip->binary = true;
        return run_take_tensor(run, input->placeholder->name, tensor);
}

// ---- the codec ----
static Status header_length(const RunCall *run, size_t *out_n)
{
        const char *text = run->call->header_length;
        size_t digits = strspn(text, "0123456789"), n_body = run->call->body->n_bytes;
        *out_n = n_body;
        if (text[0] == '\0')
                return STATUS_OK;
        if (text[digits] != '\0' || digits == 0 || digits > 15 || strtoull(text, NULL, 10) > n_body)
                return fail(STATUS_VALUE,
                            "Inference-Header-Content-Length: %.40s is not a number of bytes of this body, "
                            "which has %zu",
                            text, n_body);
        *out_n = (size_t)strtoull(text, NULL, 10);
        return STATUS_OK;
}

static Status oip_decode(RunCall *run)
{
        if (run->call->body == NULL || run->call->body->n_bytes == 0)
                return fail(STATUS_INPUT, OIP_INPUTS_WANTED);
        OipRun *oip = run->oip = calloc(1, sizeof(*oip));
        size_t n;
        if (oip == NULL)
                return fail_memory();
        arena_init_charged(&oip->arena, (size_t)limits.max_envelope * 2, &run->task.budget);
        oip->has_header = run->call->header_length[0] != '\0';
        TRY(header_length(run, &n));
        if (n == 0)
                return read_raw(run);
        oip->blob_at = n;
        TRY(read_header((ByteSpan){ run->call->body->data, n }, run));
        if (oip->blob_at != run->call->body->n_bytes)
                return fail(STATUS_INPUT, "the body has %zu bytes more than its inputs take",
                            run->call->body->n_bytes - oip->blob_at);
        return settle_sequence(run);
}

const Codec oip_codec = { .decode = oip_decode, .encode = oip_encode };
