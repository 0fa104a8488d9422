// SPDX-License-Identifier: Apache-2.0
// Start: engine, files, workers, socket, loop. The loop thread does sockets, timers and signals
// only.
//
// Stop: SERVING → LEAVING → DRAINING → ENDING.
//   LEAVING    first SIGTERM or SIGINT: /readyz answers 503, everything else goes on for
//              --drain-delay seconds, so that load balancers learn of it first
//   DRAINING   no new connections; accepted requests are answered (http_drain.c), and cancelled
//              after --drain-s
//   ENDING     HTTP is stopped, threads are joined; takes a few times GRACE_MS at most, and signals
//              change nothing any more
// A second signal cancels all runs at once, in any state before ENDING. Runs that do not stop when
// cancelled are abandoned after GRACE_MS. Uploads are durable when they are answered, so nothing
// that was confirmed is lost.
#include "server/server.h"
#include <errno.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "api/run/reply_cache.h"
#include "api/run/samples.h"
#include "core/base/limits.h"
#include "core/engine/declared.h"
#include "server/cores.h"
#include "server/door.h"
#include "server/http.h"
#include "server/listen.h"
#include "server/memory.h"
#include "server/models.h"
#include "server/log.h"
#include "server/notify.h"
#include "server/preload.h"
#include "server/usage.h"
#include "server/version.h"

enum { GRACE_MS = 2000 };

typedef enum Phase { SERVING, LEAVING, DRAINING, ENDING } Phase;

typedef struct Server {
        uv_loop_t loop;
        uv_signal_t signals[3];
        uv_timer_t phase_timer;   // ends the phase
        uv_timer_t session_timer; // ends idle sessions
        uv_timer_t stop_timer;    // leaves the current callback before HTTP is stopped
        ListenAddress address;    // is_file: its file is removed at the end
        Http *http;
        Workers *workers;
        Events *events;
        Engine *engine;
        ReplyCache *replies; // NULL: none are kept
        Door door;
        Usage *usage; // of the data folder
        Otlp *otlp;   // NULL: no spans are sent
        Models *models;
        Memory *memory;
        Phase phase;
        bool forced;  // requests under way were told to stop, if there were any
        bool gave_up; // told to end twice, or such requests there were: exit code 1
} Server;

// A build frees large constants, so memory is given back soon after it. `workers` is NULL only
// before any thread builds.
static void tell_built(void *context, const char *program_id, int64_t took_ns)
{
        Server *server = context;
        char json[160];
        if (server->workers != NULL)
                workers_give_back(server->workers);
        if (!events_wanted(server->events))
                return;
        snprintf(json, sizeof(json), "{\"program\": \"%s\", \"took_us\": %.3f}", program_id,
                 (double)took_ns / 1e3);
        events_post(server->events, "build", "", json);
}

static void log_message(void *context, const char *message)
{
        (void)context;
        log_line("%s", message);
}

// ---- the data folder ----
static Status make_parents(char *path)
{
        for (char *at = path + 1; *at != '\0'; at++) {
                if (*at != '/')
                        continue;
                *at = '\0';
                Status status =
                        mkdir(path, 0700) == 0 || errno == EEXIST
                                ? STATUS_OK
                                : fail(STATUS_USAGE,
                                       "%s cannot be made: %s; choose another data folder with --data", path,
                                       strerror(errno));
                *at = '/';
                TRY(status);
        }
        return STATUS_OK;
}

static Status data_folder(const Options *options, char *buffer, size_t capacity, const char **out_folder)
{
        *out_folder = NULL;
        if (strcmp(options->data, "none") == 0)
                return STATUS_OK;
        const char *xdg = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
        const struct passwd *user = home == NULL ? getpwuid(getuid()) : NULL;
        int n;
        if (options->data[0] != '\0')
                n = snprintf(buffer, capacity, "%s", options->data);
        else if (xdg != NULL && xdg[0] == '/')
                n = snprintf(buffer, capacity, "%s/fxserve", xdg);
        else
                n = snprintf(buffer, capacity, "%s/.local/share/fxserve",
                             home != NULL   ? home
                             : user != NULL ? user->pw_dir
                                            : "");
        if (n <= 0 || (size_t)n >= capacity)
                return fail(STATUS_USAGE, "the data folder's name is too long; choose one with --data");
        TRY(make_parents(buffer));
        *out_folder = buffer;
        return STATUS_OK;
}

static int64_t default_max_upload(void)
{
        const LimitRow *row = limit_rows;
        while (row->offset != offsetof(Limits, max_upload))
                row++;
        return row->value;
}

static Status open_engine(const Options *options, Server *server)
{
        char buffer[4096];
        const char *folder;
        TRY(data_folder(options, buffer, sizeof(buffer), &folder));
        // no folder to spool to: uploads stay in memory
        if (folder == NULL && limits.max_upload == default_max_upload())
                limits.max_upload = limits.max_upload_in_memory;
        EngineOptions engine = { .data_folder = folder,
                                 .loader = upload_loader,
                                 .samples = &sample_reader,
                                 .log = log_message,
                                 .built = tell_built,
                                 .built_context = server,
                                 .scrub = true,
                                 .no_warm_up = options->no_warm_up[0] != '\0' };
        TRY(usage_new(folder, &server->usage));
        Status status = engine_open(&engine, &server->engine);
        if (status == STATUS_OK && limits.max_reply_cache > 0)
                return reply_cache_open((size_t)limits.max_reply_cache, &server->replies);
        if (status == STATUS_OK || folder == NULL)
                return status;
        failure_append(" (--data %s)", folder);
        // a mistake of the operator, whatever the reason was
        return status == STATUS_NO_MEMORY ? status : STATUS_USAGE;
}

static void report_variable(const char *name, const char *like)
{
        log_line("%s is no variable that fxserve knows%s%s%s; fxserve --help lists them", name,
                 like[0] == '\0' ? "" : "; did you mean ", like, like[0] == '\0' ? "" : "?");
}

static void report_loaded(const GraphVersion *version)
{
        log_line("loaded %s version %lld", version->name, (long long)version->stored.version);
}

static Status preload(Server *server, const Options *options)
{
        const char *name = options->model_name;
        if (name[0] != '\0' && options->models[0] == '\0')
                return fail(STATUS_USAGE, "--model-name names a model of --models, which is not given");
        if (name[0] != '\0' && !route_is_name(name))
                return fail(STATUS_USAGE, "--model-name: \"%.80s\" cannot be the name of a graph", name);
        for (int i = 0; i < options->n_files; i++)
                TRY(preload_path(server->engine, options->files[i], report_loaded));
        return options->models[0] == '\0'
                       ? STATUS_OK
                       : models_open(server->engine, options->models, options->model_name, &server->models);
}

// ---- stopping ----
// The signals' handles stay open to the end of the process, without keeping the loop alive: closing
// one would give its signal the default action, which kills.
static void close_loop(Server *server)
{
        for (size_t i = 0; i < ARRAY_LENGTH(server->signals); i++)
                uv_unref((uv_handle_t *)&server->signals[i]);
        uv_close((uv_handle_t *)&server->phase_timer, NULL);
        uv_close((uv_handle_t *)&server->stop_timer, NULL);
        uv_close((uv_handle_t *)&server->session_timer, NULL);
        door_stop(&server->door);
        usage_stop(server->usage);
        models_stop(server->models);
        memory_stop(server->memory);
}

enum { SESSION_SWEEP_MS = 1000 };

static void end_idle_sessions(uv_timer_t *timer)
{
        const Server *server = timer->data;
        sessions_expire(engine_sessions(server->engine), clock_ns());
}

static void stop_now(uv_timer_t *timer)
{
        Server *server = timer->data;
        // A suspended connection may not outlive its daemon: jobs end first, the loop takes them
        // back, and then no connection is suspended.
        server->phase = ENDING;
        http_stop(server->http);
        close_loop(server);
}

static void on_idle(void *context)
{
        Server *server = context;
        if (!uv_is_active((uv_handle_t *)&server->stop_timer))
                uv_timer_start(&server->stop_timer, stop_now, 0, 0);
}

static void abandon(uv_timer_t *timer)
{
        (void)timer; // NULL: the loop has ended
        log_error("what runs does not stop: it is left behind");
        log_stop();
        _exit(1);
}

static bool cancel_all(Server *server)
{
        server->forced = true;
        uv_timer_start(&server->phase_timer, abandon, GRACE_MS, 0);
        return http_cancel_all(server->http);
}

static void on_drain_timeout(uv_timer_t *timer)
{
        Server *server = timer->data;
        server->gave_up = cancel_all(server);
        if (server->gave_up)
                log_line("drain time is over: cancelling what still runs");
}

static void drain(Server *server)
{
        server->phase = DRAINING;
        uv_timer_start(&server->phase_timer, on_drain_timeout, (uint64_t)limits.drain_s * 1000, 0);
        http_drain(server->http);
}

static void on_left(uv_timer_t *timer)
{
        drain(timer->data);
}

static void on_stop_signal(uv_signal_t *handle, int number)
{
        Server *server = handle->data;
        (void)number;
        if (server->phase == ENDING)
                return;
        if (server->forced)
                abandon(&server->phase_timer);
        if (server->phase != SERVING) {
                log_line("told to stop again: cancelling what still runs");
                if (server->phase == LEAVING)
                        drain(server);
                (void)cancel_all(server);
                server->gave_up = true;
                return;
        }
        log_line("stopping: running requests finish first");
        notify_manager("STOPPING=1");
        server->phase = LEAVING;
        http_leave(server->http);
        if (limits.drain_delay_s > 0)
                uv_timer_start(&server->phase_timer, on_left, (uint64_t)limits.drain_delay_s * 1000, 0);
        else
                drain(server);
}

static void on_reload_signal(uv_signal_t *handle, int number)
{
        Server *server = handle->data;
        (void)number;
        log_reopen();
        log_line("reloaded: log file");
        door_reload(&server->door);
}

// ---- starting ----
static Status read_count(const char *flag, const char *text, int *out_n)
{
        enum { MOST = 4096 };
        size_t n = strlen(text);
        if (n == 0 || n > 4 || strspn(text, "0123456789") != n || atoi(text) > MOST)
                return fail(STATUS_USAGE, "--%s wants a number from 0 to %d, not \"%s\"", flag, MOST, text);
        *out_n = atoi(text);
        return STATUS_OK;
}

static size_t changed_limits(LogField out[])
{
        size_t n = 0;
        for (size_t i = 0; i < n_limit_rows; i++) {
                int64_t value = *(const int64_t *)((const char *)&limits + limit_rows[i].offset);
                if (value != limit_rows[i].value)
                        out[n++] = (LogField){ .key = limit_rows[i].name, .number = value };
        }
        return n;
}

// The facts that a reader of the log needs first.
static void log_start_of(const Server *server, const Options *options, const ServerFacts *facts,
                         int n_threads, const char *url)
{
        LogField *changed = new_array(n_limit_rows, sizeof(*changed));
        if (changed == NULL)
                return;
        const LogField fields[] = {
                { .key = "server_version", .text = facts->version },
                { .key = "revision", .text = facts->revision },
                { .key = "listen", .text = url },
                { .key = "data", .text = strcmp(options->data, "none") == 0 ? "none" : "folder" },
                { .key = "tokens", .text = server->door.auth != NULL ? "yes" : "no" },
                { .key = "cpu", .text = facts->cpu_level },
                { .key = "cores", .number = facts->n_cores },
                { .key = "workers", .number = facts->n_workers },
                { .key = "threads", .number = n_threads },
                { .key = "limits", .members = changed, .n_members = changed_limits(changed) }
        };
        log_record("started", fields, ARRAY_LENGTH(fields));
        free(changed);
}

// The container's limit is the process's. A run that takes more than that is refused, too.
static Status open_memory(Server *server)
{
        if (limits.max_memory == 0)
                limits.max_memory = granted_memory();
        if (limits.max_memory > 0)
                limits.max_run_memory = MIN(limits.max_run_memory, limits.max_memory);
        return memory_new(&server->memory);
}

static Status start(Server *server, const Options *options)
{
        ListenAddress address;
        int fd = -1, n_workers, n_threads;
        TRY(read_count("workers", options->workers, &n_workers));
        TRY(read_count("threads", options->threads, &n_threads));
        RouteCodecs codecs;
        TRY(route_codecs(options->codecs, &codecs));
        TRY(listen_resolve(options->listen, &address));
        TRY(door_open(options, address.host, address.is_loopback, &server->door));
        if (address.is_file && server->door.tls != NULL)
                return fail(STATUS_USAGE, "--listen unix:PATH is not encrypted: leave out --tls-cert");
        TRY(otlp_start(options->otlp_endpoint, options->otlp_sample, &server->otlp));
        TRY(events_new(&server->events));
        TRY(open_memory(server));
        TRY(open_engine(options, server));
        TRY(preload(server, options));
        (void)engine_is_warm(server->engine); // what is declared from now on is not waited for
        TRY(listen_open(&address, &fd));
        server->address = address;
        int cores = granted_cores();
        WorkerPlan plan = plan_workers(cores, n_workers, n_threads);
        TRY(workers_start(plan.n_workers, plan.n_wide, limits.max_queue, &server->workers));
        jobs_use_idle_time(server->workers, server->engine); // for preloaded graphs
        HttpOptions http = { .loop = &server->loop,
                             .listen_fd = fd,
                             // no page reaches a socket in the file system
                             .is_loopback = address.is_loopback && !address.is_file,
                             .host_name = options->host_name,
                             .allow_origin = options->allow_origin,
                             .auth = server->door.auth,
                             .door = &server->door,
                             .usage = server->usage,
                             .otlp = server->otlp,
                             .tls_callback = server->door.tls == NULL ? NULL : tls_callback(),
                             .codecs = codecs,
                             .inline_runs = options->no_inline[0] == '\0',
                             .quiet = options->quiet[0] != '\0',
                             .engine = server->engine,
                             .replies = server->replies,
                             .memory = server->memory,
                             .workers = server->workers,
                             .one_core = cores == 1,
                             .events = server->events,
                             .facts = version_facts(),
                             .idle = on_idle,
                             .idle_context = server };
        http.facts.awaited = options->model_name[0] == '\0' ? NULL : options->model_name;
        http.facts.n_cores = cores;
        http.facts.n_workers = plan.n_workers;
        TRY(http_start(&http, &server->http));
        door_watch(&server->door, &server->loop);
        usage_start(server->usage, &server->loop);
        models_start(server->models, &server->loop, server->workers);
        memory_start(server->memory, &server->loop,
                     &(MemoryOwners){ server->engine, server->replies, server->workers });
        char url[sizeof(address.host) + 32];
        listen_url(&address, fd, server->door.tls != NULL, url, sizeof(url));
        log_start_of(server, options, &http.facts, plan.n_wide, url);
        printf("listening on %s\n", url);
        fflush(stdout);
        notify_manager("READY=1");
        return STATUS_OK;
}

static void init_loop(Server *server)
{
        static const struct {
                int number;
                uv_signal_cb handler;
        } rows[] = { { SIGTERM, on_stop_signal }, { SIGINT, on_stop_signal }, { SIGHUP, on_reload_signal } };
        setenv("UV_THREADPOOL_SIZE", "1", 0); // only reload.c and usage.c use it
        uv_loop_init(&server->loop);
        for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
                uv_signal_init(&server->loop, &server->signals[i]);
                server->signals[i].data = server;
                uv_signal_start(&server->signals[i], rows[i].handler, rows[i].number);
        }
        uv_timer_init(&server->loop, &server->phase_timer);
        uv_timer_init(&server->loop, &server->stop_timer);
        uv_timer_init(&server->loop, &server->session_timer);
        server->session_timer.data = server;
        uv_timer_start(&server->session_timer, end_idle_sessions, SESSION_SWEEP_MS, SESSION_SWEEP_MS);
        server->phase_timer.data = server->stop_timer.data = server;
}

int server_main(const Options *options)
{
        // its loop is never closed: see close_loop
        static Server server;
        signal(SIGPIPE, SIG_IGN);
        signal(SIGXFSZ, SIG_IGN); // a file beyond `ulimit -f` is a failed write
        init_loop(&server);
        Status status = log_start(&(LogOptions){ .format = options->log_format, .file = options->log_file });
        if (status == STATUS_OK) {
                options_unknown_variables(report_variable);
                status = start(&server, options);
        }
        if (status != STATUS_OK) {
                log_stop();
                listen_end(&server.address);
                fprintf(stderr, "fxserve: %s\n", failure_current()->message);
                close_loop(&server);
                uv_run(&server.loop, UV_RUN_DEFAULT);
                workers_stop(server.workers);
                models_free(server.models);
                memory_free(server.memory);
                reply_cache_close(server.replies);
                engine_close(server.engine);
                events_free(server.events);
                door_deinit(&server.door);
                usage_free(server.usage);
                otlp_stop(server.otlp);
                return status == STATUS_USAGE || status == STATUS_CONFLICT ? 2 : 1;
        }
        uv_run(&server.loop, UV_RUN_DEFAULT);
        // a run whose client already has its 504, or a build
        if (!workers_end(server.workers, (int64_t)GRACE_MS * 1000000))
                abandon(NULL);
        workers_stop(server.workers);
        http_free(server.http);
        listen_end(&server.address);
        models_free(server.models);
        memory_free(server.memory);
        reply_cache_close(server.replies);
        engine_close(server.engine);
        events_free(server.events);
        door_deinit(&server.door);
        usage_free(server.usage);
        otlp_stop(server.otlp);
        log_line("stopped");
        log_stop();
        return server.gave_up ? 1 : 0;
}
