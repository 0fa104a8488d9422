// SPDX-License-Identifier: Apache-2.0
// A ring of fixed-size lines under a mutex; the writer copies one out and writes it without the lock.
#include "server/log.h"
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { N_LINES = 1024, LINE_MAX_BYTES = 1024 };

static struct {
        pthread_mutex_t mutex;
        pthread_cond_t filled;
        pthread_t thread;
        bool running, stopping;
        unsigned head, n;
        unsigned long dropped;
        char lines[N_LINES][LINE_MAX_BYTES];
} ring = { .mutex = PTHREAD_MUTEX_INITIALIZER, .filled = PTHREAD_COND_INITIALIZER };

static void write_out(const char *line)
{
        size_t n = strlen(line);
        while (n > 0) {
                ssize_t written = write(STDERR_FILENO, line, n);
                if (written < 0 && errno != EINTR)
                        return;
                if (written > 0) {
                        line += written;
                        n -= (size_t)written;
                }
        }
}

static void *writer(void *unused)
{
        char line[LINE_MAX_BYTES];
        (void)unused;
        pthread_mutex_lock(&ring.mutex);
        for (;;) {
                while (ring.n == 0 && !ring.stopping)
                        pthread_cond_wait(&ring.filled, &ring.mutex);
                if (ring.n == 0)
                        break;
                memcpy(line, ring.lines[ring.head], sizeof(line));
                ring.head = (ring.head + 1) % N_LINES;
                ring.n--;
                unsigned long dropped = ring.dropped;
                ring.dropped = 0;
                pthread_mutex_unlock(&ring.mutex);
                write_out(line);
                if (dropped > 0) {
                        snprintf(line, sizeof(line), "%lu log lines were dropped\n", dropped);
                        write_out(line);
                }
                pthread_mutex_lock(&ring.mutex);
        }
        pthread_mutex_unlock(&ring.mutex);
        return NULL;
}

bool log_start(void)
{
        ring.stopping = false;
        ring.running = pthread_create(&ring.thread, NULL, writer, NULL) == 0;
        return ring.running;
}

void log_stop(void)
{
        if (!ring.running)
                return;
        pthread_mutex_lock(&ring.mutex);
        ring.stopping = true;
        pthread_cond_signal(&ring.filled);
        pthread_mutex_unlock(&ring.mutex);
        pthread_join(ring.thread, NULL);
        ring.running = false;
}

void log_line(const char *format, ...)
{
        char line[LINE_MAX_BYTES];
        struct timespec now;
        struct tm utc;
        va_list arguments;
        clock_gettime(CLOCK_REALTIME, &now);
        gmtime_r(&now.tv_sec, &utc);
        size_t n = strftime(line, sizeof(line), "%H:%M:%S", &utc);
        n += (size_t)snprintf(line + n, sizeof(line) - n, ".%03ld ", now.tv_nsec / 1000000);
        va_start(arguments, format);
        int added = vsnprintf(line + n, sizeof(line) - n - 1, format, arguments);
        va_end(arguments);
        n = n + (size_t)(added < 0 ? 0 : added);
        n = n > sizeof(line) - 2 ? sizeof(line) - 2 : n;
        for (size_t i = 0; i < n; i++)
                if ((unsigned char)line[i] < 0x20)
                        line[i] = ' '; // one line stays one line, whatever a client sent
        line[n] = '\n';
        line[n + 1] = '\0';
        pthread_mutex_lock(&ring.mutex);
        if (ring.n == N_LINES) {
                ring.dropped++;
        } else {
                memcpy(ring.lines[(ring.head + ring.n) % N_LINES], line, n + 2);
                ring.n++;
                pthread_cond_signal(&ring.filled);
        }
        pthread_mutex_unlock(&ring.mutex);
}
