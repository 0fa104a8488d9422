// SPDX-License-Identifier: Apache-2.0
// A strict reader of HTTP/1 framing that runs beside libmicrohttpd on the same bytes. It keeps only
// what decides where a request ends, and refuses everything that two servers could read
// differently. No I/O, no memory; any thread that owns the reader.
#pragma once
#include "core/base/status.h"

typedef enum RawState {
        RAW_START, // between requests; one leading empty line is accepted
        RAW_START_LF,
        RAW_METHOD,
        RAW_TARGET,
        RAW_VERSION,
        RAW_LINE_LF, // the LF after the request line
        RAW_NAME,    // at or in a field name
        RAW_VALUE_START,
        RAW_VALUE,
        RAW_FIELD_LF,
        RAW_END_LF, // the LF of the empty line that ends the head, or the trailers
        RAW_BODY,   // of known length
        RAW_SIZE,   // of a chunk
        RAW_EXTENSION,
        RAW_SIZE_LF,
        RAW_CHUNK,
        RAW_CHUNK_CR,
        RAW_CHUNK_LF,
        RAW_BAD, // final: no byte after it is read
} RawState;

enum { RAW_NAME_MAX = 24, RAW_VALUE_MAX = 24 };

typedef struct RawReader {
        RawState state;
        RawState bad_in;     // the state in which the error was found
        Status verdict;      // why
        const char *words;   // static: the same as a sentence
        uint64_t n_heads;    // accepted heads so far: as many requests may be answered
        uint64_t n_requests; // of these, read to their end
        // The request under way.
        uint64_t length; // of the body, where Content-Length says it
        uint64_t left;   // bytes of the body, or of the chunk
        uint32_t n_line, n_head, n_fields, n_digits, n_value;
        uint8_t n_host, n_length, n_coding, minor;
        bool chunked, in_trailers;
        char name[RAW_NAME_MAX], value[RAW_VALUE_MAX];
        // Of the last raw_read: where the digits of a Content-Length stand that is whole in its
        // bytes, and how many there are; 0: nowhere.
        size_t length_at, n_length_digits;
} RawReader;

void raw_init(RawReader *raw);
// Reads `n` more bytes. Removes chunk extensions, which this server ignores (RFC 9112, 7.1.1), and
// moves the rest up. Returns how many accepted bytes are left: all of them, unless the state is
// RAW_BAD now. `*out_start` is the index among these at which the current request began, or -1 when
// it began earlier (with an accepted end, the place where the next one would begin).
size_t raw_read(RawReader *raw, uint8_t *bytes, size_t n, int64_t *out_start);
// `n` bytes of a body of known length went another way; n < raw->left.
void raw_skip(RawReader *raw, uint64_t n);
// A request has begun and its head is incomplete.
bool raw_in_head(const RawReader *raw);
bool raw_in_body(const RawReader *raw);
