// SPDX-License-Identifier: Apache-2.0
// Inside targets/: the module classes with their schemas parsed, and what graph_resolve works out
// for each module of a graph.
#pragma once
#include "core/targets/module_class.h"
#include "core/targets/py.h"

enum { MODULE_MAX_STATE = 18 };

typedef struct ModuleEntry {
        const ModuleClass *class;
        Schema config, forward;
        struct ModuleState {
                const char *name;
                uint64_t flags; // bit i: configuration argument i must be true for it to be there
                bool optional;
        } state[MODULE_MAX_STATE];
        uint32_t n_state;
        Template emits;
} ModuleEntry;

// module->resolved: lives in the graph's arena.
typedef struct ResolvedModule {
        const ModuleEntry *entry;
        // one per config argument, defaults filled in; borrowed from module->config and the schema
        const Value *config;
        uint32_t n_state;
        const char *const *state_paths; // "fc.weight"; NULL: absent
        const Module **children;
        uint32_t n_children;
} ResolvedModule;

typedef struct ModuleTable {
        const ModuleClass *rows;
        uint32_t n;
} ModuleTable;
#define MODULE_TABLE(array)                                                                                  \
        {                                                                                                    \
                array, (uint32_t)ARRAY_LENGTH(array)                                                         \
        }
extern const ModuleTable layer_classes, activation_classes, attention_classes, pooling_classes,
        recurrent_classes, shape_classes, loss_classes, transformer_classes;

Status module_classes_init(void);
const ModuleEntry *module_entry(const char *type); // NULL if unknown or an operator it needs is missing
const char *module_type_at(uint32_t index);        // NULL at the end
