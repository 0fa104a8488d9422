// SPDX-License-Identifier: Apache-2.0
// made_graph.c: see made_graph.h.
#include "tests/passes/made_graph.h"
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "api/readers/upload.h"
#include "core/targets/targets.h"

static uint64_t noise;
static float noise_next(void)
{
        noise = noise * 6364136223846793005u + 1442695040888963407u;
        return (float)((double)(noise >> 11) / 4503599627370496.0 - 1);
}

void made_start(void)
{
        cr_assert_eq(ops_init(), STATUS_OK);
        cr_assert_eq(targets_init(), STATUS_OK);
        noise = 7;
}

static int read_sizes(const char *text, int64_t *size)
{
        int rank = 0;
        for (const char *at = text; at != NULL && *at != '\0';
             at = strchr(at, ',') == NULL ? NULL : strchr(at, ',') + 1)
                size[rank++] = atol(at);
        return rank;
}

static Storage *storage_of(const void *bytes, size_t n)
{
        Storage *storage;
        cr_assert_eq(storage_new(n, false, NULL, &storage), STATUS_OK);
        memcpy(storage->data, bytes, n);
        return storage;
}

static Dtype dtype_of(const char *name)
{
        return strncmp(name, "levels", 6) == 0 ? DTYPE_I8
               : strncmp(name, "bf16", 4) == 0 ? DTYPE_BF16
               : strncmp(name, "f16", 3) == 0  ? DTYPE_F16
                                               : DTYPE_F32;
}

static void add_number(Text *data, Dtype dtype, float value)
{
        int64_t element;
        element_from_f64(dtype, &element, dtype == DTYPE_I8 ? (double)(int8_t)(value * 127) : (double)value);
        text_add_n(data, (const char *)&element, (size_t)dtype_info[dtype].bytes);
}

// Names that end in "var" are positive, those that begin with "levels" int8, with "bf16" or "f16"
// of that dtype; those that begin with "inf" have one infinite number.
static Storage *make_weights(const char *const *states)
{
        Text header = { 0 }, data = { 0 };
        text_add(&header, "{");
        for (; *states != NULL; states++) {
                int64_t size[MAX_RANK], n = 1;
                char name[64];
                sscanf(*states, "%63[^:]", name);
                int rank = read_sizes(strchr(*states, ':') + 1, size);
                const Dtype dtype = dtype_of(name);
                text_addf(&header, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[", header.n > 1 ? "," : "", name,
                          dtype == DTYPE_I8     ? "I8"
                          : dtype == DTYPE_BF16 ? "BF16"
                          : dtype == DTYPE_F16  ? "F16"
                                                : "F32");
                for (int d = 0; d < rank; d++) {
                        n *= size[d];
                        text_addf(&header, "%s%ld", d > 0 ? "," : "", (long)size[d]);
                }
                text_addf(&header, "],\"data_offsets\":[%zu,%zu]}", data.n,
                          data.n + (size_t)n * (size_t)dtype_info[dtype].bytes);
                for (int64_t i = 0; i < n; i++) {
                        float value = strstr(name, "var") != NULL ? 1.2f + noise_next()
                                      : dtype == DTYPE_I8         ? noise_next()
                                                                  : noise_next() * 0.3f;
                        if (i == 1 && strncmp(name, "inf", 3) == 0)
                                value = -INFINITY;
                        add_number(&data, dtype, value);
                }
        }
        text_add(&header, "}");
        Text file = { 0 };
        uint64_t n = header.n;
        text_add_n(&file, (const char *)&n, 8);
        text_add_n(&file, header.data, header.n);
        text_add_n(&file, data.data, data.n);
        Storage *storage = storage_of(file.data, file.n);
        text_deinit(&header);
        text_deinit(&data);
        text_deinit(&file);
        return storage;
}

Made made_graph(const char *const *inputs, const char *const *states, const char *nodes)
{
        Made made = { 0 };
        Text text = { 0 };
        text_add(&text, "{\"format\": \"fx/1\", \"nodes\": [");
        for (; inputs[made.n_inputs] != NULL; made.n_inputs++) {
                int64_t size[MAX_RANK];
                TensorMeta meta;
                Tensor *tensor;
                meta_init(&meta, DTYPE_F32, read_sizes(inputs[made.n_inputs], size), size);
                cr_assert_eq(tensor_new(&meta, NULL, &tensor), STATUS_OK);
                for (int64_t i = 0; i < meta_numel(&meta); i++)
                        ((float *)tensor_data(tensor))[i] = noise_next();
                made.inputs[made.n_inputs] = value_tensor_take(tensor);
                text_addf(&text, "{\"op\": \"placeholder\", \"name\": \"x%u\", \"target\": \"x%u\"},",
                          made.n_inputs, made.n_inputs);
        }
        for (const char *const *state = states; *state != NULL; state++) {
                int n = (int)strcspn(*state, ":");
                text_addf(&text, "{\"op\": \"get_attr\", \"name\": \"%.*s\", \"target\": \"%.*s\"},", n,
                          *state, n, *state);
        }
        text_addf(&text, "%s]}", nodes);
        UploadPart parts[] = { { .name = "graph", .bytes = storage_of(text.data, text.n) },
                               { .name = "weights", .bytes = make_weights(states) } };
        cr_assert_eq(upload_decode(parts, states[0] == NULL ? 1 : 2, NULL, true, &made.graph), STATUS_OK,
                     "%s", failure_current()->message);
        storage_unref(parts[0].bytes);
        storage_unref(parts[1].bytes);
        text_deinit(&text);
        return made;
}

void made_deinit(Made *made)
{
        for (uint32_t i = 0; i < made->n_inputs; i++)
                value_unref(made->inputs[i]);
        graph_unref(made->graph);
}
