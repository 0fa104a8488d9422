// SPDX-License-Identifier: Apache-2.0
// Uploads: identified, collected, decoded by the caller, checked, put.
#pragma once
#include "core/engine/engine.h"
#include "core/tensor/pieces.h"

// The role that the name of a part says; "" and "graph" are the graph.
StoreRole upload_role(const char *name);
// Content id of an upload: SHA-256 of the graph; with weights: SHA-256 of both concatenated
// lower-case hex digests. Other parts do not count.
Status upload_identify(const UploadPart *parts, uint32_t n_parts, const char *model, const char *format,
                       StoreVersion *out_version);

// Whether the upload has samples or labels that `latest` does not have: engine_put gives it those.
bool engine_brings_others(const StoreVersion *sent, const StoreVersion *latest);

// Before the parts of an upload are decoded to be put: makes the loader note the weights in
// pieces[i] (caller's, zeroed; pieces_deinit after engine_put), so that they are stored by content.
// Does nothing without a data folder.
void engine_collect(Engine *engine, UploadPart *parts, uint32_t n_parts, Pieces *pieces);
// The bytes of a part of a version as uploaded. STATUS_NOT_FOUND: it has no such part.
Status engine_part(Engine *engine, const GraphVersion *version, StoreRole role, Storage **out_bytes);
// An unnamed file in the data folder, for bytes that are too many for memory. STATUS_NOT_FOUND:
// there is no data folder.
Status engine_temporary(Engine *engine, int *out_fd);
// Puts bytes into it at an offset. STATUS_DISK_FULL, STATUS_IO.
Status engine_write_temporary(int fd, ByteSpan bytes, uint64_t offset);
// Its bytes, read only; the descriptor may be closed then.
Status engine_map_temporary(int fd, size_t n_bytes, Storage **out_storage);
// If it does not return STATUS_OK, nothing is put and its failure is the put's. Called with changes
// locked out, as between engine_begin_change and engine_end_change. The weights are written before,
// while others may make changes.
typedef struct PutCondition {
        Status (*check)(void *context);
        void *context;
} PutCondition;
typedef struct PutRequest {
        const char *name; // NULL or "": the id is the name. One of 64 hex digits must be the content's own id
        const UploadPart *parts;
        uint32_t n_parts;
        const StoreVersion *identified; // upload_identify's of the parts
        Graph *graph;                   // finished, resolved; counted by the engine
        const PutCondition *only_if;    // NULL: in any case
        const char *image;              // as HeadChange's; NULL: as of the version before
        const char *owner;              // who uploads, for engine_owned; NULL: nobody is noted
        bool keep_graph;                // without a data folder the version keeps the graph, too
        int64_t number;                 // of the version; 0: the next one
} PutRequest;
// Makes the graph a version of its name. *out_created false: equal to the latest version's content,
// which is returned. With a number: equal to that version's content; `image` is for that version
// alone, and NULL is none for a new one; the default changes only for a number above all others.
// STATUS_CONFLICT: the version of that number has other content. Durable when it returns OK; the
// graph's weights are the stored ones then.
Status engine_put(Engine *engine, const PutRequest *put, GraphVersion **out_version, bool *out_created);
// What an owner's uploads take: graphs whose latest version is theirs, and bytes of all their
// versions.
typedef struct OwnedUse {
        uint32_t n_graphs;
        int64_t bytes;
        bool has_name;    // one of the graphs has this name
        bool has_content; // and its latest version this content: there is nothing to be stored
} OwnedUse;
// `content`: id and model of what is to be put; NULL: not known.
void engine_owned(Engine *engine, const char *owner, const char *name, const StoreVersion *content,
                  OwnedUse *out_use);
// At upload, of a decoded graph: STATUS_UNSUPPORTED with the full list of unsupported nodes, as far
// as the sizes that the exporter recorded show them, or with a guard that cannot be checked.
// Bounded in time and memory: graphs whose nodes exceed the bounds pass, guards that do are
// refused.
Status engine_check(const Graph *graph);

// A graph that was made from others: it is stored as a result of its own, whose weights are the
// base's wherever they are the same. What becomes of the base later changes nothing. The recipe is
// kept to be shown.
typedef struct DerivedPut {
        const char *name;            // as in PutRequest
        Graph *graph;                // finished, resolved
        const GraphVersion *base;    // what it was made from; NULL: parts of an upload that are not kept
        const uint64_t *content;     // of four words, without a base; else NULL
        ByteSpan recipe;             // canonical JSON
        GraphVersion *const *called; // graphs that the recipe names beside the base, in its order
        uint32_t n_called;
        const char *owner; // as in PutRequest
        Storage *samples;  // to come along; NULL: none
        const char *diff;  // of the printed code, to be shown; NULL: none
        const PutCondition *only_if;
} DerivedPut;
// Makes it a version of its name, as engine_put. The same recipe on the same contents is the same
// content: *out_created false when the latest version has it. The version's graph is what a restart
// reads; it is not `graph` itself.
Status engine_put_derived(Engine *engine, const DerivedPut *put, GraphVersion **out_version,
                          bool *out_created);
// Adds what is known of a derived version's making, an object: {"base": {"name", "version", "id"},
// "calls": [...], "recipe": ..., "diff": ...}. Nothing for other versions.
Status engine_derivation(Engine *engine, const GraphVersion *version, Text *out);
