/* sink: the cheapest receiver: takes packets over HTTP, or lines over TCP, counts them, and keeps nothing.
 *
 *   sink --port PORT [--lines] [--expect N] [--key HEX] [--window N] [--any] [--rows] [--otlp]
 *
 * HTTP: every POST is accepted with its Prism-Receipt; Prism-Item-Count is what it counts. --lines: line feeds are.
 * Like prism-collector it announces that it takes zstd.
 * --key makes the receipts of packets of version 2 (docs/packet.md, "The receipt"); the packets are not opened.
 * --window: what it announces as Prism-Window; it counts, so the order is nothing to it. --any: not on loopback only.
 * --rows: it announces no columns. --otlp: it answers as a backend of OTLP/HTTP does.
 * It ends when --expect have come, or on SIGTERM, and prints one line of JSON: items, requests, bytes, seconds from the
 * first byte to the last, cpuSeconds. SIGUSR1 prints it without ending.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct client {
  int descriptor;
  char head[16384];
  size_t head_bytes;
  uint64_t body_left, items;
  char receipt[128];
  bool is_within_body;
};

static uint64_t items, requests, bytes;
static double first, last;
static bool counts_lines, is_public, has_key, takes_rows_only, is_otlp;
static unsigned char receipt_key[32];
static int window;
static volatile sig_atomic_t is_over, is_asked;

static void on_signal(int number) {
  if (number == SIGUSR1) is_asked = 1; else is_over = 1;
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void tell(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  double cpu = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
               (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
  printf("{\"items\":%llu,\"requests\":%llu,\"bytes\":%llu,\"seconds\":%.3f,\"cpuSeconds\":%.3f,\"last\":%.3f}\n", (unsigned long long)items,
         (unsigned long long)requests, (unsigned long long)bytes, last - first, cpu, last);
  fflush(stdout);
}

static const char *header(const char *head, const char *name) {
  const char *at = strcasestr(head, name);
  return at ? at + strlen(name) : "";
}

static void answer(struct client *client) {
  char text[256];
  int count = is_otlp ? snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\n") : snprintf(
      text, sizeof text, "HTTP/1.1 200 OK\r\nPrism-Accept: zstd%s\r\nPrism-Receipt: %s\r\n",
      takes_rows_only ? "" : ", columns", client->receipt);
  if (window) count += snprintf(text + count, sizeof text - (size_t)count, "Prism-Window: %d\r\n", window);
  count += snprintf(text + count, sizeof text - (size_t)count, "Content-Length: 0\r\n\r\n");
  if (write(client->descriptor, text, (size_t)count) != count) perror("sink: write");
  items += client->items;
  requests++;
  client->is_within_body = false;
}

/* HKDF-SHA-256 of the packets' key, which is given in hexadecimal. */
static void set_key(const char *text) {
  unsigned char key[32];
  size_t size = strlen(text) / 2, derived = sizeof receipt_key;
  if (size > sizeof key) size = sizeof key;
  for (size_t n = 0; n < size; n++) sscanf(text + 2 * n, "%2hhx", &key[n]);
  EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_id(EVP_PKEY_HKDF, NULL);
  has_key = EVP_PKEY_derive_init(context) > 0 && EVP_PKEY_CTX_set_hkdf_md(context, EVP_sha256()) > 0 &&
            EVP_PKEY_CTX_set1_hkdf_key(context, key, (int)size) > 0 &&
            EVP_PKEY_CTX_add1_hkdf_info(context, (const unsigned char *)"prism2 receipt", 14) > 0 &&
            EVP_PKEY_derive(context, receipt_key, &derived) > 0;
  EVP_PKEY_CTX_free(context);
  if (!has_key) {
    fprintf(stderr, "sink: --key: no key can be derived\n");
    exit(1);
  }
}

/* Appends " CODE": of the packet's context and the empty body of the answer. */
static void add_code(struct client *client) {
  static const char *const names[] = {"Device-Id:", "Namespace:", "Packet-Id:", NULL,
                                      "Depends-On:", "Item-Count:", "Ledger:", "Sent-Time:"};
  unsigned char text[4096], code[32];
  size_t size = (size_t)sprintf((char *)text, "prism2\n"), code_size;
  for (int index = 0; index < 8; index++) {
    char name[64];
    snprintf(name, sizeof name, "\r\nPrism-%s", names[index] ? names[index] : "");
    const char *value = names[index] ? header(client->head, name) : strstr(client->head, ".prism.payload") ? "payload" : "meta";
    while (*value == ' ') value++;
    size_t length = strcspn(value, "\r");
    if (length > 1024) length = 1024;
    if (size + length + 1 + 8 + 32 > sizeof text) return;
    memcpy(text + size, value, length);
    text[size + length] = '\n';
    size += length + 1;
  }
  if (strcasestr(client->head, "\r\nPrism-Form: columns\r")) size += (size_t)sprintf((char *)text + size, "columns\n");
  EVP_Digest("", 0, text + size, NULL, EVP_sha256(), NULL);
  EVP_Q_mac(NULL, "HMAC", NULL, "SHA256", NULL, receipt_key, sizeof receipt_key, text, size + 32, code, 32, &code_size);
  char *at = client->receipt + strlen(client->receipt);
  *at++ = ' ';
  for (int index = 0; index < 32; index++) sprintf(at + 2 * index, "%02x", code[index]);
}

static void begin_body(struct client *client) {
  client->body_left = strtoull(header(client->head, "\r\nContent-Length:"), NULL, 10);
  client->items = strtoull(header(client->head, "\r\nPrism-Item-Count:"), NULL, 10);
  const char *id = header(client->head, "\r\nPrism-Packet-Id:");
  while (*id == ' ') id++;
  size_t length = strcspn(id, "\r");
  if (length > 36) length = 36;  /* a UUID */
  memcpy(client->receipt, id, length);
  client->receipt[length] = 0;
  if (has_key && *header(client->head, "\r\nPrism-Version: 2\r")) add_code(client);
  client->is_within_body = true;
}

static void take_http(struct client *client, const char *data, size_t count) {
  while (count || (client->is_within_body && !client->body_left)) {
    if (client->is_within_body) {
      size_t part = count < client->body_left ? count : client->body_left;
      data += part, count -= part, client->body_left -= part;
      if (!client->body_left) answer(client);
      continue;
    }
    size_t part = sizeof client->head - 1 - client->head_bytes;
    if (part > count) part = count;
    memcpy(client->head + client->head_bytes, data, part);
    client->head[client->head_bytes + part] = 0;
    char *end = strstr(client->head, "\r\n\r\n");
    if (!end) {
      client->head_bytes += part;
      return;
    }
    size_t used = (size_t)(end + 4 - client->head) - client->head_bytes;
    data += used, count -= used, client->head_bytes = 0;
    end[2] = 0;
    begin_body(client);
  }
}

static void take(struct client *client, const char *data, size_t count) {
  last = now();
  if (!bytes) first = last;
  bytes += count;
  if (!counts_lines) return take_http(client, data, count);
  for (const char *at = data; (at = memchr(at, '\n', (size_t)(data + count - at))); at++) items++;
}

static int listen_on(int port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  address.sin_addr.s_addr = htonl(is_public ? INADDR_ANY : INADDR_LOOPBACK);
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (bind(listener, (void *)&address, sizeof address) || listen(listener, 512)) {
    perror("sink: listen");
    exit(1);
  }
  return listener;
}

int main(int argc, char **argv) {
  int port = 0;
  uint64_t expected = UINT64_MAX;
  for (int index = 1; index < argc; index++) {
    if (!strcmp(argv[index], "--lines")) counts_lines = true;
    else if (!strcmp(argv[index], "--any")) is_public = true;
    else if (!strcmp(argv[index], "--rows")) takes_rows_only = true;
    else if (!strcmp(argv[index], "--otlp")) is_otlp = true;
    else if (!strcmp(argv[index], "--window") && index + 1 < argc) window = atoi(argv[++index]);
    else if (!strcmp(argv[index], "--port") && index + 1 < argc) port = atoi(argv[++index]);
    else if (!strcmp(argv[index], "--expect") && index + 1 < argc) expected = strtoull(argv[++index], NULL, 10);
    else if (!strcmp(argv[index], "--key") && index + 1 < argc) set_key(argv[++index]);
    else { fprintf(stderr, "sink: %s: unknown\n", argv[index]); return 64; }
  }
  struct sigaction action = {.sa_handler = on_signal};
  sigaction(SIGTERM, &action, NULL);
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGUSR1, &action, NULL);
  int listener = listen_on(port), poller = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event interest = {EPOLLIN, {.ptr = NULL}};
  epoll_ctl(poller, EPOLL_CTL_ADD, listener, &interest);
  static char buffer[262144];
  while (!is_over && items < expected) {
    struct epoll_event ready[64];
    int count = epoll_wait(poller, ready, 64, 200);
    if (is_asked) is_asked = 0, tell();
    for (int index = 0; index < count; index++) {
      struct client *client = ready[index].data.ptr;
      if (!client) {
        client = calloc(1, sizeof *client);
        client->descriptor = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        interest.data.ptr = client;
        epoll_ctl(poller, EPOLL_CTL_ADD, client->descriptor, &interest);
        continue;
      }
      ssize_t bytes_read = read(client->descriptor, buffer, sizeof buffer);
      if (bytes_read > 0) {
        take(client, buffer, (size_t)bytes_read);
      } else {
        close(client->descriptor);
        free(client);
      }
    }
  }
  tell();
  return 0;
}
