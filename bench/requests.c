/* requests: sends batches of events by OTLP/HTTP or Fluent's forward protocol, each answered before the next one of its
 * connection, and says how long it took.
 *
 *   requests otlp|forward --tcp PORT [--events N] [--batch N] [--connections C] [--tag TAG]
 *
 * A batch is built once for each connection; its times make each request another one. One line of JSON on standard output.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "events.h"

static struct {
  bool is_forward;
  int port, connections, batch;
  long events;
  const char *tag;
} options = {false, 0, 4, 512, 1000000, "app"};

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void fail(const char *what) {
  fprintf(stderr, "requests: %s: %s\n", what, strerror(errno));
  exit(1);
}

/* A request, and where its times are. */
struct batch {
  char *bytes;
  size_t count;
  size_t *times;
  /* Of the chunk's number, in forward; of the request's head, in HTTP. */
  size_t chunk;
};

// MARK: - Protobuf

static char *put_varint(char *at, uint64_t value) {
  for (; value > 127; value >>= 7) *at++ = (char)(value | 128);
  *at++ = (char)value;
  return at;
}

static char *put_message(char *at, int field, const char *bytes, size_t count) {
  at = put_varint(at, (uint64_t)field << 3 | 2);
  at = put_varint(at, count);
  memcpy(at, bytes, count);
  return at + count;
}

static char *put_string(char *at, int field, const char *text) { return put_message(at, field, text, strlen(text)); }

static char *put_attribute(char *at, int field, const char *key, const char *text) {
  char value[256], pair[512];
  char *value_end = put_string(value, 1, text), *pair_end = put_string(pair, 1, key);
  pair_end = put_message(pair_end, 2, value, (size_t)(value_end - value));
  return put_message(at, field, pair, (size_t)(pair_end - pair));
}

/* `at` has room for the largest record. - Returns: its end; the time's place is `*time`. */
static char *put_log_record(char *at, uint64_t sequence, char **time) {
  char record[2048], body[1024], value[1100];
  char *end = record, *body_end = put_meta(body, sequence);
  *end++ = 1 << 3 | 1;
  end += 8;
  *end++ = 2 << 3;
  *end++ = 9;
  end = put_string(end, 3, "INFO");
  char *value_end = put_message(value, 1, body, (size_t)(body_end - body));
  end = put_message(end, 5, value, (size_t)(value_end - value));
  end = put_attribute(end, 6, "http.route", pages[sequence % 6]);
  end = put_attribute(end, 6, "device.model", models[sequence % 5]);
  char *result = put_message(at, 2, record, (size_t)(end - record));
  *time = result - (end - record) + 1;
  return result;
}

static struct batch otlp_batch(uint64_t sequence) {
  size_t room = (size_t)options.batch * 2048 + 4096;
  char *logs = malloc(room), *end = logs, *scope = malloc(room), *resource = malloc(room);
  struct batch batch = {malloc(room), 0, calloc((size_t)options.batch, sizeof(size_t)), 0};
  char name[64], **times = calloc((size_t)options.batch, sizeof *times);
  char *name_end = put_string(name, 1, "bench");
  end = put_message(end, 1, name, (size_t)(name_end - name));
  for (int index = 0; index < options.batch; index++) end = put_log_record(end, sequence++, &times[index]);
  char *scope_end = put_attribute(scope, 1, "service.name", "bench");
  char *resource_end = put_message(resource, 1, scope, (size_t)(scope_end - scope));
  resource_end = put_message(resource_end, 2, logs, (size_t)(end - logs));
  char head[256], body[16];
  size_t body_bytes = (size_t)(put_varint(body, (uint64_t)(resource_end - resource)) - body) + 1 + (size_t)(resource_end - resource);
  int head_bytes = snprintf(head, sizeof head,
                            "POST /v1/logs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-protobuf\r\n"
                            "Content-Length: %zu\r\n\r\n", body_bytes);
  memcpy(batch.bytes, head, (size_t)head_bytes);
  char *total = put_message(batch.bytes + head_bytes, 1, resource, (size_t)(resource_end - resource));
  batch.count = (size_t)(total - batch.bytes);
  for (int index = 0; index < options.batch; index++) batch.times[index] = batch.count - (size_t)(end - times[index]);
  free(times), free(logs), free(scope), free(resource);
  return batch;
}

// MARK: - Forward

static char *put_big(char *at, uint64_t value, int bytes) {
  while (bytes--) *at++ = (char)(value >> (8 * bytes));
  return at;
}

static char *put_str(char *at, const char *text, size_t count) {
  *at++ = (char)0xda;
  at = put_big(at, count, 2);
  memcpy(at, text, count);
  return at + count;
}

static struct batch forward_batch(uint64_t sequence) {
  size_t room = (size_t)options.batch * 1024 + 4096;
  char *events = malloc(room), *end = events, meta[1024];
  struct batch batch = {malloc(room), 0, calloc((size_t)options.batch, sizeof(size_t)), 0};
  for (int index = 0; index < options.batch; index++) {
    *end++ = (char)0x92;
    end = put_big(end, 0xd700, 2);
    batch.times[index] = (size_t)(end - events);
    end += 8;
    *end++ = (char)0x82;
    end = put_str(end, "page", 4);
    end = put_str(end, pages[sequence % 6], strlen(pages[sequence % 6]));
    end = put_str(end, "message", 7);
    char *meta_end = put_meta(meta, sequence++);
    end = put_str(end, meta, (size_t)(meta_end - meta));
  }
  char *at = batch.bytes;
  *at++ = (char)0x93;
  at = put_str(at, options.tag, strlen(options.tag));
  *at++ = (char)0xc6;
  at = put_big(at, (uint64_t)(end - events), 4);
  size_t start = (size_t)(at - batch.bytes);
  memcpy(at, events, (size_t)(end - events));
  at += end - events;
  *at++ = (char)0x81;
  at = put_str(at, "chunk", 5);
  batch.chunk = (size_t)(at - batch.bytes) + 3;
  at = put_str(at, "0123456789abcdef", 16);
  batch.count = (size_t)(at - batch.bytes);
  for (int index = 0; index < options.batch; index++) batch.times[index] += start;
  free(events);
  return batch;
}

/* Makes the next request of the batch: other times, another chunk. */
static void renew(struct batch *batch, uint64_t request) {
  for (int index = 0; index < options.batch; index++) {
    uint64_t nanoseconds = (uint64_t)time(NULL) * 1000000000u + request % 1000000 * 1000u + (uint64_t)index;
    char *at = batch->bytes + batch->times[index];
    if (options.is_forward) {
      at = put_big(at, nanoseconds / 1000000000u, 4);
      put_big(at, nanoseconds % 1000000000u, 4);
    } else {
      memcpy(at, &nanoseconds, 8);
    }
  }
  if (options.is_forward) put_hex(batch->bytes + batch->chunk, request);
}

// MARK: - Sending

static void write_all(int descriptor, const char *bytes, size_t count) {
  while (count) {
    ssize_t written = write(descriptor, bytes, count);
    if (written < 0 && errno != EINTR) fail("write");
    if (written > 0) bytes += written, count -= (size_t)written;
  }
}

/* Of a request: a whole answer that says yes, or the end. */
static void read_answer(int descriptor) {
  char answer[4096];
  size_t count = 0;
  while (true) {
    ssize_t bytes = read(descriptor, answer + count, sizeof answer - 1 - count);
    if (bytes <= 0) fail("the daemon closed the connection");
    count += (size_t)bytes;
    answer[count] = 0;
    if (options.is_forward) {
      if (count < 5) continue;
      if (memcmp(answer, "\x81\xa3""ack", 5)) { fprintf(stderr, "requests: not acknowledged\n"); exit(1); }
      return;
    }
    char *end = strstr(answer, "\r\n\r\n"), *length = strcasestr(answer, "content-length:");
    if (!end || !length || count < (size_t)(end + 4 - answer) + strtoull(length + 15, NULL, 10)) continue;
    if (strncmp(answer, "HTTP/1.1 200", 12)) { fprintf(stderr, "requests: %.60s\n", answer); exit(1); }
    return;
  }
}

static void *send_batches(void *argument) {
  uint64_t connection = (uint64_t)(uintptr_t)argument;
  long requests = options.events / options.batch / options.connections;
  struct batch batch = (options.is_forward ? forward_batch : otlp_batch)(connection * 1000000);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)options.port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(descriptor, (void *)&address, sizeof address)) fail("connect");
  for (long request = 0; request < requests; request++) {
    renew(&batch, connection * 100000 + (uint64_t)request);
    write_all(descriptor, batch.bytes, batch.count);
    read_answer(descriptor);
  }
  close(descriptor);
  return NULL;
}

int main(int argc, char **argv) {
  for (int index = 1; index < argc; index++) {
    char *name = argv[index];
    if (!strcmp(name, "otlp") || !strcmp(name, "forward")) { options.is_forward = *name == 'f'; continue; }
    if (index + 1 == argc) { fprintf(stderr, "requests: %s: unknown, or its value is missing\n", name); return 64; }
    char *value = argv[++index];
    if (!strcmp(name, "--tcp")) options.port = atoi(value);
    else if (!strcmp(name, "--events")) options.events = atol(value);
    else if (!strcmp(name, "--batch")) options.batch = atoi(value);
    else if (!strcmp(name, "--connections")) options.connections = atoi(value);
    else if (!strcmp(name, "--tag")) options.tag = value;
    else { fprintf(stderr, "requests: %s: unknown\n", name); return 64; }
  }
  if (!options.port || options.batch < 1 || options.connections < 1) { fprintf(stderr, "requests: give --tcp PORT\n"); return 64; }
  pthread_t *threads = calloc((size_t)options.connections, sizeof *threads);
  double begin = now();
  for (int index = 0; index < options.connections; index++)
    if (pthread_create(&threads[index], NULL, send_batches, (void *)(uintptr_t)(index + 1))) fail("a thread");
  for (int index = 0; index < options.connections; index++) pthread_join(threads[index], NULL);
  long events = options.events / options.batch / options.connections * options.batch * options.connections;
  printf("{\"events\":%ld,\"seconds\":%.3f}\n", events, now() - begin);
  return 0;
}
