// SPDX-License-Identifier: Apache-2.0
// safetensors.c: u64 header length, a JSON header, the data. The header is read into rows first;
// the rows, sorted by place, must tile the data; only then are tensors made. Each tensor has a
// storage of its own that shares the file's bytes, so that writing one (copy on write) never copies
// the others.
#include "api/formats/safetensors.h"

#include <string.h>
#include "core/base/json.h"
#include "core/base/limits.h"

enum { LENGTH_BYTES = 8, HEADER_DEPTH = 4 };

typedef struct Row {
        const char *name;
        TensorMeta meta;
        size_t begin, end; // in the data
        uint32_t index;    // in the header
} Row;

typedef struct Rows {
        Row *items;
        uint32_t n, capacity;
} Rows;

static void rows_deinit(Rows *rows)
{
        free(rows->items);
}

void safetensors_deinit(Safetensors *file)
{
        for (uint32_t i = 0; i < file->n_entries; i++)
                tensor_unref(file->entries[i].tensor);
        free(file->entries);
        string_map_deinit(&file->by_name);
        string_map_deinit(&file->metadata);
        arena_deinit(&file->arena);
        *file = (Safetensors){ 0 };
}

Tensor *safetensors_find(const Safetensors *file, const char *name)
{
        return string_map_get(&file->by_name, name);
}

const char *safetensors_metadata(const Safetensors *file, const char *key)
{
        return string_map_get(&file->metadata, key);
}

// ---- header ----
static Status find_header(ByteSpan bytes, size_t *out_n)
{
        uint64_t n = 0;
        if (bytes.n < LENGTH_BYTES)
                return fail(STATUS_MALFORMED,
                            "the safetensors file has %zu bytes, too few for its header length", bytes.n);
        for (int i = 0; i < LENGTH_BYTES; i++)
                n |= (uint64_t)bytes.data[i] << (8 * i);
        if (n > (uint64_t)limits.max_safetensors_header)
                return fail(STATUS_TOO_LARGE,
                            "the header of the safetensors file says it has %llu bytes; the limit is %lld "
                            "(max_safetensors_header in GET /v1)%s",
                            (unsigned long long)n, (long long)limits.max_safetensors_header,
                            n > bytes.n ? "; that is more than the file has: it is no safetensors file" : "");
        if (n > bytes.n - LENGTH_BYTES)
                return fail(STATUS_MALFORMED,
                            "the header of the safetensors file says it has %llu bytes, but only %zu follow: "
                            "the file is cut off",
                            (unsigned long long)n, bytes.n - LENGTH_BYTES);
        if (n < 2 || bytes.data[LENGTH_BYTES] != '{')
                return fail(STATUS_MALFORMED, "the header of the safetensors file is no JSON object");
        *out_n = (size_t)n;
        return STATUS_OK;
}

static Status read_dtype(JsonReader *reader, Dtype *out_dtype)
{
        const char *name;
        TRY(json_read_string(reader, &name, NULL));
        for (Dtype dtype = 0; dtype < DTYPE_COUNT; dtype++) {
                if (dtype_info[dtype].safetensors != NULL &&
                    strcmp(dtype_info[dtype].safetensors, name) == 0) {
                        *out_dtype = dtype;
                        return STATUS_OK;
                }
        }
        return fail(STATUS_UNSUPPORTED, "dtype %.40s is not supported", name);
}

static Status read_shape(JsonReader *reader, int *out_rank, int64_t size[MAX_RANK])
{
        int rank = 0;
        TRY(json_enter_array(reader));
        for (;;) {
                bool more;
                TRY(json_next_item(reader, &more));
                if (!more)
                        break;
                if (rank == MAX_RANK)
                        return fail(STATUS_UNSUPPORTED, "more than %d dimensions", MAX_RANK);
                TRY(json_read_int(reader, &size[rank]));
                if (size[rank++] < 0)
                        return fail(STATUS_MALFORMED, "a negative size");
        }
        *out_rank = rank;
        return STATUS_OK;
}

static Status read_offsets(JsonReader *reader, Row *row)
{
        int64_t offset[2] = { 0 };
        int n = 0;
        TRY(json_enter_array(reader));
        for (;; n++) {
                bool more;
                TRY(json_next_item(reader, &more));
                if (!more)
                        break;
                if (n == 2)
                        return fail(STATUS_MALFORMED, "more than two data_offsets");
                TRY(json_read_int(reader, &offset[n]));
        }
        if (n != 2 || offset[0] < 0 || offset[1] < offset[0])
                return fail(STATUS_MALFORMED, "data_offsets that are no ascending pair");
        row->begin = (size_t)offset[0];
        row->end = (size_t)offset[1];
        return STATUS_OK;
}

static Status read_row(JsonReader *reader, Row *row)
{
        Dtype dtype = DTYPE_NONE;
        int rank = -1;
        int64_t size[MAX_RANK], numel;
        size_t n_bytes;
        bool has_offsets = false;
        TRY(json_enter_object(reader));
        for (;;) {
                const char *key;
                bool more;
                TRY(json_next_key(reader, &key, &more));
                if (!more)
                        break;
                if (strcmp(key, "dtype") == 0) {
                        TRY(read_dtype(reader, &dtype));
                } else if (strcmp(key, "shape") == 0) {
                        TRY(read_shape(reader, &rank, size));
                } else if (strcmp(key, "data_offsets") == 0) {
                        TRY(read_offsets(reader, row));
                        has_offsets = true;
                } else {
                        return fail(STATUS_MALFORMED, "an unknown member \"%.40s\"", key);
                }
        }
        if (dtype == DTYPE_NONE || rank < 0 || !has_offsets)
                return fail(STATUS_MALFORMED, "no dtype, shape or data_offsets");
        TRY(shape_numel(rank, size, &numel));
        if (!mul_size((size_t)numel, dtype_info[dtype].bytes, &n_bytes) || n_bytes != row->end - row->begin)
                return fail(STATUS_MALFORMED, "%zu bytes of data where its shape and dtype need %zu",
                            row->end - row->begin, n_bytes);
        meta_init(&row->meta, dtype, rank, size);
        return STATUS_OK;
}

static Status read_metadata(void *context, JsonReader *reader, const char *key)
{
        Safetensors *file = context;
        const char *text;
        TRY(json_read_string(reader, &text, NULL));
        return string_map_set(&file->metadata, key, (void *)(uintptr_t)text, NULL);
}

// Puts the tensor's name before what is wrong with it.
static Status name_failure(Status status, const char *name)
{
        if (status_class(status) != STATUS_CLASS_CALLER)
                return status;
        return failure_at_argument(fail(status, "tensor \"%.200s\" of the safetensors file: %s", name,
                                        failure_current()->message),
                                   name);
}

static Status read_header(ByteSpan header, Safetensors *file, Rows *rows)
{
        _cleanup_(json_closep) JsonReader *reader = NULL;
        TRY(json_open((const char *)header.data, header.n, HEADER_DEPTH, limits.max_json_values, &file->arena,
                      &reader));
        TRY(json_enter_object(reader));
        for (;;) {
                const char *name;
                bool more;
                TRY(json_next_key(reader, &name, &more));
                if (!more)
                        break;
                if (strcmp(name, "__metadata__") == 0) {
                        TRY(json_each_member(reader, read_metadata, file));
                        continue;
                }
                if (rows->n >= limits.max_tensors)
                        return fail(
                                STATUS_TOO_LARGE,
                                "the safetensors file has more than %lld tensors (max_tensors in GET /v1)",
                                (long long)limits.max_tensors);
                TRY(array_reserve(&rows->items, &rows->capacity, rows->n + 1, sizeof(Row)));
                Row *row = &rows->items[rows->n];
                *row = (Row){ .name = name, .index = rows->n };
                TRY(name_failure(read_row(reader, row), name));
                rows->n++;
        }
        return json_finish(reader);
}

static int compare_rows(const void *a, const void *b)
{
        const Row *left = a, *right = b;
        if (left->begin != right->begin)
                return left->begin < right->begin ? -1 : 1;
        if (left->end != right->end)
                return left->end < right->end ? -1 : 1;
        return left->index < right->index ? -1 : left->index > right->index;
}

// Sorts the rows by place and proves that they tile `n_bytes`.
static Status check_tiling(Rows *rows, size_t n_bytes)
{
        size_t at = 0;
        if (rows->n > 1)
                qsort(rows->items, rows->n, sizeof(Row), compare_rows);
        for (uint32_t i = 0; i < rows->n; i++) {
                const Row *row = &rows->items[i];
                if (row->begin != at)
                        return fail(STATUS_MALFORMED,
                                    "tensor \"%.200s\" of the safetensors file starts at byte %zu of the "
                                    "data, %s byte %zu",
                                    row->name, row->begin,
                                    row->begin < at ? "overlapping the one before it, which ends at"
                                                    : "leaving a gap after",
                                    at);
                if (row->end > n_bytes)
                        return fail(STATUS_MALFORMED,
                                    "tensor \"%.200s\" of the safetensors file ends at byte %zu of the data, "
                                    "but the file has %zu: it is "
                                    "cut off",
                                    row->name, row->end, n_bytes);
                at = row->end;
        }
        if (at != n_bytes)
                return fail(STATUS_MALFORMED, "the safetensors file has %zu bytes after its last tensor",
                            n_bytes - at);
        return STATUS_OK;
}

// ---- tensors ----
static void release_file(void *owner, void *data)
{
        (void)data;
        storage_unref(owner);
}

// Where the tensors' bytes come from.
typedef struct Source {
        ByteSpan bytes;        // the whole file
        size_t data;           // offset of the data
        Storage *borrow_bytes; // or NULL
        Pieces *pieces;        // or NULL
} Source;

static Status make_storage(ByteSpan span, size_t alignment, const Source *source, Storage **out_storage)
{
        Storage *borrow_bytes = source->borrow_bytes;
        size_t offset = (size_t)(span.data - source->bytes.data);
        if (borrow_bytes != NULL && span.n > 0 &&
            pieces_usable(source->pieces, span.data, offset, span.n, alignment)) {
                _cleanup_(storage_unrefp) Storage *part = NULL;
                Storage *owner = storage_ref(borrow_bytes);
                Status status =
                        storage_adopt((void *)(uintptr_t)span.data, span.n, true, release_file, owner, &part);
                if (status != STATUS_OK) {
                        storage_unref(owner);
                        return status;
                }
                if (pieces_collect(source->pieces))
                        TRY(pieces_add(source->pieces, offset, span.n, part));
                *out_storage = take_ptr(part);
                return STATUS_OK;
        }
        Storage *storage;
        TRY(storage_new(span.n, false, NULL, &storage));
        if (span.n > 0)
                memcpy(storage->data, span.data, span.n);
        storage->readonly = true;
        *out_storage = storage;
        return STATUS_OK;
}

static Status make_tensor(const Row *row, const Source *source, Tensor **out_tensor)
{
        _cleanup_(storage_unrefp) Storage *storage = NULL;
        size_t offset = source->data + row->begin;
        ByteSpan span = { source->bytes.data + offset, row->end - row->begin };
        Storage *piece = pieces_find(source->pieces, offset, span.n);
        if (piece != NULL && piece->n_bytes == span.n) {
                span.data = piece->data;
                storage = storage_ref(piece);
        }
        for (size_t i = 0; row->meta.dtype == DTYPE_BOOL && i < span.n; i++) {
                if (span.data[i] > 1)
                        return fail(STATUS_MALFORMED, "it is bool and holds a byte %u", span.data[i]);
        }
        if (storage == NULL)
                TRY(make_storage(span, dtype_info[row->meta.dtype].bytes, source, &storage));
        return tensor_new_view(storage, &row->meta, 0, out_tensor);
}

static Status read_file(ByteSpan bytes, Storage *borrow_bytes, Pieces *pieces, Safetensors *file)
{
        _cleanup_(rows_deinit) Rows rows = { 0 };
        size_t n = 0;
        TRY(find_header(bytes, &n));
        TRY(read_header((ByteSpan){ bytes.data + LENGTH_BYTES, n }, file, &rows));
        Source source = {
                .bytes = bytes, .data = LENGTH_BYTES + n, .borrow_bytes = borrow_bytes, .pieces = pieces
        };
        TRY(check_tiling(&rows, bytes.n - source.data));
        file->entries = new_array(rows.n, sizeof(*file->entries));
        if (file->entries == NULL)
                return fail_memory();
        file->n_entries = rows.n;
        for (uint32_t i = 0; i < rows.n; i++) {
                const Row *row = &rows.items[i];
                SafetensorsEntry *entry = &file->entries[row->index];
                entry->name = row->name;
                TRY(name_failure(make_tensor(row, &source, &entry->tensor), row->name));
                TRY(string_map_set(&file->by_name, entry->name, entry->tensor, NULL));
        }
        return STATUS_OK;
}

Status safetensors_read(ByteSpan bytes, Storage *borrow_bytes, Safetensors *out_file)
{
        return safetensors_read_pieces(bytes, borrow_bytes, NULL, out_file);
}

Status safetensors_read_pieces(ByteSpan bytes, Storage *borrow_bytes, Pieces *pieces, Safetensors *out_file)
{
        Safetensors file = { 0 };
        arena_init(&file.arena, 0);
        Status status = read_file(bytes, borrow_bytes, pieces, &file);
        if (status != STATUS_OK) {
                safetensors_deinit(&file);
                return status;
        }
        *out_file = file;
        return STATUS_OK;
}
