// SPDX-License-Identifier: Apache-2.0
// Shared by the files of run.h.
#pragma once
#include "api/run/codec.h"
#include "core/base/json.h"

static inline ByteSpan body_span(const Storage *bytes)
{
        return (ByteSpan){ bytes->data, bytes->n_bytes };
}

// ---- functions of codecs that lie in files of their own ----
Status json_take_graph(const ApiContext *context, RunCall *run); // inline_graph.c
Status form_take_graph(const ApiContext *context, RunCall *run);
Status json_encode(RunCall *run, const OutputList *outputs, ApiReply *reply);   // json_encode.c
Status arrays_encode(RunCall *run, const OutputList *outputs, ApiReply *reply); // run_reply.c
Status oip_encode(RunCall *run, const OutputList *outputs, ApiReply *reply);    // oip_encode.c
Status npy_write(const NamedTensor *arrays, uint32_t n, ApiReply *reply);

// ---- what they share ----
#define RUN_INLINE_WANTED                                                                                    \
        "POST /v1/run wants {\"graph\": {FX JSON}, \"inputs\": ...} in one body, or a form: curl -F "        \
        "graph=@g.json -F "                                                                                  \
        "weights=@w.safetensors -F x=@x.npy"

// Encode and total time into the profile, before it is written.
void run_stamp(RunCall *run);
// Headers for a reply that cannot carry a profile: what ran, and where the profile is.
void run_add_headers(const RunCall *run, ApiReply *reply);
// STATUS_TOO_LARGE for a reply of so many bytes.
Status run_check_reply(size_t n_bytes);
// STATUS_TOO_LARGE for JSON text with more lists and objects than limits.max_json_values. Checked
// before parsing; numbers do not count.
Status run_check_lists(const char *text, size_t n);
// Text that is no JSON value is the reader's to report, before anything is said about what belongs
// there.
Status run_check_value(JsonReader *reader);
// A plain value, with "NaN" and its like as floats.
Status run_read_scalar(JsonReader *reader, const Input *input, Value *out);
// As a number is taken where nothing is declared: a tensor of float32 without dimensions.
Status run_wrap_number(RunCall *run, double number, Value *out);
// Reads the value of "inputs" into the task's inputs.
Status run_read_inputs(JsonReader *reader, RunCall *run);
// Reads the next value for what is called `name`: an argument of forward or a flat input.
Status run_read_named(JsonReader *reader, const char *name, RunCall *run);
// Reads the next value for the only argument of forward. STATUS_INPUT: there are several, or none.
Status run_read_only(JsonReader *reader, RunCall *run);
// The input that run_take_tensor would give a tensor of this name to.
Status run_find_input(RunCall *run, const char *name, const Input **out_input);
// Gives a tensor to the input called `name`: an argument, a flat input, a path into a structure
// ("past.0.k"), or "arr_0" for the first as numpy.savez names what has no name. Numbers are taken
// from tensors of one element where the graph has a number. The tensor is taken, also on failure.
Status run_take_tensor(RunCall *run, const char *name, Tensor *take_tensor);

// Arguments of forward, and what the n-th is called; "?" where the export does not say.
uint32_t run_n_arguments(const RunCall *run);
const char *run_argument_name(const RunCall *run, uint32_t index);

// ---- hints on failures (run_hints.c); all return `status` ----
// Puts the input's name before a message about its value, and into details.argument.
Status run_name_input(Status status, const char *name);
// Keeps the text of "inputs", a list of at most `n` bytes from `text` on, for the hints.
void run_note_list(RunCall *run, const char *text, size_t n);
// After a failed bind or run; after a failed decode.
Status run_add_hints(const RunCall *run, Status status);
Status run_add_list_hint(const RunCall *run, Status status);
// Appends what an unknown member of a run body was probably meant to be.
void run_hint_of_member(const RunCall *run, const char *key);
// Reads the value of a parameter that is a whole number. STATUS_VALUE names it and its range.
Status run_read_integer(JsonReader *reader, ParameterId id, int64_t *out);
// Reads an int. Any other value is STATUS_INPUT with a hint at what to send.
Status run_read_whole(JsonReader *reader, int64_t *out);

// The parts of a call whose body is a form.
Status run_open_multipart(const ApiCall *call, Multipart *out_multipart);

// An output as a contiguous tensor: a number or flag becomes one without dimensions.
// STATUS_NOT_ACCEPTABLE for what no array holds.
Status run_output_array(const OutputLeaf *leaf, Budget *budget, Tensor **out_tensor);

// A value that is no tensor as JSON: numbers, texts, names of dtypes, null. STATUS_RUN for one
// without such a form.
Status run_write_plain(Value value, Text *out);

// The numbers of one row of a tensor as JSON (predict.c).
Status run_write_row(RunCall *run, const Tensor *tensor, int64_t row, Text *out);
// Whether the route writes text/csv and the request asks for that rather than JSON (csv.c).
bool csv_accepted(const ApiCall *call);

// `, "data": ...` or `, "b64": ...`, in the encoding that the reply has.
Status run_write_data(RunCall *run, const Tensor *tensor, Text *out);

// ---- partial runs (run_partial.c) ----
// Reads the value of "initial_env", "until" or "keep"; *out_known: the key is one of them.
Status run_read_partial(JsonReader *reader, const char *key, RunCall *run, bool *out_known);
// With the whole request read.
Status run_settle_partial(RunCall *run);
// `, "kept": {...}` when the run keeps its values.
void run_write_kept(const RunCall *run, Text *out);

// ---- options ----
#define RUN_TOLERANCE_OF_WHOLE                                                                               \
        "\"tolerance\" is for runs of a stored graph as it is, by its own samples: without a session, "      \
        "\"overrides\", \"until\", \"initial_env\", \"leaf\" and \"steps\""
#define RUN_EAGER_IS_F32 "an eager run computes in float32; \"precision\" goes with \"mode\": \"compiled\""
void run_take_precision(RunCall *run, Precision precision);
void run_take_tolerance(RunCall *run, double tolerance);
// Reads the next value as a number from 0 on; messages name `key`.
Status run_read_nonnegative(JsonReader *reader, const char *key, double *out_number);
Status run_read_tolerance(JsonReader *reader, RunCall *run);
// A named value of PARAM_MODE, PARAM_PRECISION, PARAM_ENCODING or PARAM_REPLY.
Status run_take_choice(RunCall *run, ParameterId id, const char *name);
void run_take_seed(RunCall *run, int64_t seed);
// Fetches from node names separated by commas.
Status run_take_outputs(const char *names, size_t n, RunCall *run);
