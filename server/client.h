// SPDX-License-Identifier: Apache-2.0
// A small HTTP/1.1 client for the program's own commands: one request on a connection of its own.
// Any thread.
#pragma once
#include "core/base/span.h"
#include "core/base/text.h"

typedef struct ClientUrl {
        char host[256], port[8], path[512]; // path: "" when the URL ends after its port
        bool in_brackets;                   // an IPv6 address
        bool is_file;                       // host is the path of a socket in the file system
        bool tls;
} ClientUrl;

enum { CLIENT_MAX_PARTS = 6 };

typedef struct ClientRequest {
        const char *method, *target;      // target: path and query, already encoded
        const char *token;                // NULL: none
        const char *content_type;         // NULL: none
        const char *request_id;           // NULL: the server makes one
        ByteSpan parts[CLIENT_MAX_PARTS]; // the body is their concatenation; borrowed
        int n_parts;                      // 0: no body
        const char *ca_file;              // PEM file of the authorities to trust; NULL: the system's
        bool insecure;                    // the certificate is not checked
        int64_t idle_ms;                  // longest wait for the peer to take or send anything
        int64_t total_ms;                 // longest exchange; 0: any
        size_t max_reply;                 // bytes of head and body
} ClientRequest;

typedef struct ClientReply {
        int status;
        char content_type[128]; // "" when there is none
        Text body;
} ClientReply;

// STATUS_USAGE names `what` (a flag, a command) and shows the expected form.
Status client_url_parse(const char *what, const char *text, ClientUrl *out_url);
// The address of the server that this shell or container would start: FXSERVE_LISTEN. An address
// that means "all" becomes loopback. HTTPS if FXSERVE_TLS_CERT is set.
Status client_url_own(ClientUrl *out_url);
// STATUS_IO with one sentence when no whole reply arrives. A reply of any HTTP status is a success
// here.
Status client_ask(const ClientUrl *url, const ClientRequest *request, ClientReply *out_reply);
void client_reply_deinit(ClientReply *reply);
