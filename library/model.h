// SPDX-License-Identifier: Apache-2.0
// What the handles of fxserve.h are.
#pragma once
#include <pthread.h>
#include "api/run/outputs.h"
#include "core/engine/frame.h"
#include "core/engine/task.h"
#include "library/fxserve.h"

typedef struct IdleFrame IdleFrame;
struct IdleFrame {
        IdleFrame *next;
        Frame frame;
};

struct fxserve_model {
        Engine *engine; // its own: models know nothing of each other
        Graph *graph;
        const Input **inputs; // that callers give; literals are filled in
        uint32_t n_inputs;
        OutputList outputs;    // names and nodes
        pthread_mutex_t mutex; // of `idle`
        IdleFrame *idle;       // frames that no run uses now
};

// A frame for one run; NULL: no memory. Given back with model_give_frame.
IdleFrame *model_take_frame(fxserve_model *model);
void model_give_frame(fxserve_model *model, IdleFrame *frame);
