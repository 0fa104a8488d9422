// SPDX-License-Identifier: Apache-2.0
// The certificate and key of --tls-cert and --tls-key, as text. libmicrohttpd and GnuTLS do the rest (TLS 1.2 and 1.3).
#pragma once
#include "core/base/status.h"

typedef struct TlsFiles {
        char *cert, *key; // PEM; NULL: plain HTTP
} TlsFiles;

// Both paths or neither ("" = not given). STATUS_USAGE says what is wrong with which flag.
Status tls_read(const char *cert_path, const char *key_path, TlsFiles *out_files);
void tls_deinit(TlsFiles *files); // wipes the key
