/* load: sends events to a socket, and says how long it took and what it cost.
 *
 *   load --unix PATH [--events N] [--start SEQ] [--seed S] [--namespace NAME,NAME…] [--type T] [--payload BYTES]
 *        stream      one connection, pipelined, answered cumulatively; ends when all are answered (the default)
 *        lockstep    --connections C: each sends one event, waits for its answer, sends the next; --seconds S
 *        trickle     --per-second R: one connection, each event answered
 *   load --unix PATH | --tcp PORT --syslog [--events N]
 *                    RFC 5424 lines, each ended by a line feed; nobody answers them
 *
 * One line of JSON on standard output: events, refused, seconds, cpuSeconds, and for lockstep the latencies.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "events.h"

enum mode { STREAM, LOCKSTEP, TRICKLE, SYSLOG };

static struct {
  enum mode mode;
  const char *path, *type;
  char *namespaces[64];
  int namespace_count, port, connections;
  uint64_t events, start;
  double seconds, per_second;
  size_t payload_bytes;
} options = {STREAM, NULL, "event", {"bench"}, 1, 0, 64, 1000000, 0, 5, 1, 0};

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void fail(const char *what) {
  fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
  exit(1);
}

static int connect_once(void) {
  struct sockaddr_un local = {.sun_family = AF_UNIX};
  struct sockaddr_in internet = {.sin_family = AF_INET, .sin_port = htons((uint16_t)options.port)};
  internet.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int descriptor = socket(options.path ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (options.path) strncpy(local.sun_path, options.path, sizeof local.sun_path - 1);
  const void *address = options.path ? (void *)&local : (void *)&internet;
  if (connect(descriptor, address, options.path ? sizeof local : sizeof internet)) fail("connect");
  return descriptor;
}

static char *put_event(char *at, uint64_t sequence) {
  if (options.mode == SYSLOG) {
    at = put_text(at, "<134>1 2026-01-01T00:00:00Z edge app 1 - - ");
    at = put_meta(at, sequence);
    *at++ = '\n';
    return at;
  }
  at = put_text(at, "{\"namespace\":\"");
  /* In turns of 500: one program reports to one namespace. */
  at = put_text(at, options.namespaces[sequence / 500 % (uint64_t)options.namespace_count]);
  at = put_text(at, "\",\"type\":\"");
  at = put_text(at, options.type);
  at = put_text(at, "\",\"meta\":");
  at = put_meta(at, sequence);
  if (options.payload_bytes) {
    at = put_text(at, ",\"payloadBytes\":");
    at = put_number(at, options.payload_bytes);
  }
  at = put_text(at, "}\n");
  for (size_t done = 0; done < options.payload_bytes; done += 8) {
    uint64_t word = event_mix(sequence + done) & 0x0f0f0f0f0f0f0f0full;
    size_t bytes = options.payload_bytes - done < 8 ? options.payload_bytes - done : 8;
    memcpy(at, &word, bytes);
    at += bytes;
  }
  return at;
}

static void write_all(int descriptor, const char *bytes, size_t count) {
  while (count) {
    ssize_t written = write(descriptor, bytes, count);
    if (written < 0 && errno != EINTR) fail("write");
    if (written > 0) bytes += written, count -= (size_t)written;
  }
}

/* What the answers say: lines of {"acked":N} and refusals in them. */
struct answers {
  uint64_t acked, refused;
  char rest[65536];
  size_t rest_bytes;
};

static void read_answers(struct answers *answers, int descriptor) {
  size_t room = sizeof answers->rest - 1 - answers->rest_bytes;
  ssize_t count = read(descriptor, answers->rest + answers->rest_bytes, room);
  if (count <= 0) fail("the daemon closed the connection");
  answers->rest_bytes += (size_t)count;
  answers->rest[answers->rest_bytes] = 0;
  char *line = answers->rest, *end;
  while ((end = strchr(line, '\n'))) {
    *end = 0;
    if (!strncmp(line, "{\"acked\":", 9)) answers->acked = strtoull(line + 9, NULL, 10);
    for (char *at = line; (at = strstr(at, "{\"seq\":")); at++) answers->refused++;
    if (!strncmp(line, "{\"status\":", 10)) answers->acked++;
    if (strstr(line, "\"refused\"") && strstr(line, "\"status\"")) answers->refused++;
    line = end + 1;
  }
  answers->rest_bytes -= (size_t)(line - answers->rest);
  memmove(answers->rest, line, answers->rest_bytes);
}

static void drain(struct answers *answers, int descriptor, int wait) {
  struct pollfd poller = {descriptor, POLLIN, 0};
  while (poll(&poller, 1, wait) > 0) {
    read_answers(answers, descriptor);
    if (wait) return;
  }
}

static struct answers stream(void) {
  static struct answers answers;
  size_t room = 65536 + 512 + options.payload_bytes;
  char *buffer = malloc(room), *at = buffer;
  int descriptor = connect_once();
  bool is_answered = options.mode != SYSLOG;
  if (is_answered) {
    const char *hello = "{\"hello\":{\"app\":{\"APP_NAME\":\"bench\"},\"answer\":\"cumulative\"}}\n";
    write_all(descriptor, hello, strlen(hello));
  }
  for (uint64_t sent = 0; sent < options.events; sent++) {
    at = put_event(at, options.start + sent);
    if (at - buffer < 65536 && sent + 1 < options.events) continue;
    write_all(descriptor, buffer, (size_t)(at - buffer));
    at = buffer;
    if (is_answered) drain(&answers, descriptor, 0);
  }
  while (is_answered && answers.acked < options.events) drain(&answers, descriptor, 60000);
  close(descriptor);
  free(buffer);
  return answers;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

struct latencies {
  double *values;
  size_t count;
};

static struct answers lockstep(struct latencies *latencies) {
  static struct answers total;
  int connections = options.mode == TRICKLE ? 1 : options.connections;
  struct { int descriptor; double sent; } *clients = calloc((size_t)connections, sizeof *clients);
  char event[4096 + options.payload_bytes];
  int poller = epoll_create1(EPOLL_CLOEXEC);
  uint64_t sequence = options.start;
  double end = now() + options.seconds;
  latencies->values = malloc(sizeof(double) * options.events);
  for (int index = 0; index < connections; index++) {
    clients[index].descriptor = connect_once();
    struct epoll_event interest = {EPOLLIN, {.u32 = (uint32_t)index}};
    epoll_ctl(poller, EPOLL_CTL_ADD, clients[index].descriptor, &interest);
    clients[index].sent = now();
    write_all(clients[index].descriptor, event, (size_t)(put_event(event, sequence++) - event));
  }
  int open = connections;
  while (open > 0) {
    struct epoll_event ready[64];
    int count = epoll_wait(poller, ready, 64, 60000);
    if (count <= 0) fail("no answer within 60 s");
    for (int index = 0; index < count; index++) {
      char answer[4096];
      uint32_t client = ready[index].data.u32;
      ssize_t bytes = read(clients[client].descriptor, answer, sizeof answer);
      if (bytes <= 0) fail("the daemon closed the connection");
      double time = now();
      latencies->values[latencies->count++] = time - clients[client].sent;
      total.acked++;
      if (memmem(answer, (size_t)bytes, "\"refused\"", 9)) total.refused++;
      if (time >= end || latencies->count + (size_t)open > options.events) {
        close(clients[client].descriptor);
        open--;
        continue;
      }
      if (options.mode == TRICKLE) usleep((useconds_t)(1e6 / options.per_second));
      clients[client].sent = now();
      write_all(clients[client].descriptor, event, (size_t)(put_event(event, sequence++) - event));
    }
  }
  qsort(latencies->values, latencies->count, sizeof(double), by_value);
  return total;
}

static void parse(int argc, char **argv) {
  for (int index = 1; index < argc; index++) {
    char *name = argv[index];
    if (!strcmp(name, "stream")) { options.mode = STREAM; continue; }
    if (!strcmp(name, "lockstep")) { options.mode = LOCKSTEP; continue; }
    if (!strcmp(name, "trickle")) { options.mode = TRICKLE; continue; }
    if (!strcmp(name, "--syslog")) { options.mode = SYSLOG; continue; }
    if (index + 1 == argc) { fprintf(stderr, "load: %s: unknown, or its value is missing\n", name); exit(64); }
    char *value = argv[++index];
    if (!strcmp(name, "--unix")) options.path = value;
    else if (!strcmp(name, "--tcp")) options.port = atoi(value);
    else if (!strcmp(name, "--events")) options.events = strtoull(value, NULL, 10);
    else if (!strcmp(name, "--start")) options.start = strtoull(value, NULL, 10);
    else if (!strcmp(name, "--seed")) event_seed = strtoull(value, NULL, 10);
    else if (!strcmp(name, "--type")) options.type = value;
    else if (!strcmp(name, "--connections")) options.connections = atoi(value);
    else if (!strcmp(name, "--seconds")) options.seconds = atof(value);
    else if (!strcmp(name, "--per-second")) options.per_second = atof(value);
    else if (!strcmp(name, "--payload")) options.payload_bytes = strtoull(value, NULL, 10);
    else if (!strcmp(name, "--namespace")) {
      options.namespace_count = 0;
      for (char *part = strtok(value, ","); part && options.namespace_count < 64; part = strtok(NULL, ","))
        options.namespaces[options.namespace_count++] = part;
    } else { fprintf(stderr, "load: %s: unknown\n", name); exit(64); }
  }
  if (!options.path && !options.port) { fprintf(stderr, "load: give --unix PATH or --tcp PORT\n"); exit(64); }
}

int main(int argc, char **argv) {
  parse(argc, argv);
  struct latencies latencies = {NULL, 0};
  bool is_stream = options.mode == STREAM || options.mode == SYSLOG;
  double begin = now();
  struct answers answers = is_stream ? stream() : lockstep(&latencies);
  double seconds = now() - begin;
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  double cpu = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
               (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
  uint64_t events = options.mode == SYSLOG ? options.events : answers.acked;
  printf("{\"events\":%llu,\"refused\":%llu,\"seconds\":%.3f,\"cpuSeconds\":%.3f", (unsigned long long)events,
         (unsigned long long)answers.refused, seconds, cpu);
  if (latencies.count)
    printf(",\"p50Seconds\":%.6f,\"p99Seconds\":%.6f", latencies.values[latencies.count / 2],
           latencies.values[latencies.count * 99 / 100]);
  printf("}\n");
  return answers.refused > 0;
}
