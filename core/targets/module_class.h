// SPDX-License-Identifier: Apache-2.0
// One row per torch.nn module class.
#pragma once
#include "core/targets/targets.h"

typedef struct ModuleCall {
        const Module *module; // path, training
        const Value *config;  // one per config argument, defaults filled in
        const Value *state;   // one per state name
        uint32_t n_state;
        const Module *const *children; // by position in `children`; NULL when absent
        uint32_t n_children;
        const Value *args; // one per forward argument
} ModuleCall;

// One entry of a module's state, for classes whose state depends on the configuration.
enum { MODULE_STATE_NAME = 48 };
typedef struct ModuleStateEntry {
        char name[MODULE_STATE_NAME]; // "weight_ih_l0_reverse"
        bool absent;                  // this configuration has no such entry, which keeps its position
        int rank;
        int64_t size[MAX_RANK];
} ModuleStateEntry;

struct ModuleClass {
        const char *type; // "torch.nn.Linear"
        // Configuration as a schema: names, types and defaults of the constructor arguments that
        // matter. "nn::Linear(int in_features, int out_features, bool bias=True) -> ()"
        const char *config;
        // Space-separated state names under the module's path. "bias?affine,bias": present when
        // these configuration flags are true; a '?' at the end: may be absent even then
        // ("num_batches_tracked?track_running_stats?").
        const char *state;
        // forward's signature: "nn::forward(Tensor input) -> Tensor".
        const char *forward;
        // A template (py.h) where forward is one operator call: "aten::linear a0 s0 s1"; NULL: run.
        const char *emits;
        // Operators that `run` calls, space-separated, alternatives with '|'; NULL: only `emits`. A
        // class whose operators are missing is unknown.
        const char *needs;
        // config: bound per `config`; state: by position in `state` (VALUE_NONE when absent), as
        // the run sees it; args: bound per `forward`.
        Status (*run)(Emitter *emitter, const ModuleCall *call, Value *out);
        // At upload: STATUS_UNSUPPORTED for configurations that no run can serve. Arguments and
        // state are VALUE_DYNAMIC. NULL: none are known.
        Status (*refuse)(const ModuleCall *call);
        // Shapes of the state, by position, as configuration values: "out_features,in_features
        // out_features". NULL: not checked; '-': not this one.
        const char *shapes;
        // Instead of `state` and `shapes`: entry `index` of the state; false behind the last one.
        // `config` is bound, but may be out of range.
        bool (*state_at)(const Value *config, uint32_t index, ModuleStateEntry *out);
        bool updates_state; // in training mode: running statistics
        // Modules under this one's path that it calls, space-separated, each with its class:
        // "layers.*:torch.nn.TransformerEncoderLayer" stands for layers.0, layers.1, ..., at least
        // one. "norm?": any class that calls no modules itself; may be absent. NULL: none.
        const char *children;
};
