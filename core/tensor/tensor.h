// SPDX-License-Identifier: Apache-2.0
// Storage (refcounted bytes), TensorMeta (dtype, shape, strides), Tensor (a view of a storage).
//
// A run sees weights and inputs through per-run Storage shells: `origin` points at the shared
// storage, bytes are copied at the first write (storage_make_writable). All views made from one
// shell share it, so aliasing is real. Shells belong to one run and thus one thread; origins are
// immutable and shared by all threads.
#pragma once
#include "core/base/budget.h"
#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/tensor/dtype.h"

enum { MAX_RANK = 8, STORAGE_ALIGN = 64 };

// A mark on tensors and storages that only the room which set it can read: it stands inside what
// that room knows of them (core/program: values and buffers of a recording), and `kind` says inside
// what.
typedef struct Tag {
        int kind;
} Tag;

typedef struct Storage Storage;
// What constant bytes were computed from, and how. Storages with equal keys have equal bytes,
// unless they were dropped (storage_without_bytes).
typedef struct StorageSource StorageSource;
struct StorageSource {
        RefCount ref;
        HashHex key;   // of an address in `root`, and of all that was done to the bytes there
        Storage *root; // counted, so that the address is not reused; has no source itself
        // Computes the bytes again. Any thread; STATUS_NO_MEMORY.
        Status (*make)(const StorageSource *source, Storage **out_storage);
        void *recipe; // owned: what `make` needs beside the root
};
struct Storage {
        RefCount ref;
        uint8_t *data; // STORAGE_ALIGN-aligned when we allocated it; NULL when n_bytes == 0
        size_t n_bytes;
        bool readonly; // writes must go through storage_make_writable
        // Adopted bytes are a file's: they cost no memory of our own. Only for mappings that nobody
        // writes to: storage_rest lets go of their pages, and what was written would be lost.
        bool mapped;
        bool in_block; // `data` lies behind this header, in the same allocation
        Tag *tag;      // borrowed; set: the bytes are not there yet. NULL: they are
        // counted; the storage whose bytes `data` points into, NULL if own bytes
        Storage *origin;
        // borrowed; own bytes were taken from it (NULL: none). Must outlive the storage.
        Budget *budget;
        void (*release)(void *owner, void *data); // frees `data` for adopted bytes; NULL: free()
        void *owner;
        StorageSource *source; // counted; NULL: its bytes were not computed by passes
};
static inline Storage *storage_root(Storage *storage) // what its bytes were computed from, or itself
{
        return storage->source == NULL ? storage : storage->source->root;
}
static inline bool storage_is_mapped(const Storage *storage) // its bytes are a file's; NULL: no
{
        while (storage != NULL && !storage->mapped)
                storage = storage->origin;
        return storage != NULL;
}

typedef struct TensorMeta {
        Dtype dtype;
        uint8_t rank;
        // a Python number in a Tensor slot: takes part in promotion as a number
        bool wrapped;
        int64_t size[MAX_RANK], stride[MAX_RANK]; // in elements
} TensorMeta;

typedef struct Tensor {
        RefCount ref;
        // PyTorch's conj and neg bits: the elements are the conjugates of those in memory, or their
        // negatives. Set while a graph is walked only; emit() resolves them (core/ops/lazy.h).
        bool conj, negative;
        TensorMeta meta;
        Storage *storage; // counted
        int64_t offset;   // elements
        Tag *tag;         // borrowed; NULL: nobody's
} Tensor;

// Whether its numbers can be read now. While recording, only those of constants can.
static inline bool tensor_is_known(const Tensor *tensor)
{
        return tensor->storage != NULL && tensor->storage->tag == NULL;
}

// ---- storages ----
static inline size_t storage_padded(size_t n_bytes)
{
        return (n_bytes + STORAGE_ALIGN - 1) / STORAGE_ALIGN * STORAGE_ALIGN;
}
// Uninitialised / zeroed own bytes, charged to `budget` (may be NULL).
// STATUS_NO_MEMORY or STATUS_TOO_LARGE ("... over --max-run-memory").
Status storage_new(size_t n_bytes, bool zeroed, Budget *budget, Storage **out_storage);
// Adopts bytes: release(owner, data) is called at the end (NULL: free(data)). On failure the caller
// keeps them.
Status storage_adopt(void *take_data, size_t n_bytes, bool readonly, void (*release)(void *owner, void *data),
                     void *owner, Storage **out_storage);
// Replaces the adopted bytes of a storage that nobody else uses yet by others of the same content
// and size. The old ones are released. Never fails.
void storage_rebase(Storage *storage, void *take_data, void (*release)(void *owner, void *data), void *owner);
// Lets go of the pages of a mapped file that lie wholly within the storage: they are read again
// when somebody reads the bytes. Of other storages nothing. Any thread.
void storage_rest(const Storage *storage);
// A copy-on-write shell over `origin` (counted). The copy, if one is made, is charged to `budget`.
Status storage_shell(Storage *origin, Budget *budget, Storage **out_storage);
// Moves the bytes' charge to another budget (NULL: none), for they outlive the first one. False: it
// has no room, and nothing has changed. For storages with bytes of their own.
bool storage_charge(Storage *storage, Budget *budget);
Status storage_make_writable(Storage *storage);
// Counted. `root` has no source itself: it is storage_root of what was read. Takes the recipe, also
// on failure. STATUS_NO_MEMORY.
Status storage_source_new(const HashHex *key, Storage *root,
                          Status (*make)(const StorageSource *source, Storage **out_storage),
                          void *take_recipe, StorageSource **out_source);
StorageSource *storage_source_ref(StorageSource *source);
StorageSource *storage_source_unref(StorageSource *source); // NULL-safe, returns NULL
// `storage` itself, counted, where nothing can make its bytes again, else an empty one with its
// source. STATUS_NO_MEMORY.
Status storage_without_bytes(Storage *storage, Storage **out_storage);
// The bytes of what storage_without_bytes gave, counted. STATUS_NO_MEMORY.
Status storage_with_bytes(Storage *storage, Storage **out_storage);
Storage *storage_ref(Storage *storage);
Storage *storage_unref(Storage *storage); // NULL-safe, returns NULL
DEFINE_CLEANUP(Storage, storage_unref)

// ---- metas ----
// contiguous strides; sizes already checked
void meta_init(TensorMeta *meta, Dtype dtype, int rank, const int64_t *size);
void meta_set_contiguous(TensorMeta *meta);
// Strides of `like` kept when it is non-overlapping and dense (its permutation), else contiguous:
// empty_like(preserve_format).
void meta_set_strides_like(TensorMeta *meta, const TensorMeta *like);
// Strides of an elementwise result of broadcast operands (at most 8), as TensorIterator chooses
// them: a layout that all share, else dense in the order of the first operand that tells. `meta`
// holds the broadcast shape.
void meta_set_strides_elementwise(TensorMeta *meta, const TensorMeta *const *operands, int n);
bool meta_is_contiguous(const TensorMeta *meta);
bool meta_is_channels_last(const TensorMeta *meta); // rank 4 (or 5), strides of NHWC (NDHWC)
void meta_set_channels_last(TensorMeta *meta);
// Whether elements lie where channels_last has them; strides of dimensions of size 1 are arbitrary.
bool meta_lies_channels_last(const TensorMeta *meta); // rank 4 or 5
// Whether a channels_last image, or some channels of one, lies there: pixels in order, the channels
// of each beside each other.
bool meta_lies_by_pixels(const TensorMeta *meta);
bool meta_is_non_overlapping_and_dense(const TensorMeta *meta);
int64_t meta_numel(const TensorMeta *meta); // sizes already checked
bool meta_same_shape(const TensorMeta *a, const TensorMeta *b);
// Of one shape, and with equal strides wherever a size is above 1.
bool meta_same_places(const TensorMeta *a, const TensorMeta *b);
// Product of sizes, checked against negative sizes, overflow and limits.max_numel (STATUS_TOO_LARGE
// / STATUS_VALUE).
Status shape_numel(int rank, const int64_t *size, int64_t *out_numel);
// Elements spanned by a strided view: 1 + sum (size-1)*stride, 0 when empty. Strides must be >= 0.
// Checked.
Status meta_span(const TensorMeta *meta, int64_t *out_elements);
// PyTorch's broadcasting: `The size of tensor a (3) must match the size of tensor b (4) at
// non-singleton dimension 1`.
Status shape_broadcast(const TensorMeta *a, const TensorMeta *b, int *out_rank, int64_t out_size[MAX_RANK]);
// "[2, 3]" into `out` (cap bytes), for messages.
const char *shape_text(int rank, const int64_t *size, char *out, size_t cap);
// Wraps a dimension given as -rank..rank-1 (rank 0 counts as 1): `Dimension out of range (expected
// to be in range of [-2, 1], but got 2)`.
Status dim_wrap(int64_t dim, int rank, int *out_dim);
// Strides of a view of shape `size` over `meta` without copying; false if none exists.
bool meta_view_strides(const TensorMeta *meta, int rank, const int64_t *size, int64_t out_stride[MAX_RANK]);

// ---- tensors ----
// Fresh bytes for `meta` (its strides are kept: the storage covers its span).
// Contents uninitialised.
Status tensor_new(const TensorMeta *meta, Budget *budget, Tensor **out_tensor);
// A view: takes no storage reference from the caller, adds its own. Bounds must have been checked
// (tensor_check_bounds).
Status tensor_new_view(Storage *storage, const TensorMeta *meta, int64_t offset, Tensor **out_tensor);
// Whether every element lies within storage; STATUS_MALFORMED otherwise.
Status tensor_check_bounds(const TensorMeta *meta, int64_t offset, size_t storage_bytes);
Tensor *tensor_ref(Tensor *tensor);
Tensor *tensor_unref(Tensor *tensor);
DEFINE_CLEANUP(Tensor, tensor_unref)

static inline void *tensor_data(const Tensor *tensor)
{
        // Zero-byte storages have data NULL.
        return tensor->storage->data == NULL
                       ? NULL
                       : tensor->storage->data +
                                 tensor->offset * (int64_t)dtype_info[tensor->meta.dtype].bytes;
}
// Contiguous copy (any dtype to itself), or the tensor itself with one more reference when it is
// contiguous already.
Status tensor_contiguous(Tensor *tensor, Budget *budget, Tensor **out_tensor);
// Elementwise copy with dtype conversion; shapes equal. Either side may be strided; `to` must be
// writable and must not overlap `from` partially.
void tensor_copy_data(const Tensor *from, Tensor *to);
// Reads one element of a 1-element tensor.
Status tensor_item_f64(const Tensor *tensor, double *out);
Status tensor_item_i64(const Tensor *tensor, int64_t *out);
