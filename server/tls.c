// SPDX-License-Identifier: Apache-2.0
// The files are checked with GnuTLS's own readers, because libmicrohttpd only reports that it could
// not start. Each handshake gets a copy of certificate and key (about 10 µs), which GnuTLS frees
// with the session. So a pair can be freed as soon as it is replaced.
#include "server/tls.h"
#include <fcntl.h>
#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <string.h>
#include <unistd.h>
#include "core/base/memory.h"
#include "core/base/text.h"

enum { FILE_MAX = 1 << 20 };

struct Tls {
        const char *cert_path, *key_path; // borrowed
        TlsPair *pair;
};

struct TlsPair {
        gnutls_x509_crt_t *chain; // the server's own first
        unsigned n_chain;
        gnutls_x509_privkey_t key;
};

static Tls *served; // the one that retrieve() asks

// ---- reading ----
static Status read_pem(const char *path, const char *flag, gnutls_datum_t *out_text)
{
        size_t n = 0;
        ssize_t got = -1;
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (fd < 0)
                return fail(STATUS_USAGE, "%s cannot be read", flag);
        unsigned char *text = malloc(FILE_MAX);
        while (text != NULL && n < FILE_MAX && (got = read(fd, text + n, FILE_MAX - n)) > 0)
                n += (size_t)got;
        close(fd);
        if (text == NULL)
                return fail_memory();
        *out_text = (gnutls_datum_t){ text, (unsigned)n };
        return got == 0 ? STATUS_OK
                        : fail(STATUS_USAGE, "%s cannot be read, or is larger than %d bytes", flag, FILE_MAX);
}

static void wipe(gnutls_datum_t *text)
{
        if (text->data != NULL)
                explicit_bzero(text->data, text->size);
        free(text->data);
}

// GnuTLS checks that they belong together, and orders the chain.
static Status make_pair(const gnutls_datum_t *cert, const gnutls_datum_t *key, TlsPair *pair)
{
        gnutls_certificate_credentials_t credentials;
        if (gnutls_certificate_allocate_credentials(&credentials) != GNUTLS_E_SUCCESS)
                return fail_memory();
        int error = gnutls_certificate_set_x509_key_mem(credentials, cert, key, GNUTLS_X509_FMT_PEM);
        bool copied = error >= 0 &&
                      gnutls_certificate_get_x509_crt(credentials, 0, &pair->chain, &pair->n_chain) ==
                              GNUTLS_E_SUCCESS &&
                      gnutls_certificate_get_x509_key(credentials, 0, &pair->key) == GNUTLS_E_SUCCESS;
        gnutls_certificate_free_credentials(credentials);
        if (error < 0)
                return fail(STATUS_USAGE,
                            "--tls-cert and --tls-key are not a PEM certificate and its key: %s",
                            gnutls_strerror(error));
        return copied ? STATUS_OK : fail_memory();
}

Status tls_read(const Tls *tls, TlsPair **out_pair)
{
        gnutls_datum_t cert = { NULL, 0 }, key = { NULL, 0 };
        TlsPair *pair = calloc(1, sizeof(*pair));
        Status status = pair == NULL ? fail_memory() : read_pem(tls->cert_path, "--tls-cert", &cert);
        if (status == STATUS_OK)
                status = read_pem(tls->key_path, "--tls-key", &key);
        if (status == STATUS_OK)
                status = make_pair(&cert, &key, pair);
        wipe(&cert);
        wipe(&key);
        if (status != STATUS_OK)
                tls_pair_free(pair);
        else
                *out_pair = pair;
        return status;
}

TlsPair *tls_pair_free(TlsPair *pair)
{
        if (pair == NULL)
                return NULL;
        for (unsigned i = 0; i < pair->n_chain; i++)
                gnutls_x509_crt_deinit(pair->chain[i]);
        gnutls_free(pair->chain);
        if (pair->key != NULL)
                gnutls_x509_privkey_deinit(pair->key);
        free(pair);
        return NULL;
}

// ---- serving ----
Status tls_new(const char *cert_path, const char *key_path, Tls **out_tls)
{
        *out_tls = NULL;
        if (cert_path[0] == '\0' && key_path[0] == '\0')
                return STATUS_OK;
        if (cert_path[0] == '\0' || key_path[0] == '\0')
                return fail(STATUS_USAGE, "--tls-cert and --tls-key go together");
        Tls *tls = calloc(1, sizeof(*tls));
        if (tls == NULL)
                return fail_memory();
        tls->cert_path = cert_path;
        tls->key_path = key_path;
        served = tls;
        *out_tls = tls;
        return STATUS_OK;
}

Tls *tls_free(Tls *tls)
{
        if (tls == NULL)
                return NULL;
        served = NULL;
        tls_pair_free(tls->pair);
        free(tls);
        return NULL;
}

void tls_take(Tls *tls, TlsPair *pair)
{
        tls_pair_free(tls->pair);
        tls->pair = pair;
}

int64_t tls_expires(const Tls *tls)
{
        return tls == NULL || tls->pair == NULL
                       ? 0
                       : (int64_t)gnutls_x509_crt_get_expiration_time(tls->pair->chain[0]);
}

static void free_chain(gnutls_pcert_st *chain, unsigned n)
{
        for (unsigned i = 0; i < n; i++)
                gnutls_pcert_deinit(&chain[i]);
        gnutls_free(chain);
}

static gnutls_pcert_st *copy_chain(const TlsPair *pair)
{
        gnutls_pcert_st *chain = gnutls_calloc(pair->n_chain, sizeof(*chain));
        for (unsigned i = 0; chain != NULL && i < pair->n_chain; i++) {
                if (gnutls_pcert_import_x509(&chain[i], pair->chain[i], 0) != GNUTLS_E_SUCCESS) {
                        free_chain(chain, i);
                        return NULL;
                }
        }
        return chain;
}

static gnutls_privkey_t copy_key(const TlsPair *pair)
{
        gnutls_privkey_t key;
        if (gnutls_privkey_init(&key) != GNUTLS_E_SUCCESS)
                return NULL;
        if (gnutls_privkey_import_x509(key, pair->key, GNUTLS_PRIVKEY_IMPORT_COPY) == GNUTLS_E_SUCCESS)
                return key;
        gnutls_privkey_deinit(key);
        return NULL;
}

static int retrieve(gnutls_session_t session, const struct gnutls_cert_retr_st *info,
                    gnutls_pcert_st **out_certs, unsigned *out_n_certs, gnutls_ocsp_data_st **out_ocsp,
                    unsigned *out_n_ocsp, gnutls_privkey_t *out_key, unsigned *out_flags)
{
        (void)session;
        (void)info;
        const TlsPair *pair = served->pair;
        gnutls_privkey_t key = copy_key(pair);
        gnutls_pcert_st *chain = key == NULL ? NULL : copy_chain(pair);
        if (chain == NULL) {
                if (key != NULL)
                        gnutls_privkey_deinit(key);
                return -1;
        }
        *out_certs = chain;
        *out_n_certs = pair->n_chain;
        *out_ocsp = NULL;
        *out_n_ocsp = 0;
        *out_key = key;
        *out_flags = GNUTLS_CERT_RETR_DEINIT_ALL;
        return 0;
}

void *tls_callback(void)
{
        return (void *)(uintptr_t)retrieve;
}
