// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include "core/base/limits.h"
#include "core/tensor/tensor.h"

static Budget budget;

static void begin(void)
{
        budget_init(&budget, 1 << 20);
}
TestSuite(tensor, .init = begin);

static Tensor *make_floats(int rank, const int64_t *size, float first)
{
        TensorMeta meta;
        meta_init(&meta, DTYPE_F32, rank, size);
        Tensor *tensor = NULL;
        cr_assert_eq(tensor_new(&meta, &budget, &tensor), STATUS_OK);
        for (int64_t i = 0; i < meta_numel(&meta); i++)
                ((float *)tensor_data(tensor))[i] = first + (float)i;
        return tensor;
}

static int n_released;
static void count_release(void *owner, void *data)
{
        n_released++;
        cr_expect_eq(owner, &n_released);
        free(data);
}

Test(tensor, views_share_bytes_and_keep_them_alive)
{
        Tensor *tensor = make_floats(2, (int64_t[]){ 2, 3 }, 0);
        TensorMeta meta = tensor->meta;
        meta.rank = 1;
        meta.size[0] = 2;
        meta.stride[0] = 3;
        Tensor *column = NULL;
        cr_assert_eq(tensor_new_view(tensor->storage, &meta, 2, &column), STATUS_OK);
        ((float *)tensor_data(tensor))[5] = 50;
        tensor = tensor_unref(tensor);
        cr_expect_null(tensor);
        cr_expect_eq(((float *)tensor_data(column))[3], 50);
        cr_expect_eq(budget.used, 24);
        tensor_unref(column);
        cr_expect_eq(budget.used, 0, "given back with the last view");
        cr_expect_null(tensor_unref(NULL));
}

Test(tensor, a_shell_copies_at_the_first_write_and_leaves_its_origin_alone)
{
        float *bytes = malloc(4 * sizeof(float));
        for (int i = 0; i < 4; i++)
                bytes[i] = (float)i;
        Storage *origin = NULL, *shell = NULL;
        n_released = 0;
        cr_assert_eq(storage_adopt(bytes, 16, true, count_release, &n_released, &origin), STATUS_OK);
        cr_assert_eq(storage_shell(origin, &budget, &shell), STATUS_OK);
        cr_expect_eq(shell->data, origin->data);
        cr_expect_eq(budget.used, 0);
        storage_unref(origin);
        cr_expect_eq(n_released, 0, "the shell holds its origin");
        storage_ref(origin);
        cr_assert_eq(storage_make_writable(shell), STATUS_OK);
        cr_expect_neq(shell->data, (uint8_t *)bytes);
        cr_expect_eq(budget.used, 16);
        ((float *)(void *)shell->data)[0] = 9;
        cr_expect_eq(bytes[0], 0);
        cr_expect_eq(((float *)(void *)shell->data)[3], 3, "the copy has the old bytes");
        uint8_t *own = shell->data;
        cr_assert_eq(storage_make_writable(shell), STATUS_OK);
        cr_expect_eq(shell->data, own, "copied once");
        cr_expect_eq(n_released, 0);
        storage_unref(origin);
        cr_expect_eq(n_released, 1);
        storage_unref(shell);
        cr_expect_eq(budget.used, 0, "what was charged is given back");
}

Test(tensor, a_write_that_does_not_fit_the_budget_leaves_the_shell_as_it_was)
{
        Storage *origin = NULL, *shell = NULL;
        Budget small;
        budget_init(&small, 8);
        cr_assert_eq(storage_new(64, true, &budget, &origin), STATUS_OK);
        cr_assert_eq(storage_shell(origin, &small, &shell), STATUS_OK);
        cr_expect_eq(storage_make_writable(shell), STATUS_TOO_LARGE);
        cr_expect(shell->readonly);
        cr_expect_eq(shell->data, origin->data);
        storage_unref(shell);
        storage_unref(origin);
}

Test(tensor, shared_read_only_bytes_are_never_made_writable)
{
        Storage *storage = NULL;
        cr_assert_eq(storage_adopt(calloc(1, 8), 8, true, NULL, NULL, &storage), STATUS_OK);
        cr_expect_eq(storage_make_writable(storage), STATUS_INTERNAL);
        storage_unref(storage);
}

// Reads every byte, which are all 7, and gives the number of pages that had to be mapped for it.
static long faults_of_reading(const Storage *storage)
{
        struct rusage before, after;
        getrusage(RUSAGE_THREAD, &before);
        for (size_t i = 0; i < storage->n_bytes; i++)
                cr_assert_eq(((const volatile uint8_t *)storage->data)[i], 7);
        getrusage(RUSAGE_THREAD, &after);
        return after.ru_minflt - before.ru_minflt;
}

enum { N_BYTES = 1 << 20 };
static void unmap(void *owner, void *data)
{
        (void)owner;
        munmap(data, N_BYTES);
}

Test(tensor, pages_of_a_file_are_let_go_of_and_read_again)
{
        FILE *file = tmpfile();
        for (int i = 0; i < N_BYTES; i++)
                fputc(7, file);
        fflush(file);
        uint8_t *data = mmap(NULL, N_BYTES, PROT_READ, MAP_SHARED, fileno(file), 0);
        fclose(file);
        Storage *storage = NULL, *shell = NULL, *own = NULL;
        cr_assert_eq(storage_adopt(data, N_BYTES, true, unmap, NULL, &storage), STATUS_OK);
        cr_assert_eq(storage_shell(storage, &budget, &shell), STATUS_OK);
        faults_of_reading(storage);
        storage_rest(shell);
        long unmarked = faults_of_reading(storage);
        storage->mapped = true;
        storage_rest(shell);
        long marked = faults_of_reading(storage);
        cr_expect_lt(unmarked, marked); // the kernel may have taken back a page or two
        cr_expect_lt(faults_of_reading(storage), marked);
        cr_assert_eq(storage_new(N_BYTES, true, NULL, &own), STATUS_OK);
        memset(own->data, 7, N_BYTES);
        storage_rest(own);
        faults_of_reading(own);
        storage_unref(own);
        storage_unref(shell);
        storage_unref(storage);
}

Test(tensor, a_long_chain_of_shells_is_freed)
{
        Storage *storage = NULL;
        cr_assert_eq(storage_new(1, true, &budget, &storage), STATUS_OK);
        for (int i = 0; i < 100000; i++) {
                Storage *shell = NULL;
                cr_assert_eq(storage_shell(storage, &budget, &shell), STATUS_OK);
                storage_unref(storage);
                storage = shell;
        }
        storage_unref(storage);
}

Test(tensor, more_than_the_budget_is_refused_before_memory_is_taken)
{
        TensorMeta meta;
        meta_init(&meta, DTYPE_F32, 1, (int64_t[]){ 1 << 20 });
        Tensor *tensor = NULL;
        cr_expect_eq(tensor_new(&meta, &budget, &tensor), STATUS_TOO_LARGE);
        cr_expect_not_null(strstr(failure_current()->message, "--max-run-memory"));
        cr_expect_null(tensor);
        Storage *storage = NULL;
        cr_expect_eq(storage_new(SIZE_MAX, false, NULL, &storage), STATUS_TOO_LARGE);
        meta.size[0] = INT64_MAX / 2;
        cr_expect_eq(tensor_new(&meta, NULL, &tensor), STATUS_TOO_LARGE);
}

Test(tensor, an_empty_tensor_has_no_bytes)
{
        Tensor *tensor = make_floats(2, (int64_t[]){ 3, 0 }, 0), *copy = NULL;
        cr_expect_null(tensor_data(tensor));
        tensor->meta.stride[0] = 5;
        cr_assert_eq(tensor_contiguous(tensor, &budget, &copy), STATUS_OK);
        tensor_copy_data(tensor, copy);
        tensor_unref(copy);
        tensor_unref(tensor);
}

Test(tensor, contiguous_of_a_contiguous_tensor_is_itself)
{
        Tensor *tensor = make_floats(2, (int64_t[]){ 2, 3 }, 0), *same = NULL;
        cr_assert_eq(tensor_contiguous(tensor, &budget, &same), STATUS_OK);
        cr_expect_eq(same, tensor);
        tensor_unref(same);
        tensor_unref(tensor);
}

Test(tensor, items_need_exactly_one_element)
{
        Tensor *tensor = make_floats(2, (int64_t[]){ 1, 1 }, 2.75f),
               *two = make_floats(1, (int64_t[]){ 2 }, 0);
        double real;
        int64_t whole;
        cr_assert_eq(tensor_item_f64(tensor, &real), STATUS_OK);
        cr_assert_eq(tensor_item_i64(tensor, &whole), STATUS_OK);
        cr_expect(real == 2.75 && whole == 2);
        cr_expect_eq(tensor_item_f64(two, &real), STATUS_VALUE);
        cr_expect_str_eq(failure_current()->message,
                         "a Tensor with 2 elements cannot be converted to Scalar");
        tensor_unref(tensor);
        tensor_unref(two);
}

// ---- copies ----
static uint64_t random_state = 88172645463325252u;
static int64_t random_below(int64_t n)
{
        random_state ^= random_state << 13;
        random_state ^= random_state >> 7;
        random_state ^= random_state << 17;
        return (int64_t)(random_state % (uint64_t)n);
}

// A tensor of `size` whose dimensions lie in random order with random gaps; broadcast dimensions
// (stride 0) when asked for.
static Tensor *make_scattered(Dtype dtype, int rank, const int64_t *size, bool broadcast)
{
        TensorMeta meta, flat;
        meta_init(&meta, dtype, rank, size);
        int order[MAX_RANK];
        for (int d = 0; d < rank; d++) {
                order[d] = d;
                int other = (int)random_below(d + 1);
                order[d] = order[other];
                order[other] = d;
        }
        int64_t stride = 1 + random_below(2);
        for (int i = 0; i < rank; i++) {
                meta.stride[order[i]] = broadcast && random_below(4) == 0 ? 0 : stride;
                stride *= MAX(size[order[i]], 1) + random_below(2);
        }
        int64_t n_bytes = stride * dtype_info[dtype].bytes;
        meta_init(&flat, DTYPE_U8, 1, &n_bytes);
        Tensor *bytes = NULL, *tensor = NULL;
        cr_assert_eq(tensor_new(&flat, NULL, &bytes), STATUS_OK);
        for (int64_t i = 0; i < n_bytes; i++)
                bytes->storage->data[i] = (uint8_t)random_below(256);
        for (int64_t i = 0; i < stride; i++)
                element_from_i64(dtype, bytes->storage->data + i * dtype_info[dtype].bytes,
                                 random_below(200));
        cr_assert_eq(tensor_new_view(bytes->storage, &meta, 0, &tensor), STATUS_OK);
        tensor_unref(bytes);
        return tensor;
}

static void *element_at(const Tensor *tensor, const int64_t *index)
{
        int64_t at = 0;
        for (int d = 0; d < tensor->meta.rank; d++)
                at += index[d] * tensor->meta.stride[d];
        return (uint8_t *)tensor_data(tensor) + at * dtype_info[tensor->meta.dtype].bytes;
}

static bool next_index(int rank, const int64_t *size, int64_t *index)
{
        for (int d = rank - 1; d >= 0; d--) {
                if (++index[d] < size[d])
                        return true;
                index[d] = 0;
        }
        return false;
}

Test(tensor, copies_between_random_layouts_and_dtypes_move_every_element)
{
        static const Dtype dtypes[] = { DTYPE_BOOL, DTYPE_U8,  DTYPE_I16, DTYPE_F16,
                                        DTYPE_F32,  DTYPE_I64, DTYPE_C128 };
        for (int round = 0; round < 600; round++) {
                int rank = (int)random_below(6);
                int64_t size[MAX_RANK], index[MAX_RANK] = { 0 };
                for (int d = 0; d < rank; d++)
                        size[d] = rank == 2 ? 1 + random_below(40) : 1 + random_below(5);
                Dtype from_dtype = dtypes[random_below(ARRAY_LENGTH(dtypes))],
                      to_dtype = random_below(2) ? from_dtype : dtypes[random_below(ARRAY_LENGTH(dtypes))];
                Tensor *from = make_scattered(from_dtype, rank, size, true),
                       *to = make_scattered(to_dtype, rank, size, false);
                uint8_t *before = malloc(to->storage->n_bytes), *wrote = calloc(1, to->storage->n_bytes);
                memcpy(before, to->storage->data, to->storage->n_bytes);
                tensor_copy_data(from, to);
                do {
                        uint8_t want[16] = { 0 }, *got = element_at(to, index);
                        element_from_i64(to_dtype, want, element_as_i64(from_dtype, element_at(from, index)));
                        cr_assert_eq(memcmp(got, want, dtype_info[to_dtype].bytes), 0, "round %d", round);
                        memset(wrote + (got - to->storage->data), 1, dtype_info[to_dtype].bytes);
                } while (next_index(rank, size, index));
                for (size_t i = 0; i < to->storage->n_bytes; i++)
                        cr_assert(wrote[i] || before[i] == to->storage->data[i],
                                  "round %d wrote between elements", round);
                free(before);
                free(wrote);
                tensor_unref(from);
                tensor_unref(to);
        }
}
