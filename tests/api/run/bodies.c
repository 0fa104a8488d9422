// SPDX-License-Identifier: Apache-2.0
// Binary bodies and replies: .npz and safetensors written and read back, arrays that lie in the
// body, cut and damaged files; Accept; preconditions.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include "api/formats/borrow.h"
#include "api/run/condition.h"
#include "api/formats/npy.h"
#include "api/formats/npz.h"
#include "api/run/codec.h"
#include "api/formats/safetensors.h"
#include "api/formats/safetensors_write.h"
#include "tests/api/formats/zip_maker.h"

typedef struct Taken {
        uint32_t n;
        char names[8][16];
        Tensor *tensors[8];
} Taken;

static Status take(void *context, const char *name, Tensor *take_tensor)
{
        Taken *taken = context;
        if (taken->n == 8) {
                tensor_unref(take_tensor);
                return fail(STATUS_TOO_LARGE, "enough");
        }
        snprintf(taken->names[taken->n], sizeof(taken->names[0]), "%s", name);
        taken->tensors[taken->n++] = take_tensor;
        return STATUS_OK;
}

static void taken_deinit(Taken *taken)
{
        for (uint32_t i = 0; i < taken->n; i++)
                tensor_unref(taken->tensors[i]);
        taken->n = 0;
}

static Tensor *make_tensor(Dtype dtype, int rank, const int64_t *size)
{
        TensorMeta meta;
        Tensor *tensor;
        meta_init(&meta, dtype, rank, size);
        cr_assert_eq(tensor_new(&meta, NULL, &tensor), STATUS_OK);
        uint8_t *data = tensor_data(tensor);
        size_t n = (size_t)meta_numel(&meta) * dtype_info[dtype].bytes;
        for (size_t i = 0; i < n; i++)
                data[i] = (uint8_t)(dtype == DTYPE_BOOL ? i & 1 : i * 7 + 1);
        return tensor;
}

static Status add_bytes(void *context, const uint8_t *data, size_t n)
{
        text_add_n(context, (const char *)data, n);
        return STATUS_OK;
}

// The reply's bytes as one storage, as a client would send them back.
static Storage *reply_storage(const ApiReply *reply)
{
        Text text = { 0 };
        Storage *storage;
        cr_assert_eq(api_reply_each(reply, add_bytes, &text), STATUS_OK);
        cr_assert_eq(text.n, api_reply_bytes(reply));
        cr_assert_eq(storage_new(text.n, false, NULL, &storage), STATUS_OK);
        memcpy(storage->data, text.data, text.n);
        storage->readonly = true;
        text_deinit(&text);
        return storage;
}

typedef struct Arrays {
        NamedTensor named[5];
        uint32_t n;
} Arrays;

static void arrays_init(Arrays *arrays)
{
        static const int64_t sizes[][2] = { { 2, 3 }, { 0, 3 }, { 5, 1 }, { 1, 1 }, { 4, 4 } };
        static const Dtype dtypes[] = { DTYPE_BOOL, DTYPE_F32, DTYPE_F64, DTYPE_I64, DTYPE_F16 };
        static const char *const names[] = { "flags", "empty", "wide", "one", "half" };
        arrays->n = 5;
        for (uint32_t i = 0; i < arrays->n; i++)
                arrays->named[i] =
                        (NamedTensor){ names[i], make_tensor(dtypes[i], i == 3 ? 0 : 2, sizes[i]) };
}

static void arrays_deinit(Arrays *arrays)
{
        for (uint32_t i = 0; i < arrays->n; i++)
                tensor_unref(arrays->named[i].tensor);
}

static void expect_same(const Tensor *a, const Tensor *b, const char *name)
{
        cr_expect_eq(a->meta.dtype, b->meta.dtype, "%s", name);
        cr_expect(meta_same_shape(&a->meta, &b->meta), "%s", name);
        size_t n = (size_t)meta_numel(&a->meta) * dtype_info[a->meta.dtype].bytes;
        cr_expect(n == 0 || memcmp(tensor_data(a), tensor_data(b), n) == 0, "%s", name);
}

static Storage *written_npz(const Arrays *arrays)
{
        ApiReply reply = { .status = 0 };
        cr_assert_eq(npz_write(arrays->named, arrays->n, &reply), STATUS_OK, "%s",
                     failure_current()->message);
        Storage *bytes = reply_storage(&reply);
        api_reply_deinit(&reply);
        return bytes;
}

static Storage *written_safetensors(const Arrays *arrays)
{
        ApiReply reply = { .status = 0 };
        cr_assert_eq(safetensors_write(arrays->named, arrays->n, &reply), STATUS_OK, "%s",
                     failure_current()->message);
        Storage *bytes = reply_storage(&reply);
        api_reply_deinit(&reply);
        return bytes;
}

Test(bodies, an_npz_reads_back_what_was_written)
{
        Arrays arrays;
        Taken taken = { .n = 0 };
        arrays_init(&arrays);
        Storage *bytes = written_npz(&arrays);
        cr_assert_eq(npz_read(bytes, NULL, take, &taken), STATUS_OK, "%s", failure_current()->message);
        cr_assert_eq(taken.n, arrays.n);
        for (uint32_t i = 0; i < taken.n; i++) {
                cr_expect_str_eq(taken.names[i], arrays.named[i].name);
                expect_same(taken.tensors[i], arrays.named[i].tensor, taken.names[i]);
        }
        storage_unref(bytes);
        taken_deinit(&taken);
        arrays_deinit(&arrays);
}

Test(bodies, safetensors_read_back_and_every_tensor_is_aligned)
{
        Arrays arrays;
        Safetensors file;
        arrays_init(&arrays);
        Storage *bytes = written_safetensors(&arrays);
        cr_assert_eq(safetensors_read((ByteSpan){ bytes->data, bytes->n_bytes }, bytes, &file), STATUS_OK,
                     "%s", failure_current()->message);
        cr_assert_eq(file.n_entries, arrays.n);
        for (uint32_t i = 0; i < arrays.n; i++) {
                const Tensor *tensor = safetensors_find(&file, arrays.named[i].name);
                cr_assert_not_null(tensor);
                expect_same(tensor, arrays.named[i].tensor, arrays.named[i].name);
                const uint8_t *data = tensor_data(tensor);
                cr_expect(data == NULL || (data >= bytes->data && data < bytes->data + bytes->n_bytes),
                          "%s was copied", arrays.named[i].name);
        }
        safetensors_deinit(&file);
        storage_unref(bytes);
        arrays_deinit(&arrays);
}

Test(bodies, an_npz_cut_anywhere_is_refused_and_damage_never_crashes)
{
        Arrays arrays;
        arrays_init(&arrays);
        Storage *whole = written_npz(&arrays);
        for (size_t n = 0; n < whole->n_bytes; n++) {
                Taken taken = { .n = 0 };
                Storage *cut;
                cr_assert_eq(storage_new(n, false, NULL, &cut), STATUS_OK);
                if (n > 0)
                        memcpy(cut->data, whole->data, n);
                cr_expect_neq(npz_read(cut, NULL, take, &taken), STATUS_OK, "cut at %zu", n);
                taken_deinit(&taken);
                storage_unref(cut);
        }
        for (size_t at = 0; at < whole->n_bytes; at++) {
                Taken taken = { .n = 0 };
                whole->data[at] ^= 0x55;
                Status status = npz_read(whole, NULL, take, &taken);
                cr_expect(status_class(status) != STATUS_CLASS_INTERNAL, "byte %zu", at);
                whole->data[at] ^= 0x55;
                taken_deinit(&taken);
        }
        storage_unref(whole);
        arrays_deinit(&arrays);
}

Test(bodies, names_that_would_lead_out_of_an_archive_are_refused)
{
        static const char *const bad[] = { "", "/etc/x", "../x", "a/../x", "a\\b", "a\nb", "./x", "a//b" };
        static const int64_t size[] = { 1 };
        NamedTensor named = { NULL, make_tensor(DTYPE_F32, 1, size) };
        for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
                ApiReply reply = { .status = 0 };
                named.name = bad[i];
                cr_expect_eq(npz_write(&named, 1, &reply), STATUS_NOT_ACCEPTABLE, "%s", bad[i]);
                api_reply_deinit(&reply);
        }
        ApiReply reply = { .status = 0 };
        named.name = "__metadata__";
        cr_expect_eq(safetensors_write(&named, 1, &reply), STATUS_NOT_ACCEPTABLE);
        named.name = "past.0/k";
        cr_expect_eq(npz_write(&named, 1, &reply), STATUS_OK);
        api_reply_deinit(&reply);
        tensor_unref(named.tensor);
}

Test(bodies, a_deflated_member_is_charged_to_the_run_before_it_is_inflated)
{
        Text npy = { 0 }, archive = { 0 };
        TensorMeta meta;
        const int64_t size[] = { 1024 };
        meta_init(&meta, DTYPE_F32, 1, size);
        cr_assert_eq(npy_write_header(&meta, &npy), STATUS_OK);
        text_repeat(&npy, 0x3e, 4096);
        ZipMember member = { .name = "x.npy", .content = npy.data, .n = npy.n, .deflated = true };
        ZipPlaces places;
        make_zip(&member, 1, false, &archive, &places);
        Storage *bytes;
        cr_assert_eq(storage_new(archive.n, false, NULL, &bytes), STATUS_OK);
        memcpy(bytes->data, archive.data, archive.n);
        bytes->readonly = true;
        for (size_t limit = 4000; limit <= 5000; limit += 1000) {
                Budget budget;
                Taken taken = { .n = 0 };
                budget_init(&budget, limit);
                Status status = npz_read(bytes, &budget, take, &taken);
                cr_expect_eq(status, limit < 4224 ? STATUS_TOO_LARGE : STATUS_OK, "%s",
                             failure_current()->message);
                cr_expect_eq(atomic_load(&budget.used), limit < 4224 ? 0u : 4224u);
                cr_expect_eq(taken.n, limit < 4224 ? 0u : 1u);
                taken_deinit(&taken);
        }
        storage_unref(bytes);
        text_deinit(&npy);
        text_deinit(&archive);
}

Test(bodies, a_write_to_a_borrowed_array_leaves_the_body_as_it_was)
{
        Storage *bytes, *shell;
        cr_assert_eq(storage_new(64, true, NULL, &bytes), STATUS_OK);
        bytes->readonly = true;
        cr_assert_eq(borrow_storage(bytes, (ByteSpan){ bytes->data + 16, 8 }, NULL, &shell), STATUS_OK);
        cr_expect_eq(shell->data, bytes->data + 16);
        cr_expect_eq(shell->n_bytes, 8u);
        Storage *body = bytes;
        storage_ref(body);
        storage_unref(bytes); // the shell keeps it
        cr_assert_eq(storage_make_writable(shell), STATUS_OK);
        memset(shell->data, 1, 8);
        cr_expect_eq(body->data[16], 0);
        storage_unref(shell);
        storage_unref(body);
}

Test(bodies, a_reply_outlives_the_budget_of_its_run)
{
        ApiReply reply = { .status = 0 };
        Storage *storage;
        Budget *budget = malloc(sizeof(*budget));
        cr_assert_not_null(budget);
        budget_init(budget, 1000);
        cr_assert_eq(storage_new(100, true, budget, &storage), STATUS_OK);
        text_add(&reply.body, "head");
        cr_assert_eq(api_reply_piece(&reply, storage, storage->data, 100), STATUS_OK);
        text_add(&reply.body, "tail");
        cr_expect_eq(atomic_load(&budget->used), 0u);
        storage_unref(storage);
        free(budget);
        Storage *bytes = reply_storage(&reply);
        cr_expect_eq(bytes->n_bytes, 108u);
        cr_expect(memcmp(bytes->data, "head\0", 5) == 0 && memcmp(bytes->data + 103, "\0tail", 5) == 0);
        storage_unref(bytes);
        api_reply_deinit(&reply);
}

Test(bodies, accept_chooses_the_form_that_is_wished_most)
{
        static const struct {
                const char *accept;
                const Codec *codec;
        } rows[] = {
                { "", &json_codec },
                { "*/*", &json_codec },
                { "application/x-npy", &npy_codec },
                { "APPLICATION/X-NPZ ; q=0.3", &npz_codec },
                { "application/x-npy;q=0.2, application/x-npz;q=0.25", &npz_codec },
                { "application/x-npy;q=0", &json_codec },
                { "application/x-npy;q=0.000,text/html", &json_codec },
                { "application/x-npyz", &json_codec },
                { ",,; ,application/x-safetensors", &safetensors_codec },
                { "application/json, application/x-npy", &json_codec },
                { "application/x-npy;v=1;q=0.9,application/json;q=0.899", &npy_codec },
                { ";q=", &json_codec },
                { "application/x-npy;q=", &json_codec },
        };
        for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
                cr_expect_eq(codec_accepted(rows[i].accept), rows[i].codec, "%s", rows[i].accept);
}

static const Codec *reader_of(const char *bytes, size_t n)
{
        ApiCall call = { .route = &routes[ROUTE_RUN] };
        cr_assert_eq(storage_new(n, false, NULL, &call.body), STATUS_OK);
        memcpy(call.body->data, bytes, n);
        const Codec *codec = codec_of(&call);
        api_call_deinit(&call);
        return codec;
}

Test(bodies, the_first_bytes_say_which_codec_reads_a_body)
{
        cr_expect_eq(reader_of("{}", 2), &json_codec);
        cr_expect_eq(reader_of("garbage", 7), &json_codec, "whose reader says what is wrong");
        cr_expect_eq(reader_of("\x93NUMPY\1\0", 8), &npy_codec);
        cr_expect_eq(reader_of("PK\3\4\0\0", 6), &npz_codec);
        cr_expect_eq(reader_of("\2\0\0\0\0\0\0\0{}", 10), &safetensors_codec);
        cr_expect_eq(reader_of("--x--\r\n", 7), &form_codec);
        ApiCall empty = { .route = &routes[ROUTE_RUN] };
        cr_expect_eq(codec_of(&empty), &json_codec);
        MultipartPart part = { .name = "x", .content = { (const uint8_t *)"--x--\r\n", 7 } };
        cr_expect_eq(codec_of_part(&empty, &part), &json_codec, "no form lies in a form");
}

// The table of parameters and that of codecs say the same.
Test(bodies, every_value_of_as_chooses_a_codec_that_writes_replies)
{
        const Parameter *as = &parameters[PARAM_RUN_AS];
        cr_assert_eq(as->n_names, 4);
        for (int i = 0; i < as->n_names; i++)
                cr_expect_not_null(codec_at(i)->encode, "%s", as->names[i]);
        cr_expect_eq(codec_at(0), &json_codec);
        cr_expect_str_eq(as->names[2], "npz");
        cr_expect_eq(codec_at(2), &npz_codec);
}

Test(bodies, preconditions_hold_or_do_not)
{
        static const struct {
                const char *if_match, *if_none_match, *id;
                bool holds;
        } rows[] = {
                { "", "", "a", true },         { "", "", NULL, true },
                { "*", "", "a", true },        { "*", "", NULL, false },
                { "\"a\"", "", "a", true },    { "a", "", "a", true },
                { "W/\"a\"", "", "a", false }, { "\"b\", \"a\"", "", "a", true },
                { "\"b\",a", "", "a", true },  { "\"ab\"", "", "a", false },
                { "\"\"", "", "a", false },    { "", "*", NULL, true },
                { "", "*", "a", false },       { "", "W/\"a\"", "a", false },
                { "", "\"b\"", "a", true },    { "\"a", "", "a", true },
                { "W/", "", "a", false },      { ", ,", "", "a", false },
        };
        for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
                ApiCall call = { .route = &routes[ROUTE_GRAPH_PUT] };
                snprintf(call.if_match, sizeof(call.if_match), "%s", rows[i].if_match);
                snprintf(call.if_none_match, sizeof(call.if_none_match), "%s", rows[i].if_none_match);
                cr_expect_eq(condition_check(&call, rows[i].id),
                             rows[i].holds ? STATUS_OK : STATUS_PRECONDITION, "row %zu", i);
        }
}
