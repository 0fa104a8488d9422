// SPDX-License-Identifier: Apache-2.0
#include "library/model.h"
#include <string.h>
#include "api/readers/file.h"
#include "library/tensors.h"

const char *fxserve_version(void)
{
        return FXSERVE_VERSION;
}

const char *fxserve_error(void)
{
        return failure_current()->message;
}

// ---- frames ----
IdleFrame *model_take_frame(fxserve_model *model)
{
        pthread_mutex_lock(&model->mutex);
        IdleFrame *frame = model->idle;
        if (frame != NULL)
                model->idle = frame->next;
        pthread_mutex_unlock(&model->mutex);
        if (frame == NULL && (frame = calloc(1, sizeof(*frame))) != NULL)
                frame_init(&frame->frame);
        return frame;
}

void model_give_frame(fxserve_model *model, IdleFrame *frame)
{
        pthread_mutex_lock(&model->mutex);
        frame->next = model->idle;
        model->idle = frame;
        pthread_mutex_unlock(&model->mutex);
}

// ---- opening ----
void fxserve_close(fxserve_model *model)
{
        if (model == NULL)
                return;
        while (model->idle != NULL) {
                IdleFrame *frame = model->idle;
                model->idle = frame->next;
                frame_deinit(&frame->frame);
                free(frame);
        }
        output_list_deinit(&model->outputs);
        free(model->inputs);
        graph_unref(model->graph);
        engine_close(model->engine);
        pthread_mutex_destroy(&model->mutex);
        free(model);
}
DEFINE_CLEANUP(fxserve_model, fxserve_close)

static Status list_inputs(fxserve_model *model)
{
        const Signature *signature = &model->graph->signature;
        model->inputs = new_array(signature->n_inputs, sizeof(*model->inputs));
        if (model->inputs == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < signature->n_inputs; i++)
                if (signature->inputs[i].kind == INPUT_USER)
                        model->inputs[model->n_inputs++] = &signature->inputs[i];
        return STATUS_OK;
}

// `take_graph` is taken, also on failure.
static Status model_new(Graph *take_graph, fxserve_model **out_model)
{
        static const RegistryKey key = { { 1 } }; // the engine has one graph
        EngineOptions options = { .no_warm_up = true };
        _cleanup_(graph_unrefp) Graph *graph = take_graph;
        _cleanup_(fxserve_closep) fxserve_model *model = calloc(1, sizeof(*model));
        if (model == NULL)
                return fail_memory();
        pthread_mutex_init(&model->mutex, NULL);
        model->graph = take_ptr(graph);
        TRY(engine_open(&options, &model->engine));
        TRY(engine_cache_graph(model->engine, &key, model->graph));
        TRY(list_inputs(model));
        TRY(output_list_of(model->graph, NULL, &model->outputs));
        *out_model = take_ptr(model);
        return STATUS_OK;
}

// Of operators and names, which every model reads; made by the first call.
static Failure tables_failure;
static void init_tables(void)
{
        if (engine_init() != STATUS_OK)
                tables_failure = *failure_current();
}

static Status want_tables(void)
{
        static pthread_once_t once = PTHREAD_ONCE_INIT;
        pthread_once(&once, init_tables);
        Status status = tables_failure.status;
        return status == STATUS_OK ? status : fail(status, "%s", tables_failure.message);
}

fxserve_model *fxserve_open(const char *path)
{
        Graph *graph;
        fxserve_model *model = NULL;
        if (want_tables() == STATUS_OK && file_decode(path, NULL, true, &graph) == STATUS_OK)
                (void)model_new(graph, &model);
        return model;
}

fxserve_model *fxserve_open_memory(const void *bytes, size_t n_bytes)
{
        _cleanup_(storage_unrefp) Storage *copy = NULL;
        Graph *graph;
        fxserve_model *model = NULL;
        if (want_tables() != STATUS_OK || storage_new(n_bytes, false, NULL, &copy) != STATUS_OK)
                return NULL;
        if (n_bytes > 0)
                memcpy(copy->data, bytes, n_bytes);
        copy->readonly = true;
        if (bytes_decode(copy, NULL, true, &graph) == STATUS_OK)
                (void)model_new(graph, &model);
        return model;
}

// ---- what goes in and out ----
int fxserve_n_inputs(const fxserve_model *model)
{
        return (int)model->n_inputs;
}

int fxserve_n_outputs(const fxserve_model *model)
{
        return (int)model->outputs.n;
}

static void describe(const char *name, const TensorSpec *spec, fxserve_info *out)
{
        *out = (fxserve_info){ .name = name, .ndim = -1 };
        if (spec == NULL)
                return;
        out->dtype = dtype_to_dl(spec->dtype);
        out->ndim = spec->rank;
        for (int i = 0; i < spec->rank; i++)
                out->shape[i] = spec->size[i].expr == NULL ? spec->size[i].value : -1;
}

int fxserve_input(const fxserve_model *model, int index, fxserve_info *out_info)
{
        if (index < 0 || (uint32_t)index >= model->n_inputs) {
                (void)fail(STATUS_VALUE, "there is no input %d; the model has %u", index, model->n_inputs);
                return -1;
        }
        const Input *input = model->inputs[index];
        static const TensorSpec number = { .dtype = DTYPE_I64 };
        const TensorSpec *spec = input->value_kind == VALUE_TENSOR ? &input->spec
                                 : input->value_kind == VALUE_INT  ? &number
                                                                   : NULL;
        describe(input->placeholder->target, spec, out_info);
        return 0;
}

int fxserve_output(const fxserve_model *model, int index, fxserve_info *out_info)
{
        if (index < 0 || (uint32_t)index >= model->outputs.n) {
                (void)fail(STATUS_VALUE, "there is no output %d; the model has %u", index, model->outputs.n);
                return -1;
        }
        const OutputLeaf *leaf = &model->outputs.leaves[index];
        describe(leaf->name, leaf->node == NULL ? NULL : leaf->node->spec, out_info);
        return 0;
}
