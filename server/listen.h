// SPDX-License-Identifier: Apache-2.0
// The address that the server listens on: HOST:PORT, or unix:PATH for a socket in the file system.
#pragma once
#include <stdbool.h>
#include <sys/socket.h>
#include "core/base/status.h"

typedef struct ListenAddress {
        char host[256], port[16]; // of a socket in the file system: its path, and ""
        struct sockaddr_storage socket;
        socklen_t n_socket;
        bool is_loopback; // only this machine's users reach it
        bool is_file;
} ListenAddress;

// STATUS_USAGE with words for whoever typed `text`.
Status listen_resolve(const char *text, ListenAddress *out_address);
// A listening socket. One in the file system may be used by its owner alone; another one that
// stands there and answers to nobody is replaced. STATUS_USAGE: the address is not to be had.
Status listen_open(const ListenAddress *address, int *out_fd);
// What clients are told: "http://127.0.0.1:8080", "unix:/run/fxserve.sock".
void listen_url(const ListenAddress *address, int fd, bool tls, char *out, size_t n);
// Removes the file.
void listen_end(const ListenAddress *address);
