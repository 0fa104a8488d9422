// SPDX-License-Identifier: Apache-2.0
// pt2.c: archive -> graph. Every name within the archive hangs under one root folder, which the
// first member shows. Order: versions, the model document's sections, the graph (its literal inputs
// are named by the signature), the weights, the signature (which wants both), the writes.
#include "api/readers/pt2.h"

#include <string.h>
#include "api/readers/pt2_parts.h"
#include "core/base/limits.h"

enum { SCHEMA_MAJOR = 8 };
#define SAVE_AGAIN                                                                                           \
        "load it with torch >= 2.9 and save it again: tools/convert_pt2.py old.pt2 m.pt2, or "               \
        "torch.export.save(torch.export.load(\"old.pt2\"), \"m.pt2\")"

typedef struct Archive {
        Zip *zip;
        Arena scratch;
        const char *root;  // "m/" or ""
        const char *model; // "model"
        ZipContent document;
        Pt2Weights weights;
} Archive;

static void archive_deinit(Archive *archive)
{
        pt2_weights_deinit(&archive->weights);
        zip_content_deinit(&archive->document);
        archive->zip = zip_free(archive->zip);
        arena_deinit(&archive->scratch);
}

// The member root + folder + stem + suffix, NULL if absent. Names too long to exist are absent.
static const ZipEntry *find_member(Archive *archive, const char *folder, const char *stem, const char *suffix)
{
        const char *name = arena_format(&archive->scratch, "%s%s%s%s", archive->root, folder, stem, suffix);
        return name == NULL ? NULL : zip_find(archive->zip, name);
}

static bool has_prefix(const char *text, const char *prefix)
{
        return strncmp(text, prefix, strlen(prefix)) == 0;
}

static Status find_root(Archive *archive)
{
        archive->root = "";
        const char *first = zip_count(archive->zip) == 0 ? "" : zip_entry(archive->zip, 0)->name;
        const char *slash = strchr(first, '/');
        if (slash == NULL || has_prefix(first, "models/") || has_prefix(first, "data/"))
                return STATUS_OK;
        archive->root = arena_text(&archive->scratch, first, (size_t)(slash - first) + 1);
        return archive->root == NULL ? fail_memory() : STATUS_OK;
}

// A small text member without surrounding white space; *out_text is NULL when it is absent.
static Status read_text_member(Archive *archive, const char *name, const char **out_text)
{
        *out_text = NULL;
        const ZipEntry *entry = find_member(archive, name, "", "");
        if (entry == NULL)
                return STATUS_OK;
        _cleanup_(zip_content_deinit) ZipContent content = { 0 };
        TRY(zip_read(archive->zip, entry, 256, &content));
        const char *text = (const char *)content.span.data;
        size_t n = content.span.n;
        while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == ' ' || text[n - 1] == '\r'))
                n--;
        *out_text = arena_text(&archive->scratch, text, n);
        return *out_text == NULL ? fail_memory() : STATUS_OK;
}

static Status check_layout(Archive *archive)
{
        const char *format, *version, *byteorder;
        if (find_member(archive, "serialized_exported_program.json", "", "") != NULL)
                return fail(STATUS_WRONG_FILE, "this .pt2 was written by torch 2.7 or older; " SAVE_AGAIN);
        TRY(read_text_member(archive, "archive_format", &format));
        TRY(read_text_member(archive, "archive_version", &version));
        TRY(read_text_member(archive, "byteorder", &byteorder));
        if (format != NULL && strcmp(format, "pt2") != 0)
                return fail(STATUS_WRONG_FILE,
                            "the archive says its format is \"%s\", not \"pt2\"; " SAVE_AGAIN, format);
        if (version != NULL && strcmp(version, "0") != 0)
                return fail(STATUS_WRONG_FILE,
                            "the archive has version \"%s\"; version 0 (torch 2.9 and later) can be read",
                            version);
        if (byteorder != NULL && strcmp(byteorder, "little") != 0)
                return fail(STATUS_UNSUPPORTED,
                            "the archive was written on a big-endian machine (byteorder \"%s\"); save it "
                            "again on a little-endian one",
                            byteorder);
        return STATUS_OK;
}

// The stem of "models/<stem>.json"; NULL for other members.
static const char *model_stem(Archive *archive, const char *name, size_t *out_n)
{
        size_t root_n = strlen(archive->root), n = strlen(name);
        if (n < root_n + 7 + 1 + 5 || memcmp(name, archive->root, root_n) != 0 ||
            !has_prefix(name + root_n, "models/") || strcmp(name + n - 5, ".json") != 0)
                return NULL;
        *out_n = n - root_n - 7 - 5;
        return name + root_n + 7;
}

static Status choose_model(Archive *archive, const char *wanted)
{
        _cleanup_(text_deinit) Text names = { 0 };
        uint32_t n_models = 0;
        const char *chosen = NULL;
        for (uint32_t i = 0; i < zip_count(archive->zip); i++) {
                size_t n;
                const char *stem = model_stem(archive, zip_entry(archive->zip, i)->name, &n);
                if (stem == NULL)
                        continue;
                if (n_models++ < 20)
                        text_addf(&names, "%s%.*s", n_models == 1 ? "" : ", ", (int)n, stem);
                if (wanted == NULL || (strlen(wanted) == n && memcmp(wanted, stem, n) == 0)) {
                        chosen = arena_text(&archive->scratch, stem, n);
                        if (chosen == NULL)
                                return fail_memory();
                }
        }
        TRY(text_status(&names));
        if (n_models == 0)
                return fail(STATUS_WRONG_FILE,
                            "the archive holds no models/*.json, so it is no torch.export archive; "
                            "make one with torch.export.save(torch.export.export(model, args), \"m.pt2\")");
        if (chosen == NULL)
                return fail(STATUS_VALUE, "the archive holds no model \"%.100s\"; it holds: %s", wanted,
                            names.data);
        if (wanted == NULL && n_models > 1)
                return fail(STATUS_VALUE, "the archive holds %u models; choose one with ?model=: %s",
                            n_models, names.data);
        archive->model = chosen;
        return STATUS_OK;
}

// The config of one kind of weights, under the name of this torch or of its predecessors.
static Status find_config(Archive *archive, const char *folder, const char *const suffixes[2],
                          const ZipEntry **out_entry)
{
        *out_entry = find_member(archive, folder, archive->model, suffixes[0]);
        if (*out_entry == NULL)
                *out_entry = find_member(archive, folder, archive->model, suffixes[1]);
        if (*out_entry != NULL)
                return STATUS_OK;
        if (find_member(archive, folder, archive->model, ".pt") != NULL)
                return fail(STATUS_WRONG_FILE, "this .pt2 was written by torch 2.8, with pickled weights, "
                                               "and a pickle is code; " SAVE_AGAIN);
        return fail(STATUS_MALFORMED, "the archive has no member \"%s%s%s\"", folder, archive->model,
                    suffixes[0]);
}

static Status read_json_member(Archive *archive, const ZipEntry *entry, ZipContent *out_content,
                               JsonText *out_text)
{
        if (entry->n_bytes > (size_t)limits.max_graph_json)
                return fail(STATUS_TOO_LARGE,
                            "member \"%s\" has %zu bytes; the limit is %lld (--max-graph-json)", entry->name,
                            entry->n_bytes, (long long)limits.max_graph_json);
        TRY(zip_read(archive->zip, entry, SIZE_MAX, out_content));
        *out_text = (JsonText){ (const char *)out_content->span.data, out_content->span.n };
        return STATUS_OK;
}

static Status read_weights(Archive *archive, const char *folder, const char *const suffixes[2],
                           bool persistent, Graph *graph)
{
        const ZipEntry *entry;
        _cleanup_(zip_content_deinit) ZipContent content = { 0 };
        JsonText config;
        TRY(find_config(archive, folder, suffixes, &entry));
        TRY(read_json_member(archive, entry, &content, &config));
        const char *member_folder = arena_format(&archive->scratch, "%s%s", archive->root, folder);
        if (member_folder == NULL)
                return fail_memory();
        return pt2_weights_read(&archive->weights, config, member_folder, persistent, graph);
}

static Status check_schema(Archive *archive, JsonText version, JsonText torch_version)
{
        static const char *const names[] = { "major", "minor" };
        JsonText fields[2];
        int64_t major = 0, minor;
        const char *torch;
        if (version.n == 0)
                return fail(STATUS_MALFORMED, "the model document has no \"schema_version\"");
        TRY(json_text_fields(version, "\"schema_version\"", &archive->scratch, names, 2, fields));
        TRY(json_text_int(fields[0], &archive->scratch, 0, &major));
        TRY(json_text_int(fields[1], &archive->scratch, 0, &minor));
        TRY(json_text_string(torch_version, &archive->scratch, &torch));
        if (major == SCHEMA_MAJOR)
                return STATUS_OK;
        return fail(STATUS_WRONG_FILE,
                    "the model has schema version %lld.%lld (torch %s); version %d (torch 2.7 to 2.13) can "
                    "be read: export the model again "
                    "with torch 2.13",
                    (long long)major, (long long)minor, torch == NULL ? "unknown" : torch, SCHEMA_MAJOR);
}

static const char *const weight_suffixes[2] = { "_weights_config.json", "_model_param_config.json" };
static const char *const constant_suffixes[2] = { "_constants_config.json", "_model_constants_config.json" };

static Status read_model(Archive *archive, JsonText document, Pt2Graph *graph)
{
        enum { GRAPH_MODULE, SCHEMA_VERSION, TORCH_VERSION, RANGES, GUARDS, VERIFIERS, N_FIELDS };
        static const char *const names[] = { "graph_module",      "schema_version", "torch_version",
                                             "range_constraints", "guards_code",    "verifiers" };
        enum { GRAPH, SIGNATURE, CALLS, NAMEDTUPLES, N_PARTS };
        static const char *const part_names[] = { "graph", "signature", "module_call_graph",
                                                  "treespec_namedtuple_fields" };
        JsonText fields[N_FIELDS], parts[N_PARTS];
        const char **literal_names;
        uint32_t n_literal_names;
        TRY(json_text_fields(document, "the model document", &archive->scratch, names, N_FIELDS, fields));
        TRY(check_schema(archive, fields[SCHEMA_VERSION], fields[TORCH_VERSION]));
        if (fields[GRAPH_MODULE].n == 0)
                return fail(STATUS_MALFORMED, "the model document has no \"graph_module\"");
        TRY(json_text_fields(fields[GRAPH_MODULE], "\"graph_module\"", &archive->scratch, part_names, N_PARTS,
                             parts));
        for (int i = GRAPH; i <= CALLS; i++) {
                if (parts[i].n == 0)
                        return fail(STATUS_MALFORMED, "\"graph_module\" has no \"%s\"", part_names[i]);
        }
        TRY(pt2_literal_names(parts[SIGNATURE], &archive->scratch, &literal_names, &n_literal_names));
        TRY(pt2_graph_read(parts[GRAPH], literal_names, n_literal_names, graph));
        TRY(read_weights(archive, "data/weights/", weight_suffixes, true, graph->graph));
        TRY(read_weights(archive, "data/constants/", constant_suffixes, false, graph->graph));
        Pt2SignatureText signature = { .signature = parts[SIGNATURE],
                                       .module_call_graph = parts[CALLS],
                                       .namedtuple_fields = parts[NAMEDTUPLES],
                                       .range_constraints = fields[RANGES],
                                       .guards = fields[GUARDS],
                                       .verifiers = fields[VERIFIERS] };
        TRY(pt2_signature_read(&signature, graph));
        return pt2_mark_writes(graph->graph);
}

Status pt2_read(ByteSpan bytes, Storage *borrow_bytes, const char *model, Graph **out_graph)
{
        return pt2_read_pieces(bytes, borrow_bytes, NULL, model, out_graph);
}

Status pt2_read_pieces(ByteSpan bytes, Storage *borrow_bytes, Pieces *pieces, const char *model,
                       Graph **out_graph)
{
        _cleanup_(archive_deinit) Archive archive = { 0 };
        arena_init(&archive.scratch, 0);
        TRY(zip_open(bytes, &archive.zip));
        TRY(find_root(&archive));
        TRY(check_layout(&archive));
        TRY(choose_model(&archive, model));
        const ZipEntry *entry = find_member(&archive, "models/", archive.model, ".json");
        if (entry == NULL)
                return fail_memory();
        JsonText document;
        TRY(read_json_member(&archive, entry, &archive.document, &document));
        archive.weights.zip = archive.zip;
        archive.weights.archive_storage = borrow_bytes;
        archive.weights.pieces = pieces;
        archive.weights.scratch = &archive.scratch;
        _cleanup_(pt2_graph_deinit) Pt2Graph graph = { .scratch = &archive.scratch };
        TRY(read_model(&archive, document, &graph));
        TRY(graph_finish(graph.graph));
        *out_graph = take_ptr(graph.graph);
        return STATUS_OK;
}
