// SPDX-License-Identifier: Apache-2.0
// check.c: finds operators and arguments that are unsupported, at upload, by one walk on metas.
// Inputs have the sizes that the exporter recorded; state has no bytes. A node that fails, or
// whose inputs are unknown, gets the tensor that the exporter recorded for it, so that the walk
// reaches every node. Only STATUS_UNSUPPORTED counts: other failures may come from these sizes.
//
// The walk is bounded by calls and by values. The caller's deadline is a last resort, since it
// makes the outcome depend on the machine. Where the walk stops or cannot decide, the graph is
// accepted: a run reports the failure.
#include "core/compile/check.h"

#include <stdio.h>
#include <string.h>
#include "core/compile/recorder.h"

enum { MAX_CALLS = 50000, MAX_VALUES = 400000 };

typedef struct Checker {
        Recorder recorder;
        CheckReport *report;
} Checker;

// ---- nodes that fail ----
static Status note_unsupported(CheckReport *report, const Node *node)
{
        char what[200], reason[1200];
        report_name(node, what);
        snprintf(reason, sizeof(reason), "%.*s",
                 (int)MIN(strcspn(failure_current()->message, "\n"), (size_t)1100),
                 failure_current()->message);
        return report_unsupported(report, what, reason, node);
}

static Status mend(void *context, const Node *node, Status status, Value *out)
{
        Checker *checker = context;
        bool ours = status_class(status) != STATUS_CLASS_CALLER && status != STATUS_DYNAMIC;
        if (ours || status == STATUS_CANCELLED || status == STATUS_DEADLINE)
                return status;
        if (status == STATUS_UNSUPPORTED)
                TRY(note_unsupported(checker->report, node));
        const Recording *recording = checker->recorder.recording;
        if (recording->n_calls >= MAX_CALLS || recording->n_values >= MAX_VALUES)
                return fail(STATUS_CANCELLED, "the graph is too large to be checked to its end");
        return recorder_of_spec(&checker->recorder, node->spec, out);
}

static Status walk_inputs(Checker *checker, const Graph *graph, Value *inputs)
{
        const Signature *signature = &graph->signature;
        Value result = value_none();
        WalkMend mender = { mend, checker };
        WalkOptions options = { .inputs = { inputs, signature->n_inputs }, .mend = &mender };
        for (uint32_t i = 0; i < signature->n_inputs; i++)
                TRY(recorder_input(&checker->recorder, &signature->inputs[i], &inputs[i]));
        TRY(walk_graph(&checker->recorder.base, graph, &options, &result, NULL));
        value_unref(result);
        return STATUS_OK;
}

Status check_graph(const Graph *graph, const RunContext *poll, CheckReport *report)
{
        const Signature *signature = &graph->signature;
        Checker checker = { .report = report };
        _cleanup_(recording_freep) Recording *recording = NULL;
        _cleanup_(freep) Value *inputs = new_array((size_t)signature->n_inputs + 1, sizeof(Value));
        if (inputs == NULL)
                return fail_memory();
        TRY(recording_new(graph, &recording));
        recorder_init(&checker.recorder, recording, poll);
        checker.recorder.max_calls = MAX_CALLS;
        checker.recorder.max_values = MAX_VALUES;
        checker.recorder.state_unknown = true;
        Status status = walk_inputs(&checker, graph, inputs);
        for (uint32_t i = 0; i < signature->n_inputs; i++)
                value_unref(inputs[i]);
        recorder_deinit(&checker.recorder);
        return status == STATUS_CANCELLED || status == STATUS_DEADLINE ? STATUS_OK : status;
}
