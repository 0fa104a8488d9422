// SPDX-License-Identifier: Apache-2.0
// recognise.c: by the first bytes, and for zip archives by the names of the members. The messages
// address the person who sent the wrong file: what it is, and the line of code that makes the right
// one.
#include "api/readers/recognise.h"

#include <stdio.h>
#include <string.h>
#include "api/formats/zip.h"
#include "core/base/json.h"
#include "core/base/limits.h"

#define EXPORT_LINE "torch.export.save(torch.export.export(model, args), \"m.pt2\")"
#define SEND_LINE   "curl -T m.pt2 ..."
#define FX_LINE                                                                                              \
        "python tools/export_fx.py model.py:Net net.json writes such a graph as FX JSON with its weights"

static bool starts_with(ByteSpan bytes, const char *prefix, size_t n)
{
        return bytes.n >= n && memcmp(bytes.data, prefix, n) == 0;
}

static size_t first_printed(ByteSpan bytes)
{
        size_t at = 0;
        while (at < bytes.n && (bytes.data[at] == ' ' || bytes.data[at] == '\n' || bytes.data[at] == '\r' ||
                                bytes.data[at] == '\t'))
                at++;
        return at;
}

// A u64 length with a JSON object of that length behind it.
static bool is_safetensors(ByteSpan bytes)
{
        uint64_t n = 0;
        if (bytes.n < 10 || bytes.data[8] != '{')
                return false;
        for (int i = 0; i < 8; i++)
                n |= (uint64_t)bytes.data[i] << (8 * i);
        return n >= 2 && n <= bytes.n - 8 &&
               (bytes.data[9] == '"' || bytes.data[9] == '}' || bytes.data[9] == ' ');
}

FileKind recognise_kind(ByteSpan bytes)
{
        // A member, or the end records of an archive without any.
        if (starts_with(bytes, "PK\x03\x04", 4) || starts_with(bytes, "PK\x05\x06", 4) ||
            starts_with(bytes, "PK\x06\x06", 4))
                return FILE_PT2;
        if (is_safetensors(bytes))
                return FILE_SAFETENSORS;
        if (starts_with(bytes, "\x93NUMPY", 6))
                return FILE_NPY;
        if (starts_with(bytes, "\xef\xbb\xbf", 3))
                return FILE_JSON; // its reader's message says what to do
        size_t at = first_printed(bytes);
        return at < bytes.n && (bytes.data[at] == '{' || bytes.data[at] == '[') ? FILE_JSON : FILE_OTHER;
}

// ---- archives ----
typedef struct Signs {
        bool models, code, constants_pkl, data_pkl, aotinductor, manifest, old_program, npy;
} Signs;

static const char *base_name(const char *path)
{
        const char *slash = strrchr(path, '/');
        return slash == NULL ? path : slash + 1;
}

static bool ends_with(const char *text, const char *suffix)
{
        size_t n = strlen(text), suffix_n = strlen(suffix);
        return n >= suffix_n && strcmp(text + n - suffix_n, suffix) == 0;
}

static void read_signs(const Zip *zip, Signs *signs)
{
        for (uint32_t i = 0; i < zip_count(zip); i++) {
                const char *name = zip_entry(zip, i)->name, *base = base_name(name);
                const char *below = strchr(name, '/');
                below = below == NULL ? "" : below + 1; // without the root folder
                signs->models = signs->models ||
                                ((strncmp(name, "models/", 7) == 0 || strncmp(below, "models/", 7) == 0) &&
                                 ends_with(name, ".json"));
                signs->code = signs->code || strncmp(below, "code/", 5) == 0;
                signs->constants_pkl = signs->constants_pkl || strcmp(below, "constants.pkl") == 0;
                signs->data_pkl =
                        signs->data_pkl || strcmp(below, "data.pkl") == 0 || strcmp(name, "data.pkl") == 0;
                signs->aotinductor = signs->aotinductor || strstr(name, "data/aotinductor/") != NULL;
                signs->manifest = signs->manifest || strcmp(name, "MAR-INF/MANIFEST.json") == 0;
                signs->old_program =
                        signs->old_program || strcmp(base, "serialized_exported_program.json") == 0;
                signs->npy = signs->npy || ends_with(name, ".npy");
        }
}

static bool contains(ByteSpan bytes, const char *word)
{
        return bytes.n > 0 && memmem(bytes.data, MIN(bytes.n, (size_t)4096), word, strlen(word)) != NULL;
}

// A pickle of a torch.fx.GraphModule names its reducer first.
static bool is_graph_module(ByteSpan pickle)
{
        return contains(pickle, "torch.fx.graph_module");
}

static bool holds_graph_module(const Zip *zip)
{
        for (uint32_t i = 0; i < zip_count(zip); i++) {
                const ZipEntry *entry = zip_entry(zip, i);
                _cleanup_(zip_content_deinit) ZipContent content = { 0 };
                if (strcmp(base_name(entry->name), "data.pkl") == 0 && !entry->deflated &&
                    zip_read(zip, entry, SIZE_MAX, &content) == STATUS_OK)
                        return is_graph_module(content.span);
        }
        return false;
}

static Status fail_graph_module(void)
{
        return fail(STATUS_WRONG_FILE,
                    "this is a pickled torch.fx.GraphModule, and a pickle is code, which is never run "
                    "here; " FX_LINE
                    " (its export_fx(graph_module) does it from Python), or export the model: " EXPORT_LINE
                    ", then " SEND_LINE);
}

static Status recognise_archive(const Zip *zip)
{
        Signs signs = { 0 };
        read_signs(zip, &signs);
        if (signs.models || signs.old_program)
                return STATUS_OK;
        if (signs.aotinductor)
                return fail(STATUS_WRONG_FILE,
                            "this is an AOTInductor package: compiled code for one machine, which is never "
                            "run here; "
                            "send the exported graph instead: " EXPORT_LINE ", then " SEND_LINE);
        if (signs.manifest)
                return fail(STATUS_WRONG_FILE,
                            "this is a TorchServe archive (.mar) with Python code, which is never run here; "
                            "load its "
                            "model in Python and export it: " EXPORT_LINE ", then " SEND_LINE);
        if (signs.code || signs.constants_pkl)
                return fail(STATUS_WRONG_FILE, "this is a TorchScript archive (torch.jit.save); export the "
                                               "original model instead: " EXPORT_LINE ", then " SEND_LINE
                                               "; without the model: tools/convert_pt2.py script.pt m.pt2 "
                                               "--input float32:1,3,224,224");
        if (signs.data_pkl && holds_graph_module(zip))
                return fail_graph_module();
        if (signs.data_pkl)
                return fail(
                        STATUS_WRONG_FILE,
                        "this is a pickle written by torch.save (a state_dict or a whole model), not a "
                        "graph, and a pickle is code; "
                        "load it into the model in "
                        "Python and export that: model.load_state_dict(torch.load(\"m.pth\")); " EXPORT_LINE
                        ", then " SEND_LINE);
        if (signs.npy)
                return fail(STATUS_WRONG_FILE, "this is a NumPy archive (.npz) of arrays, not a graph; "
                                               "export the model: " EXPORT_LINE ", then " SEND_LINE);
        return fail(STATUS_WRONG_FILE, "this is a zip archive without models/*.json, so it is no "
                                       "torch.export archive; make one: " EXPORT_LINE ", then " SEND_LINE);
}

// A zip with an inconsistent directory. `curl -d @m.pt2` drops every CR and LF, and NUL bytes with
// the rest of their line; a real archive of any size contains some of each.
static Status recognise_broken_archive(ByteSpan bytes)
{
        bool has_newline =
                memchr(bytes.data, '\n', bytes.n) != NULL || memchr(bytes.data, '\r', bytes.n) != NULL;
        bool has_nul = memchr(bytes.data, '\0', bytes.n) != NULL;
        if (!has_newline && (!has_nul || bytes.n > 1024))
                return fail(STATUS_WRONG_FILE, "this archive was damaged on its way: all its line ends are "
                                               "gone, as `curl -d @file` does; "
                                               "send it with curl -T m.pt2 ... or "
                                               "curl --data-binary @m.pt2 ...");
        return STATUS_MALFORMED; // the failure that zip_open recorded says what is wrong
}

// ---- other files ----
// ModelProto begins with field 1 (ir_version, varint): 08 0x; then comes
// field 2 (producer_name), 7 (graph) or 8 (opset_import) as bytes.
static bool is_onnx(ByteSpan bytes)
{
        return bytes.n >= 16 && bytes.data[0] == 0x08 && bytes.data[1] > 0 && bytes.data[1] < 0x20 &&
               (bytes.data[2] == 0x12 || bytes.data[2] == 0x3a || bytes.data[2] == 0x42);
}

// The name of an image format that is not read; NULL: it is something else.
static const char *other_image(ByteSpan bytes)
{
        if (starts_with(bytes, "GIF8", 4))
                return "GIF";
        if (starts_with(bytes, "RIFF", 4) && bytes.n >= 12 && memcmp(bytes.data + 8, "WEBP", 4) == 0)
                return "WebP";
        if (bytes.n >= 12 && memcmp(bytes.data + 4, "ftypavif", 8) == 0)
                return "AVIF";
        if (bytes.n >= 12 &&
            (memcmp(bytes.data + 4, "ftyphei", 7) == 0 || memcmp(bytes.data + 4, "ftypmif1", 8) == 0))
                return "HEIF";
        if (starts_with(bytes, "II*\0", 4) || starts_with(bytes, "MM\0*", 4))
                return "TIFF";
        return starts_with(bytes, "BM", 2) && bytes.n >= 26 ? "BMP" : NULL;
}

static bool is_html(ByteSpan bytes)
{
        static const char *const starts[] = { "<!doctype", "<html", "<?xml", "<head", "<body" };
        size_t at = first_printed(bytes);
        for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
                size_t n = strlen(starts[i]), k = 0;
                while (k < n && at + k < bytes.n &&
                       (bytes.data[at + k] | (starts[i][k] >= 'a' ? 0x20 : 0)) == starts[i][k])
                        k++;
                if (k == n)
                        return true;
        }
        return false;
}

static bool is_pickle(ByteSpan bytes)
{
        return bytes.n > 2 && bytes.data[0] == 0x80 && bytes.data[1] >= 2 && bytes.data[1] <= 5;
}

static Status fail_other(ByteSpan bytes)
{
        if (starts_with(bytes, "version https://git-lfs", 23))
                return fail(STATUS_WRONG_FILE, "this is a git-LFS pointer, not the file itself; fetch it "
                                               "with `git lfs pull` and send it again");
        if (is_pickle(bytes) && is_graph_module(bytes))
                return fail_graph_module();
        if (is_pickle(bytes))
                return fail(STATUS_WRONG_FILE,
                            "this is a Python pickle (an old torch.save file), not a graph, and a pickle is "
                            "code; load "
                            "it in Python and export the model: " EXPORT_LINE ", then " SEND_LINE);
        if (starts_with(bytes, "\x1f\x8b", 2))
                return fail(STATUS_WRONG_FILE, "this is a gzip file; unpack it first (gunzip), or send it "
                                               "with the header Content-Encoding: gzip");
        if (starts_with(bytes, "\x28\xb5\x2f\xfd", 4) ||
            starts_with(bytes,
                        "\xfd"
                        "7zXZ",
                        5) ||
            starts_with(bytes, "BZh", 3))
                return fail(STATUS_WRONG_FILE, "this is a compressed file; unpack it first");
        if (bytes.n > 262 && memcmp(bytes.data + 257, "ustar", 5) == 0)
                return fail(STATUS_WRONG_FILE, "this is a tar archive; unpack it and send the .pt2 within");
        if (starts_with(bytes, "\x89HDF", 4))
                return fail(STATUS_WRONG_FILE,
                            "this is an HDF5 file (Keras); only PyTorch graphs can be run: " EXPORT_LINE
                            ", then " SEND_LINE);
        if (starts_with(bytes,
                        "\x7f"
                        "ELF",
                        4))
                return fail(STATUS_WRONG_FILE,
                            "this is a compiled program or library, which is never run here; send the "
                            "exported graph: " EXPORT_LINE ", then " SEND_LINE);
        if (is_onnx(bytes))
                return fail(STATUS_WRONG_FILE,
                            "this looks like an ONNX model; export the PyTorch model instead: " EXPORT_LINE
                            ", then " SEND_LINE);
        if (is_html(bytes))
                return fail(STATUS_WRONG_FILE, "this is a web page, not a model: the download probably gave "
                                               "an error or login page; look at the file");
        if (starts_with(bytes, "--", 2) && contains(bytes, "Content-Disposition"))
                return fail(STATUS_WRONG_FILE,
                            "this is a multipart body without its Content-Type header; send it with curl -F "
                            "graph=@g.json -F weights=@w.safetensors ...");
        if (contains(bytes, "%PDF-") || contains(bytes, "import torch"))
                return fail(STATUS_WRONG_FILE,
                            "this is no model file; export the model in Python and send that: " EXPORT_LINE
                            ", then " SEND_LINE);
        return fail(STATUS_WRONG_FILE, "the body is neither a torch.export archive (.pt2) nor FX JSON; make "
                                       "an archive with " EXPORT_LINE " and send it with " SEND_LINE);
}

Status recognise_graph(ByteSpan bytes, FileKind *out_kind)
{
        if (bytes.n == 0)
                return fail(STATUS_MALFORMED, "the body is empty; send a file with " SEND_LINE
                                              " or FX JSON with curl -T graph.json ...");
        FileKind kind = recognise_kind(bytes);
        if (kind == FILE_SAFETENSORS)
                return fail(STATUS_WRONG_FILE,
                            "this is a safetensors file: weights without a graph; send both: curl -F "
                            "graph=@g.json -F "
                            "weights=@w.safetensors ..., or export: " EXPORT_LINE ", then " SEND_LINE);
        if (kind == FILE_NPY)
                return fail(STATUS_WRONG_FILE, "this is a NumPy array (.npy), not a graph; send arrays to "
                                               ".../run, and the graph as " EXPORT_LINE " with " SEND_LINE);
        if (kind == FILE_OTHER)
                return fail_other(bytes);
        if (kind == FILE_PT2) {
                _cleanup_(zip_freep) Zip *zip = NULL;
                Status status = zip_open(bytes, &zip);
                if (status == STATUS_MALFORMED)
                        return recognise_broken_archive(bytes);
                TRY(status);
                TRY(recognise_archive(zip));
        }
        *out_kind = kind;
        return STATUS_OK;
}

static bool says_variant(JsonReader *json)
{
        const char *key, *format;
        bool more;
        if (json_enter_object(json) != STATUS_OK)
                return false;
        while (json_next_key(json, &key, &more) == STATUS_OK && more) {
                if (strcmp(key, "format") == 0)
                        return json_peek(json) == JSON_STRING &&
                               json_read_string(json, &format, NULL) == STATUS_OK &&
                               strcmp(format, "fx-variant/1") == 0;
                if (json_skip(json) != STATUS_OK)
                        return false;
        }
        return false;
}

bool recognise_variant(ByteSpan bytes)
{
        Arena arena;
        JsonReader *json = NULL;
        if (bytes.n > (size_t)limits.max_upload_in_memory || recognise_kind(bytes) != FILE_JSON)
                return false;
        arena_init(&arena, 0);
        bool is_variant = json_open((const char *)bytes.data, bytes.n, (int)limits.max_json_depth_model,
                                    limits.max_json_values, &arena, &json) == STATUS_OK &&
                          says_variant(json);
        json_close(json);
        arena_deinit(&arena);
        return is_variant;
}

// ---- bodies of runs ----
#define ARRAY_LINE "send arrays as .npy, .npz (numpy.savez(\"x.npz\", x=x)), safetensors or JSON"

static Status recognise_run_archive(ByteSpan bytes, Status status)
{
        _cleanup_(zip_freep) Zip *zip = NULL;
        Signs signs = { 0 };
        if (zip_open(bytes, &zip) != STATUS_OK)
                return status;
        read_signs(zip, &signs);
        if (signs.models || signs.old_program)
                return fail(STATUS_WRONG_FILE,
                            "this is a graph (.pt2), and a run takes inputs; upload it first: curl -T m.pt2 "
                            ".../v1/graphs/m (PUT), then POST its inputs to .../v1/graphs/m/run");
        if (signs.code || signs.constants_pkl)
                return fail(STATUS_WRONG_FILE, "this is a TorchScript archive (torch.jit.save), and a run "
                                               "takes inputs; " ARRAY_LINE);
        if (signs.data_pkl)
                return fail(STATUS_WRONG_FILE,
                            "this is a file of torch.save: a pickle, which is code and never read "
                            "here; " ARRAY_LINE "; a model is exported and uploaded with PUT: " EXPORT_LINE
                            ", then " SEND_LINE);
        return status;
}

Status recognise_run_body(ByteSpan bytes, Status status)
{
        char message[FAILURE_MESSAGE_MAX], argument[FAILURE_PLACE_MAX];
        FileKind kind = recognise_kind(bytes);
        if (status != STATUS_MALFORMED && status != STATUS_UNSUPPORTED && status != STATUS_INPUT)
                return status;
        if (kind == FILE_PT2) {
                snprintf(message, sizeof(message), "%s", failure_current()->message);
                snprintf(argument, sizeof(argument), "%s", failure_current()->argument);
                if (recognise_run_archive(bytes, STATUS_OK) != STATUS_OK)
                        return STATUS_WRONG_FILE;
                return failure_at_argument(fail(status, "%s", message),
                                           argument[0] == '\0' ? NULL : argument);
        }
        if (kind != FILE_OTHER || bytes.n < 2)
                return status;
        if (is_pickle(bytes))
                return fail(STATUS_WRONG_FILE,
                            "this is a Python pickle, which is code and never read here; " ARRAY_LINE);
        if (starts_with(bytes, "\x1f\x8b", 2))
                return fail(STATUS_WRONG_FILE, "this is a gzip file; send it with the header "
                                               "Content-Encoding: gzip, or unpack it first");
        if (other_image(bytes) != NULL)
                return fail(STATUS_WRONG_FILE,
                            "this is a %s image; JPEG and PNG are read: convert it, or send an array",
                            other_image(bytes));
        if (is_onnx(bytes))
                return fail(STATUS_WRONG_FILE,
                            "this looks like an ONNX model, and a run takes inputs; " ARRAY_LINE);
        size_t at = first_printed(bytes);
        // the reader's message says what to do
        bool is_utf16 = starts_with(bytes, "\xff\xfe", 2) || starts_with(bytes, "\xfe\xff", 2);
        if (at < bytes.n && (bytes.data[at] < 0x20 || bytes.data[at] >= 0x7f) && !is_utf16)
                return fail(STATUS_WRONG_FILE, "the body is neither JSON nor an array file; " ARRAY_LINE);
        if (at < bytes.n && memchr(bytes.data, '=', MIN(bytes.n, (size_t)256)) != NULL &&
            bytes.data[at] != '<')
                failure_append("; this looks like a form: send JSON, {\"inputs\": {...}}, or files with curl "
                               "-F x=@x.npy");
        return status;
}
