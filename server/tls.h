// SPDX-License-Identifier: Apache-2.0
// The certificate and key of --tls-cert and --tls-key. libmicrohttpd asks for them once per
// handshake, so a connection keeps the pair it began with. One Tls per process, because GnuTLS
// passes no context to the callback. Loop thread, unless said otherwise.
#pragma once
#include "core/base/status.h"

typedef struct Tls Tls;
typedef struct TlsPair TlsPair; // a certificate with its chain, and its key

// Nothing is read yet. Both paths or neither ("" = not given, *out_tls is NULL); STATUS_USAGE for
// one.
Status tls_new(const char *cert_path, const char *key_path, Tls **out_tls);
Tls *tls_free(Tls *tls);
// Reads both files. STATUS_USAGE says what is wrong with which flag. Any thread.
Status tls_read(const Tls *tls, TlsPair **out_pair);
TlsPair *tls_pair_free(TlsPair *pair);
// New handshakes get this pair.
void tls_take(Tls *tls, TlsPair *pair);
// When the certificate expires, in seconds since 1970; 0 before the first pair, and for NULL.
int64_t tls_expires(const Tls *tls);
// For TransportOptions.
void *tls_callback(void);
