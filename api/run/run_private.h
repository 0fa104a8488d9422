// SPDX-License-Identifier: Apache-2.0
// Shared by the files of run.h.
#pragma once
#include "api/formats/multipart.h"
#include "api/formats/named.h"
#include "api/run/outputs.h"
#include "api/run/run.h"
#include "core/base/json.h"

// Reads the members of a run body (`document`, the reader at its start) into `run`; "graph" is
// skipped when `graph_allowed`.
Status run_read_body(JsonReader *reader, ByteSpan document, bool graph_allowed, RunCall *run);
// STATUS_TOO_LARGE for a text of more lists and objects than limits.max_json_values, before a
// parser takes it up. Numbers do not count.
Status run_check_lists(const char *text, size_t n);
// Text that is no JSON value is the reader's to report, before anything is said about what belongs
// there.
Status run_check_value(JsonReader *reader);
// Reads the value of "inputs" into run->inputs.
Status run_read_inputs(JsonReader *reader, RunCall *run);
// Reads the next value for what is called `name`: an argument of forward or a flat input.
Status run_read_named(JsonReader *reader, const char *name, RunCall *run);
// Gives a tensor to the input called `name`: an argument, a flat input, a path into a structure
// ("past.0.k"), or "arr_0" for the first as numpy.savez names what has no name. Numbers are taken
// from tensors of one element where the graph has a number. The tensor is taken, also on failure.
Status run_take_tensor(RunCall *run, const char *name, Tensor *take_tensor);

// Arguments of forward, and what the n-th is called; "?" where the export does not say.
uint32_t run_n_arguments(const RunCall *run);
const char *run_argument_name(const RunCall *run, uint32_t index);

// ---- what failures say besides (run_hints.c); all return `status` ----
// Puts the input's name before a message about its value, and into details.argument.
Status run_name_input(Status status, const char *name);
// Keeps the text of "inputs", a list of at most `n` bytes from `text` on, for the hints.
void run_note_list(RunCall *run, const char *text, size_t n);
// After a failed bind or run; after a failed decode.
Status run_add_hints(const RunCall *run, Status status);
Status run_add_list_hint(const RunCall *run, Status status);
// Appends what an unknown member of a run body was probably meant to be.
void run_hint_of_member(const RunCall *run, const char *key);
// Reads an int; what is none is STATUS_INPUT and says what to send.
Status run_read_whole(JsonReader *reader, int64_t *out);

// ---- bodies that are not JSON (run_binary.c) ----
typedef enum RunBody {
        RUN_BODY_JSON,
        RUN_BODY_NPY,
        RUN_BODY_NPZ,
        RUN_BODY_SAFETENSORS,
        RUN_BODY_MULTIPART
} RunBody;
RunBody run_body_kind(const Storage *body);
Status run_open_multipart(const ApiCall *call, Multipart *out_multipart); // a body of that kind
Status run_read_binary(const ApiCall *call, RunBody kind, RunCall *run);
// Reads a JSON run body that may leave its inputs out ("request" of a multipart body).
Status run_read_options(JsonReader *reader, ByteSpan document, RunCall *run);

// A value that is no tensor as JSON: numbers, texts, names of dtypes, null. STATUS_RUN for one
// without such a form.
Status run_write_plain(Value value, Text *out);

// ---- replies that are not JSON (run_reply.c) ----
RunAs run_as_accepted(const char *accept); // of an Accept header; JSON where it names none of ours
// Tensors and numbers as .npy, .npz or safetensors, sent from where they lie; copies of strided
// ones are charged to `budget` until they are the reply's. STATUS_NOT_ACCEPTABLE for what the form
// cannot hold.
Status run_write_binary(RunAs as, const OutputList *list, Budget *budget, ApiReply *reply);
// The same of tensors that are contiguous; one, if `as` is npy.
Status run_write_arrays(RunAs as, const NamedTensor *arrays, uint32_t n, ApiReply *reply);
Status run_take_encoding(const char *text, RunCall *run);
Status run_take_reply(const char *text, RunCall *run);
Status run_take_mode(const char *text, RunCall *run);
// Fetches from node names separated by commas.
Status run_take_outputs(const char *names, size_t n, RunCall *run);
