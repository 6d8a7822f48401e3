/* prism.h: hands reports to prismd, the telemetry daemon of this machine. C11, no dependency beside libc and threads.
 *
 *   #include <prism.h>
 *   int main(void) {
 *     prism_client *client = prism_open(NULL, NULL);
 *     prism_send(client, "net", "{\"ms\":12}");
 *     prism_close(client, 1000);
 *   }
 *
 * A report goes into a queue in memory, and a thread of the client's own sends it. While the daemon is away the thread
 * moves the queue into a spool on disk, and sends the spool when the daemon is back. Each report has an id of its own,
 * so a report that is sent twice is stored once. docs/clients.md explains all of it.
 *
 * Threads: every function may be called by any thread at any time, except that prism_close ends the use of its client.
 * Fork: a child may go on using the client. It starts with an empty queue; the parent sends what the parent queued.
 * Exec: no descriptor is inherited. Call prism_flush first, since exec drops the queue in memory.
 * Signals: no signal is raised or handled, and no call fails because of one. Only prism_crash_report and the prism_json
 * functions may be called in a signal handler.
 */
#ifndef PRISM_H
#define PRISM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PRISM_API __attribute__((visibility("default")))
#else
#define PRISM_API
#endif

#define PRISM_CLIENT_VERSION "1.0.0"

/* The result of a report or a call. Negative: an error, and the report is not kept. */
typedef enum prism_result {
  PRISM_STORED = 0,  /* the daemon has committed it; it will be delivered or accounted for by name */
  PRISM_QUEUED = 1,  /* it is in memory and will be sent; it is lost if the program crashes now */
  PRISM_SPOOLED = 2, /* it is in the spool on disk and will be sent, by this program or a later one */

  PRISM_REFUSED = -1,    /* the daemon refused it for good; the answer has the code and the message */
  PRISM_DROPPED = -2,    /* the queue was full, and the spool was full or unusable */
  PRISM_INVALID = -3,    /* an argument is wrong: a name, an id, a meta that is not a JSON object */
  PRISM_TOO_LARGE = -4,  /* the meta has over 10,240 bytes, or the report does not fit into the queue */
  PRISM_CLOSED = -5,     /* the client is NULL or being closed */
  PRISM_NO_MEMORY = -6,  /* memory ran out */
  PRISM_SYSTEM = -7,     /* a system call failed; errno says why */
  PRISM_TIMED_OUT = -8   /* of a call about records: no answer came in time; the change may be stored or not, ask again */
} prism_result;

/* A constant text that says what happened and what to do. Never NULL. */
PRISM_API const char *prism_result_text(prism_result result);
/* The name of the constant: "PRISM_STORED". Never NULL. */
PRISM_API const char *prism_result_name(prism_result result);

typedef struct prism_client prism_client;

/* Why reports were dropped. */
typedef enum prism_loss {
  PRISM_LOSS_QUEUE,   /* the queue in memory was full */
  PRISM_LOSS_SPOOL,   /* the spool was full, unwritable or not configured while the daemon was away */
  PRISM_LOSS_REFUSED, /* the daemon refused it for good */
  PRISM_LOSS_DAMAGED  /* a spool file was damaged; `count` is in bytes */
} prism_loss;

PRISM_API const char *prism_loss_name(prism_loss loss);

/* Set `size` with PRISM_OPTIONS_INIT. A member that is zero or NULL has its default. */
typedef struct prism_options {
  size_t size;
  /* The daemon's socket, at most 107 bytes. Default: $PRISM_INGEST, else /run/prism/ingest.sock. */
  const char *socket;
  /* Common information of the app: APP_NAME and APP_VERSION, cut at 256 bytes. Default: the daemon takes the process. */
  const char *app_name;
  const char *app_version;
  /* The spool's folder, made when missing (mode 0700). Programs of one user may share it. "" : no spool. Default:
   * $PRISM_SPOOL, else prism-spool in systemd's $STATE_DIRECTORY, else prism/spool in $XDG_STATE_HOME, else
   * .local/state/prism/spool in $HOME, else no spool. Without $HOME, as in units of the system, root has /root. */
  const char *spool;
  /* The most bytes that the spool's files may hold, over all programs that share the folder. 64 KiB ... ; default:
   * 64 MiB. A report that does not fit is dropped and counted; one that is in the spool is never removed for another. */
  uint64_t spool_bytes;
  /* The queue in memory, rounded up to a power of two. 64 KiB ... 1 GiB; default: 4 MiB. */
  size_t queue_bytes;
  /* How long exit() may wait for the queue to be answered or spooled. Milliseconds; default: 1000; -1: not at all. */
  int exit_ms;
  /* Called on the client's thread when reports are dropped, at most once a second for each kind of loss. `code` and
   * `message` are the daemon's for PRISM_LOSS_REFUSED, else an explanation. It must not call prism_close. */
  void (*on_loss)(void *context, prism_loss loss, uint64_t count, const char *code, const char *message);
  void *context;
} prism_options;

#define PRISM_OPTIONS_INIT {sizeof(prism_options), NULL, NULL, NULL, NULL, 0, 0, 0, NULL, NULL}

/* Makes a client. Connects, starts the thread and touches the disk only when the first report comes.
 * options: NULL means all defaults. error: NULL or where the reason of a failure goes. Returns NULL if it fails. */
PRISM_API prism_client *prism_open(const prism_options *options, prism_result *error);

/* One report. Set `size` with PRISM_REPORT_INIT(type, meta). */
typedef struct prism_report_data {
  size_t size;
  const char *name_space;      /* 1 to 64 of A-Z a-z 0-9 _ -; NULL: "prism" */
  const char *type;            /* 1 to 128 of A-Z a-z 0-9 _ . : -; in the namespace's monitorList */
  const char *meta;            /* a JSON object, not empty, at most 10,240 bytes; see prism_json */
  const void *payload;         /* NULL: no payload */
  size_t payload_bytes;
  const char *report_id;       /* 1 to 64 of A-Z a-z 0-9 _ -; NULL: the client makes one */
  int64_t created_ms;          /* since 1970; 0: now */
} prism_report_data;

#define PRISM_REPORT_INIT(type, meta) {sizeof(prism_report_data), NULL, (type), (meta), NULL, 0, NULL, 0}

/* The daemon's answer. Texts end with a zero byte and are cut to fit. */
typedef struct prism_answer {
  char report_id[65];
  char code[32];     /* "" if no refusal was met; with QUEUED or SPOOLED the reason why it is tried again */
  char message[256];
} prism_answer;

/* Reports.
 * deadline_ms: how long to wait for the daemon's answer; 0: never waits, returns PRISM_QUEUED.
 * answer: NULL or where the answer goes.
 * Returns PRISM_STORED, PRISM_REFUSED; PRISM_QUEUED or PRISM_SPOOLED if the deadline came first (the report is sent all
 * the same); PRISM_DROPPED, PRISM_INVALID, PRISM_TOO_LARGE, PRISM_CLOSED. */
PRISM_API prism_result prism_report(
    prism_client *client, const prism_report_data *report, uint32_t deadline_ms, prism_answer *answer);

/* Called once on the client's thread with what prism_report would return. It must not wait, and not call prism_close. */
typedef void (*prism_done)(void *context, prism_result result, const prism_answer *answer);

/* Reports without waiting, and has `done` called with the answer, or when the deadline is over. For event loops.
 * Returns PRISM_QUEUED: `done` will be called; anything else: it will not. A child of a fork does not call it. */
PRISM_API prism_result prism_report_async(
    prism_client *client, const prism_report_data *report, uint32_t deadline_ms, prism_done done, void *context);

/* Reports to the namespace "prism" without waiting. The same results. */
PRISM_API prism_result prism_send(prism_client *client, const char *type, const char *meta);

/* Sessions: how long and how often the app is used, for the rates of its releases (docs/sessions.md). Without these calls each
 * connection is a session. A begun session goes on when the daemon starts again, and counts once.
 * prism_session_begin ends the session before it, and connects without waiting. After prism_session_end no session is open
 * until the next one begins. Both return PRISM_QUEUED; PRISM_SYSTEM: the client's thread can't start; PRISM_CLOSED. */
PRISM_API prism_result prism_session_begin(prism_client *client);
PRISM_API prism_result prism_session_end(prism_client *client);

/* Waits until all earlier reports of this process are answered or in the spool.
 * Returns PRISM_STORED: the daemon has answered all; PRISM_SPOOLED: some are in the spool; PRISM_QUEUED: the deadline
 * came first; PRISM_CLOSED. */
PRISM_API prism_result prism_flush(prism_client *client, uint32_t deadline_ms);

/* Flushes as prism_flush does, moves what is left to the spool, and frees the client. Returns as prism_flush does;
 * PRISM_QUEUED: some reports were dropped or the disk hangs. NULL is allowed. */
PRISM_API prism_result prism_close(prism_client *client, uint32_t deadline_ms);

/* Counts since prism_open, or since the fork in a child. Set `size` to sizeof. */
typedef struct prism_stats {
  size_t size;
  uint64_t accepted;        /* reports that prism_report took */
  uint64_t stored;          /* of this process, committed by the daemon */
  uint64_t refused;         /* refused for good */
  uint64_t dropped_queue;   /* not taken, the queue was full (PRISM_DROPPED) */
  uint64_t dropped_spool;   /* taken, and dropped since the spool was full or unusable */
  uint64_t damaged_bytes;   /* of spool files that did not match their checksums */
  uint64_t spooled;         /* reports written to the spool */
  uint64_t replayed;        /* reports of the spool that the daemon answered, other programs' too */
  uint64_t connects;        /* greeted connections */
  uint64_t queue_used;      /* bytes in memory now */
  uint64_t spool_waiting;   /* reports that wait in the spool files of this process */
  int spool_error;          /* errno of why there is no spool; 0: it works, or was not needed yet */
} prism_stats;

PRISM_API void prism_get_stats(prism_client *client, prism_stats *stats);

/* --- Records ---------------------------------------------------------------------------------------------------
 * State of which only the latest value matters (docs/records.md). Each call has a connection of its own. It waits for the
 * daemon's answer until its deadline, also over a restart of the daemon. A request that is sent twice leads to the same
 * record. Nothing is queued or spooled.
 *
 *   prism_record_data record = PRISM_RECORD_INIT("printer", "p1");
 *   record.fields = "{\"paper\":\"low\"}";
 *   prism_record_answer answer;
 *   if (prism_put(client, &record, 2000, &answer) == PRISM_STORED) printf("version %lld\n", (long long)answer.version);
 */

/* Set `size` with PRISM_RECORD_INIT(table, id). */
typedef struct prism_record_data {
  size_t size;
  const char *name_space; /* NULL: "prism" */
  const char *table;      /* 1 to 64 of A-Z a-z 0-9 _ -; in `records` of the namespace */
  const char *id;         /* 1 to 128 visible ASCII characters; of prism_list: the id before the page, or NULL */
  const char *fields;     /* of prism_put and prism_patch: a JSON object of at most 10,240 bytes */
  int64_t if_version;     /* of a change: the version that the record must have; 0: any; PRISM_ABSENT: it must not exist */
} prism_record_data;

#define PRISM_ABSENT (-1)
#define PRISM_RECORD_INIT(table, id) {sizeof(prism_record_data), NULL, (table), (id), NULL, 0}

typedef struct prism_record_answer {
  int64_t version;   /* of the record; 0: there is no record */
  char code[32];     /* of a refusal, as "unknown_table" or "version_mismatch"; else "" */
  char message[256]; /* the daemon's words */
  char *json;        /* of prism_get: the record, NULL if there is no such record; of prism_list: the page. Call free. */
} prism_record_answer;

/* Each returns PRISM_STORED (the answer is there), PRISM_REFUSED (code and message), PRISM_TIMED_OUT, PRISM_INVALID,
 * PRISM_TOO_LARGE, PRISM_NO_MEMORY, PRISM_CLOSED. answer: NULL is allowed, except with prism_get and prism_list. */

/* Sets all fields. */
PRISM_API prism_result prism_put(
    prism_client *client, const prism_record_data *record, uint32_t deadline_ms, prism_record_answer *answer);
/* Changes fields by a JSON Merge Patch (RFC 7396): null removes one. An absent record is made. */
PRISM_API prism_result prism_patch(
    prism_client *client, const prism_record_data *record, uint32_t deadline_ms, prism_record_answer *answer);
/* Deletes the record, here and at the server. An absent one is no fault. */
PRISM_API prism_result prism_delete(
    prism_client *client, const prism_record_data *record, uint32_t deadline_ms, prism_record_answer *answer);
/* Reads a record by its own or the server's id: {"id","serverId","fields","version","changedTime","state"}. */
PRISM_API prism_result prism_get(
    prism_client *client, const prism_record_data *record, uint32_t deadline_ms, prism_record_answer *answer);
/* Reads up to `limit` (1 to 1,000) records by ascending id: {"records":[...],"generation":17,"more":false}. */
PRISM_API prism_result prism_list(
    prism_client *client, const prism_record_data *record, uint32_t limit, uint32_t deadline_ms, prism_record_answer *answer);

typedef struct prism_watch prism_watch;

/* A state of a table: at the beginning, and after each change, by programs or by the server. */
typedef struct prism_change {
  int64_t generation;      /* the number of changes of the table; -1: it can't be watched now, `code` says why */
  const char *const *ids;  /* the records that changed; NULL: read the whole table */
  size_t id_count;
  const char *code;        /* "" or the daemon's refusal; the watch tries again by itself */
  const char *message;
} prism_change;

/* Called on the watch's own thread. It may call prism_get and the like, and must not call prism_watch_end. */
typedef void (*prism_on_change)(void *context, const prism_change *change);

/* Watches a table. After a restart of the daemon it goes on; changes that were missed are one call without ids.
 * error: NULL or where the reason of a failure goes. End it before prism_close. A child of a fork has no watch: it may only
 * end it. Returns NULL if it fails. */
PRISM_API prism_watch *prism_watch_table(
    prism_client *client, const char *name_space, const char *table, prism_on_change on_change, void *context,
    prism_result *error);
/* Ends the watch: `on_change` is not called any more once this returns. NULL is allowed. */
PRISM_API void prism_watch_end(prism_watch *watch);

/* --- JSON ------------------------------------------------------------------------------------------------------
 * Writes one JSON value into a buffer of yours. No memory is allocated; may be used in a signal handler, except
 * prism_json_double.
 *
 *   char buffer[512];
 *   prism_json meta;
 *   prism_json_begin(&meta, buffer, sizeof buffer);
 *   prism_json_string(&meta, "reason", "out of \"paper\"");
 *   prism_json_int(&meta, "ms", 12);
 *   const char *text = prism_json_end(&meta);    // NULL: the buffer is too small
 *
 * `key` is NULL within an array, and only there. Invalid UTF-8 becomes U+FFFD. NaN and infinity become null. */
typedef struct prism_json {
  char *buffer;
  size_t capacity, used;
  uint64_t arrays; /* a bit for each open level: 1 is an array */
  unsigned depth;
  bool has_members, failed;
} prism_json;

PRISM_API void prism_json_begin(prism_json *json, char *buffer, size_t capacity);
PRISM_API void prism_json_string(prism_json *json, const char *key, const char *value); /* NULL: null */
PRISM_API void prism_json_bytes(prism_json *json, const char *key, const void *value, size_t length);
PRISM_API void prism_json_int(prism_json *json, const char *key, int64_t value);
PRISM_API void prism_json_uint(prism_json *json, const char *key, uint64_t value);
PRISM_API void prism_json_double(prism_json *json, const char *key, double value);
PRISM_API void prism_json_bool(prism_json *json, const char *key, bool value);
PRISM_API void prism_json_null(prism_json *json, const char *key);
PRISM_API void prism_json_object(prism_json *json, const char *key);
PRISM_API void prism_json_array(prism_json *json, const char *key);
PRISM_API void prism_json_close(prism_json *json); /* ends the innermost object or array */
PRISM_API const char *prism_json_end(prism_json *json);

/* --- Crashes ---------------------------------------------------------------------------------------------------
 * A crash handler cannot wait for a daemon: it writes files into the crash spool, a folder from which prismd takes them
 * (docs/crash-spool.md).
 *
 *   prism_crash_options options = PRISM_CRASH_OPTIONS_INIT;
 *   options.app_name = "till";
 *   options.app_version = "2.4.1";
 *   const char *fault = prism_crash_install(&options);
 *   if (fault) fprintf(stderr, "crashes are not reported: %s\n", fault);
 */

/* Set `size` with PRISM_CRASH_OPTIONS_INIT. A member that is NULL has its default. Words are cut at 128 bytes. */
typedef struct prism_crash_options {
  size_t size;
  const char *folder;      /* default: that of prism_crash_open, else $PRISM_CRASH_SPOOL, else /var/spool/prism */
  const char *name_space;  /* default: "prism"; of an open spool without name_space and type: as they are */
  const char *type;        /* default: "appCrash" */
  const char *app_name;    /* APP_NAME of the report; default: the name of the program's file */
  const char *app_version; /* APP_VERSION */
  const char *app_build;   /* APP_BUILD */
} prism_crash_options;

#define PRISM_CRASH_OPTIONS_INIT {sizeof(prism_crash_options), NULL, NULL, NULL, NULL, NULL, NULL}

/* Reports SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT and SIGTRAP; opens the crash spool itself. The meta has the signal, its
 * code and address, the process, the thread with its name, and the app. It has the frames, the instruction that faulted
 * first, as function (if its file has the symbol), module, build id and offset. The payload has the addresses and the memory map. The handler runs on a stack of its own, so an
 * overflow of the stack of the calling thread is reported too. Then it passes the signal on to what handled it before.
 * Call it at the start of the program, and again after dlopen: each call reads the list of modules.
 * options: NULL means all defaults. Returns NULL, or the fault in words, valid until the next call: the folder is missing or
 * refuses this user, a name is wrong, memory ran out. */
PRISM_API const char *prism_crash_install(const prism_crash_options *options);

/* Notes what the program does, in memory: the newest 20 notes go with a crash, beside the reports that the daemon has of the app.
 * text: cut at 120 bytes; NULL is nothing. Any thread may call it, but no signal handler. Without prism_crash_install it has no
 * effect that is seen. */
PRISM_API void prism_breadcrumb(const char *text);

/* For a folder or a handler of your own. Opens the crash spool. Call it at the start of the program, not in a handler.
 * Repeated calls replace the settings.
 * folder: NULL: $PRISM_CRASH_SPOOL, else /var/spool/prism. name_space: NULL: "prism". type: NULL: "appCrash".
 * Returns PRISM_STORED, PRISM_INVALID, or PRISM_SYSTEM (errno; the folder is missing or not yours to write). */
PRISM_API prism_result prism_crash_open(const char *folder, const char *name_space, const char *type);

/* Writes one crash report. Async-signal-safe. meta: a JSON object. payload: NULL without one.
 * Returns PRISM_SPOOLED; PRISM_CLOSED without prism_crash_open and prism_crash_install; PRISM_INVALID; PRISM_SYSTEM
 * (errno). */
PRISM_API prism_result prism_crash_report(const char *meta, const void *payload, size_t payload_bytes);

#ifdef __cplusplus
}
#endif

#endif
