/* The C client against a scripted daemon. Includes prism.c to reach what is static. */
#include "../prism.c"

#include <sched.h>
#include <stdarg.h>
#include <sys/time.h>
#include <sys/wait.h>

/* The sanitizers leave the crash test's signal alone, and threads are started after a fork. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "handle_segv=0"; }
const char *__tsan_default_options(void);
const char *__tsan_default_options(void) { return "handle_segv=0:die_after_fork=0:halt_on_error=1"; }

static int failures;
static const char *current_test;

/* With a message like printf's, or without one. */
#define CHECK(condition, ...) ((condition) ? (void)0 : failed(__LINE__, #condition, " " __VA_ARGS__))

static void failed(int line, const char *condition, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  failures++;
  printf("FAILED line %d %s: %s:", line, current_test, condition);
  vprintf(format, arguments);
  printf("\n");
  va_end(arguments);
}

static char folder[64];

static const char *path(const char *name) {
  static _Thread_local char texts[4][160];
  static _Thread_local int next;
  char *text = texts[next++ & 3];
  snprintf(text, sizeof texts[0], "%s/%s", folder, name);
  return text;
}

static void pause_ms(int ms) { nanosleep(&(struct timespec){ms / 1000, (ms % 1000) * 1000000L}, NULL); }

/* Waits for a condition without a verdict on time: this is for a machine that hangs. */
#ifndef PATIENCE_MS
#define PATIENCE_MS 60000
#endif
#define UNTIL(condition)                                          \
  do {                                                            \
    int64_t until_ = monotonic_ms() + PATIENCE_MS;                      \
    while (!(condition) && monotonic_ms() < until_) pause_ms(2);  \
    CHECK(condition, "it did not come true");                     \
  } while (0)

/* --- The scripted daemon --- */

typedef struct daemon_script {
  struct daemon_script *next; /* they stay, since their connections may */
  int listener;
  pthread_t thread;
  _Atomic bool is_stopping;
  _Atomic bool is_mute;        /* reads, and answers nothing */
  _Atomic bool greets_not;     /* answers no greeting */
  _Atomic int refusals;        /* the number of next reports that are refused with `code` */
  char code[32];
  int retry_ms;
  _Atomic int close_after;     /* reports; then the connection is closed without an answer. 0: never */
  _Atomic int connections, reports, distinct, payload_bytes, greetings;
  char ids[4096][ID_BYTES_MAX + 1];
  char last_line[16384];
  char last_hello[512];
  const char *const *script;   /* the answers to requests about records: "" closes the connection, NULL is the end: no answer */
  int asked;                   /* requests about records, and their lines; under `lock` */
  char questions[16][512];
  _Atomic int open;            /* connections that are not closed yet */
  pthread_mutex_t lock;
} daemon_script;

static void note(daemon_script *d, const char *line) {
  char id[ID_BYTES_MAX + 1];
  request_id(line, strlen(line), id);
  pthread_mutex_lock(&d->lock);
  snprintf(d->last_line, sizeof d->last_line, "%s", line);
  int count = atomic_load(&d->distinct), i = 0;
  while (i < count && strcmp(d->ids[i], id) != 0) i++;
  if (i == count && count < 4096) {
    memcpy(d->ids[i], id, sizeof id);
    atomic_fetch_add(&d->distinct, 1);
  }
  pthread_mutex_unlock(&d->lock);
}

/* One report. Returns false if the connection must end. */
static bool serve_report(daemon_script *d, int connection, FILE *in, const char *line, int number) {
  const char *payload = strstr(line, "\"payloadBytes\":");
  long length = payload ? strtol(payload + 15, NULL, 10) : 0;
  for (long i = 0; i < length; i++)
    if (fgetc(in) == EOF) return false;
  atomic_fetch_add(&d->reports, 1);
  if (atomic_load(&d->is_mute)) return true;
  if (atomic_load(&d->close_after) > 0 && number >= atomic_load(&d->close_after)) {
    atomic_store(&d->close_after, 0);
    return false;
  }
  char answer[512];
  if (atomic_load(&d->refusals) > 0 && atomic_fetch_sub(&d->refusals, 1) > 0) {
    int used = snprintf(answer, sizeof answer, "{\"acked\":%d,\"refused\":[{\"seq\":%d,\"code\":\"%s\",\"message\":\"a \\\"b\\\" \\u00e9\"", number, number, d->code);
    if (d->retry_ms >= 0) used += snprintf(answer + used, sizeof answer - (size_t)used, ",\"retryMs\":%d", d->retry_ms);
    snprintf(answer + used, sizeof answer - (size_t)used, "}]}\n");
  } else {
    note(d, line);
    atomic_fetch_add(&d->payload_bytes, (int)length);
    snprintf(answer, sizeof answer, "{\"acked\":%d}\n", number);
  }
  return send(connection, answer, strlen(answer), MSG_NOSIGNAL) > 0;
}

static bool is_of_records(const char *line) {
  static const char *const verbs[] = {"put", "patch", "delete", "get", "list", "watch"};
  for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
    if (strncmp(line + 2, verbs[i], strlen(verbs[i])) == 0 && line[2 + strlen(verbs[i])] == '"') return true;
  return false;
}

/* Returns false if the connection must end. */
static bool serve_record(daemon_script *d, int connection, const char *line) {
  pthread_mutex_lock(&d->lock);
  if (d->asked < 16) snprintf(d->questions[d->asked], sizeof d->questions[0], "%s", line);
  d->asked++;
  const char *answer = d->script ? *d->script : NULL;
  if (answer) d->script++;
  pthread_mutex_unlock(&d->lock);
  if (!answer) return true;
  return answer[0] && send(connection, answer, strlen(answer), MSG_NOSIGNAL) > 0 && !strstr(answer, "\n ");
}

static void *serve_connection(void *argument) {
  daemon_script *d = ((void **)argument)[0];
  int connection = (int)(intptr_t)((void **)argument)[1], number = 0;
  free(argument);
  atomic_fetch_add(&d->open, 1);
  FILE *in = fdopen(connection, "r");
  char *line = NULL;
  size_t capacity = 0;
  while (getline(&line, &capacity, in) > 0) {
    static const char hello[] = "{\"hello\":{\"server\":\"prismd\",\"limits\":{\"metaByte\":10240,\"x\":[1,{}]}}}\n";
    if (strncmp(line, "{\"hello\"", 8) == 0) {
      pthread_mutex_lock(&d->lock);
      snprintf(d->last_hello, sizeof d->last_hello, "%s", line);
      pthread_mutex_unlock(&d->lock);
      atomic_fetch_add(&d->greetings, 1);
      if (!atomic_load(&d->greets_not)) send(connection, hello, sizeof hello - 1, MSG_NOSIGNAL);
    } else if (is_of_records(line)) {
      if (!serve_record(d, connection, line)) break;
    } else if (!serve_report(d, connection, in, line, ++number)) {
      break;
    }
  }
  free(line);
  fclose(in);
  atomic_fetch_sub(&d->open, 1);
  return NULL;
}

static void *serve(void *argument) {
  daemon_script *d = argument;
  while (true) {
    int connection = accept4(d->listener, NULL, NULL, SOCK_CLOEXEC);
    if (connection < 0 || atomic_load(&d->is_stopping)) {
      if (connection >= 0) close(connection);
      return NULL;
    }
    atomic_fetch_add(&d->connections, 1);
    void **handed = malloc(2 * sizeof *handed);
    handed[0] = d, handed[1] = (void *)(intptr_t)connection;
    pthread_t thread;
    pthread_create(&thread, NULL, serve_connection, handed);
    pthread_detach(thread);
  }
}

static daemon_script *start_daemon(void) {
  static daemon_script *all;
  daemon_script *d = calloc(1, sizeof *d);
  d->next = all;
  all = d;
  d->retry_ms = -1;
  pthread_mutex_init(&d->lock, NULL);
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path, sizeof address.sun_path, "%s", path("sock"));
  unlink(address.sun_path);
  d->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (bind(d->listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(d->listener, 64) != 0) abort();
  pthread_create(&d->thread, NULL, serve, d);
  return d;
}

/* Connections stay until their clients close them. */
static void stop_daemon(daemon_script *d) {
  atomic_store(&d->is_stopping, true);
  shutdown(d->listener, SHUT_RDWR);
  pthread_join(d->thread, NULL);
  close(d->listener);
  unlink(path("sock"));
}

static prism_client *open_client(uint64_t spool_bytes, size_t queue_bytes, const char *spool) {
  prism_options options = PRISM_OPTIONS_INIT;
  char place[160];
  options.socket = path("sock");
  snprintf(place, sizeof place, "%s", spool[0] ? path(spool) : "");
  options.spool = place;
  options.app_name = "test \"app\"";
  options.app_version = "1.0";
  options.spool_bytes = spool_bytes;
  options.queue_bytes = queue_bytes;
  options.exit_ms = -1;
  prism_result error;
  prism_client *client = prism_open(&options, &error);
  if (!client) abort();
  return client;
}

static uint64_t stat_of(prism_client *c, size_t offset) {
  prism_stats stats = {.size = sizeof stats};
  prism_get_stats(c, &stats);
  uint64_t value;
  memcpy(&value, (char *)&stats + offset, sizeof value);
  return value;
}
#define STAT(client, member) stat_of(client, offsetof(prism_stats, member))

static prism_result report(prism_client *c, uint32_t deadline, prism_answer *answer) {
  prism_report_data data = PRISM_REPORT_INIT("net", "{\"ms\":12}");
  return prism_report(c, &data, deadline, answer);
}

static uint64_t spool_size(const char *name, int *files) {
  uint64_t sum = 0;
  DIR *list = opendir(path(name));
  *files = 0;
  for (struct dirent *item; list && (item = readdir(list));) {
    struct stat facts;
    char text[400];
    snprintf(text, sizeof text, "%s/%s", path(name), item->d_name);
    if (stat(text, &facts) != 0 || !S_ISREG(facts.st_mode)) continue;
    sum += (uint64_t)facts.st_size;
    *files += strstr(item->d_name, ".spool") != NULL;
  }
  if (list) closedir(list);
  return sum;
}

/* --- Tests --- */

static void json_is_written_and_escaped(void) {
  char buffer[400];
  prism_json j;
  prism_json_begin(&j, buffer, sizeof buffer);
  prism_json_string(&j, "a\"", "x\n\\\x01 \xC3\xA9 \xFF\xED\xA0\x80");
  prism_json_int(&j, "min", INT64_MIN);
  prism_json_uint(&j, "max", UINT64_MAX);
  prism_json_double(&j, "half", 0.5);
  prism_json_double(&j, "nan", 0.0 / (errno * 0.0));
  prism_json_array(&j, "list");
  prism_json_bool(&j, NULL, true);
  prism_json_object(&j, NULL);
  prism_json_close(&j);
  prism_json_null(&j, NULL);
  prism_json_close(&j);
  const char *text = prism_json_end(&j);
  const char *wanted =
      "{\"a\\\"\":\"x\\u000a\\\\\\u0001 \xC3\xA9 \xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\","
      "\"min\":-9223372036854775808,\"max\":18446744073709551615,\"half\":0.5,\"nan\":null,\"list\":[true,{},null]}";
  CHECK(text && strcmp(text, wanted) == 0, "%s", text ? text : "NULL");
  CHECK(text && is_meta(text, strlen(text)));
  for (size_t size = 0; size <= strlen(wanted); size++) {
    prism_json_begin(&j, buffer, size);
    prism_json_string(&j, "a", "bcdefghijklmnopqrstuvwxyz");
    CHECK((prism_json_end(&j) != NULL) == (size > 33), "size %zu", size);
  }
  prism_json_begin(&j, buffer, sizeof buffer);
  prism_json_array(&j, "open");
  CHECK(prism_json_end(&j) == NULL, "an open array");
  prism_json_begin(&j, buffer, sizeof buffer);
  prism_json_int(&j, NULL, 1);
  CHECK(prism_json_end(&j) == NULL, "a member without a key");
}

static void metas_are_checked(void) {
  static const char *const good[] = {"{\"a\":1}", " {\"a\" : [ ] }\n", "{\"a\":-0.5e+3,\"b\":\"\\ud83d\\ude00\"}",
                                     "{\"\":null}", "{\"a\":{\"b\":[true,false]}}"};
  static const char *const bad[] = {"", "{}", "[1]", "{\"a\":1", "{\"a\":1}}", "{\"a\":01}", "{\"a\":1.}", "{\"a\":+1}",
                                    "{a:1}", "{\"a\":\"\x01\"}", "{\"a\":\"\\x\"}", "{\"a\":\"\\ud800\"}",
                                    "{\"a\":\"\\udc00\"}", "{\"a\":\"\xFF\"}", "{\"a\":\"\xC0\x80\"}",
                                    "{\"a\":\"\xED\xA0\x80\"}", "{\"a\":\"\xF5\x80\x80\x80\"}", "{\"a\":1,}", "{\"a\":nul}",
                                    "{\"a\":1} x", "{\"a\":tru", "{\"a\":\"\\u12\"}", "{\"a\":\"\n\"}"};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) CHECK(is_meta(good[i], strlen(good[i])), "%s", good[i]);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) CHECK(!is_meta(bad[i], strlen(bad[i])), "%s", bad[i]);
  char deep[400] = "{\"a\":";
  size_t used = strlen(deep);
  for (int i = 0; i < 62; i++) deep[used++] = '[';
  for (int i = 0; i < 62; i++) deep[used++] = ']';
  deep[used++] = '}';
  CHECK(!is_meta(deep, used), "63 levels");
}

static void arguments_are_checked(void) {
  prism_client *c = open_client(0, 65536, "");
  prism_report_data data = PRISM_REPORT_INIT("net", "{}");
  CHECK(prism_report(c, &data, 0, NULL) == PRISM_INVALID);
  data.meta = "{\"a\":1}", data.type = "a b";
  CHECK(prism_report(c, &data, 0, NULL) == PRISM_INVALID);
  data.type = "net", data.name_space = "a.b";
  CHECK(prism_report(c, &data, 0, NULL) == PRISM_INVALID);
  data.name_space = NULL, data.report_id = "a/b";
  CHECK(prism_report(c, &data, 0, NULL) == PRISM_INVALID);
  data.report_id = NULL, data.payload_bytes = 3;
  CHECK(prism_report(c, &data, 0, NULL) == PRISM_INVALID);
  data.payload = "abc", data.payload_bytes = 65536;
  CHECK(prism_report(c, &data, 0, NULL) == PRISM_TOO_LARGE);
  data.payload_bytes = SIZE_MAX - 4;
  CHECK(prism_report(c, &data, 0, NULL) == PRISM_TOO_LARGE);
  CHECK(prism_report(NULL, &data, 0, NULL) == PRISM_CLOSED);
  CHECK(prism_report(c, NULL, 0, NULL) == PRISM_INVALID);
  CHECK(prism_close(c, 0) == PRISM_STORED);
  for (int i = -7; i <= 2; i++) CHECK(strncmp(prism_result_name((prism_result)i), "PRISM_", 6) == 0);
}

static ring hammered;
static _Atomic int hammers;

static void *hammer(void *argument) {
  uint64_t position, value;
  for (int i = 0; i < 20000; i++) {
    while (!ring_reserve(&hammered, sizeof value, &position)) {
      CHECK(false, "the ring has room for a record of each thread");
      return argument;
    }
    value = position;
    ring_write(&hammered, position + RING_HEADER, &value, sizeof value);
    ring_publish(&hammered, position, sizeof value, false);
    while (atomic_load(&hammered.head) <= position) sched_yield();
  }
  atomic_fetch_sub(&hammers, 1);
  return NULL;
}

/* Each of four threads has one record in a ring with room for four. */
static void the_ring_is_full_only_when_it_is(void) {
  pthread_t threads[4];
  hammered = (ring){.base = calloc(1, 64), .capacity = 64};
  atomic_store(&hammers, 4);
  int before = failures;
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, hammer, NULL);
  size_t length;
  bool has_waiter;
  while (atomic_load(&hammers) > 0 && failures == before) {
    uint64_t value = 0, head = atomic_load(&hammered.head);
    if (!ring_peek(&hammered, &length, &has_waiter)) {
      sched_yield();
      continue;
    }
    ring_copy(&hammered, &value, sizeof value);
    CHECK(length == sizeof value && value == head, "a record is whole");
    ring_pop(&hammered, length);
  }
  atomic_store(&hammered.head, UINT64_MAX / 2); /* lets the others end, should one have failed */
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  free(hammered.base);
}

static void a_report_is_stored(void) {
  daemon_script *d = start_daemon();
  prism_client *c = open_client(0, 0, "spool-a");
  CHECK(atomic_load(&d->connections) == 0, "connects lazily");
  prism_answer answer;
  CHECK(report(c, 30000, &answer) == PRISM_STORED);
  CHECK(strlen(answer.report_id) > 16 && answer.code[0] == 0);
  char payload[100000];
  memset(payload, '\n', sizeof payload);
  prism_report_data data = PRISM_REPORT_INIT("net", "{\n\"a\":\n1}");
  data.payload = payload, data.payload_bytes = sizeof payload, data.report_id = "mine", data.created_ms = 42;
  CHECK(prism_report(c, &data, 30000, &answer) == PRISM_STORED);
  CHECK(strcmp(answer.report_id, "mine") == 0);
  CHECK(atomic_load(&d->payload_bytes) == sizeof payload);
  const char *wanted = "{\"reportId\":\"mine\",\"namespace\":\"prism\",\"type\":\"net\",\"createdTime\":42,\"payloadBytes\":100000,\"meta\":{ \"a\": 1}}\n";
  pthread_mutex_lock(&d->lock);
  CHECK(strcmp(d->last_line, wanted) == 0, "%s", d->last_line);
  pthread_mutex_unlock(&d->lock);
  for (int i = 0; i < 2000; i++) CHECK(prism_send(c, "net", "{\"n\":1}") == PRISM_QUEUED);
  CHECK(prism_flush(c, PATIENCE_MS) == PRISM_STORED);
  CHECK(atomic_load(&d->distinct) == 2002, "%d", atomic_load(&d->distinct));
  CHECK(STAT(c, stored) == 2002 && STAT(c, connects) == 1);
  int files;
  CHECK(spool_size("spool-a", &files) == 0 && files == 0, "nothing touches the disk while the daemon is there");
  CHECK(prism_close(c, 1000) == PRISM_STORED);
  stop_daemon(d);
}

/* Waits for the greeting of this number, and returns whether it ends with `end`. */
static bool greets_with(daemon_script *d, int number, const char *end, char *hello) {
  for (int ms = 0; ms < PATIENCE_MS && atomic_load(&d->greetings) < number; ms++) pause_ms(1);
  pthread_mutex_lock(&d->lock);
  strcpy(hello, d->last_hello);
  pthread_mutex_unlock(&d->lock);
  size_t length = strlen(hello), tail = strlen(end);
  return length >= tail && strcmp(hello + length - tail, end) == 0;
}

static void sessions_begin_and_end(void) {
  daemon_script *d = start_daemon();
  prism_client *c = open_client(0, 0, "");
  char first[512], again[512], second[512];
  CHECK(prism_session_begin(c) == PRISM_QUEUED);
  CHECK(greets_with(d, 1, "-s1\"}}\n", first), "it connects without a report: %s", first);
  atomic_store(&d->close_after, 1);
  CHECK(report(c, PATIENCE_MS, NULL) == PRISM_STORED);
  CHECK(greets_with(d, 2, "-s1\"}}\n", again) && strcmp(first, again) == 0, "a new connection is the same session: %s", again);
  CHECK(prism_session_begin(c) == PRISM_QUEUED);
  CHECK(report(c, PATIENCE_MS, NULL) == PRISM_STORED);
  CHECK(greets_with(d, 3, "-s3\"}}\n", second), "%s", second);
  CHECK(prism_session_end(c) == PRISM_QUEUED && prism_session_end(c) == PRISM_QUEUED);
  CHECK(greets_with(d, 4, ",\"session\":false}}\n", second), "%s", second);
  for (int i = 0; i < 20; i++) report(c, 0, NULL);
  CHECK(prism_flush(c, PATIENCE_MS) == PRISM_STORED && atomic_load(&d->distinct) == 22, "%d", atomic_load(&d->distinct));
  CHECK(prism_close(c, 1000) == PRISM_STORED);
  CHECK(prism_session_begin(NULL) == PRISM_CLOSED);
  stop_daemon(d);
}

static void refusals_are_told(void) {
  daemon_script *d = start_daemon();
  prism_client *c = open_client(0, 0, "spool-r");
  strcpy(d->code, "unknown_type");
  atomic_store(&d->refusals, 1);
  prism_answer answer;
  CHECK(report(c, 30000, &answer) == PRISM_REFUSED);
  CHECK(strcmp(answer.code, "unknown_type") == 0 && strcmp(answer.message, "a \"b\" \xC3\xA9") == 0, "%s", answer.message);
  static const char *const codes[] = {"unknown", "busy", "disk_full", "internal", "store_full", "later_code"};
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
    strcpy(d->code, codes[i]);
    d->retry_ms = i == 5 ? 10 : -1;
    atomic_store(&d->refusals, 1);
    CHECK(report(c, 30000, &answer) == PRISM_STORED, "%s is sent again", codes[i]);
    CHECK(strcmp(answer.code, codes[i]) == 0, "%s", answer.code);
  }
  CHECK(STAT(c, refused) == 1 && atomic_load(&d->distinct) == 6);
  CHECK(prism_flush(c, PATIENCE_MS) == PRISM_STORED && atomic_load(&d->reports) == 13, "%d", atomic_load(&d->reports));
  CHECK(prism_close(c, 1000) == PRISM_STORED);
  /* Without a spool they go back into the queue. */
  c = open_client(0, 0, "");
  strcpy(d->code, "busy");
  d->retry_ms = 5;
  atomic_store(&d->refusals, 3);
  CHECK(report(c, 30000, &answer) == PRISM_STORED);
  CHECK(prism_close(c, 1000) == PRISM_STORED);
  stop_daemon(d);
}

static void a_lost_connection_is_made_again(void) {
  daemon_script *d = start_daemon();
  prism_client *c = open_client(0, 0, "spool-l");
  for (int round = 0; round < 5; round++) {
    atomic_store(&d->close_after, 3);
    for (int i = 0; i < 10; i++) report(c, 0, NULL);
    CHECK(report(c, PATIENCE_MS, NULL) == PRISM_STORED);
  }
  CHECK(prism_flush(c, PATIENCE_MS) == PRISM_STORED);
  CHECK(atomic_load(&d->distinct) == 55, "%d", atomic_load(&d->distinct));
  CHECK(atomic_load(&d->connections) >= 5);
  CHECK(prism_close(c, 1000) == PRISM_STORED);
  stop_daemon(d);
}

static void the_spool_keeps_what_the_daemon_misses(void) {
  prism_client *c = open_client(0, 0, "spool-k");
  prism_answer answer;
  for (int i = 0; i < 99; i++) CHECK(report(c, 0, NULL) == PRISM_QUEUED);
  CHECK(prism_flush(c, PATIENCE_MS) == PRISM_SPOOLED);
  CHECK(report(c, 200, &answer) == PRISM_SPOOLED);
  CHECK(STAT(c, spool_waiting) == 100);
  daemon_script *d = start_daemon();
  UNTIL(STAT(c, spool_waiting) == 0);
  CHECK(atomic_load(&d->distinct) == 100);
  int files;
  UNTIL(spool_size("spool-k", &files) == 0);
  CHECK(prism_close(c, 1000) == PRISM_STORED);
  stop_daemon(d);
  /* And over a close. */
  c = open_client(0, 0, "spool-k");
  for (int i = 0; i < 50; i++) report(c, 0, NULL);
  CHECK(prism_close(c, 100) == PRISM_SPOOLED);
  d = start_daemon();
  c = open_client(0, 0, "spool-k");
  report(c, 0, NULL);
  UNTIL(atomic_load(&d->distinct) == 51);
  UNTIL(spool_size("spool-k", &files) == 0);
  prism_close(c, 1000);
  stop_daemon(d);
}

static uint64_t losses_told;
static void on_loss(void *context, prism_loss loss, uint64_t count, const char *code, const char *message) {
  (void)context, (void)loss, (void)code, (void)message;
  losses_told += count;
}

static void the_spool_is_bounded_and_says_what_it_dropped(void) {
  prism_client *c = open_client(65536, 65536, "spool-b");
  c->on_loss = on_loss;
  losses_told = 0;
  char text[900];
  memset(text, 'x', sizeof text - 1);
  text[sizeof text - 1] = 0;
  char buffer[1100];
  prism_json j;
  prism_json_begin(&j, buffer, sizeof buffer);
  prism_json_string(&j, "text", text);
  const char *meta = prism_json_end(&j);
  int dropped = 0, taken = 0, files;
  for (int i = 0; i < 1000; i++) {
    prism_result result = prism_send(c, "net", meta);
    CHECK(result == PRISM_QUEUED || result == PRISM_DROPPED);
    result == PRISM_QUEUED ? taken++ : dropped++;
    if (i % 50 == 0) pause_ms(5);
    CHECK(spool_size("spool-b", &files) <= 65536);
  }
  CHECK(dropped > 0 && STAT(c, dropped_queue) == (uint64_t)dropped);
  uint64_t spooled;
  UNTIL(STAT(c, spool_error) == ENOSPC);
  CHECK(STAT(c, dropped_spool) == 0, "what fits into the queue is kept there");
  prism_close(c, 50);
  CHECK(spool_size("spool-b", &files) <= 65536);
  /* Each accepted report is in the spool, or was counted as dropped. */
  daemon_script *d = start_daemon();
  c = open_client(65536, 65536, "spool-b");
  report(c, 0, NULL);
  UNTIL(spool_size("spool-b", &files) == 0);
  spooled = (uint64_t)atomic_load(&d->distinct) - 1;
  CHECK(losses_told == (uint64_t)(1000 - (int)spooled), "told %llu of %d", (unsigned long long)losses_told, 1000 - (int)spooled);
  CHECK(spooled >= 45, "%llu fit", (unsigned long long)spooled);
  prism_close(c, 1000);
  stop_daemon(d);
}

static void a_mute_daemon_costs_the_caller_nothing(void) {
  daemon_script *d = start_daemon();
  prism_client *c = open_client(0, 0, "spool-m");
  atomic_store(&d->is_mute, true);
  CHECK(report(c, 50, NULL) == PRISM_QUEUED);
  /* After STALL_SPOOL it is in the spool too. */
  UNTIL(STAT(c, spool_waiting) == 1);
  CHECK(report(c, 20, NULL) < PRISM_SPOOLED);
  CHECK(prism_close(c, 50) == PRISM_SPOOLED);
  atomic_store(&d->is_mute, false);
  c = open_client(0, 0, "spool-m");
  report(c, 0, NULL);
  UNTIL(atomic_load(&d->distinct) == 3);
  prism_close(c, 1000);
  /* A report that waits for an answer at the end is spooled. */
  atomic_store(&d->is_mute, true);
  int before = atomic_load(&d->reports);
  c = open_client(0, 0, "spool-m");
  report(c, 0, NULL);
  UNTIL(atomic_load(&d->reports) > before);
  CHECK(prism_close(c, 0) == PRISM_SPOOLED);
  atomic_store(&d->is_mute, false);
  atomic_store(&d->greets_not, true);
  c = open_client(0, 0, "spool-m");
  report(c, 0, NULL);
  UNTIL(STAT(c, spool_waiting) == 1);
  CHECK(prism_close(c, 0) == PRISM_SPOOLED);
  stop_daemon(d);
}

/* Every byte of a spool file is damaged in its turn: at most the record around it is lost. */
static void a_damaged_spool_costs_one_record(void) {
  enum { RECORDS = 5 };
  prism_client *c = open_client(0, 0, "spool-d");
  for (int i = 0; i < RECORDS; i++) report(c, 0, NULL);
  CHECK(prism_close(c, 100) == PRISM_SPOOLED);
  char file[700] = "", bytes[4096];
  DIR *list = opendir(path("spool-d"));
  for (struct dirent *item; (item = readdir(list));)
    if (strstr(item->d_name, ".spool")) snprintf(file, sizeof file, "%s/%s", path("spool-d"), item->d_name);
  closedir(list);
  int f = open(file, O_RDWR | O_CLOEXEC);
  ssize_t length = read(f, bytes, sizeof bytes);
  CHECK(length > 0);
  worker w = {.client = c = open_client(0, 0, "spool-d"), .folder = -1, .lock = -1, .socket = -1};
  for (ssize_t at = 0; at < 2 * length; at++) {
    char damaged[4096];
    size_t size = (size_t)length;
    memcpy(damaged, bytes, size);
    if (at < length) damaged[at] = (char)(damaged[at] ^ (1 << (at % 8)));
    else size = (size_t)(at - length); /* torn */
    if (ftruncate(f, 0) != 0 || pwrite(f, damaged, size, 0) != (ssize_t)size) abort();
    segment s = {.file = f, .end = size};
    uint64_t offset = 0, lost = 0;
    size_t record;
    uint32_t state;
    int whole = 0;
    while (record_read(&w, &s, &offset, &record, &state, &lost)) whole++, offset += RECORD_HEADER + record;
    ssize_t size_of_one = length / RECORDS;
    bool is_state = at % size_of_one >= 12 && at % size_of_one < 16; /* not under the checksum */
    int wanted = at >= length ? (int)((at - length) / size_of_one) : is_state ? RECORDS : RECORDS - 1;
    CHECK(whole == wanted, "byte %zd: %d of %d", at, whole, wanted);
    CHECK(whole == RECORDS || lost > 0 || size % ((size_t)length / RECORDS) == 0, "byte %zd: the damage is counted", at);
  }
  free(w.scratch);
  close(f);
  unlink(file);
  prism_close(c, 0);
}

static void programs_share_a_spool(void) {
  enum { PROGRAMS = 6, REPORTS = 300 };
  pid_t children[PROGRAMS];
  for (int i = 0; i < PROGRAMS; i++) {
    children[i] = fork();
    if (children[i] > 0) continue;
    prism_client *c = open_client(1024 * 1024, 0, "spool-p");
    for (int n = 0; n < REPORTS; n++) report(c, 0, NULL);
    if (i % 2 == 0) {
      prism_flush(c, PATIENCE_MS);
      raise(SIGKILL);
    }
    _exit(prism_close(c, 1000) == PRISM_SPOOLED ? 0 : 1);
  }
  for (int i = 0; i < PROGRAMS; i++) {
    int status;
    waitpid(children[i], &status, 0);
    CHECK(i % 2 == 0 ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 0, "%d: %d", i, status);
  }
  int files;
  CHECK(spool_size("spool-p", &files) <= 1024 * 1024);
  daemon_script *d = start_daemon();
  prism_client *a = open_client(1024 * 1024, 0, "spool-p"), *b = open_client(1024 * 1024, 0, "spool-p");
  report(a, 0, NULL);
  report(b, 0, NULL);
  UNTIL(atomic_load(&d->distinct) == PROGRAMS * REPORTS + 2);
  CHECK(STAT(a, damaged_bytes) == 0 && STAT(b, damaged_bytes) == 0);
  UNTIL(spool_size("spool-p", &files) == 0);
  CHECK(atomic_load(&d->reports) == PROGRAMS * REPORTS + 2, "each once: %d", atomic_load(&d->reports));
  prism_close(a, 1000);
  prism_close(b, 1000);
  stop_daemon(d);
}

static int open_files(void) {
  int count = 0;
  DIR *list = opendir("/proc/self/fd");
  while (readdir(list)) count++;
  closedir(list);
  return count;
}

static void a_child_goes_on_by_itself(void) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  /* ThreadSanitizer does not support threads after a fork, and AddressSanitizer's allocator may be locked in the child. */
  printf("NOT RUN %s with this sanitizer\n", current_test);
  return;
#endif
  daemon_script *d = start_daemon();
  int before = open_files();
  prism_client *c = open_client(0, 0, "spool-f");
  for (int round = 0; round < 20; round++) {
    for (int i = 0; i < 20; i++) report(c, 0, NULL);
    int failures_before = failures, parents = round > 0 ? c->work->socket : -1;
    pid_t child = fork();
    if (child == 0) {
      CHECK(fcntl(parents, F_GETFD) < 0, "the parent's connection is closed");
      CHECK(STAT(c, accepted) == 0 && STAT(c, queue_used) == 0);
      bool is_good = report(c, PATIENCE_MS, NULL) == PRISM_STORED && prism_close(c, PATIENCE_MS) == PRISM_STORED;
      _exit(is_good && failures == failures_before ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%d", status);
  }
  CHECK(prism_flush(c, PATIENCE_MS) == PRISM_STORED);
  CHECK(atomic_load(&d->distinct) == 20 * 21, "%d", atomic_load(&d->distinct));
  CHECK(atomic_load(&d->reports) == 20 * 21, "no report is sent by both: %d", atomic_load(&d->reports));
  CHECK(prism_close(c, 1000) == PRISM_STORED);
  UNTIL(open_files() <= before);
  stop_daemon(d);
}

static _Atomic int calls[10];
static void on_done(void *context, prism_result result, const prism_answer *answer) {
  CHECK(context == (void *)calls && strlen(answer->report_id) > 16);
  atomic_fetch_add(&calls[result + 7], 1);
}

static void an_answer_may_be_called_back(void) {
  daemon_script *d = start_daemon();
  prism_client *c = open_client(0, 0, "spool-c");
  prism_report_data data = PRISM_REPORT_INIT("net", "{\"ms\":12}");
  for (int i = 0; i < 200; i++) CHECK(prism_report_async(c, &data, PATIENCE_MS, on_done, (void *)calls) == PRISM_QUEUED);
  UNTIL(atomic_load(&calls[PRISM_STORED + 7]) == 200);
  atomic_store(&d->is_mute, true);
  CHECK(prism_report_async(c, &data, 20, on_done, (void *)calls) == PRISM_QUEUED);
  UNTIL(atomic_load(&calls[PRISM_QUEUED + 7]) == 1);
  CHECK(prism_report_async(c, &data, PATIENCE_MS, on_done, (void *)calls) == PRISM_QUEUED);
  data.type = "a b";
  CHECK(prism_report_async(c, &data, 20, on_done, (void *)calls) == PRISM_INVALID);
  CHECK(prism_close(c, 0) == PRISM_SPOOLED);
  CHECK(atomic_load(&calls[PRISM_SPOOLED + 7]) == 1, "the end calls those that wait");
  stop_daemon(d);
}

static void interrupt(int number) { (void)number; }

/* A signal every 2 ms to the main thread, without SA_RESTART: no call may fail of it. SIGPIPE keeps its default, death. */
static void send_signals(void) {
  struct sigaction action = {.sa_handler = interrupt};
  sigaction(SIGALRM, &action, NULL);
  struct itimerval every = {{0, 2000}, {0, 2000}};
  setitimer(ITIMER_REAL, &every, NULL);
}

static void *report_many(void *client) {
  for (int i = 0; i < 400; i++) {
    prism_result result = report(client, i % 4 == 0 ? PATIENCE_MS : 0, NULL);
    CHECK(result == (i % 4 == 0 ? PRISM_STORED : PRISM_QUEUED), "%s", prism_result_name(result));
  }
  return NULL;
}

static void threads_share_a_client(void) {
  daemon_script *d = start_daemon();
  prism_client *c = open_client(0, 0, "spool-t");
  pthread_t threads[8];
  send_signals();
  for (int i = 0; i < 8; i++) pthread_create(&threads[i], NULL, report_many, c);
  for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
  CHECK(prism_flush(c, PATIENCE_MS) == PRISM_STORED);
  setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
  CHECK(atomic_load(&d->distinct) == 3200, "%d", atomic_load(&d->distinct));
  CHECK(prism_close(c, 1000) == PRISM_STORED);
  stop_daemon(d);
}

static void a_crash_is_written(void) {
  CHECK(prism_crash_report("{\"a\":1}", NULL, 0) == PRISM_CLOSED);
  CHECK(prism_crash_open(path("nothing"), NULL, NULL) == PRISM_SYSTEM && errno == ENOENT);
  mkdir(path("crash"), 0700);
  CHECK(prism_crash_open(path("crash"), "shop", "app.Crash") == PRISM_STORED);
  CHECK(prism_crash_report("{\"a\":1}", "stack", 5) == PRISM_SPOOLED);
  CHECK(prism_crash_report("nonsense", NULL, 0) == PRISM_INVALID);
  pid_t child = fork();
  if (child == 0) {
    CHECK(!prism_crash_install(NULL));
    volatile char *nowhere = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *nowhere = 1;
    _exit(0);
  }
  int status, json = 0, payload = 0, other = 0;
  waitpid(child, &status, 0);
  CHECK(!WIFEXITED(status) || WEXITSTATUS(status) != 0, "the signal is passed on");
  DIR *list = opendir(path("crash"));
  for (struct dirent *item; (item = readdir(list));) {
    if (item->d_name[0] == '.') continue;
    CHECK(strncmp(item->d_name, "shop.app.Crash.", 15) == 0, "%s", item->d_name);
    size_t length = strlen(item->d_name);
    if (strcmp(item->d_name + length - 5, ".json") == 0) json++;
    else if (strcmp(item->d_name + length - 8, ".payload") == 0) payload++;
    else other++;
    char text[400], bytes[4096];
    snprintf(text, sizeof text, "%s/%s", path("crash"), item->d_name);
    int f = open(text, O_RDONLY | O_CLOEXEC);
    ssize_t count = read(f, bytes, sizeof bytes - 1);
    bytes[count > 0 ? count : 0] = 0;
    if (strstr(text, ".json")) CHECK(is_meta(bytes, strlen(bytes)), "%s", bytes);
    if (strstr(text, ".json") && strstr(bytes, "reason")) CHECK(strstr(bytes, "\"reason\":\"SIGSEGV\",\"signal\":11,\"code\":2,\"address\":\"0x0"), "%s", bytes);
    close(f);
  }
  closedir(list);
  CHECK(json == 2 && payload == 2 && other == 0, "%d %d %d", json, payload, other);
}

/* --- Crashes of a child, by functions of their own so that the first frame can be compared --- */

__attribute__((noinline)) static void crash_by_write(void) {
  volatile char *nowhere = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *nowhere = 1;
}

__attribute__((noinline)) static int crash_by_overflow(int depth) {
  volatile char room[4096];
  room[0] = (char)depth;
  return depth < 0 ? 0 : crash_by_overflow(depth + 1) + room[0];
}

static void overflow(void) { crash_by_overflow(1); }

static void (*volatile nothing_to_call)(void);

__attribute__((noinline)) static void crash_by_call(void) {
  nothing_to_call();
  nothing_to_call = crash_by_call; /* so that the call is no jump */
}

static void call_wildly(void) {
  nothing_to_call = (void (*)(void))0x41414141;
  crash_by_call();
}

static void call_far_away(void) {
  nothing_to_call = (void (*)(void))(uintptr_t)(sizeof(uintptr_t) > 4 ? 0x7fff00001234 & UINTPTR_MAX : 0x70001234);
  crash_by_call();
}

#if defined(__x86_64__)
__attribute__((noinline)) static void crash_without_stack(void) {
  __asm__ volatile("movq $16, %%rsp\n\tmovq $16, %%rbp\n\tmovl $1, 0" ::: "memory");
}
#endif

/* With a lock of malloc held: a handler that allocates never ends. */
__attribute__((noinline)) static void crash_in_malloc(void) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  char *volatile room = malloc(24);
  for (int i = 0; i < 64; i++) room[i] = -1; /* over the size of what is free behind it */
  room = malloc(100000);
#endif
  abort();
}

static void *crash_in_thread(void *argument) {
  (void)argument;
  prctl(PR_SET_NAME, "till worker");
  crash_by_write();
  return NULL;
}

static void start_crashing_thread(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, crash_in_thread, NULL);
  pthread_join(thread, NULL);
}

static void crash_with_notes(void) {
  char text[300];
  for (int i = 0; i < 30; i++) {
    snprintf(text, sizeof text, "note %d \"%0*d", i, i == 28 ? 200 : 1, 0);
    prism_breadcrumb(text);
  }
  prism_breadcrumb(NULL);
  crash_by_write();
}

/* The only report in a folder; "" without one. */
static void read_only_meta(const char *spool, char *bytes, size_t size) {
  bytes[0] = 0;
  DIR *list = opendir(spool);
  for (struct dirent *item; list && (item = readdir(list));) {
    const char *end = strrchr(item->d_name, '.');
    if (!end || strcmp(end, ".json") != 0) continue;
    CHECK(!bytes[0], "two reports");
    int f = openat(dirfd(list), item->d_name, O_RDONLY | O_CLOEXEC);
    ssize_t count = read(f, bytes, size - 1);
    bytes[count > 0 ? count : 0] = 0;
    close(f);
  }
  if (list) closedir(list);
}

static const char *after(const char *text, const char *key) {
  const char *found = text ? strstr(text, key) : NULL;
  return found ? found + strlen(key) : NULL;
}

/* Crashes in a child. place: the function of frame `frame`, NULL: any. */
static void check_crash(const char *name, void (*crash_now)(void), const void *place, int frame, char *meta, size_t size) {
  mkdir(path(name), 0700);
  pid_t child = fork();
  if (child == 0) {
    prism_crash_options options = PRISM_CRASH_OPTIONS_INIT;
    options.folder = path(name);
    options.app_name = "till";
    options.app_version = "1.10";
    options.app_build = "b7";
    if (prism_crash_install(&options)) _exit(0);
    crash_now();
    _exit(0);
  }
  int status;
  waitpid(child, &status, 0);
  CHECK(WIFSIGNALED(status) || WEXITSTATUS(status) != 0, "%s", name);
  read_only_meta(path(name), meta, size);
  CHECK(is_meta(meta, strlen(meta)), "%s", meta);
  CHECK(strstr(meta, "\"APP_NAME\":\"till\",\"APP_VERSION\":\"1.10\",\"APP_BUILD\":\"b7\""), "%s", meta);
  CHECK(strstr(meta, "\"thread\":\"") && strstr(meta, "\"tid\":"), "%s", meta);
  if (!place) return;
  take_modules();
  const crash_module *module = module_of((uintptr_t)place);
  const char *found = after(meta, "\"frames\":[");
  for (int i = 0; i < frame; i++) found = after(found, "},");
  CHECK(module && module->build_id[0], "the linker writes a build id");
  const char *id = after(found, "\"buildId\":\""), *offset = after(found, "\"offset\":\"0x");
  CHECK(id && strncmp(id, module->build_id, strlen(module->build_id)) == 0, "%s", meta);
  uintptr_t at = offset ? strtoull(offset, NULL, 16) + module->bias : 0;
  CHECK(at >= (uintptr_t)place && at < (uintptr_t)place + 400, "%s: %s", name, meta);
  const char *function = function_at(module, (uintptr_t)place), *named = after(found, "\"function\":\"");
  CHECK(function && named && strncmp(named, function, strlen(function)) == 0, "%s: %s", name, meta);
}

static void a_crash_begins_where_it_happened(void) {
  char meta[16384];
  check_crash("crash-write", crash_by_write, (const void *)crash_by_write, 0, meta, sizeof meta);
  check_crash("crash-thread", start_crashing_thread, (const void *)crash_by_write, 0, meta, sizeof meta);
  CHECK(strstr(meta, "\"thread\":\"till worker\""), "%s", meta);
  check_crash("crash-overflow", overflow, (const void *)crash_by_overflow, 0, meta, sizeof meta);
  check_crash("crash-call", crash_by_call, (const void *)crash_by_call, 1, meta, sizeof meta);
  CHECK(strstr(meta, "\"frames\":[{\"address\":\"0x0\"},"), "%s", meta);
  /* There is no code at these addresses, which the unwinder would read. */
  check_crash("crash-wild", call_wildly, (const void *)crash_by_call, 1, meta, sizeof meta);
  CHECK(strstr(meta, "\"frames\":[{\"address\":\"0x41414141\"},"), "%s", meta);
  check_crash("crash-far", call_far_away, (const void *)crash_by_call, 1, meta, sizeof meta);
  check_crash("crash-malloc", crash_in_malloc, NULL, 0, meta, sizeof meta);
  CHECK(strstr(meta, "\"function\":\"crash_in_malloc\""), "%s", meta);
  check_crash("crash-abort", abort, NULL, 0, meta, sizeof meta);
  CHECK(strstr(meta, "\"reason\":\"SIGABRT\""), "%s", meta);
#if defined(__x86_64__)
  check_crash("crash-no-stack", crash_without_stack, (const void *)crash_without_stack, 0, meta, sizeof meta);
  CHECK(strstr(meta, "\"reason\":\"SIGSEGV\""), "%s", meta);
#endif
}

/* Under the address sanitizer a read beyond the file ends the test. */
static void notes_go_with_a_crash(void) {
  char meta[16384];
  check_crash("notes", crash_with_notes, (void *)crash_by_write, 0, meta, sizeof meta);
  const char *notes = after(meta, "\"breadcrumbs\":["), *end = notes ? strchr(notes, ']') : NULL;
  CHECK(end, "%s", meta);
  if (!end) return;
  CHECK(!strstr(notes, "\"note 9 ") && strstr(notes, "\"note 29 \\\"0\"}]"), "%s", notes);
  const char *last = strstr(notes, "\"note 28 "), *before = strstr(notes, "\"note 27 ");
  CHECK(before && last && before < last && last < end, "%s", notes);
  CHECK(last && strcspn(last + 1, "}") < 130, "a long one is cut: %s", notes);
}

/* Each byte of them takes six in JSON. */
static void a_crash_with_long_words_is_reported(void) {
  char notes[CRUMB_BYTES + 1] = "";
  memset(notes, 1, CRUMB_BYTES);
  for (int i = 0; i < CRUMBS; i++) prism_breadcrumb(notes);
  char *words[] = {crashing.program, crashing.app_name, crashing.app_version, crashing.app_build};
  for (int i = 0; i < 4; i++) memset(words[i], 1, i == 0 ? 511 : CRASH_WORD_BYTES);
  siginfo_t info = {.si_code = 1};
  crash_stack stack = {.count = 1, .frames = {(uintptr_t)crash_by_write}};
  const char *meta = crash_meta(SIGSEGV, &info, &stack);
  CHECK(meta && is_meta(meta, strlen(meta)) && strstr(meta, "\"breadcrumbs\":[{") && strstr(meta, "\"frames\":[{"));
  for (int i = 0; i < 4; i++) memset(words[i], 0, i == 0 ? 511 : CRASH_WORD_BYTES);
  atomic_store(&crumbs.count, 0);
}

static void a_damaged_file_has_no_names(void) {
  take_modules();
  crash_module sound = *module_of((uintptr_t)crash_by_write);
  CHECK(sound.file && strcmp(function_at(&sound, (uintptr_t)crash_by_write), "crash_by_write") == 0);
  uint64_t random = 1;
  for (int round = 0; round < 300; round++) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    size_t bytes = round % 3 ? sound.file_bytes : (size_t)((random >> 20) % sound.file_bytes) + 1;
    crash_module damaged = {.bias = sound.bias, .file_bytes = bytes};
    memcpy(damaged.build_id, sound.build_id, sizeof sound.build_id);
    char *copy = malloc(bytes);
    memcpy(copy, sound.file, bytes);
    for (int i = 0; i < 4; i++) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      size_t tail = bytes < 4096 ? bytes : 4096;
      copy[i & 1 ? (random >> 33) % (bytes < 64 ? bytes : 64) : bytes - 1 - (random >> 33) % tail] = (char)(random >> 50);
    }
    damaged.file = copy;
    if (find_names(&damaged, round & 1)) function_at(&damaged, (uintptr_t)crash_by_write);
    free(copy);
  }
}

static void crashes_are_installed_alone(void) {
  char meta[16384];
  atomic_store(&crash.folder, -1); /* as in a program that opened no spool */
  setenv("PRISM_CRASH_SPOOL", path("missing"), 1);
  prism_crash_options options = PRISM_CRASH_OPTIONS_INIT;
  options.name_space = "prism";
  const char *fault = prism_crash_install(&options);
  CHECK(fault && strstr(fault, path("missing")) && strstr(fault, "is missing") && strstr(fault, "PRISM_CRASH_SPOOL"), "%s",
        fault ? fault : "NULL");
  mkdir(path("alone"), 0700);
  CHECK(prism_crash_open(path("alone"), "shop", "not a type") == PRISM_INVALID);
  mkdir(path("own"), 0700);
  CHECK(prism_crash_open(path("own"), "shop", "app.Crash") == PRISM_STORED);
  options.type = "not a type";
  fault = prism_crash_install(&options);
  CHECK(fault && strstr(fault, "type 1 to 128"), "%s", fault ? fault : "NULL");
  options.type = "appCrash";
  CHECK(!prism_crash_install(&options), "the folder that is open stays");
  CHECK(prism_crash_report("{\"a\":1}", NULL, 0) == PRISM_SPOOLED);
  read_only_meta(path("own"), meta, sizeof meta);
  CHECK(strcmp(meta, "{\"a\":1}") == 0, "%s", meta);
  if (geteuid() != 0) {
    mkdir(path("closed"), 0500);
    options.folder = path("closed");
    fault = prism_crash_install(&options);
    CHECK(fault && strstr(fault, "refuses this user"), "%s", fault ? fault : "NULL");
  }
  setenv("PRISM_CRASH_SPOOL", path("alone"), 1);
  pid_t child = fork();
  if (child == 0) {
    atomic_store(&crash.folder, -1);
    if (prism_crash_install(NULL)) _exit(0);
    crash_by_write();
    _exit(0);
  }
  int status;
  waitpid(child, &status, 0);
  unsetenv("PRISM_CRASH_SPOOL");
  read_only_meta(path("alone"), meta, sizeof meta);
  char name[300];
  snprintf(name, sizeof name, "\"APP_NAME\":\"%s\"", program_invocation_short_name);
  CHECK(strstr(meta, name), "%s", meta);
}

static void build_ids_are_read(void) {
  struct {
    uint32_t head[3];
    char name[4];
    unsigned char bytes[20];
  } notes[2] = {{{4, 20, 1}, "GNU", {1}}, {{4, 20, 3}, "GNU", {0xab, 0x01}}};
  crash_module module = {.start = 0};
  for (size_t bytes = 0; bytes < sizeof notes; bytes++) take_build_id(&module, (const char *)notes, bytes, 4);
  CHECK(!module.build_id[0], "cut notes have no id");
  take_build_id(&module, (const char *)notes, sizeof notes, 4);
  CHECK(strncmp(module.build_id, "ab0100", 6) == 0 && strlen(module.build_id) == 40, "%s", module.build_id);
  for (uint32_t length = 0; length < 3; length++) {
    memset(notes, 0xff, sizeof notes);
    notes[0].head[length] = 4;
    take_build_id(&module, (const char *)notes, sizeof notes, 4);
  }
}

static void follow_script(daemon_script *d, const char *const *script) {
  pthread_mutex_lock(&d->lock);
  d->script = script;
  pthread_mutex_unlock(&d->lock);
}

static const char *question(daemon_script *d, int number) {
  static char text[512];
  pthread_mutex_lock(&d->lock);
  memcpy(text, d->questions[number], sizeof text);
  pthread_mutex_unlock(&d->lock);
  return text;
}

static int asked(daemon_script *d) {
  pthread_mutex_lock(&d->lock);
  int count = d->asked;
  pthread_mutex_unlock(&d->lock);
  return count;
}

static void records_are_put_and_read(void) {
  static const char *const script[] = {
      "{\"status\":\"stored\",\"version\":3}\n", "{\"status\":\"stored\",\"version\":4}\n", "{\"status\":\"stored\"}\n",
      "{\"record\":{\"id\":\"p\\\"1\",\"fields\":{\"version\":9,\"a\":[]},\"version\":4,\"state\":\"clean\"}}\n",
      "{\"record\":null}\n", "{\"records\":[{\"id\":\"a\",\"version\":7}],\"generation\":17,\"more\":false}\n", NULL};
  daemon_script *d = start_daemon();
  follow_script(d, script);
  prism_client *c = open_client(0, 0, "");
  prism_record_data record = PRISM_RECORD_INIT("printer", "p\"1");
  prism_record_answer answer;
  record.name_space = "shop";
  record.fields = "{\n \"paper\": \"low\"\n}";
  record.if_version = 2;
  CHECK(prism_put(c, &record, PATIENCE_MS, &answer) == PRISM_STORED && answer.version == 3 && !answer.json);
  CHECK(strcmp(question(d, 0), "{\"put\":{\"namespace\":\"shop\",\"table\":\"printer\",\"id\":\"p\\\"1\",\"ifVersion\":2,"
                                "\"fields\":{  \"paper\": \"low\" }}}\n") == 0, "%s", question(d, 0));
  record.if_version = PRISM_ABSENT;
  CHECK(prism_patch(c, &record, PATIENCE_MS, NULL) == PRISM_STORED);
  CHECK(strstr(question(d, 1), "\"ifVersion\":0,"), "%s", question(d, 1));
  record.fields = NULL;
  record.if_version = 0;
  CHECK(prism_delete(c, &record, PATIENCE_MS, &answer) == PRISM_STORED && answer.version == 0);
  CHECK(prism_get(c, &record, PATIENCE_MS, &answer) == PRISM_STORED && answer.version == 4);
  CHECK(answer.json && strncmp(answer.json, "{\"id\"", 5) == 0 && is_meta(answer.json, strlen(answer.json)), "%s", answer.json);
  free(answer.json);
  record.table = "prism.tags"; /* one of the daemon's own */
  CHECK(prism_get(c, &record, PATIENCE_MS, &answer) == PRISM_STORED && answer.version == 0 && !answer.json);
  record.table = "printer";
  record.id = NULL;
  CHECK(prism_list(c, &record, 10, PATIENCE_MS, &answer) == PRISM_STORED);
  CHECK(answer.json && strstr(answer.json, "\"generation\":17"), "%s", answer.json);
  free(answer.json);
  CHECK(strcmp(question(d, 5), "{\"list\":{\"namespace\":\"shop\",\"table\":\"printer\",\"limit\":10}}\n") == 0);
  CHECK(prism_close(c, 0) == PRISM_STORED);
  stop_daemon(d);
}

static void a_record_is_asked_for_until_it_is_answered(void) {
  static const char *const script[] = {
      "", "{\"status\":\"refused\",\"code\":\"busy\",\"message\":\"stopping\",\"retryMs\":1000}\n", "", "nonsense\n",
      "{\"status\":\"stored\",\"version\":1}\n", "{\"status\":\"refused\",\"code\":\"unknown_table\",\"message\":\"no\"}\n",
      "{\"status\":\"refused\",\"code\":\"disk_full\",\"message\":\"full\"}\n", NULL};
  daemon_script *d = start_daemon();
  follow_script(d, script);
  prism_client *c = open_client(0, 0, "");
  prism_record_data record = PRISM_RECORD_INIT("printer", "p1");
  prism_record_answer answer;
  record.fields = "{}";
  CHECK(prism_put(c, &record, PATIENCE_MS, &answer) == PRISM_STORED && answer.version == 1);
  CHECK(asked(d) == 5, "%d", asked(d));
  CHECK(prism_put(c, &record, PATIENCE_MS, &answer) == PRISM_REFUSED && strcmp(answer.code, "unknown_table") == 0);
  CHECK(asked(d) == 6, "what asking again can't change is told at once: %d", asked(d));
  /* The last refusal is the answer when the time is over; without one it is not known. */
  CHECK(prism_put(c, &record, 300, &answer) == PRISM_REFUSED && strcmp(answer.code, "disk_full") == 0);
  CHECK(prism_put(c, &record, 300, &answer) == PRISM_TIMED_OUT && answer.version == 0);
  stop_daemon(d);
  CHECK(prism_put(c, &record, 100, &answer) == PRISM_TIMED_OUT);
  CHECK(prism_close(c, 0) == PRISM_STORED);
}

static void arguments_of_records_are_checked(void) {
  prism_client *c = open_client(0, 0, "");
  prism_record_answer answer;
  char id[140];
  memset(id, 'x', sizeof id);
  id[129] = 0;
  const char *const ids[] = {"", "a b", "\x01", "\xc3\xa9", id, NULL};
  for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
    prism_record_data wrong = PRISM_RECORD_INIT("t", ids[i]);
    CHECK(prism_get(c, &wrong, 1, &answer) == PRISM_INVALID, "%zu", i);
  }
  prism_record_data record = PRISM_RECORD_INIT("t", "a");
  CHECK(prism_put(c, &record, 1, &answer) == PRISM_INVALID, "without fields");
  const char *const fields[] = {"[]", "{", "{}}", "{\"a\":1},\"b\":{}", "nonsense"};
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
    record.fields = fields[i];
    CHECK(prism_put(c, &record, 1, &answer) == PRISM_INVALID, "%zu", i);
  }
  record.fields = "{}";
  CHECK(prism_delete(c, &record, 1, &answer) == PRISM_INVALID);
  record.if_version = -2;
  CHECK(prism_put(c, &record, 1, &answer) == PRISM_INVALID);
  record.if_version = 0;
  record.table = "a/b";
  CHECK(prism_put(c, &record, 1, &answer) == PRISM_INVALID);
  record.table = "prism.other";
  CHECK(prism_put(c, &record, 1, &answer) == PRISM_INVALID);
  record.table = "t";
  record.fields = NULL;
  CHECK(prism_get(c, &record, 1, NULL) == PRISM_INVALID);
  CHECK(prism_list(c, &record, 0, 1, &answer) == PRISM_INVALID && prism_list(c, &record, 1001, 1, &answer) == PRISM_INVALID);
  CHECK(prism_get(NULL, &record, 1, &answer) == PRISM_CLOSED && prism_get(c, NULL, 1, &answer) == PRISM_INVALID);
  prism_result error;
  CHECK(!prism_watch_table(c, NULL, "a/b", NULL, NULL, &error) && error == PRISM_INVALID);
  prism_watch_end(NULL);
  CHECK(prism_close(c, 0) == PRISM_STORED);
}

typedef struct {
  _Atomic int count;
  char lines[16][128];
} told;

static void on_change(void *context, const prism_change *change) {
  told *t = context;
  int count = atomic_load(&t->count);
  if (count == 16) return;
  char *line = t->lines[count];
  size_t room = sizeof t->lines[0];
  int used = snprintf(line, room, "%lld %s", (long long)change->generation, change->code);
  for (size_t i = 0; i < change->id_count; i++)
    used += snprintf(line + used, room - (size_t)used, "%s%s", i ? "," : "", change->ids[i]);
  if (!change->ids && !change->code[0]) snprintf(line + used, room - (size_t)used, "all");
  atomic_store(&t->count, count + 1);
}

/* Of a table: the first line, changes, a restart without and with changes missed, and a table that is gone for a while. */
static void a_watch_goes_on(void) {
#define LINE(kind, rest) "{\"" kind "\":{\"namespace\":\"shop\",\"table\":\"t\"," rest "}}\n"
  static const char *const script[] = {
      LINE("watch", "\"generation\":7") LINE("changed", "\"generation\":8,\"ids\":[\"a\",\"\\\"b\"]") " ",
      LINE("watch", "\"generation\":8") " ", LINE("watch", "\"generation\":12")
      LINE("ended", "\"code\":\"unknown_table\",\"message\":\"no\""),
      "{\"status\":\"refused\",\"code\":\"unknown_table\",\"message\":\"no\"}\n",
      LINE("watch", "\"generation\":12") LINE("changed", "\"generation\":14"), NULL};
  static const char *const expected[] = {"7 all", "8 a,\"b", "12 all", "-1 unknown_table", "12 all", "14 all"};
  daemon_script *d = start_daemon();
  follow_script(d, script);
  prism_client *c = open_client(0, 0, "");
  told *t = calloc(1, sizeof *t);
  prism_result error;
  prism_watch *watch = prism_watch_table(c, "shop", "t", on_change, t, &error);
  CHECK(watch && error == PRISM_STORED);
  UNTIL(atomic_load(&t->count) >= 6);
  for (int i = 0; i < 6; i++) CHECK(strcmp(t->lines[i], expected[i]) == 0, "%d: %s", i, t->lines[i]);
  CHECK(strcmp(question(d, 0), "{\"watch\":{\"namespace\":\"shop\",\"table\":\"t\"}}\n") == 0, "%s", question(d, 0));
  prism_watch_end(watch);
  UNTIL(atomic_load(&d->open) == 0);
  CHECK(prism_close(c, 0) == PRISM_STORED);
  CHECK(atomic_load(&t->count) == 6);
  free(t);
  stop_daemon(d);
}

/* A child has neither its parent's watch nor the connection of it. */
static void a_child_leaves_the_watch_alone(void) {
  static const char *const script[] = {LINE("watch", "\"generation\":7"), NULL};
  daemon_script *d = start_daemon();
  follow_script(d, script);
  prism_client *c = open_client(0, 0, "");
  told *t = calloc(1, sizeof *t);
  prism_watch *watch = prism_watch_table(c, "shop", "t", on_change, t, NULL);
  UNTIL(atomic_load(&t->count) == 1);
  int ends[2];
  if (pipe(ends) != 0) abort();
  pid_t child = fork();
  if (child == 0) {
    char byte;
    close(ends[1]);
    prism_watch_end(watch); /* does not wait for a thread that is not there */
    _exit(read(ends[0], &byte, 1) == 0 ? 0 : 1);
  }
  close(ends[0]);
  prism_watch_end(watch);
  UNTIL(atomic_load(&d->open) == 0); /* while the child lives */
  close(ends[1]);
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0, "%d", status);
  CHECK(prism_close(c, 0) == PRISM_STORED);
  free(t);
  stop_daemon(d);
}

/* With a word only the tests whose names have it. */
int main(int words, char **arguments) {
  struct { const char *name; void (*run)(void); } tests[] = {
#define TEST(name) {#name, name}
      TEST(json_is_written_and_escaped), TEST(metas_are_checked), TEST(arguments_are_checked), TEST(the_ring_is_full_only_when_it_is),
      TEST(a_report_is_stored), TEST(sessions_begin_and_end),
      TEST(refusals_are_told), TEST(a_lost_connection_is_made_again), TEST(the_spool_keeps_what_the_daemon_misses),
      TEST(the_spool_is_bounded_and_says_what_it_dropped), TEST(a_mute_daemon_costs_the_caller_nothing),
      TEST(a_damaged_spool_costs_one_record), TEST(programs_share_a_spool), TEST(a_child_goes_on_by_itself),
      TEST(threads_share_a_client), TEST(an_answer_may_be_called_back), TEST(records_are_put_and_read),
      TEST(a_record_is_asked_for_until_it_is_answered), TEST(arguments_of_records_are_checked), TEST(a_watch_goes_on),
      TEST(a_child_leaves_the_watch_alone),
      TEST(a_crash_is_written), TEST(a_crash_begins_where_it_happened), TEST(notes_go_with_a_crash), TEST(a_crash_with_long_words_is_reported),
      TEST(crashes_are_installed_alone),
      TEST(build_ids_are_read), TEST(a_damaged_file_has_no_names)};
  size_t count = sizeof tests / sizeof *tests;
  for (size_t i = 0; i < count; i++) {
    current_test = tests[i].name;
    if (words > 1 && !strstr(current_test, arguments[1])) continue;
    snprintf(folder, sizeof folder, "/tmp/prism-test-XXXXXX");
    if (!mkdtemp(folder)) abort();
    tests[i].run();
    char command[100];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command) != 0) abort();
    printf("%s %s\n", failures ? "....." : "ok   ", current_test);
    fflush(stdout);
  }
  printf("%zu tests, %d failures\n", count, failures);
  return failures ? 1 : 0;
}
