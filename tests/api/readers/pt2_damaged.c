// SPDX-License-Identifier: Apache-2.0
// pt2_damaged.c: archives cut short and archives with changed bytes are refused or read, and freed.
#include "tests/api/readers/pt2_maker.h"

Test(pt2_damaged, survives_truncation_at_every_byte)
{
        Text bytes = { 0 };
        ZipPlaces places;
        make_pt2(NULL, 0, true, &bytes, &places);
        for (size_t n = 0; n < bytes.n; n++) {
                Graph *graph = NULL;
                uint8_t *cut = malloc(n == 0 ? 1 : n);
                memcpy(cut, bytes.data, n);
                cr_expect_eq(pt2_read((ByteSpan){ cut, n }, NULL, NULL, &graph), STATUS_MALFORMED,
                             "cut at %zu", n);
                free(cut);
        }
        text_deinit(&bytes);
}

// The same for the document alone, whose archive stays whole.
Test(pt2_damaged, survives_a_document_cut_at_every_byte)
{
        for (size_t n = 0; n + 1 < sizeof(pt2_model); n++) {
                Graph *graph = NULL;
                char *cut = strndup(pt2_model, n);
                const Pt2Edit edit = { MODEL, NULL, cut, NULL };
                cr_expect_eq(read_pt2(&edit, 1, NULL, &graph), STATUS_MALFORMED, "cut at %zu", n);
                free(cut);
        }
}

// Every byte of a document changed in a few ways: whatever is still valid is read and freed,
// nothing crashes or hangs.
static void change_every_byte(const char *member, const char *document, size_t n_document)
{
        static const char values[] = "0\"{]a";
        char *text = strndup(document, n_document);
        for (size_t at = 0; at < n_document; at++) {
                char held = text[at];
                for (size_t k = 0; k < sizeof(values) - 1; k++) {
                        Graph *graph = NULL;
                        const Pt2Edit edit = { member, NULL, text, NULL };
                        text[at] = values[k];
                        if (read_pt2(&edit, 1, NULL, &graph) == STATUS_OK)
                                graph_unref(graph);
                        else
                                cr_expect_eq(status_class(failure_current()->status), STATUS_CLASS_CALLER,
                                             "byte %zu: %s", at, failure_current()->message);
                }
                text[at] = held;
        }
        free(text);
}

Test(pt2_damaged, survives_any_changed_byte_of_its_documents)
{
        change_every_byte(MODEL, pt2_model, sizeof(pt2_model) - 1);
        change_every_byte(WEIGHTS, pt2_weights_config, sizeof(pt2_weights_config) - 1);
        change_every_byte(CONSTANTS, pt2_constants_config, sizeof(pt2_constants_config) - 1);
}

Test(pt2_damaged, survives_any_flipped_bit_of_its_archive)
{
        Text bytes = { 0 };
        ZipPlaces places;
        make_pt2(NULL, 0, true, &bytes, &places);
        for (size_t at = 0; at < bytes.n; at++) {
                for (int bit = 0; bit < 8; bit++) {
                        Graph *graph = NULL;
                        bytes.data[at] = (char)(bytes.data[at] ^ 1 << bit);
                        if (pt2_read(span_of(&bytes), NULL, NULL, &graph) == STATUS_OK)
                                graph_unref(graph);
                        bytes.data[at] = (char)(bytes.data[at] ^ 1 << bit);
                }
        }
        text_deinit(&bytes);
}
