// SPDX-License-Identifier: Apache-2.0
// The files are checked here with GnuTLS's own readers, because libmicrohttpd says no more than that it could not start.
#include "server/tls.h"
#include <fcntl.h>
#include <gnutls/gnutls.h>
#include <string.h>
#include <unistd.h>
#include "core/base/memory.h"

enum { FILE_MAX = 1 << 20 };

static Status read_pem(const char *path, const char *flag, char **out_text)
{
        size_t n = 0;
        ssize_t got;
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return fail(STATUS_USAGE, "%s cannot be read", flag);
        char *text = malloc(FILE_MAX + 1);
        while (text != NULL && n < FILE_MAX && (got = read(fd, text + n, FILE_MAX - n)) > 0)
                n += (size_t)got;
        close(fd);
        if (text == NULL)
                return fail_memory();
        text[n] = '\0';
        *out_text = text;
        return STATUS_OK;
}

static Status check_pair(const TlsFiles *files)
{
        gnutls_certificate_credentials_t credentials;
        gnutls_datum_t cert = { (unsigned char *)files->cert, (unsigned)strlen(files->cert) };
        gnutls_datum_t key = { (unsigned char *)files->key, (unsigned)strlen(files->key) };
        if (gnutls_certificate_allocate_credentials(&credentials) != GNUTLS_E_SUCCESS)
                return fail_memory();
        int error = gnutls_certificate_set_x509_key_mem(credentials, &cert, &key, GNUTLS_X509_FMT_PEM);
        gnutls_certificate_free_credentials(credentials);
        if (error < 0)
                return fail(STATUS_USAGE, "--tls-cert and --tls-key are not a PEM certificate and its key: %s", gnutls_strerror(error));
        return STATUS_OK;
}

Status tls_read(const char *cert_path, const char *key_path, TlsFiles *out_files)
{
        TlsFiles files = { .cert = NULL };
        *out_files = files;
        if (cert_path[0] == '\0' && key_path[0] == '\0')
                return STATUS_OK;
        if (cert_path[0] == '\0' || key_path[0] == '\0')
                return fail(STATUS_USAGE, "--tls-cert and --tls-key go together");
        Status status = read_pem(cert_path, "--tls-cert", &files.cert);
        if (status == STATUS_OK)
                status = read_pem(key_path, "--tls-key", &files.key);
        if (status == STATUS_OK)
                status = check_pair(&files);
        if (status != STATUS_OK)
                tls_deinit(&files);
        else
                *out_files = files;
        return status;
}

void tls_deinit(TlsFiles *files)
{
        if (files->key != NULL)
                explicit_bzero(files->key, strlen(files->key));
        free(files->cert);
        free(files->key);
        *files = (TlsFiles){ .cert = NULL };
}
