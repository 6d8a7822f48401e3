/* prism.c: see prism.h for the interface and docs/clients.md for the design.
 *
 * A caller copies its request into a ring in memory without a lock. One thread (the worker) owns everything else: the
 * connection, the window of requests that wait for an answer, and the spool. A request is in one of three places: the
 * ring, the window, or a segment of the spool; the worker moves it, and forgets it only after the daemon's answer.
 */
#define _GNU_SOURCE
#include "prism.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <execinfo.h>
#endif

enum {
  META_BYTES_MAX = 10240,
  ID_BYTES_MAX = 64,
  DEPTH_MAX = 60,                      /* the daemon takes 64 levels, and the request adds one */
  WINDOW_BYTES = 1024 * 1024,          /* requests that wait for an answer, one larger one excepted */
  FILL_BYTES = 256 * 1024,             /* taken from the ring, then from the spool, in turn */
  INPUT_BYTES_MAX = 16 * 1024 * 1024,  /* one line of the daemon's */
  ADOPTED_MAX = 8,                     /* segments of ended programs that are held at once */
  WORKER_STACK_BYTES = 256 * 1024,
};

/* Milliseconds. */
enum {
  AWAY_GRACE = 250,        /* after the loss of a connection, before the queue is moved to the spool */
  CROWDED_GRACE = 20,      /* the same while the daemon is slow and the ring is half full */
  STALL_SPOOL = 2000,      /* without an answer: what waits for it is copied to the spool */
  STALL_DISCONNECT = 30000,
  GREETING_MAX = 10000,
  BACKOFF_MIN = 50,
  BACKOFF_MAX = 2000,
  REPLAY_MIN = 200,        /* before a report that the daemon could not take is sent again */
  REPLAY_MAX = 10000,
  ADOPT_INTERVAL = 10000,
  WATCH_RETRY_MAX = 10000,
  SPOOL_RETRY = 500,       /* after the spool was full or unwritable */
  LOSS_INTERVAL = 1000,
};

#define DEFAULT_SPOOL_BYTES (64ull * 1024 * 1024)
#define DEFAULT_QUEUE_BYTES (4ull * 1024 * 1024)

static int64_t monotonic_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int64_t unix_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static struct timespec deadline_at(int64_t monotonic) {
  return (struct timespec){.tv_sec = monotonic / 1000, .tv_nsec = (long)(monotonic % 1000) * 1000000};
}

static void init_condition(pthread_cond_t *condition) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(condition, &attributes);
  pthread_condattr_destroy(&attributes);
}

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

static uint32_t crc32_of(uint32_t crc, const void *bytes, size_t length) {
  static _Atomic uint32_t table[256];
  static _Atomic bool is_made;
  if (!atomic_load_explicit(&is_made, memory_order_acquire)) {
    for (uint32_t n = 0; n < 256; n++) {
      uint32_t value = n;
      for (int bit = 0; bit < 8; bit++) value = value & 1 ? 0xEDB88320u ^ (value >> 1) : value >> 1;
      atomic_store_explicit(&table[n], value, memory_order_relaxed);
    }
    atomic_store_explicit(&is_made, true, memory_order_release);
  }
  const uint8_t *next = bytes;
  crc = ~crc;
  while (length--) crc = atomic_load_explicit(&table[(crc ^ *next++) & 0xFF], memory_order_relaxed) ^ (crc >> 8);
  return ~crc;
}

/* --- Names and texts ------------------------------------------------------------------------------------------- */

const char *prism_result_text(prism_result result) {
  switch (result) {
    case PRISM_STORED: return "stored: the daemon has committed it";
    case PRISM_QUEUED: return "queued in memory: it will be sent; wait longer to learn more";
    case PRISM_SPOOLED: return "spooled on disk: it is sent when the daemon is back; is prismd running?";
    case PRISM_REFUSED: return "refused by the daemon: the answer has the code and the message";
    case PRISM_DROPPED: return "dropped: the queue is full, and the spool is full or unusable; see prism_get_stats";
    case PRISM_INVALID: return "invalid argument: check the names, the report id, and that the meta is a JSON object";
    case PRISM_TOO_LARGE: return "too large: a meta has at most 10,240 bytes, a report must fit into queue_bytes";
    case PRISM_CLOSED: return "the client is closed";
    case PRISM_NO_MEMORY: return "out of memory";
    case PRISM_SYSTEM: return "a system call failed: see errno";
    case PRISM_TIMED_OUT: return "no answer within the deadline: it may be stored or not; is prismd running? Ask again";
  }
  return "unknown result";
}

const char *prism_result_name(prism_result result) {
  switch (result) {
    case PRISM_STORED: return "PRISM_STORED";
    case PRISM_QUEUED: return "PRISM_QUEUED";
    case PRISM_SPOOLED: return "PRISM_SPOOLED";
    case PRISM_REFUSED: return "PRISM_REFUSED";
    case PRISM_DROPPED: return "PRISM_DROPPED";
    case PRISM_INVALID: return "PRISM_INVALID";
    case PRISM_TOO_LARGE: return "PRISM_TOO_LARGE";
    case PRISM_CLOSED: return "PRISM_CLOSED";
    case PRISM_NO_MEMORY: return "PRISM_NO_MEMORY";
    case PRISM_SYSTEM: return "PRISM_SYSTEM";
    case PRISM_TIMED_OUT: return "PRISM_TIMED_OUT";
  }
  return "unknown result";
}

const char *prism_loss_name(prism_loss loss) {
  switch (loss) {
    case PRISM_LOSS_QUEUE: return "queue";
    case PRISM_LOSS_SPOOL: return "spool";
    case PRISM_LOSS_REFUSED: return "refused";
    case PRISM_LOSS_DAMAGED: return "damaged";
  }
  return "unknown loss";
}

static bool is_alphanumeric(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static bool is_name(const char *text, size_t length_max, const char *punctuation, bool first_is_alphanumeric) {
  size_t length = strnlen(text, length_max + 1);
  if (length == 0 || length > length_max) return false;
  if (first_is_alphanumeric && !is_alphanumeric(text[0])) return false;
  for (size_t i = 0; i < length; i++)
    if (!is_alphanumeric(text[i]) && !strchr(punctuation, text[i])) return false;
  return true;
}

static bool is_namespace(const char *text) { return is_name(text, 64, "_-", true); }
/* A declared table, or one that the daemon has by itself (docs/records.md, "Commands", "Tags"). */
static bool is_table(const char *text) {
  return is_namespace(text) || strcmp(text, "prism.command") == 0 || strcmp(text, "prism.tags") == 0;
}
static bool is_type(const char *text) { return is_name(text, 128, "_.:-", true); }
static bool is_report_id(const char *text) { return is_name(text, ID_BYTES_MAX, "_-", false); }

/* The length of the valid UTF-8 sequence at `text`; 0 if it is not one. */
static size_t utf8_length(const uint8_t *text, size_t available) {
  uint8_t first = text[0];
  if (first < 0x80) return 1;
  size_t length = first >= 0xC2 && first <= 0xDF ? 2 : first >= 0xE0 && first <= 0xEF ? 3
                  : first >= 0xF0 && first <= 0xF4 ? 4 : 0;
  if (length == 0 || length > available) return 0;
  for (size_t i = 1; i < length; i++)
    if ((text[i] & 0xC0) != 0x80) return 0;
  if ((first == 0xE0 && text[1] < 0xA0) || (first == 0xED && text[1] > 0x9F)) return 0;
  if ((first == 0xF0 && text[1] < 0x90) || (first == 0xF4 && text[1] > 0x8F)) return 0;
  return length;
}

/* --- Reading JSON ---------------------------------------------------------------------------------------------- */

typedef struct {
  const char *next, *end;
} cursor;

static void skip_space(cursor *c) {
  while (c->next < c->end && (*c->next == ' ' || *c->next == '\t' || *c->next == '\n' || *c->next == '\r')) c->next++;
}

static bool take(cursor *c, char wanted) {
  skip_space(c);
  if (c->next == c->end || *c->next != wanted) return false;
  c->next++;
  return true;
}

static bool take_hex(cursor *c, uint32_t *value) {
  if (c->end - c->next < 4) return false;
  *value = 0;
  for (int i = 0; i < 4; i++) {
    char digit = *c->next++;
    uint32_t number = digit >= '0' && digit <= '9' ? (uint32_t)(digit - '0')
                      : digit >= 'a' && digit <= 'f' ? (uint32_t)(digit - 'a' + 10)
                      : digit >= 'A' && digit <= 'F' ? (uint32_t)(digit - 'A' + 10) : 99;
    if (number == 99) return false;
    *value = *value * 16 + number;
  }
  return true;
}

static size_t put_utf8(char *out, uint32_t code) {
  if (code < 0x80) return out[0] = (char)code, 1;
  if (code < 0x800) return out[0] = (char)(0xC0 | code >> 6), out[1] = (char)(0x80 | (code & 0x3F)), 2;
  if (code < 0x10000)
    return out[0] = (char)(0xE0 | code >> 12), out[1] = (char)(0x80 | (code >> 6 & 0x3F)),
           out[2] = (char)(0x80 | (code & 0x3F)), 3;
  return out[0] = (char)(0xF0 | code >> 18), out[1] = (char)(0x80 | (code >> 12 & 0x3F)),
         out[2] = (char)(0x80 | (code >> 6 & 0x3F)), out[3] = (char)(0x80 | (code & 0x3F)), 4;
}

/* One character of a string, decoded into `out`. Returns its length; 0 if the string is not valid. */
static size_t take_character(cursor *c, char out[4]) {
  if (*c->next != '\\') {
    size_t length = utf8_length((const uint8_t *)c->next, (size_t)(c->end - c->next));
    if (length == 0 || (uint8_t)*c->next < 0x20) return 0;
    memcpy(out, c->next, length);
    c->next += length;
    return length;
  }
  if (c->end - c->next < 2) return 0;
  char kind = c->next[1];
  c->next += 2;
  static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
  const char *known = memchr(names, kind, sizeof names - 1);
  if (known) return out[0] = values[known - names], 1;
  uint32_t code, low;
  if (kind != 'u' || !take_hex(c, &code)) return 0;
  if (code >= 0xDC00 && code <= 0xDFFF) return 0;
  if (code < 0xD800 || code > 0xDBFF) return put_utf8(out, code);
  if (c->end - c->next < 6 || c->next[0] != '\\' || c->next[1] != 'u') return 0;
  c->next += 2;
  if (!take_hex(c, &low) || low < 0xDC00 || low > 0xDFFF) return 0;
  return put_utf8(out, 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00));
}

/* A string, decoded into `out` (NULL: thrown away) and cut at a character to fit with its zero byte. */
static bool take_string(cursor *c, char *out, size_t capacity) {
  if (!take(c, '"')) return false;
  size_t used = 0;
  bool is_full = false;
  while (c->next < c->end && *c->next != '"') {
    char character[4];
    size_t length = take_character(c, character);
    if (length == 0) return false;
    if (!out) continue;
    is_full = is_full || used + length >= capacity;
    if (is_full) continue;
    memcpy(out + used, character, length);
    used += length;
  }
  if (out) out[used] = 0;
  return take(c, '"');
}

static bool take_digits(cursor *c) {
  const char *start = c->next;
  while (c->next < c->end && *c->next >= '0' && *c->next <= '9') c->next++;
  return c->next > start;
}

static bool take_number(cursor *c) {
  if (c->next < c->end && *c->next == '-') c->next++;
  const char *first = c->next;
  if (!take_digits(c) || (*first == '0' && c->next - first > 1)) return false;
  if (c->next < c->end && *c->next == '.') {
    c->next++;
    if (!take_digits(c)) return false;
  }
  if (c->next < c->end && (*c->next == 'e' || *c->next == 'E')) {
    c->next++;
    if (c->next < c->end && (*c->next == '+' || *c->next == '-')) c->next++;
    if (!take_digits(c)) return false;
  }
  return true;
}

static bool take_word(cursor *c, const char *word) {
  size_t length = strlen(word);
  if ((size_t)(c->end - c->next) < length || memcmp(c->next, word, length) != 0) return false;
  c->next += length;
  return true;
}

static bool take_value(cursor *c, int depth);

static bool take_members(cursor *c, char close, int depth) {
  if (take(c, close)) return true;
  do {
    if (close == '}' && !(take_string(c, NULL, 0) && take(c, ':'))) return false;
    if (!take_value(c, depth)) return false;
  } while (take(c, ','));
  return take(c, close);
}

/* Any value. */
static bool take_value(cursor *c, int depth) {
  skip_space(c);
  if (depth > DEPTH_MAX || c->next == c->end) return false;
  switch (*c->next) {
    case '{': c->next++; return take_members(c, '}', depth + 1);
    case '[': c->next++; return take_members(c, ']', depth + 1);
    case '"': return take_string(c, NULL, 0);
    case 't': return take_word(c, "true");
    case 'f': return take_word(c, "false");
    case 'n': return take_word(c, "null");
    default: return take_number(c);
  }
}

/* Whether `text` is one JSON object with a member. The daemon must be able to read a request: it finds the payload by
 * it, and would take the bytes of the payload for requests otherwise. */
static bool is_meta(const char *text, size_t length) {
  cursor c = {text, text + length};
  if (!take(&c, '{') || take(&c, '}') || !take_members(&c, '}', 1)) return false;
  skip_space(&c);
  return c.next == c.end;
}

static bool take_integer(cursor *c, int64_t *value) {
  skip_space(c);
  const char *start = c->next;
  if (!take_number(c)) return false;
  char text[24] = "";
  size_t length = (size_t)(c->next - start);
  if (length >= sizeof text) return false;
  memcpy(text, start, length);
  *value = strtoll(text, NULL, 10);
  return true;
}

/* --- Writing JSON ---------------------------------------------------------------------------------------------- */

static void put(prism_json *json, const char *text, size_t length) {
  if (json->failed || length >= json->capacity - json->used) {
    json->failed = true;
    return;
  }
  memcpy(json->buffer + json->used, text, length);
  json->used += length;
}

static void put_text(prism_json *json, const char *text) { put(json, text, strlen(text)); }

static void put_quoted(prism_json *json, const uint8_t *text, size_t length) {
  static const char hex[] = "0123456789abcdef";
  put(json, "\"", 1);
  for (size_t i = 0; i < length;) {
    uint8_t c = text[i];
    size_t sequence = utf8_length(text + i, length - i);
    if (sequence == 0) {
      put(json, "\xEF\xBF\xBD", 3);
      sequence = 1;
    } else if (c == '"' || c == '\\') {
      put(json, (char[]){'\\', (char)c}, 2);
    } else if (c < 0x20 || c == 0x7F) {
      put(json, (char[]){'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]}, 6);
    } else {
      put(json, (const char *)text + i, sequence);
    }
    i += sequence;
  }
  put(json, "\"", 1);
}

static void begin_member(prism_json *json, const char *key) {
  bool is_array = json->arrays >> json->depth & 1;
  if (json->depth == 0 || is_array != (key == NULL)) json->failed = true;
  if (json->has_members) put(json, ",", 1);
  json->has_members = true;
  if (!key) return;
  put_quoted(json, (const uint8_t *)key, strlen(key));
  put(json, ":", 1);
}

static void open_level(prism_json *json, bool is_array) {
  put(json, is_array ? "[" : "{", 1);
  if (++json->depth > DEPTH_MAX) {
    json->failed = true;
    json->depth = DEPTH_MAX;
  }
  json->arrays = is_array ? json->arrays | 1ull << json->depth : json->arrays & ~(1ull << json->depth);
  json->has_members = false;
}

void prism_json_begin(prism_json *json, char *buffer, size_t capacity) {
  *json = (prism_json){.buffer = buffer, .capacity = capacity, .failed = buffer == NULL || capacity == 0};
  open_level(json, false);
}

void prism_json_bytes(prism_json *json, const char *key, const void *value, size_t length) {
  begin_member(json, key);
  put_quoted(json, value, length);
}

void prism_json_string(prism_json *json, const char *key, const char *value) {
  if (value) prism_json_bytes(json, key, value, strlen(value));
  else prism_json_null(json, key);
}

/* No snprintf: it may not be used in a signal handler. */
static void put_number(prism_json *json, uint64_t value, bool is_negative) {
  char text[24];
  size_t at = sizeof text;
  do text[--at] = (char)('0' + value % 10);
  while (value /= 10);
  if (is_negative) text[--at] = '-';
  put(json, text + at, sizeof text - at);
}

void prism_json_int(prism_json *json, const char *key, int64_t value) {
  begin_member(json, key);
  put_number(json, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, value < 0);
}

void prism_json_uint(prism_json *json, const char *key, uint64_t value) {
  begin_member(json, key);
  put_number(json, value, false);
}

void prism_json_double(prism_json *json, const char *key, double value) {
  if (value != value || value - value != 0) {
    prism_json_null(json, key);
    return;
  }
  char text[40];
  int length = snprintf(text, sizeof text, "%.17g", value);
  /* The locale may have another decimal point. */
  for (int i = 0; i < length; i++)
    if (!strchr("0123456789+-eE", text[i])) text[i] = '.';
  begin_member(json, key);
  put_text(json, text);
}

void prism_json_bool(prism_json *json, const char *key, bool value) {
  begin_member(json, key);
  put_text(json, value ? "true" : "false");
}

void prism_json_null(prism_json *json, const char *key) {
  begin_member(json, key);
  put_text(json, "null");
}

void prism_json_object(prism_json *json, const char *key) {
  begin_member(json, key);
  open_level(json, false);
}

void prism_json_array(prism_json *json, const char *key) {
  begin_member(json, key);
  open_level(json, true);
}

void prism_json_close(prism_json *json) {
  if (json->depth == 0) {
    json->failed = true;
    return;
  }
  put(json, json->arrays >> json->depth & 1 ? "]" : "}", 1);
  json->depth--;
  json->has_members = true;
}

const char *prism_json_end(prism_json *json) {
  if (json->depth != 1) json->failed = true;
  prism_json_close(json);
  if (json->failed) return NULL;
  json->buffer[json->used] = 0;
  return json->buffer;
}

/* --- The ring -------------------------------------------------------------------------------------------------- */

/* Requests from any thread to the worker. A record is a header of 8 bytes and the request, rounded up to 8. A caller
 * reserves space by moving `tail`, copies, and then publishes the header; so it never waits for another thread. Free
 * space is zero, so an unpublished header reads as 0. */
typedef struct {
  uint8_t *base;
  uint64_t capacity; /* a power of two */
  _Atomic uint64_t tail, head;
} ring;

enum { RING_HEADER = 8, RING_PUBLISHED = 1, RING_HAS_WAITER = 2 };

static uint64_t ring_record_bytes(size_t length) { return (RING_HEADER + (uint64_t)length + 7) & ~7ull; }

static _Atomic uint64_t *ring_header(ring *r, uint64_t position) {
  return (_Atomic uint64_t *)(void *)(r->base + (position & (r->capacity - 1)));
}

static bool ring_reserve(ring *r, size_t length, uint64_t *position) {
  uint64_t bytes = ring_record_bytes(length);
  uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
  while (true) {
    uint64_t head = atomic_load_explicit(&r->head, memory_order_acquire);
    if (head > tail) { /* `tail` is old: other callers and the worker went on meanwhile */
      tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
      continue;
    }
    if (tail - head + bytes > r->capacity) return false;
    if (atomic_compare_exchange_weak_explicit(
            &r->tail, &tail, tail + bytes, memory_order_acq_rel, memory_order_relaxed))
      break;
  }
  *position = tail;
  return true;
}

static uint64_t ring_write(ring *r, uint64_t position, const void *bytes, size_t length) {
  if (length == 0) return position;
  uint64_t at = position & (r->capacity - 1);
  size_t first = length < r->capacity - at ? length : (size_t)(r->capacity - at);
  memcpy(r->base + at, bytes, first);
  memcpy(r->base, (const uint8_t *)bytes + first, length - first);
  return position + length;
}

static void ring_publish(ring *r, uint64_t position, size_t length, bool has_waiter) {
  uint64_t header = (uint64_t)length << 2 | RING_PUBLISHED | (has_waiter ? RING_HAS_WAITER : 0);
  atomic_store_explicit(ring_header(r, position), header, memory_order_release);
}

/* The oldest record. Returns false if the ring is empty, or if the record is still being copied. */
static bool ring_peek(ring *r, size_t *length, bool *has_waiter) {
  uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
  if (head == atomic_load_explicit(&r->tail, memory_order_acquire)) return false;
  uint64_t header = atomic_load_explicit(ring_header(r, head), memory_order_acquire);
  if (!(header & RING_PUBLISHED)) return false;
  *length = (size_t)(header >> 2);
  *has_waiter = header & RING_HAS_WAITER;
  return true;
}

static void ring_copy(ring *r, void *out, size_t length) {
  uint64_t at = (atomic_load_explicit(&r->head, memory_order_relaxed) + RING_HEADER) & (r->capacity - 1);
  size_t first = length < r->capacity - at ? length : (size_t)(r->capacity - at);
  memcpy(out, r->base + at, first);
  memcpy((uint8_t *)out + first, r->base, length - first);
}

static void ring_pop(ring *r, size_t length) {
  uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
  uint64_t bytes = ring_record_bytes(length), at = head & (r->capacity - 1);
  size_t first = bytes < r->capacity - at ? (size_t)bytes : (size_t)(r->capacity - at);
  memset(r->base + at, 0, first);
  memset(r->base, 0, (size_t)bytes - first);
  atomic_store_explicit(&r->head, head + bytes, memory_order_release);
}

static uint64_t ring_used(ring *r) {
  uint64_t head = atomic_load_explicit(&r->head, memory_order_acquire);
  return atomic_load_explicit(&r->tail, memory_order_acquire) - head;
}

/* --- The client ------------------------------------------------------------------------------------------------ */

/* A caller that waits for an answer, in a table by report id, under `wait_lock`. It is on the caller's stack; or on the
 * heap, if `done` is to be called. */
typedef struct waiter {
  struct waiter *next;
  pthread_cond_t condition;
  prism_done done;
  void *context;
  int64_t until;
  prism_answer own_answer;
  char id[ID_BYTES_MAX + 1];
  bool is_done, is_spooled;
  prism_result result;
  prism_answer *answer;
} waiter;

enum { WAITER_BUCKETS = 64 };

typedef struct worker worker;

struct prism_client {
  struct prism_client *next; /* under `clients_lock` */
  struct sockaddr_un address;
  char hello[4096];
  size_t hello_bytes;
  char spool[PATH_MAX - 80]; /* "": no spool */
  uint64_t spool_bytes;
  int exit_ms;
  void (*on_loss)(void *, prism_loss, uint64_t, const char *, const char *);
  void *context;

  ring queue;
  char id_prefix[17];
  _Atomic uint64_t id_count;
  _Atomic uint64_t session; /* 0: the connection is a session; else its number, odd while it is open */
  _Atomic bool is_asleep; /* the worker waits for the ring, and must be woken by `wake` */
  _Atomic int wake;       /* an eventfd; -1 before the worker starts */

  pthread_mutex_t start_lock; /* the start of the worker */
  _Atomic bool is_started;
  pthread_t thread;
  pthread_mutex_t files_lock; /* held while a descriptor is opened or closed, so that a fork sees which there are */
  worker *work;
  struct wire *wires; /* connections of calls and watches; under `files_lock` */

  pthread_mutex_t wait_lock;
  pthread_cond_t settled_condition;
  waiter *waiters[WAITER_BUCKETS];
  _Atomic uint32_t waiting, waiting_for_call; /* all, and those with `done` */
  _Atomic uint32_t flushing;
  bool has_ended; /* the worker is done; under `wait_lock` */
  _Atomic bool is_closing;
  _Atomic int64_t close_at; /* when the worker stops waiting for the daemon */

  /* The ledger. `settled` counts reports that left the memory: answered, spooled or dropped. */
  _Atomic uint64_t accepted, settled, stored, refused, dropped_queue, dropped_spool, damaged, spooled, replayed;
  _Atomic uint64_t connects, spool_waiting;
  _Atomic int spool_error;
};

static pthread_mutex_t clients_lock = PTHREAD_MUTEX_INITIALIZER;
static prism_client *clients;
static worker *abandoned; /* the memory of a parent's workers: a child may not touch it */
static pthread_once_t process_once = PTHREAD_ONCE_INIT;

static void add(_Atomic uint64_t *counter, uint64_t count) {
  atomic_fetch_add_explicit(counter, count, memory_order_relaxed);
}

static uint64_t value_of(_Atomic uint64_t *counter) { return atomic_load_explicit(counter, memory_order_relaxed); }

/* 96 random bits: unique over all programs, and made again in a child. */
static void make_id_prefix(char out[17]) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  uint8_t random[16];
  if (getrandom(random, sizeof random, GRND_NONBLOCK) != sizeof random) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t mix = ((uint64_t)now.tv_sec * 1000000007u + (uint64_t)now.tv_nsec) ^ (uint64_t)getpid() << 40;
    for (size_t i = 0; i < sizeof random; i++) {
      mix = mix * 6364136223846793005u + 1442695040888963407u;
      random[i] = (uint8_t)(mix >> 56);
    }
  }
  for (size_t i = 0; i < 16; i++) out[i] = digits[random[i] & 63];
  out[16] = 0;
}

static uint32_t bucket_of(const char *id) {
  uint32_t hash = 2166136261u;
  for (; *id; id++) hash = (hash ^ (uint8_t)*id) * 16777619u;
  return hash % WAITER_BUCKETS;
}

/* --- The spool ------------------------------------------------------------------------------------------------- */

/* A folder of segments. A segment is a file of records that one process writes; it holds a lock (flock) on the file for
 * as long as it lives. A segment whose lock is free belongs to an ended program, and any other takes it over. The name
 * ends with the most bytes that the file may grow to, so the sum over the names bounds the folder. */
enum { RECORD_HEADER = 16, RECORD_WAITING = 0, RECORD_DONE = 1 };
#define RECORD_MAGIC 0x31525350u /* "PSR1" in the file */

typedef struct segment {
  struct segment *next;
  int file;
  char name[80];
  uint64_t capacity, end;
  uint64_t read_at;     /* the next record to send in this pass */
  uint32_t in_flight;   /* sent and not answered */
  uint64_t kept;        /* in this pass: not to be sent now */
  uint64_t waiting;
} segment;

/* A request that waits for its answer. */
typedef struct {
  size_t length;
  segment *source;  /* NULL: it is in memory only */
  uint64_t offset;  /* of its record in `source` */
  bool has_waiter, is_from_spool;
  bool is_refused, is_retried;
  char code[32], message[256];
} entry;

enum connection_state { AWAY, GREETING, READY };

struct worker {
  worker *next_abandoned;
  prism_client *client;

  enum connection_state state;
  int socket;
  int64_t state_since, progress_at, next_connect, backoff;
  bool has_failed; /* no connection since the last one that was greeted */
  uint64_t session; /* that the connection was greeted with */
  char *input;
  size_t input_used, input_capacity;

  uint8_t *window; /* bytes [start, end), of which [start, sent) were written to the socket */
  size_t start, sent, end, window_capacity;
  entry *entries; /* a circle of a power of two */
  size_t entry_first, entry_count, entry_capacity;
  bool is_full;   /* the oldest request of the ring does not fit into the window */
  size_t copied;  /* entries that are in memory and, for safety, in the spool */
  uint64_t acked; /* reports of this connection */

  int folder, lock;
  segment *segments, *current; /* oldest first; `current` is written to */
  int64_t spool_retry_at, replay_at, replay_backoff, adopt_at;
  int64_t hold_until; /* the daemon cannot take reports, and there is no spool to keep them in */
  uint8_t *scratch;
  size_t scratch_capacity;

  int64_t next_expiry; /* of those that wait for a call */
  uint64_t told[4];
  int64_t told_at[4];
  char loss_code[32], loss_message[256];
};

static bool scratch_of(worker *w, size_t length) {
  if (length <= w->scratch_capacity) return true;
  uint8_t *more = realloc(w->scratch, length);
  if (!more) return false;
  w->scratch = more;
  w->scratch_capacity = length;
  return true;
}

static void open_begin(worker *w) { pthread_mutex_lock(&w->client->files_lock); }
static void open_end(worker *w) { pthread_mutex_unlock(&w->client->files_lock); }

static void close_file(worker *w, int *file) {
  if (*file < 0) return;
  open_begin(w);
  close(*file);
  *file = -1;
  open_end(w);
}

/* Makes the folder and those above it. */
static int make_folder(const char *path) {
  char part[PATH_MAX];
  size_t length = strlen(path);
  if (length >= sizeof part) return errno = ENAMETOOLONG, -1;
  for (size_t i = 1; i <= length; i++) {
    if (path[i] != '/' && path[i] != 0) continue;
    memcpy(part, path, i);
    part[i] = 0;
    if (mkdir(part, 0700) != 0 && errno != EEXIST && (i == length || errno != EACCES)) return -1;
  }
  return 0;
}

/* Opens the folder. Its owner must be this user, and no other user may write to it. */
static bool spool_open(worker *w) {
  if (w->folder >= 0) return true;
  if (w->client->spool[0] == 0) return false;
  int error = 0;
  struct stat facts;
  if (make_folder(w->client->spool) != 0) error = errno;
  open_begin(w);
  if (error == 0) {
    w->folder = open(w->client->spool, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (w->folder < 0 || fstat(w->folder, &facts) != 0) error = errno;
    else if (facts.st_uid != geteuid() || (facts.st_mode & 022)) error = EPERM;
    else {
      w->lock = openat(w->folder, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
      if (w->lock < 0) error = errno;
    }
    if (error != 0 && w->folder >= 0) {
      close(w->folder);
      w->folder = -1;
    }
  }
  open_end(w);
  atomic_store(&w->client->spool_error, error);
  return error == 0;
}

/* Takes the lock of the folder. A process that was stopped while it holds the lock must not stop this one for good. */
static bool folder_lock(worker *w) {
  for (int tries = 0; tries < 200; tries++) {
    if (flock(w->lock, LOCK_EX | LOCK_NB) == 0) return true;
    if (errno != EWOULDBLOCK && errno != EINTR) return false;
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  }
  errno = EBUSY;
  return false;
}

static void folder_unlock(worker *w) { flock(w->lock, LOCK_UN); }

/* The capacity that a segment's name says; 0 if it is not the name of a segment. */
static uint64_t capacity_of(const char *name) {
  size_t length = strlen(name);
  if (length < 8 || length >= 80 || strcmp(name + length - 6, ".spool") != 0) return 0;
  const char *dot = memchr(name, '.', length - 6);
  return dot ? strtoull(dot + 1, NULL, 10) : 0;
}

static DIR *folder_list(worker *w) {
  open_begin(w);
  int copy = openat(w->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *list = copy < 0 ? NULL : fdopendir(copy);
  if (copy >= 0 && !list) close(copy);
  open_end(w);
  return list;
}

static void folder_list_end(worker *w, DIR *list) {
  open_begin(w);
  closedir(list);
  open_end(w);
}

/* The bytes that the segments of all programs may grow to. Under the folder's lock. */
static bool spool_reserved(worker *w, uint64_t *sum) {
  DIR *list = folder_list(w);
  if (!list) return false;
  *sum = 0;
  for (struct dirent *item; (item = readdir(list));) {
    uint64_t capacity = capacity_of(item->d_name);
    struct stat facts;
    if (capacity == 0 || fstatat(w->folder, item->d_name, &facts, AT_SYMLINK_NOFOLLOW) != 0) continue;
    *sum += (uint64_t)facts.st_size > capacity ? (uint64_t)facts.st_size : capacity;
  }
  folder_list_end(w, list);
  return true;
}

static void link_segment(worker *w, segment *s) {
  segment **last = &w->segments;
  while (*last) last = &(*last)->next;
  *last = s;
}

/* Makes a segment with room for a record of `bytes`. Returns NULL and errno: ENOSPC if the bound is reached. */
static segment *segment_make(worker *w, uint64_t bytes) {
  uint64_t bound = w->client->spool_bytes, want = bound / 16, reserved;
  if (want < bytes) want = bytes;
  if (!folder_lock(w)) return NULL;
  segment *made = NULL;
  if (spool_reserved(w, &reserved)) {
    uint64_t left = reserved < bound ? bound - reserved : 0;
    if (want > left) want = left;
    if (want < bytes) errno = ENOSPC;
    else if ((made = calloc(1, sizeof *made))) {
      char random[17];
      make_id_prefix(random);
      snprintf(made->name, sizeof made->name, "%013lld-%s.%llu.spool", (long long)unix_ms(), random,
               (unsigned long long)want);
      made->capacity = want;
      open_begin(w);
      made->file = openat(w->folder, made->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
      if (made->file >= 0 && flock(made->file, LOCK_EX | LOCK_NB) == 0) {
        link_segment(w, made);
      } else {
        if (made->file >= 0) close(made->file);
        free(made);
        made = NULL;
      }
      open_end(w);
    }
  }
  int error = errno;
  folder_unlock(w);
  errno = error;
  return made;
}

/* Ends the use of a segment; the file is removed if nothing in it waits. */
static void segment_end(worker *w, segment *s, bool is_removed) {
  if (is_removed) unlinkat(w->folder, s->name, 0);
  open_begin(w);
  segment **link = &w->segments;
  while (*link != s) link = &(*link)->next;
  *link = s->next;
  close(s->file);
  open_end(w);
  if (w->current == s) w->current = NULL;
  free(s);
}

static void put_u32(uint8_t *out, uint32_t value) {
  for (int i = 0; i < 4; i++) out[i] = (uint8_t)(value >> (8 * i));
}

static uint32_t get_u32(const uint8_t *in) {
  return (uint32_t)in[0] | (uint32_t)in[1] << 8 | (uint32_t)in[2] << 16 | (uint32_t)in[3] << 24;
}

static uint32_t record_crc(const uint8_t header[RECORD_HEADER], const void *body, size_t length) {
  return crc32_of(crc32_of(0, header + 4, 4), body, length);
}

/* Appends a record. Returns its segment and offset; NULL if the spool is full or unwritable. */
static segment *spool_append(worker *w, const void *body, size_t length, uint64_t *offset) {
  int64_t now = monotonic_ms();
  uint64_t bytes = RECORD_HEADER + (uint64_t)length;
  if (now < w->spool_retry_at || length > UINT32_MAX) return NULL;
  if (!spool_open(w)) {
    w->spool_retry_at = now + SPOOL_RETRY;
    return NULL;
  }
  if (!w->current || w->current->end + bytes > w->current->capacity) w->current = segment_make(w, bytes);
  segment *s = w->current;
  if (s) {
    uint8_t header[RECORD_HEADER];
    put_u32(header, RECORD_MAGIC);
    put_u32(header + 4, (uint32_t)length);
    put_u32(header + 8, record_crc(header, body, length));
    put_u32(header + 12, RECORD_WAITING);
    struct iovec parts[2] = {{header, sizeof header}, {(void *)(uintptr_t)body, length}};
    ssize_t written = pwritev(s->file, parts, 2, (off_t)s->end);
    if (written == (ssize_t)bytes) {
      *offset = s->end;
      s->end += bytes;
      s->waiting++;
      add(&w->client->spool_waiting, 1);
      add(&w->client->spooled, 1);
      atomic_store(&w->client->spool_error, 0);
      return s;
    }
    if (written >= 0) errno = ENOSPC;
  }
  int error = errno;
  if (s && ftruncate(s->file, (off_t)s->end) != 0) w->current = NULL; /* the torn record does not match its checksum */
  atomic_store(&w->client->spool_error, error);
  w->spool_retry_at = now + SPOOL_RETRY;
  return NULL;
}

/* Finds the next place after `from` where a record may begin. */
static uint64_t find_magic(segment *s, uint64_t from) {
  uint8_t chunk[4096], magic[4];
  put_u32(magic, RECORD_MAGIC);
  while (from < s->end) {
    ssize_t count = pread(s->file, chunk, sizeof chunk, (off_t)from);
    if (count < 4) break;
    uint8_t *found = memmem(chunk, (size_t)count, magic, sizeof magic);
    if (found) return from + (uint64_t)(found - chunk);
    from += (uint64_t)count - 3;
  }
  return s->end;
}

/* Reads the record at or after `*offset` into the scratch buffer, and moves `*offset` to it. Skips what does not match
 * its checksum, and adds it to `*damaged`. Returns false at the end. */
static bool record_read(worker *w, segment *s, uint64_t *offset, size_t *length, uint32_t *state, uint64_t *damaged) {
  while (*offset < s->end) {
    uint8_t header[RECORD_HEADER];
    ssize_t count = pread(s->file, header, sizeof header, (off_t)*offset);
    if (count == RECORD_HEADER && s->end - *offset > RECORD_HEADER && get_u32(header) == RECORD_MAGIC) {
      *length = get_u32(header + 4);
      *state = get_u32(header + 12);
      if (*length > 0 && *length <= s->end - *offset - RECORD_HEADER && scratch_of(w, *length) &&
          pread(s->file, w->scratch, *length, (off_t)(*offset + RECORD_HEADER)) == (ssize_t)*length &&
          record_crc(header, w->scratch, *length) == get_u32(header + 8))
        return true;
    }
    uint64_t next = find_magic(s, *offset + 1);
    *damaged += next - *offset;
    *offset = next;
  }
  return false;
}

static void record_done(worker *w, segment *s, uint64_t offset) {
  uint8_t state[4];
  put_u32(state, RECORD_DONE);
  /* If this fails the report is sent again at most, and the daemon knows its id. */
  if (pwrite(s->file, state, sizeof state, (off_t)(offset + 12)) < 0) atomic_store(&w->client->spool_error, errno);
  if (s->waiting > 0) {
    s->waiting--;
    atomic_fetch_sub(&w->client->spool_waiting, 1);
  }
}

/* Counts the records of a segment that an ended program left. */
static void segment_scan(worker *w, segment *s) {
  uint64_t offset = 0, damaged = 0;
  size_t length;
  uint32_t state;
  while (record_read(w, s, &offset, &length, &state, &damaged)) {
    if (state != RECORD_DONE) s->waiting++;
    offset += RECORD_HEADER + length;
  }
  add(&w->client->spool_waiting, s->waiting);
  add(&w->client->damaged, damaged);
}

static segment *segment_adopt(worker *w, const char *name) {
  for (segment *s = w->segments; s; s = s->next)
    if (strcmp(s->name, name) == 0) return NULL;
  segment *s = calloc(1, sizeof *s);
  if (!s) return NULL;
  struct stat facts;
  snprintf(s->name, sizeof s->name, "%.79s", name);
  open_begin(w);
  s->file = openat(w->folder, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (s->file >= 0 && flock(s->file, LOCK_EX | LOCK_NB) == 0 && fstat(s->file, &facts) == 0 &&
      S_ISREG(facts.st_mode) && facts.st_uid == geteuid() && facts.st_nlink == 1) {
    s->capacity = s->end = (uint64_t)facts.st_size;
    link_segment(w, s);
  } else {
    if (s->file >= 0) close(s->file);
    free(s);
    s = NULL;
  }
  open_end(w);
  return s;
}

/* Takes over what ended programs left. */
static void spool_adopt(worker *w, int64_t now) {
  w->adopt_at = now + ADOPT_INTERVAL;
  /* Before the first report is spooled the folder may be missing: it is not made for this. */
  if (w->folder < 0 && (w->client->spool[0] == 0 || access(w->client->spool, F_OK) != 0)) return;
  if (!spool_open(w) || !folder_lock(w)) return;
  int held = 0;
  for (segment *s = w->segments; s; s = s->next) held++;
  segment *adopted[ADOPTED_MAX];
  int count = 0;
  DIR *list = folder_list(w);
  for (struct dirent *item; list && held + count < ADOPTED_MAX && (item = readdir(list));)
    if (capacity_of(item->d_name) > 0 && (adopted[count] = segment_adopt(w, item->d_name))) count++;
  if (list) folder_list_end(w, list);
  folder_unlock(w);
  for (int i = 0; i < count; i++) segment_scan(w, adopted[i]);
  if (count > 0) w->adopt_at = now + 100; /* there may be more */
}

/* --- Waiters --------------------------------------------------------------------------------------------------- */

/* The id is the first member of each request: {"reportId":"… */
static const char request_start[] = "{\"reportId\":\"";

static void request_id(const void *request, size_t length, char out[ID_BYTES_MAX + 1]) {
  size_t start = sizeof request_start - 1, count = 0;
  const char *text = request;
  while (start + count < length && count < ID_BYTES_MAX && text[start + count] != '"') {
    out[count] = text[start + count];
    count++;
  }
  out[count] = 0;
}

static waiter *find_waiter(prism_client *c, const char *id) {
  for (waiter *w = c->waiters[bucket_of(id)]; w; w = w->next)
    if (!w->is_done && strcmp(w->id, id) == 0) return w;
  return NULL;
}

static void explain(waiter *w, const char *code, const char *message) {
  if (!w->answer) return;
  snprintf(w->answer->code, sizeof w->answer->code, "%s", code);
  snprintf(w->answer->message, sizeof w->answer->message, "%s", message);
}

/* Takes a waiter out of the table. Under `wait_lock`. */
static void unlink_waiter(prism_client *c, waiter *w) {
  waiter **link = &c->waiters[bucket_of(w->id)];
  while (*link != w) link = &(*link)->next;
  *link = w->next;
  atomic_fetch_sub(&c->waiting, 1);
  if (w->done) atomic_fetch_sub(&c->waiting_for_call, 1);
}

static void call_done(waiter *w) {
  w->done(w->context, w->result, &w->own_answer);
  free(w);
}

/* Hands the end of a request to the caller that waits for it. */
static void tell_waiter(prism_client *c, const void *request, size_t length, prism_result result, const entry *e) {
  if (atomic_load(&c->waiting) == 0) return;
  char id[ID_BYTES_MAX + 1];
  request_id(request, length, id);
  pthread_mutex_lock(&c->wait_lock);
  waiter *w = find_waiter(c, id);
  if (w) {
    if (e && e->code[0]) explain(w, e->code, e->message);
    if (result == PRISM_SPOOLED) w->is_spooled = true;
    if (result != PRISM_SPOOLED && result != PRISM_QUEUED) {
      w->result = result;
      w->is_done = true;
      if (w->done) unlink_waiter(c, w);
      else pthread_cond_signal(&w->condition);
    }
  }
  bool must_call = w && w->is_done && w->done;
  pthread_mutex_unlock(&c->wait_lock);
  if (must_call) call_done(w);
}

/* Calls those whose deadline is over, or all. Returns the next deadline. */
static int64_t expire_waiters(prism_client *c, int64_t now, bool is_end) {
  int64_t next = INT64_MAX;
  waiter *over = NULL;
  if (atomic_load(&c->waiting_for_call) == 0) return next;
  pthread_mutex_lock(&c->wait_lock);
  for (int bucket = 0; bucket < WAITER_BUCKETS; bucket++) {
    for (waiter *w = c->waiters[bucket], *following; w; w = following) {
      following = w->next;
      if (!w->done) continue;
      if (!is_end && w->until > now) {
        next = smaller(next, w->until);
        continue;
      }
      unlink_waiter(c, w);
      w->result = w->is_spooled ? PRISM_SPOOLED : is_end ? PRISM_DROPPED : PRISM_QUEUED;
      w->next = over;
      over = w;
    }
  }
  pthread_mutex_unlock(&c->wait_lock);
  for (waiter *following; over; over = following) {
    following = over->next;
    call_done(over);
  }
  return next;
}

static void tell_settled(prism_client *c) {
  if (atomic_load(&c->flushing) == 0) return;
  pthread_mutex_lock(&c->wait_lock);
  pthread_cond_broadcast(&c->settled_condition);
  pthread_mutex_unlock(&c->wait_lock);
}

/* --- The window ------------------------------------------------------------------------------------------------ */

static entry *entry_at(worker *w, size_t index) { return &w->entries[(w->entry_first + index) & (w->entry_capacity - 1)]; }

static bool entry_push(worker *w, entry e) {
  if (w->entry_count == w->entry_capacity) {
    size_t capacity = w->entry_capacity ? w->entry_capacity * 2 : 64;
    entry *more = malloc(capacity * sizeof *more);
    if (!more) return false;
    for (size_t i = 0; i < w->entry_count; i++) more[i] = *entry_at(w, i);
    free(w->entries);
    w->entries = more;
    w->entry_first = 0;
    w->entry_capacity = capacity;
  }
  w->entry_count++;
  *entry_at(w, w->entry_count - 1) = e;
  return true;
}

/* Makes room for a request at the end. Returns NULL if the window is full. */
static uint8_t *window_room(worker *w, size_t length) {
  size_t used = w->end - w->start;
  if (used > 0 && used + length > WINDOW_BYTES) return NULL;
  if (w->start > 0 && w->end + length > w->window_capacity) {
    memmove(w->window, w->window + w->start, used);
    w->sent -= w->start;
    w->end = used;
    w->start = 0;
  }
  if (used + length > w->window_capacity) {
    size_t capacity = used + length > WINDOW_BYTES ? used + length : WINDOW_BYTES;
    uint8_t *more = realloc(w->window, capacity);
    if (!more) return NULL;
    w->window = more;
    w->window_capacity = capacity;
  }
  return w->window + w->end;
}

static void window_clear(worker *w) {
  w->start = w->sent = w->end = 0;
  w->entry_first = w->entry_count = 0;
  if (w->window_capacity <= WINDOW_BYTES) return;
  free(w->window); /* it was for a large payload */
  w->window = NULL;
  w->window_capacity = 0;
}

/* Writes a request of the window that is in memory only to the spool too. */
static bool window_spool(worker *w, entry *e, const uint8_t *request) {
  if (e->source) return true;
  e->source = spool_append(w, request, e->length, &e->offset);
  if (!e->source) return false;
  e->source->in_flight++;
  w->copied++;
  add(&w->client->settled, 1);
  tell_waiter(w->client, request, e->length, PRISM_SPOOLED, e);
  return true;
}

static void window_spool_all(worker *w) {
  size_t at = w->start;
  for (size_t i = 0; i < w->entry_count; i++) {
    entry *e = entry_at(w, i);
    if (!window_spool(w, e, w->window + at)) break;
    at += e->length;
  }
  tell_settled(w->client);
}

/* --- Losses ---------------------------------------------------------------------------------------------------- */

static void tell_losses(worker *w, int64_t now, bool is_last) {
  prism_client *c = w->client;
  if (!c->on_loss) return;
  uint64_t counts[4] = {value_of(&c->dropped_queue), value_of(&c->dropped_spool), value_of(&c->refused),
                        value_of(&c->damaged)};
  static const char *const texts[4] = {
      "the queue was full; raise queue_bytes, report less, or see why the daemon is slow",
      "the spool was full or unusable while the daemon was away; see prism_get_stats, or raise spool_bytes",
      "the daemon refused it", "spool files were damaged; check the disk"};
  for (int kind = 0; kind < 4; kind++) {
    if (counts[kind] == w->told[kind] || (!is_last && now < w->told_at[kind] + LOSS_INTERVAL)) continue;
    uint64_t count = counts[kind] - w->told[kind];
    w->told[kind] = counts[kind];
    w->told_at[kind] = now;
    bool is_refusal = kind == PRISM_LOSS_REFUSED;
    c->on_loss(c->context, (prism_loss)kind, count, is_refusal ? w->loss_code : prism_loss_name((prism_loss)kind),
               is_refusal ? w->loss_message : texts[kind]);
  }
}

/* --- The connection -------------------------------------------------------------------------------------------- */

static void enter(worker *w, enum connection_state state, int64_t now) {
  w->state = state;
  w->state_since = w->progress_at = now;
}

/* Removes from the window what is in the spool too, and begins to read the spool again. */
static void forget_spooled(worker *w) {
  size_t kept = 0, at = w->start, to = w->start;
  for (size_t i = 0; i < w->entry_count; i++) {
    entry e = *entry_at(w, i);
    if (!e.source) {
      memmove(w->window + to, w->window + at, e.length);
      to += e.length;
      *entry_at(w, kept++) = e;
    }
    at += e.length;
  }
  w->entry_count = kept;
  w->copied = 0;
  w->end = to;
  w->sent = w->start;
  if (kept == 0) window_clear(w);
  for (segment *s = w->segments; s; s = s->next) s->in_flight = 0, s->read_at = 0, s->kept = 0;
}

/* Closes the connection; what was not answered is sent over the next one. */
static void disconnect(worker *w, int64_t now) {
  close_file(w, &w->socket);
  if (w->state != READY) w->has_failed = true;
  enter(w, AWAY, now);
  w->next_connect = now + w->backoff;
  w->backoff = smaller(w->backoff * 2, BACKOFF_MAX);
  w->input_used = 0;
  w->acked = 0;
  forget_spooled(w);
}

/* Sends the greeting with the session that is open. */
static bool greet(worker *w) {
  prism_client *c = w->client;
  char hello[sizeof c->hello + 64];
  size_t used = c->hello_bytes - 3; /* without its end: }}\n */
  memcpy(hello, c->hello, used);
  w->session = atomic_load(&c->session);
  if (w->session & 1)
    used += (size_t)sprintf(hello + used, ",\"session\":\"%s-s%llx\"", c->id_prefix, (unsigned long long)w->session);
  else if (w->session) used += (size_t)sprintf(hello + used, ",\"session\":false");
  used += (size_t)sprintf(hello + used, "}}\n");
  return send(w->socket, hello, used, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)used;
}

static void connect_now(worker *w, int64_t now) {
  prism_client *c = w->client;
  open_begin(w);
  w->socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  open_end(w);
  bool is_connected =
      w->socket >= 0 && connect(w->socket, (struct sockaddr *)&c->address, sizeof c->address) == 0 && greet(w);
  if (is_connected) enter(w, GREETING, now);
  else disconnect(w, now);
}

static void refused_at_greeting(worker *w, int64_t now, int64_t retry_ms) {
  disconnect(w, now);
  if (retry_ms > 0) w->next_connect = now + smaller(retry_ms, 60000);
}

/* Whether sending a report again can change the daemon's answer. */
static bool is_retriable(const char *code, int64_t retry_ms) {
  static const char *const codes[] = {"unknown", "busy", "disk_full", "internal", "store_full"};
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
    if (strcmp(code, codes[i]) == 0) return true;
  return retry_ms >= 0;
}

typedef struct {
  int64_t sequence, retry_ms, acked;
  bool is_hello, is_refused;
  char code[32], message[256];
} answer_line;

/* The members of an answer, or of one of its refusals. `refusals` gets where the list begins. */
static bool take_answer(cursor *c, answer_line *out, cursor *refusals) {
  if (!take(c, '{')) return false;
  if (take(c, '}')) return true;
  do {
    char key[24];
    if (!take_string(c, key, sizeof key) || !take(c, ':')) return false;
    bool is_taken;
    if (strcmp(key, "acked") == 0) is_taken = take_integer(c, &out->acked);
    else if (strcmp(key, "seq") == 0) is_taken = take_integer(c, &out->sequence);
    else if (strcmp(key, "retryMs") == 0) is_taken = take_integer(c, &out->retry_ms);
    else if (strcmp(key, "code") == 0) is_taken = take_string(c, out->code, sizeof out->code);
    else if (strcmp(key, "message") == 0) is_taken = take_string(c, out->message, sizeof out->message);
    else {
      skip_space(c);
      if (strcmp(key, "hello") == 0) out->is_hello = true;
      if (strcmp(key, "refused") == 0 && refusals) *refusals = *c;
      is_taken = take_value(c, 1);
    }
    if (!is_taken) return false;
  } while (take(c, ','));
  return take(c, '}');
}

static const answer_line no_answer = {.sequence = 0, .retry_ms = -1, .acked = -1};

/* Notes the refusals of a cumulative answer in the entries that it covers. */
static bool take_refusals(worker *w, cursor list, uint64_t covered) {
  if (!list.next) return true;
  if (!take(&list, '[')) return false;
  if (take(&list, ']')) return true;
  do {
    answer_line refusal = no_answer;
    if (!take_answer(&list, &refusal, NULL)) return false;
    uint64_t index = (uint64_t)refusal.sequence - w->acked - 1;
    if (refusal.sequence <= 0 || index >= covered) return false;
    entry *e = entry_at(w, (size_t)index);
    e->is_refused = true;
    e->is_retried = is_retriable(refusal.code, refusal.retry_ms);
    memcpy(e->code, refusal.code, sizeof e->code);
    memcpy(e->message, refusal.message, sizeof e->message);
    if (!e->is_retried) continue;
    int64_t now = monotonic_ms(), wait = w->replay_backoff > refusal.retry_ms ? w->replay_backoff : refusal.retry_ms;
    if (strcmp(refusal.code, "unknown") == 0) wait = 0;
    wait = now + smaller(wait, REPLAY_MAX);
    if (wait > w->replay_at) w->replay_at = wait;
  } while (take(&list, ','));
  return take(&list, ']');
}

/* A report that the daemon could not take now. It is kept in the spool, else in the ring. */
static void keep_for_later(worker *w, entry *e, const uint8_t *request) {
  prism_client *c = w->client;
  if (e->source) {
    e->source->kept++;
    tell_waiter(c, request, e->length, PRISM_SPOOLED, e);
    return;
  }
  if (window_spool(w, e, request)) {
    e->source->in_flight--;
    e->source->kept++;
    w->copied--;
    return;
  }
  uint64_t position;
  if (!atomic_load(&c->is_closing) && ring_reserve(&c->queue, e->length, &position)) {
    ring_write(&c->queue, position + RING_HEADER, request, e->length);
    ring_publish(&c->queue, position, e->length, e->has_waiter);
    tell_waiter(c, request, e->length, PRISM_QUEUED, e);
    w->hold_until = w->replay_at;
    return;
  }
  add(&c->dropped_spool, 1);
  add(&c->settled, 1);
  tell_waiter(c, request, e->length, PRISM_DROPPED, e);
}

/* The daemon has dealt with the oldest entry. */
static void settle(worker *w, entry *e, const uint8_t *request) {
  prism_client *c = w->client;
  bool was_spooled = e->source != NULL;
  if (was_spooled) e->source->in_flight--;
  if (was_spooled && !e->is_from_spool) w->copied--;
  if (e->is_refused && e->is_retried) {
    keep_for_later(w, e, request);
    return;
  }
  if (was_spooled) record_done(w, e->source, e->offset);
  else add(&c->settled, 1);
  if (e->is_from_spool) add(&c->replayed, 1);
  if (e->is_refused) {
    add(&c->refused, 1);
    memcpy(w->loss_code, e->code, sizeof w->loss_code);
    memcpy(w->loss_message, e->message, sizeof w->loss_message);
  } else if (!e->is_from_spool) {
    add(&c->stored, 1);
  }
  tell_waiter(c, request, e->length, e->is_refused ? PRISM_REFUSED : PRISM_STORED, e);
}

static bool take_acked(worker *w, uint64_t acked, cursor refusals) {
  uint64_t covered = acked - w->acked;
  size_t bytes = 0;
  if (acked < w->acked || covered > w->entry_count) return false;
  for (size_t i = 0; i < covered; i++) bytes += entry_at(w, i)->length;
  if (bytes > w->sent - w->start || !take_refusals(w, refusals, covered)) return false;
  bool is_retrying = false;
  for (uint64_t i = 0; i < covered; i++) {
    entry e = *entry_at(w, 0);
    settle(w, &e, w->window + w->start);
    is_retrying = is_retrying || e.is_retried;
    w->start += e.length;
    w->entry_first = (w->entry_first + 1) & (w->entry_capacity - 1);
    w->entry_count--;
  }
  w->acked = acked;
  if (w->entry_count == 0) window_clear(w);
  w->replay_backoff = is_retrying ? smaller(w->replay_backoff * 2, REPLAY_MAX) : REPLAY_MIN;
  tell_settled(w->client);
  return true;
}

/* Returns false if the line is not of this protocol. */
static bool take_line(worker *w, const char *line, size_t length, int64_t now) {
  cursor c = {line, line + length}, refusals = {NULL, NULL};
  answer_line answer = no_answer;
  if (!take_answer(&c, &answer, &refusals)) return false;
  if (w->state == GREETING) {
    if (!answer.is_hello) {
      refused_at_greeting(w, now, answer.retry_ms);
      return true;
    }
    enter(w, READY, now);
    w->has_failed = false;
    w->adopt_at = now;
    w->replay_at = smaller(w->replay_at, now);
    add(&w->client->connects, 1);
    return true;
  }
  w->progress_at = now;
  w->backoff = BACKOFF_MIN;
  return answer.acked >= 0 && take_acked(w, (uint64_t)answer.acked, refusals);
}

static bool take_lines(worker *w, int64_t now) {
  size_t at = 0;
  char *end;
  while (w->state != AWAY && (end = memchr(w->input + at, '\n', w->input_used - at))) {
    size_t next = (size_t)(end - w->input) + 1;
    if (!take_line(w, w->input + at, next - 1 - at, now)) return false;
    at = next;
  }
  if (w->state == AWAY) return true;
  memmove(w->input, w->input + at, w->input_used - at);
  w->input_used -= at;
  return true;
}

static bool input_room(worker *w) {
  if (w->input_capacity - w->input_used >= 16384) return true;
  size_t capacity = w->input_capacity ? w->input_capacity * 2 : 65536;
  char *more = capacity > INPUT_BYTES_MAX ? NULL : realloc(w->input, capacity);
  if (!more) return false;
  w->input = more;
  w->input_capacity = capacity;
  return true;
}

static void receive(worker *w, int64_t now) {
  while (w->state != AWAY) {
    ssize_t count = input_room(w)
                        ? recv(w->socket, w->input + w->input_used, w->input_capacity - w->input_used, MSG_DONTWAIT)
                        : 0;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return;
    if (count > 0) w->input_used += (size_t)count;
    if (count <= 0 || !take_lines(w, now)) {
      disconnect(w, now);
      return;
    }
  }
}

static void transmit(worker *w, int64_t now) {
  while (w->state == READY && w->sent < w->end) {
    ssize_t count = send(w->socket, w->window + w->sent, w->end - w->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count > 0) {
      if (w->sent == w->start) w->progress_at = now; /* nothing was owed before */
      w->sent += (size_t)count;
      continue;
    }
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return;
    /* The daemon may have said why it closes. */
    receive(w, now);
    if (w->state == READY) disconnect(w, now);
    return;
  }
}

/* --- Moving requests ------------------------------------------------------------------------------------------- */

/* Moves requests from the ring into the window. */
static bool fill_from_ring(worker *w, int64_t now) {
  size_t moved = 0, length;
  bool has_waiter;
  if (now < w->hold_until) return false;
  w->is_full = false;
  while (moved < FILL_BYTES && ring_peek(&w->client->queue, &length, &has_waiter)) {
    uint8_t *room = window_room(w, length);
    w->is_full = !room || !entry_push(w, (entry){.length = length, .has_waiter = has_waiter});
    if (w->is_full) break;
    ring_copy(&w->client->queue, room, length);
    w->end += length;
    ring_pop(&w->client->queue, length);
    moved += length;
  }
  return moved > 0;
}

/* Ends a pass over a segment that has been read to its end. Returns whether the segment is gone. */
static bool pass_end(worker *w, segment *s, int64_t now) {
  if (s->read_at < s->end || s->in_flight > 0) return false;
  if (s->kept == 0) {
    /* Records that still count as waiting could not be read. */
    add(&w->client->dropped_spool, s->waiting);
    atomic_fetch_sub(&w->client->spool_waiting, s->waiting);
    segment_end(w, s, true);
    w->spool_retry_at = 0; /* there is room again, on the disk and for what other programs left */
    w->adopt_at = now;
    return true;
  }
  if (now >= w->replay_at) s->read_at = 0, s->kept = 0;
  return false;
}

/* Moves reports from a segment into the window. */
static bool fill_from_segment(worker *w, segment *s) {
  size_t moved = 0, length;
  uint32_t state;
  uint64_t damaged = 0;
  while (moved < FILL_BYTES && record_read(w, s, &s->read_at, &length, &state, &damaged)) {
    if (state != RECORD_DONE) {
      uint8_t *room = window_room(w, length);
      entry e = {.length = length, .source = s, .offset = s->read_at, .is_from_spool = true};
      if (!room || !entry_push(w, e)) break;
      memcpy(room, w->scratch, length);
      w->end += length;
      s->in_flight++;
      moved += length;
    }
    s->read_at += RECORD_HEADER + length;
  }
  return moved > 0;
}

static bool fill_from_spool(worker *w, int64_t now) {
  bool has_moved = false;
  /* The reader would meet what the window has copied. */
  if (w->copied > 0 || atomic_load(&w->client->is_closing)) return false;
  for (segment *s = w->segments, *next; s; s = next) {
    next = s->next;
    if (pass_end(w, s, now)) continue;
    if (!has_moved && now >= w->replay_at) has_moved = fill_from_segment(w, s);
  }
  return has_moved;
}

/* Moves requests from the ring into the spool, as long as it takes them. Returns false if it does not. */
static bool spill(worker *w) {
  prism_client *c = w->client;
  size_t length;
  bool has_waiter;
  uint64_t offset;
  while (ring_peek(&c->queue, &length, &has_waiter)) {
    if (!scratch_of(w, length)) return false;
    ring_copy(&c->queue, w->scratch, length);
    segment *s = spool_append(w, w->scratch, length, &offset);
    if (!s) return false;
    ring_pop(&c->queue, length);
    add(&c->settled, 1);
    if (has_waiter) tell_waiter(c, w->scratch, length, PRISM_SPOOLED, NULL);
  }
  tell_settled(c);
  return true;
}

/* Whether requests must not wait in memory any longer. */
static bool must_spill(worker *w, int64_t now) {
  if (w->state == READY)
    return now - w->progress_at > CROWDED_GRACE && w->entry_count > 0 &&
           ring_used(&w->client->queue) > w->client->queue.capacity / 2;
  return w->has_failed || now - w->state_since > AWAY_GRACE;
}

/* --- The worker ------------------------------------------------------------------------------------------------ */

static bool has_request(prism_client *c) {
  size_t length;
  bool has_waiter;
  return ring_peek(&c->queue, &length, &has_waiter);
}

/* Everything that can be done without waiting. Returns whether requests in the ring can be taken. */
static bool advance(worker *w, int64_t now) {
  if (w->state == READY && w->session != atomic_load(&w->client->session)) {
    disconnect(w, now); /* requests without an answer are sent again, under the same ids */
    w->next_connect = now;
  }
  if (w->state == AWAY && now >= w->next_connect) connect_now(w, now);
  if (w->state == GREETING && now - w->state_since > GREETING_MAX) disconnect(w, now);
  if (w->state == READY && w->sent > w->start) {
    if (now - w->progress_at > STALL_SPOOL && w->copied < w->entry_count) window_spool_all(w);
    if (now - w->progress_at > STALL_DISCONNECT) disconnect(w, now);
  }
  if (w->state == READY) {
    if (now >= w->adopt_at) spool_adopt(w, now);
    for (bool has_moved = true; has_moved && w->state == READY;) {
      has_moved = fill_from_ring(w, now);
      has_moved = fill_from_spool(w, now) || has_moved;
      transmit(w, now);
    }
  }
  bool takes_ring = w->state == READY && !w->is_full && now >= w->hold_until;
  if (must_spill(w, now)) {
    if (w->state != READY && w->entry_count > 0) {
      window_spool_all(w);
      forget_spooled(w);
    }
    takes_ring = spill(w);
  }
  return takes_ring;
}

/* How long the worker may sleep. Milliseconds. */
static int64_t patience(worker *w, int64_t now) {
  int64_t at = now + 1000;
  at = smaller(at, w->next_expiry);
  if (w->state == AWAY) at = smaller(at, w->next_connect);
  if (w->state != READY && !w->has_failed) at = smaller(at, w->state_since + AWAY_GRACE + 1);
  if (w->state == READY) {
    at = smaller(at, w->adopt_at);
    if (w->segments && w->entry_count == 0 && !atomic_load(&w->client->is_closing)) at = smaller(at, w->replay_at > now ? w->replay_at : now + 20);
    if (has_request(w->client)) at = smaller(at, w->hold_until > now ? w->hold_until : now + CROWDED_GRACE);
  } else if (has_request(w->client)) {
    at = smaller(at, w->spool_retry_at > now ? w->spool_retry_at : now + CROWDED_GRACE);
  }
  if (atomic_load(&w->client->is_closing)) at = smaller(at, atomic_load(&w->client->close_at));
  return at > now ? at - now : 0;
}

static bool is_idle(worker *w) { return w->state == READY && w->entry_count == 0 && !w->segments; }

static void wait_for_events(worker *w, bool takes_ring, int64_t now) {
  prism_client *c = w->client;
  int wake = atomic_load(&c->wake);
  if (takes_ring) {
    atomic_store(&c->is_asleep, true);
    if (has_request(c)) {
      atomic_store(&c->is_asleep, false);
      return;
    }
  }
  struct pollfd files[2] = {{.fd = wake, .events = POLLIN}, {.fd = w->socket, .events = POLLIN}};
  if (w->state == READY && w->sent < w->end) files[1].events |= POLLOUT;
  /* An idle program is woken only to look for what ended programs left. */
  bool is_at_rest = is_idle(w) && takes_ring && !atomic_load(&c->is_closing);
  int64_t wait = is_at_rest ? (w->adopt_at > now ? w->adopt_at - now : 0) : patience(w, now);
  int count = poll(files, 2, (int)wait);
  atomic_store(&c->is_asleep, false);
  if (count <= 0) return;
  uint64_t woken;
  if (files[0].revents && read(wake, &woken, sizeof woken) < 0) return;
  if (w->socket >= 0 && (files[1].revents & (POLLIN | POLLHUP | POLLERR))) receive(w, monotonic_ms());
}

/* Puts what is left in memory into the spool; what it does not take is lost. */
static void drain(worker *w) {
  prism_client *c = w->client;
  w->spool_retry_at = 0; /* one more try; after a failure the rest is lost at once */
  size_t at = w->start, length;
  bool has_waiter;
  for (size_t i = 0; i < w->entry_count; i++) {
    entry *e = entry_at(w, i);
    if (!window_spool(w, e, w->window + at)) {
      add(&c->dropped_spool, 1);
      add(&c->settled, 1);
      tell_waiter(c, w->window + at, e->length, PRISM_DROPPED, e);
    }
    at += e->length;
  }
  while (!spill(w) && ring_peek(&c->queue, &length, &has_waiter)) {
    if (has_waiter && scratch_of(w, length)) {
      ring_copy(&c->queue, w->scratch, length);
      tell_waiter(c, w->scratch, length, PRISM_DROPPED, NULL);
    }
    ring_pop(&c->queue, length);
    add(&c->dropped_spool, 1);
    add(&c->settled, 1);
  }
}

/* Whether everything in memory is answered. */
static bool is_done(worker *w) { return w->entry_count == 0 && ring_used(&w->client->queue) == 0; }

static void release(worker *w) {
  close_file(w, &w->socket);
  /* A segment of which everything is done is not left for others. */
  while (w->segments) {
    segment *s = w->segments;
    segment_end(w, s, s->waiting == 0);
  }
  close_file(w, &w->lock);
  close_file(w, &w->folder);
  free(w->window);
  free(w->entries);
  free(w->input);
  free(w->scratch);
  w->window = NULL, w->entries = NULL, w->input = NULL, w->scratch = NULL;
  w->entry_count = 0;
}

static void *run_worker(void *argument) {
  worker *w = argument;
  prism_client *c = w->client;
  while (true) {
    int64_t now = monotonic_ms();
    bool takes_ring = advance(w, now);
    tell_losses(w, now, false);
    w->next_expiry = expire_waiters(c, now, false);
    if (atomic_load(&c->is_closing) && (is_done(w) || now >= atomic_load(&c->close_at))) break;
    wait_for_events(w, takes_ring, now);
  }
  drain(w);
  expire_waiters(c, 0, true);
  tell_losses(w, monotonic_ms(), true);
  bool is_left = value_of(&c->spool_waiting) > 0;
  release(w);
  pthread_mutex_lock(&c->wait_lock);
  atomic_store(&c->spool_waiting, is_left ? 1 : 0);
  c->has_ended = true;
  pthread_cond_broadcast(&c->settled_condition);
  pthread_mutex_unlock(&c->wait_lock);
  return NULL;
}

static void wake_worker(prism_client *c) {
  int wake = atomic_load(&c->wake);
  uint64_t one = 1;
  if (wake >= 0 && write(wake, &one, sizeof one) < 0) return; /* it is awake: the counter is at its end */
}

/* Starts the thread. Under `start_lock`. */
static bool start_locked(prism_client *c) {
  worker *w = calloc(1, sizeof *w);
  if (!w) return errno = ENOMEM, false;
  w->client = c;
  w->socket = w->folder = w->lock = -1;
  w->backoff = BACKOFF_MIN;
  w->replay_backoff = REPLAY_MIN;
  enter(w, AWAY, monotonic_ms());
  int error = 0;
  pthread_mutex_lock(&c->files_lock);
  if (atomic_load(&c->wake) < 0) atomic_store(&c->wake, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (atomic_load(&c->wake) < 0) error = errno;
  pthread_mutex_unlock(&c->files_lock);
  if (error == 0) {
    sigset_t all, before;
    pthread_attr_t attributes;
    sigfillset(&all);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, WORKER_STACK_BYTES);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the program's signals are not for this thread */
    c->work = w;
    error = pthread_create(&c->thread, &attributes, run_worker, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
  }
  if (error != 0) {
    c->work = NULL;
    free(w);
    return errno = error, false;
  }
  atomic_store(&c->is_started, true);
  return true;
}

/* Returns false if the thread cannot be started. While another caller starts it, one that may not wait goes on. */
static bool start(prism_client *c, bool may_wait) {
  if (atomic_load_explicit(&c->is_started, memory_order_acquire)) return true;
  if (may_wait) pthread_mutex_lock(&c->start_lock);
  else if (pthread_mutex_trylock(&c->start_lock) != 0) return true;
  bool is_started = atomic_load(&c->is_started) || start_locked(c);
  pthread_mutex_unlock(&c->start_lock);
  return is_started;
}

/* Starts the thread for a report whose caller found the lock taken by a fork. Under `start_lock`. */
static void start_if_needed(prism_client *c) {
  if (!atomic_load(&c->is_started) && ring_used(&c->queue) > 0) start_locked(c);
}

/* --- Fork and exit --------------------------------------------------------------------------------------------- */

static void before_fork(void) {
  pthread_mutex_lock(&clients_lock);
  for (prism_client *c = clients; c; c = c->next) {
    pthread_mutex_lock(&c->start_lock);
    pthread_mutex_lock(&c->wait_lock);
    pthread_mutex_lock(&c->files_lock);
  }
}

static void unlock_all(void) {
  for (prism_client *c = clients; c; c = c->next) {
    pthread_mutex_unlock(&c->files_lock);
    pthread_mutex_unlock(&c->wait_lock);
    pthread_mutex_unlock(&c->start_lock);
  }
  pthread_mutex_unlock(&clients_lock);
}

static void after_fork_in_parent(void) {
  for (prism_client *c = clients; c; c = c->next) {
    pthread_mutex_unlock(&c->files_lock);
    start_if_needed(c);
    pthread_mutex_lock(&c->files_lock);
  }
  unlock_all();
}

static void close_inherited(worker *w) {
  int files[] = {w->socket, w->folder, w->lock};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++)
    if (files[i] >= 0) close(files[i]);
  for (segment *s = w->segments; s; s = s->next) close(s->file);
  w->next_abandoned = abandoned;
  abandoned = w;
}

/* Their callers are in the parent. */
static void close_wires(prism_client *c);

static void forget_waiters(prism_client *c) {
  for (int bucket = 0; bucket < WAITER_BUCKETS; bucket++) {
    for (waiter *w = c->waiters[bucket], *following; w; w = following) {
      following = w->next;
      if (w->done) free(w);
    }
    c->waiters[bucket] = NULL;
  }
  atomic_store(&c->waiting, 0);
  atomic_store(&c->waiting_for_call, 0);
}

/* The child has no worker, and its copy of the queue is the parent's to send. */
static void after_fork_in_child(void) {
  for (prism_client *c = clients; c; c = c->next) {
    if (c->work) close_inherited(c->work);
    c->work = NULL;
    close_wires(c);
    if (atomic_load(&c->wake) >= 0) close(atomic_load(&c->wake));
    atomic_store(&c->wake, -1);
    madvise(c->queue.base, c->queue.capacity, MADV_DONTNEED);
    atomic_store(&c->queue.head, 0);
    atomic_store(&c->queue.tail, 0);
    make_id_prefix(c->id_prefix);
    atomic_store(&c->is_started, false);
    atomic_store(&c->is_asleep, false);
    c->has_ended = false;
    forget_waiters(c);
    atomic_store(&c->flushing, 0);
    init_condition(&c->settled_condition);
    _Atomic uint64_t *counts[] = {&c->accepted, &c->settled, &c->stored, &c->refused, &c->dropped_queue,
                                  &c->dropped_spool, &c->damaged, &c->spooled, &c->replayed, &c->connects,
                                  &c->spool_waiting};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) atomic_store(counts[i], 0);
  }
  unlock_all();
}

/* Lets the worker end at `close_at`, and waits a little longer for it. Returns whether it has ended. */
static bool end_worker(prism_client *c, int64_t close_at) {
  atomic_store(&c->close_at, close_at);
  atomic_store(&c->is_closing, true);
  pthread_mutex_lock(&c->start_lock);
  start_if_needed(c);
  bool is_started = atomic_load(&c->is_started);
  pthread_mutex_unlock(&c->start_lock);
  if (!is_started) return true;
  wake_worker(c);
  struct timespec until = deadline_at(close_at + 1000);
  pthread_mutex_lock(&c->wait_lock);
  while (!c->has_ended && pthread_cond_timedwait(&c->settled_condition, &c->wait_lock, &until) != ETIMEDOUT) {
  }
  bool has_ended = c->has_ended;
  pthread_mutex_unlock(&c->wait_lock);
  return has_ended;
}

static void at_exit(void) {
  int64_t now = monotonic_ms();
  pthread_mutex_lock(&clients_lock);
  for (prism_client *c = clients; c; c = c->next)
    if (c->exit_ms >= 0) end_worker(c, now + c->exit_ms);
  pthread_mutex_unlock(&clients_lock);
}

static void once_per_process(void) {
  pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  atexit(at_exit);
}

/* --- Opening and closing --------------------------------------------------------------------------------------- */

static const char *environment(const char *name) {
  const char *value = getenv(name);
  return value && value[0] ? value : NULL;
}

static void choose_spool(const char *wanted, char *out, size_t capacity) {
  const char *base;
  int length = 0;
  if (wanted || (wanted = environment("PRISM_SPOOL"))) length = snprintf(out, capacity, "%s", wanted);
  else if ((base = environment("STATE_DIRECTORY")))
    length = snprintf(out, capacity, "%.*s/prism-spool", (int)strcspn(base, ":"), base);
  else if ((base = environment("XDG_STATE_HOME"))) length = snprintf(out, capacity, "%s/prism/spool", base);
  else if ((base = environment("HOME")) || (base = geteuid() == 0 ? "/root" : NULL))
    length = snprintf(out, capacity, "%s/.local/state/prism/spool", base);
  if (length < 0 || (size_t)length >= capacity) out[0] = 0;
}

/* Copies at most 256 bytes, cut between characters. */
static size_t common_length(const char *text) {
  size_t length = 0;
  for (size_t next; text[length]; length += next) {
    next = utf8_length((const uint8_t *)text + length, strnlen(text + length, 4));
    if (next == 0) next = 1;
    if (length + next > 256) break;
  }
  return length;
}

static bool make_hello(prism_client *c, const char *name, const char *version) {
  const char *values[2] = {name, version};
  prism_json json;
  prism_json_begin(&json, c->hello, sizeof c->hello - 1);
  prism_json_object(&json, "hello");
  prism_json_object(&json, "app");
  static const char *const keys[] = {"APP_NAME", "APP_VERSION"};
  for (int i = 0; i < 2; i++)
    if (values[i] && values[i][0]) prism_json_bytes(&json, keys[i], values[i], common_length(values[i]));
  prism_json_close(&json);
  prism_json_string(&json, "answer", "cumulative");
  prism_json_close(&json);
  if (!prism_json_end(&json)) return false;
  c->hello_bytes = json.used;
  c->hello[c->hello_bytes++] = '\n';
  return true;
}

static uint64_t between(uint64_t value, uint64_t least, uint64_t most) {
  return value < least ? least : value > most ? most : value;
}

static prism_result set_options(prism_client *c, const prism_options *o) {
  const char *path = o->socket ? o->socket : environment("PRISM_INGEST");
  if (!path) path = "/run/prism/ingest.sock";
  c->address.sun_family = AF_UNIX;
  if (strlen(path) >= sizeof c->address.sun_path) return PRISM_INVALID;
  memcpy(c->address.sun_path, path, strlen(path) + 1);
  if (!make_hello(c, o->app_name, o->app_version)) return PRISM_INVALID;
  if (o->spool && strlen(o->spool) >= sizeof c->spool) return PRISM_INVALID;
  choose_spool(o->spool, c->spool, sizeof c->spool);
  c->spool_bytes = o->spool_bytes ? between(o->spool_bytes, 65536, UINT64_MAX / 4) : DEFAULT_SPOOL_BYTES;
  c->exit_ms = o->exit_ms == 0 ? 1000 : o->exit_ms;
  c->on_loss = o->on_loss;
  c->context = o->context;
  uint64_t wanted = o->queue_bytes ? between(o->queue_bytes, 65536, 1u << 30) : DEFAULT_QUEUE_BYTES;
  for (c->queue.capacity = 65536; c->queue.capacity < wanted;) c->queue.capacity *= 2;
  return PRISM_STORED;
}

static prism_client *fail(prism_client *c, prism_result *error, prism_result result) {
  free(c);
  if (error) *error = result;
  return NULL;
}

prism_client *prism_open(const prism_options *options, prism_result *error) {
  /* A program that was compiled for an older version has a shorter struct. */
  prism_options known = PRISM_OPTIONS_INIT;
  if (options) memcpy(&known, options, options->size < sizeof known ? options->size : sizeof known);
  prism_client *c = calloc(1, sizeof *c);
  if (!c) return fail(c, error, PRISM_NO_MEMORY);
  prism_result result = set_options(c, &known);
  if (result != PRISM_STORED) return fail(c, error, result);
  void *base = mmap(NULL, c->queue.capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return fail(c, error, PRISM_NO_MEMORY);
  c->queue.base = base;
  atomic_store(&c->wake, -1);
  make_id_prefix(c->id_prefix);
  pthread_mutex_init(&c->start_lock, NULL);
  pthread_mutex_init(&c->files_lock, NULL);
  pthread_mutex_init(&c->wait_lock, NULL);
  init_condition(&c->settled_condition);
  pthread_once(&process_once, once_per_process);
  pthread_mutex_lock(&clients_lock);
  c->next = clients;
  clients = c;
  pthread_mutex_unlock(&clients_lock);
  if (error) *error = PRISM_STORED;
  return c;
}

/* A thread that is cancelled while it waits would leave its place in a table. */
static int no_cancellation(void) {
  int before;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  return before;
}

static prism_result set_session(prism_client *c, bool is_open) {
  if (!c || atomic_load(&c->is_closing)) return PRISM_CLOSED;
  uint64_t before = atomic_load(&c->session), next;
  do {
    if (!is_open && before && !(before & 1)) return PRISM_QUEUED; /* it has ended */
    next = before + (is_open && (before & 1) ? 2 : is_open || before ? 1 : 2);
  } while (!atomic_compare_exchange_weak(&c->session, &before, next));
  bool is_started = start(c, true);
  wake_worker(c);
  return is_started ? PRISM_QUEUED : PRISM_SYSTEM;
}

prism_result prism_session_begin(prism_client *c) { return set_session(c, true); }
prism_result prism_session_end(prism_client *c) { return set_session(c, false); }

static prism_result flush_result(prism_client *c) {
  return value_of(&c->spool_waiting) > 0 ? PRISM_SPOOLED : PRISM_STORED;
}

prism_result prism_flush(prism_client *c, uint32_t deadline_ms) {
  if (!c || atomic_load(&c->is_closing)) return PRISM_CLOSED;
  uint64_t target = value_of(&c->accepted);
  struct timespec until = deadline_at(monotonic_ms() + deadline_ms);
  int before = no_cancellation();
  if (target > 0) start(c, true);
  atomic_fetch_add(&c->flushing, 1);
  pthread_mutex_lock(&c->wait_lock);
  int status = 0;
  while (value_of(&c->settled) < target && status != ETIMEDOUT)
    status = pthread_cond_timedwait(&c->settled_condition, &c->wait_lock, &until);
  pthread_mutex_unlock(&c->wait_lock);
  atomic_fetch_sub(&c->flushing, 1);
  pthread_setcancelstate(before, NULL);
  return value_of(&c->settled) < target ? PRISM_QUEUED : flush_result(c);
}

prism_result prism_close(prism_client *c, uint32_t deadline_ms) {
  if (!c) return PRISM_CLOSED;
  bool has_ended = end_worker(c, monotonic_ms() + deadline_ms);
  pthread_mutex_lock(&clients_lock);
  prism_client **link = &clients;
  while (*link && *link != c) link = &(*link)->next;
  if (*link) *link = c->next;
  pthread_mutex_unlock(&clients_lock);
  if (!has_ended) {
    pthread_detach(c->thread); /* the disk hangs: the thread keeps its memory */
    return PRISM_QUEUED;
  }
  if (atomic_load(&c->is_started)) pthread_join(c->thread, NULL);
  prism_result result = value_of(&c->dropped_spool) > 0 ? PRISM_QUEUED : flush_result(c);
  free(c->work);
  if (atomic_load(&c->wake) >= 0) close(atomic_load(&c->wake));
  munmap(c->queue.base, c->queue.capacity);
  pthread_mutex_destroy(&c->start_lock);
  pthread_mutex_destroy(&c->files_lock);
  pthread_mutex_destroy(&c->wait_lock);
  pthread_cond_destroy(&c->settled_condition);
  free(c);
  return result;
}

void prism_get_stats(prism_client *c, prism_stats *stats) {
  prism_stats now = {.size = stats->size};
  if (c) {
    now.accepted = value_of(&c->accepted);
    now.stored = value_of(&c->stored);
    now.refused = value_of(&c->refused);
    now.dropped_queue = value_of(&c->dropped_queue);
    now.dropped_spool = value_of(&c->dropped_spool);
    now.damaged_bytes = value_of(&c->damaged);
    now.spooled = value_of(&c->spooled);
    now.replayed = value_of(&c->replayed);
    now.connects = value_of(&c->connects);
    now.queue_used = ring_used(&c->queue);
    now.spool_waiting = value_of(&c->spool_waiting);
    now.spool_error = atomic_load(&c->spool_error);
  }
  memcpy(stats, &now, stats->size < sizeof now ? stats->size : sizeof now);
}

/* --- Reporting ------------------------------------------------------------------------------------------------- */

/* The request's line up to the meta. */
static size_t make_head(char *out, size_t capacity, const prism_report_data *r, const char *id) {
  int64_t created = r->created_ms ? r->created_ms : unix_ms();
  int length = snprintf(out, capacity, "%s%s\",\"namespace\":\"%s\",\"type\":\"%s\",\"createdTime\":%lld,", request_start,
                        id, r->name_space, r->type, (long long)created);
  if (r->payload || r->payload_bytes)
    length += snprintf(out + length, capacity - (size_t)length, "\"payloadBytes\":%zu,", r->payload_bytes);
  length += snprintf(out + length, capacity - (size_t)length, "\"meta\":");
  return (size_t)length;
}

/* Copies the meta; a line feed between its tokens becomes a space, since a request is one line. */
static uint64_t write_meta(ring *r, uint64_t position, const char *meta, size_t length) {
  while (length > 0) {
    const char *feed = memchr(meta, '\n', length);
    size_t part = feed ? (size_t)(feed - meta) : length;
    position = ring_write(r, position, meta, part);
    if (feed) position = ring_write(r, position, " ", 1), part++;
    meta += part;
    length -= part;
  }
  return position;
}

static prism_result enqueue(prism_client *c, const prism_report_data *r, const char *id, bool has_waiter) {
  char head[512];
  size_t head_bytes = make_head(head, sizeof head, r, id), meta_bytes = strlen(r->meta);
  size_t length = head_bytes + meta_bytes + 2 + r->payload_bytes;
  if (meta_bytes > META_BYTES_MAX || r->payload_bytes > c->queue.capacity || ring_record_bytes(length) > c->queue.capacity)
    return PRISM_TOO_LARGE;
  uint64_t position;
  if (!ring_reserve(&c->queue, length, &position)) {
    add(&c->dropped_queue, 1);
    return PRISM_DROPPED;
  }
  add(&c->accepted, 1);
  uint64_t at = ring_write(&c->queue, position + RING_HEADER, head, head_bytes);
  at = write_meta(&c->queue, at, r->meta, meta_bytes);
  at = ring_write(&c->queue, at, "}\n", 2);
  ring_write(&c->queue, at, r->payload, r->payload ? r->payload_bytes : 0);
  ring_publish(&c->queue, position, length, has_waiter);
  atomic_thread_fence(memory_order_seq_cst);
  if (atomic_load(&c->is_asleep) && atomic_exchange(&c->is_asleep, false)) wake_worker(c);
  if (!atomic_load(&c->is_started)) start(c, false); /* a fork had the lock before */
  return PRISM_QUEUED;
}

static prism_result wait_for_answer(prism_client *c, waiter *w, int64_t until_ms) {
  struct timespec until = deadline_at(until_ms);
  pthread_mutex_lock(&c->wait_lock);
  while (!w->is_done && pthread_cond_timedwait(&w->condition, &c->wait_lock, &until) != ETIMEDOUT) {
  }
  unlink_waiter(c, w);
  prism_result result = w->is_done ? w->result : w->is_spooled ? PRISM_SPOOLED : PRISM_QUEUED;
  pthread_mutex_unlock(&c->wait_lock);
  return result;
}

static void begin_waiting(prism_client *c, waiter *w, const char *id) {
  snprintf(w->id, sizeof w->id, "%s", id);
  pthread_mutex_lock(&c->wait_lock);
  w->next = c->waiters[bucket_of(id)];
  c->waiters[bucket_of(id)] = w;
  atomic_fetch_add(&c->waiting, 1);
  if (w->done) atomic_fetch_add(&c->waiting_for_call, 1);
  pthread_mutex_unlock(&c->wait_lock);
}

/* Checks a report and completes it: `id` gets its own or a new one. Starts the thread. */
static prism_result prepare(
    prism_client *c, const prism_report_data *report, prism_report_data *r, char id[ID_BYTES_MAX + 1], bool may_wait) {
  if (!c || atomic_load_explicit(&c->is_closing, memory_order_relaxed)) return PRISM_CLOSED;
  if (!report) return PRISM_INVALID;
  *r = (prism_report_data)PRISM_REPORT_INIT(NULL, NULL);
  memcpy(r, report, report->size < sizeof *r ? report->size : sizeof *r);
  if (!r->name_space) r->name_space = "prism";
  if (!r->type || !r->meta || !is_namespace(r->name_space) || !is_type(r->type) || !is_meta(r->meta, strlen(r->meta)) ||
      (r->report_id && !is_report_id(r->report_id)) || (!r->payload && r->payload_bytes > 0))
    return PRISM_INVALID;
  if (r->report_id) snprintf(id, ID_BYTES_MAX + 1, "%s", r->report_id);
  else
    snprintf(id, ID_BYTES_MAX + 1, "%s-%llx", c->id_prefix,
             (unsigned long long)atomic_fetch_add_explicit(&c->id_count, 1, memory_order_relaxed));
  return start(c, may_wait) ? PRISM_QUEUED : PRISM_SYSTEM;
}

prism_result prism_report(prism_client *c, const prism_report_data *report, uint32_t deadline_ms, prism_answer *answer) {
  prism_report_data r;
  char id[ID_BYTES_MAX + 1] = "";
  if (answer) *answer = (prism_answer){.report_id = ""};
  prism_result result = prepare(c, report, &r, id, deadline_ms > 0);
  if (answer) memcpy(answer->report_id, id, sizeof id);
  if (result != PRISM_QUEUED) return result;
  if (deadline_ms == 0) return enqueue(c, &r, id, false);
  int64_t until = monotonic_ms() + deadline_ms;
  int before = no_cancellation();
  waiter w = {.answer = answer};
  init_condition(&w.condition);
  begin_waiting(c, &w, id);
  result = enqueue(c, &r, id, true);
  if (result == PRISM_QUEUED) result = wait_for_answer(c, &w, until);
  else wait_for_answer(c, &w, 0);
  pthread_cond_destroy(&w.condition);
  pthread_setcancelstate(before, NULL);
  return result;
}

prism_result prism_report_async(
    prism_client *c, const prism_report_data *report, uint32_t deadline_ms, prism_done done, void *context) {
  prism_report_data r;
  char id[ID_BYTES_MAX + 1];
  if (!done) return PRISM_INVALID;
  prism_result result = prepare(c, report, &r, id, true);
  if (result != PRISM_QUEUED) return result;
  waiter *w = calloc(1, sizeof *w);
  if (!w) return PRISM_NO_MEMORY;
  w->answer = &w->own_answer;
  memcpy(w->own_answer.report_id, id, sizeof id);
  w->done = done;
  w->context = context;
  w->until = monotonic_ms() + deadline_ms;
  begin_waiting(c, w, id);
  result = enqueue(c, &r, id, true);
  if (result == PRISM_QUEUED) {
    wake_worker(c); /* it may sleep past the deadline */
    return result;
  }
  pthread_mutex_lock(&c->wait_lock);
  unlink_waiter(c, w);
  pthread_mutex_unlock(&c->wait_lock);
  free(w);
  return result;
}

prism_result prism_send(prism_client *c, const char *type, const char *meta) {
  prism_report_data report = PRISM_REPORT_INIT(type, meta);
  return prism_report(c, &report, 0, NULL);
}

/* --- Records --------------------------------------------------------------------------------------------------- */

enum { RECORD_ID_BYTES_MAX = 128, CHANGE_IDS_MAX = 100 };

/* A connection of one call or watch, which waits by itself. */
typedef struct wire {
  struct wire *next; /* of the client; under `files_lock` */
  int socket;
  char *input;
  size_t used, taken, capacity;
} wire;

/* In a child: the calls are the parent's, and so are their connections. */
static void close_wires(prism_client *c) {
  for (wire *w = c->wires; w; w = w->next) {
    if (w->socket >= 0) close(w->socket);
    w->socket = -1;
  }
  c->wires = NULL;
}

static bool wire_open(prism_client *c, wire *w) {
  *w = (wire){.socket = -1};
  pthread_mutex_lock(&c->files_lock);
  w->socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  w->next = c->wires;
  c->wires = w;
  pthread_mutex_unlock(&c->files_lock);
  return w->socket >= 0 && connect(w->socket, (struct sockaddr *)&c->address, sizeof c->address) == 0;
}

static void wire_close(prism_client *c, wire *w) {
  pthread_mutex_lock(&c->files_lock);
  struct wire **place = &c->wires;
  while (*place && *place != w) place = &(*place)->next;
  if (*place) *place = w->next;
  if (w->socket >= 0) close(w->socket);
  w->socket = -1;
  pthread_mutex_unlock(&c->files_lock);
  free(w->input);
  w->input = NULL;
}

/* Waits until the socket is ready. stop: a descriptor that ends the waiting, or -1. until: -1: for ever. */
static bool wire_wait(wire *w, short events, int stop, int64_t until) {
  struct pollfd entries[2] = {{w->socket, events, 0}, {stop, POLLIN, 0}};
  while (true) {
    int64_t left = until < 0 ? -1 : until - monotonic_ms();
    if (until >= 0 && left <= 0) return false;
    int count = poll(entries, 2, left > INT_MAX ? INT_MAX : (int)left);
    if (count > 0) return entries[1].revents == 0;
    if (count < 0 && errno != EINTR) return false;
  }
}

static bool wire_send(wire *w, const char *bytes, size_t length, int stop, int64_t until) {
  while (length > 0) {
    ssize_t count = send(w->socket, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno != EAGAIN && errno != EWOULDBLOCK) return false;
    if (count < 0 && !wire_wait(w, POLLOUT, stop, until)) return false;
    if (count > 0) bytes += count, length -= (size_t)count;
  }
  return true;
}

static bool wire_room(wire *w) {
  if (w->taken > 0) {
    memmove(w->input, w->input + w->taken, w->used - w->taken);
    w->used -= w->taken;
    w->taken = 0;
  }
  if (w->used < w->capacity) return true;
  size_t capacity = w->capacity ? w->capacity * 2 : 4096;
  char *input = capacity > INPUT_BYTES_MAX ? NULL : realloc(w->input, capacity);
  if (!input) return false;
  w->input = input;
  w->capacity = capacity;
  return true;
}

/* The next line without its line feed; false: the connection is lost, or the waiting is over. */
static bool wire_line(wire *w, cursor *line, int stop, int64_t until) {
  while (true) {
    char *start = w->input + w->taken, *end = w->used > w->taken ? memchr(start, '\n', w->used - w->taken) : NULL;
    if (end) {
      *line = (cursor){start, end};
      w->taken = (size_t)(end - w->input) + 1;
      return true;
    }
    if (!wire_room(w) || !wire_wait(w, POLLIN, stop, until)) return false;
    ssize_t count = recv(w->socket, w->input + w->used, w->capacity - w->used, MSG_DONTWAIT);
    if (count == 0 || (count < 0 && errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK)) return false;
    if (count > 0) w->used += (size_t)count;
  }
}

typedef struct {
  int64_t version, generation, retry_ms;
  bool is_refused, is_watch, is_changed, is_ended;
  cursor record, ids; /* where the values begin and end; NULL: they are not there */
  char code[32], message[256];
} record_line;

static const record_line no_record_line = {.generation = -1, .retry_ms = -1};

static bool take_record_line(cursor *c, record_line *out, int depth);

static bool take_record_member(cursor *c, const char *key, record_line *out, int depth) {
  if (strcmp(key, "version") == 0) return take_integer(c, &out->version);
  if (strcmp(key, "generation") == 0) return take_integer(c, &out->generation);
  if (strcmp(key, "retryMs") == 0) return take_integer(c, &out->retry_ms);
  if (strcmp(key, "code") == 0) return take_string(c, out->code, sizeof out->code);
  if (strcmp(key, "message") == 0) return take_string(c, out->message, sizeof out->message);
  if (strcmp(key, "status") == 0) {
    char status[16];
    bool is_taken = take_string(c, status, sizeof status);
    out->is_refused = is_taken && strcmp(status, "refused") == 0;
    return is_taken;
  }
  bool *kinds[] = {&out->is_watch, &out->is_changed, &out->is_ended};
  static const char *const names[] = {"watch", "changed", "ended"};
  for (size_t i = 0; i < 3; i++)
    if (depth == 0 && strcmp(key, names[i]) == 0) return *kinds[i] = true, take_record_line(c, out, 1);
  skip_space(c);
  const char *start = c->next;
  if (!take_value(c, 1)) return false;
  if (strcmp(key, "record") == 0 && *start == '{') out->record = (cursor){start, c->next};
  if (strcmp(key, "ids") == 0 && *start == '[') out->ids = (cursor){start, c->next};
  return true;
}

static bool take_record_line(cursor *c, record_line *out, int depth) {
  if (!take(c, '{')) return false;
  if (take(c, '}')) return true;
  do {
    char key[24];
    if (!take_string(c, key, sizeof key) || !take(c, ':') || !take_record_member(c, key, out, depth)) return false;
  } while (take(c, ','));
  return take(c, '}');
}

static bool is_record_id(const char *text) {
  size_t length = strlen(text);
  for (size_t i = 0; i < length; i++)
    if (text[i] < '!' || text[i] > '~') return false;
  return length >= 1 && length <= RECORD_ID_BYTES_MAX;
}

static bool is_object(const char *text) {
  cursor c = {text, text + strlen(text)};
  if (!take(&c, '{') || !take_members(&c, '}', 1)) return false;
  skip_space(&c);
  return c.next == c.end;
}

/* The request as one line; NULL without memory. */
static char *record_request(const char *verb, const prism_record_data *r, uint32_t limit, size_t *length) {
  bool is_list = limit > 0;
  size_t capacity = 1024 + (r->fields ? strlen(r->fields) : 0);
  char *text = malloc(capacity);
  if (!text) return NULL;
  prism_json json;
  prism_json_begin(&json, text, capacity - 1);
  prism_json_object(&json, verb);
  prism_json_string(&json, "namespace", r->name_space);
  prism_json_string(&json, "table", r->table);
  if (r->id) prism_json_string(&json, is_list ? "after" : "id", r->id);
  if (is_list) prism_json_uint(&json, "limit", limit);
  if (r->if_version) prism_json_int(&json, "ifVersion", r->if_version == PRISM_ABSENT ? 0 : r->if_version);
  if (r->fields) {
    begin_member(&json, "fields");
    put_text(&json, r->fields);
  }
  prism_json_close(&json);
  prism_json_end(&json); /* the buffer is large enough */
  for (size_t i = 0; i < json.used; i++)
    if (text[i] == '\n' || text[i] == '\r') text[i] = ' '; /* between tokens: a string has no such byte */
  text[json.used] = '\n';
  *length = json.used + 1;
  return text;
}

/* One try. Returns PRISM_TIMED_OUT if no answer came. */
static prism_result ask_once(
    prism_client *c, const char *request, size_t length, int64_t until, bool is_page, prism_record_answer *answer,
    int64_t *retry_ms) {
  wire w;
  cursor line;
  prism_result result = PRISM_TIMED_OUT;
  *retry_ms = -1;
  if (wire_open(c, &w) && wire_send(&w, request, length, -1, until) && wire_line(&w, &line, -1, until)) {
    record_line found = no_record_line;
    cursor at = line;
    if (take_record_line(&at, &found, 0)) {
      record_line inner = no_record_line;
      cursor record = is_page ? line : found.record;
      if (found.record.next) {
        cursor text = found.record;
        take_record_line(&text, &inner, 1);
        found.version = inner.version;
      }
      result = found.is_refused ? PRISM_REFUSED : PRISM_STORED;
      *retry_ms = found.retry_ms;
      answer->version = found.version;
      memcpy(answer->code, found.code, sizeof answer->code);
      memcpy(answer->message, found.message, sizeof answer->message);
      if (!found.is_refused && record.next) {
        answer->json = strndup(record.next, (size_t)(record.end - record.next));
        if (!answer->json) result = PRISM_NO_MEMORY;
      }
    }
  }
  wire_close(c, &w);
  return result;
}

/* Whether the daemon's state passes, and asking again can help. */
static bool passes(const char *code) {
  static const char *const codes[] = {"unknown", "busy", "disk_full", "internal"};
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
    if (strcmp(code, codes[i]) == 0) return true;
  return false;
}

static prism_result ask(
    prism_client *c, const char *verb, const prism_record_data *record, uint32_t limit, uint32_t deadline_ms,
    prism_record_answer *answer) {
  size_t length;
  char *request = record_request(verb, record, limit, &length);
  if (!request) return PRISM_NO_MEMORY;
  int64_t until = monotonic_ms() + deadline_ms, pause = BACKOFF_MIN, retry_ms;
  int before = no_cancellation();
  prism_result result, last = PRISM_TIMED_OUT;
  while (true) {
    result = ask_once(c, request, length, until, limit > 0, answer, &retry_ms);
    if (result != PRISM_TIMED_OUT && !(result == PRISM_REFUSED && passes(answer->code))) break;
    if (result == PRISM_REFUSED) last = result;
    int64_t left = until - monotonic_ms();
    result = last;
    if (left <= pause) break;
    poll(NULL, 0, (int)pause); /* a signal only shortens it */
    pause = smaller(pause * 2, BACKOFF_MAX);
  }
  pthread_setcancelstate(before, NULL);
  free(request);
  return result;
}

static prism_result change(
    prism_client *c, const char *verb, const prism_record_data *given, uint32_t limit, uint32_t deadline_ms,
    prism_record_answer *answer) {
  prism_record_data r = PRISM_RECORD_INIT(NULL, NULL);
  prism_record_answer unused;
  bool has_answer = answer != NULL;
  if (!has_answer) answer = &unused;
  *answer = (prism_record_answer){.version = 0};
  if (!c || atomic_load(&c->is_closing)) return PRISM_CLOSED;
  if (!given) return PRISM_INVALID;
  memcpy(&r, given, given->size < sizeof r ? given->size : sizeof r);
  if (!r.name_space) r.name_space = "prism";
  bool is_list = limit > 0, takes_fields = strcmp(verb, "put") == 0 || strcmp(verb, "patch") == 0;
  bool reads = is_list || strcmp(verb, "get") == 0;
  if (!r.table || !is_namespace(r.name_space) || !is_table(r.table) || (r.id ? !is_record_id(r.id) : !is_list) ||
      (takes_fields ? !r.fields || !is_object(r.fields) : r.fields != NULL) || r.if_version < PRISM_ABSENT ||
      (reads && (r.if_version != 0 || !has_answer)) || limit > 1000)
    return PRISM_INVALID;
  if (r.fields && strlen(r.fields) > 4 * META_BYTES_MAX) return PRISM_TOO_LARGE; /* white space does not count */
  prism_result result = ask(c, verb, &r, limit, deadline_ms, answer);
  if (!has_answer) free(answer->json);
  return result;
}

prism_result prism_put(
    prism_client *c, const prism_record_data *record, uint32_t deadline_ms, prism_record_answer *answer) {
  return change(c, "put", record, 0, deadline_ms, answer);
}

prism_result prism_patch(
    prism_client *c, const prism_record_data *record, uint32_t deadline_ms, prism_record_answer *answer) {
  return change(c, "patch", record, 0, deadline_ms, answer);
}

prism_result prism_delete(
    prism_client *c, const prism_record_data *record, uint32_t deadline_ms, prism_record_answer *answer) {
  return change(c, "delete", record, 0, deadline_ms, answer);
}

prism_result prism_get(
    prism_client *c, const prism_record_data *record, uint32_t deadline_ms, prism_record_answer *answer) {
  return change(c, "get", record, 0, deadline_ms, answer);
}

prism_result prism_list(
    prism_client *c, const prism_record_data *record, uint32_t limit, uint32_t deadline_ms, prism_record_answer *answer) {
  if (limit == 0) return PRISM_INVALID;
  return change(c, "list", record, limit, deadline_ms, answer);
}

/* --- Watching a table --- */

struct prism_watch {
  prism_client *client;
  prism_on_change on_change;
  void *context;
  pthread_t thread;
  pid_t process;
  int stop; /* an eventfd */
  int64_t generation; /* the last one that was passed on; -1: no generation */
  char told_code[32];
  char ids[CHANGE_IDS_MAX][RECORD_ID_BYTES_MAX + 1];
  const char *id_list[CHANGE_IDS_MAX];
  size_t question_bytes;
  char *question;
};

/* Returns how many ids there are; 0: no id, or more than a change names. */
static size_t take_ids(prism_watch *watch, cursor c) {
  size_t count = 0;
  if (!c.next || !take(&c, '[') || take(&c, ']')) return 0;
  do {
    if (count == CHANGE_IDS_MAX || !take_string(&c, watch->ids[count], sizeof watch->ids[count])) return 0;
    watch->id_list[count] = watch->ids[count];
    count++;
  } while (take(&c, ','));
  return count;
}

/* Returns whether the connection goes on watching. */
static bool tell_change(prism_watch *watch, cursor line) {
  record_line found = no_record_line;
  if (!take_record_line(&line, &found, 0)) return false;
  prism_change told = {.generation = found.generation, .code = "", .message = ""};
  if (found.is_refused || found.is_ended) {
    told.generation = -1;
    told.code = found.code;
    told.message = found.message;
    if (strcmp(watch->told_code, found.code) == 0) return false;
    memcpy(watch->told_code, found.code, sizeof watch->told_code);
    watch->generation = -1;
    watch->on_change(watch->context, &told);
    return false;
  }
  if ((!found.is_watch && !found.is_changed) || found.generation < 0) return false;
  watch->told_code[0] = 0;
  /* After a restart the daemon says again what is known. */
  if (found.is_watch && found.generation == watch->generation) return true;
  watch->generation = found.generation;
  told.id_count = found.is_changed ? take_ids(watch, found.ids) : 0;
  told.ids = told.id_count > 0 ? watch->id_list : NULL;
  watch->on_change(watch->context, &told);
  return true;
}

static void *run_watch(void *argument) {
  prism_watch *watch = argument;
  struct pollfd stop = {watch->stop, POLLIN, 0};
  int64_t pause = BACKOFF_MIN;
  while (stop.revents == 0) {
    wire w;
    cursor line;
    if (wire_open(watch->client, &w) && wire_send(&w, watch->question, watch->question_bytes, watch->stop, -1))
      while (wire_line(&w, &line, watch->stop, -1) && tell_change(watch, line)) pause = BACKOFF_MIN;
    wire_close(watch->client, &w);
    poll(&stop, 1, (int)pause);
    pause = smaller(pause * 2, WATCH_RETRY_MAX);
  }
  return NULL;
}

static void watch_free(prism_watch *watch) {
  if (watch->stop >= 0) close(watch->stop);
  free(watch->question);
  free(watch);
}

static bool watch_start(prism_watch *watch) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, WORKER_STACK_BYTES);
  int status = pthread_create(&watch->thread, &attributes, run_watch, watch);
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  errno = status;
  return status == 0;
}

prism_watch *prism_watch_table(
    prism_client *c, const char *name_space, const char *table, prism_on_change on_change, void *context,
    prism_result *error) {
  prism_record_data data = PRISM_RECORD_INIT(table, NULL);
  data.name_space = name_space ? name_space : "prism";
  prism_result result = PRISM_NO_MEMORY;
  prism_watch *watch = NULL;
  if (!c || atomic_load(&c->is_closing)) result = PRISM_CLOSED;
  else if (!table || !on_change || !is_namespace(data.name_space) || !is_table(table)) result = PRISM_INVALID;
  else watch = calloc(1, sizeof *watch);
  if (watch) {
    watch->client = c;
    watch->on_change = on_change;
    watch->context = context;
    watch->process = getpid();
    watch->generation = -1;
    watch->question = record_request("watch", &data, 0, &watch->question_bytes);
    watch->stop = eventfd(0, EFD_CLOEXEC);
    result = !watch->question ? PRISM_NO_MEMORY : watch->stop < 0 || !watch_start(watch) ? PRISM_SYSTEM : PRISM_STORED;
    if (result != PRISM_STORED) {
      watch_free(watch);
      watch = NULL;
    }
  }
  if (error) *error = result;
  return watch;
}

void prism_watch_end(prism_watch *watch) {
  if (!watch) return;
  /* A child has no thread to wait for. */
  if (watch->process == getpid()) {
    uint64_t one = 1;
    while (write(watch->stop, &one, sizeof one) < 0 && errno == EINTR) {
    }
    pthread_join(watch->thread, NULL);
  }
  watch_free(watch);
}

/* --- Crashes --------------------------------------------------------------------------------------------------- */

static struct {
  _Atomic int folder;
  char name[200]; /* NAMESPACE.TYPE. */
  _Atomic uint32_t count;
} crash = {.folder = -1};

static const char *crash_folder(const char *folder) {
  if (!folder) folder = environment("PRISM_CRASH_SPOOL");
  return folder ? folder : "/var/spool/prism";
}

/* descriptor: of the folder; -1: the one that is open. */
static prism_result crash_target(int descriptor, const char *name_space, const char *type) {
  if (!name_space) name_space = "prism";
  if (!type) type = "appCrash";
  if (!is_namespace(name_space) || !is_type(type)) return PRISM_INVALID;
  /* No handler writes while the name changes. */
  int before = atomic_exchange(&crash.folder, -1);
  snprintf(crash.name, sizeof crash.name, "%s.%s.", name_space, type);
  atomic_store(&crash.folder, descriptor < 0 ? before : descriptor);
  if (descriptor >= 0 && before >= 0) close(before);
  return PRISM_STORED;
}

prism_result prism_crash_open(const char *folder, const char *name_space, const char *type) {
  int opened = open(crash_folder(folder), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (opened < 0) return PRISM_SYSTEM;
  prism_result result = faccessat(opened, ".", W_OK | X_OK, AT_EACCESS) != 0 ? PRISM_SYSTEM
                                                                             : crash_target(opened, name_space, type);
  if (result == PRISM_STORED) return result;
  int error = errno;
  close(opened);
  return errno = error, result;
}

static void append(char *out, size_t *used, const char *text) {
  while (*text) out[(*used)++] = *text++;
  out[*used] = 0;
}

static bool write_all(int file, const void *bytes, size_t length) {
  const char *next = bytes;
  while (length > 0) {
    ssize_t count = write(file, next, length);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    next += count;
    length -= (size_t)count;
  }
  return true;
}

/* Writes a file under a temporary name and renames it, so that the daemon sees whole files only. Its group may read it:
 * the folder is set-group-id for the daemon's group. */
static bool write_file(int folder, const char *stem, const char *temporary, const char *suffix, const void *bytes,
                       size_t length) {
  char from[320], to[320];
  size_t from_used = 0, to_used = 0;
  append(from, &from_used, stem);
  append(from, &from_used, temporary);
  append(to, &to_used, stem);
  append(to, &to_used, suffix);
  int file = openat(folder, from, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640);
  if (file < 0) return false;
  bool is_written = fchmod(file, 0640) == 0 && write_all(file, bytes, length);
  if (close(file) != 0) is_written = false;
  if (is_written && renameat(folder, from, folder, to) == 0) return true;
  int error = errno;
  unlinkat(folder, from, 0);
  errno = error;
  return false;
}

prism_result prism_crash_report(const char *meta, const void *payload, size_t payload_bytes) {
  int folder = atomic_load(&crash.folder);
  if (folder < 0) return PRISM_CLOSED;
  if (!meta || (!payload && payload_bytes > 0) || !is_meta(meta, strlen(meta))) return PRISM_INVALID;
  char stem[300], suffix[20], random[17];
  size_t used = 0;
  uint32_t count = atomic_fetch_add(&crash.count, 1);
  make_id_prefix(random);
  for (int i = 0; i < 8; i++) suffix[i] = "0123456789abcdef"[count >> (28 - 4 * i) & 15];
  suffix[8] = 0;
  append(stem, &used, crash.name);
  append(stem, &used, random);
  append(stem, &used, "-");
  append(stem, &used, suffix);
  if (payload && !write_file(folder, stem, ".payload.tmp", ".payload", payload, payload_bytes)) return PRISM_SYSTEM;
  if (write_file(folder, stem, ".tmp", ".json", meta, strlen(meta))) return PRISM_SPOOLED;
  int error = errno;
  append(stem, &used, ".payload");
  if (payload) unlinkat(folder, stem, 0);
  errno = error;
  return PRISM_SYSTEM;
}

static const int crash_signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP};
enum {
  CRASH_SIGNALS = sizeof crash_signals / sizeof *crash_signals,
  CRASH_PAYLOAD_BYTES = 256 * 1024,
  CRASH_STACK_BYTES = 64 * 1024,
  CRASH_META_BYTES = 8192, /* with the common information within the 10,240 bytes of a meta */
  CRASH_FRAME_BYTES = 760, /* one frame in the meta, at most */
  CRASH_NAME_BYTES = 200,  /* of a function */
  CRASH_FRAMES = 64,
  CRASH_MODULES = 256,
  CRASH_WORD_BYTES = 128,
  BUILD_ID_BYTES = 32,
};

/* A program or library in memory, and what an offset in it is relative to. */
typedef struct crash_module {
  uintptr_t start, end, bias;
  char name[64];
  char build_id[2 * BUILD_ID_BYTES + 1];
  /* Its file, where that has names of functions. */
  const char *file;
  size_t file_bytes;
  const ElfW(Sym) *symbols;
  size_t symbol_count;
  const char *strings;
  size_t strings_bytes;
} crash_module;

/* The facts and buffers of the handler, made before a crash. */
static struct {
  struct sigaction before[CRASH_SIGNALS];
  char *payload;
  char meta[CRASH_META_BYTES];
  char program[PATH_MAX];
  char app_name[CRASH_WORD_BYTES + 1], app_version[CRASH_WORD_BYTES + 1], app_build[CRASH_WORD_BYTES + 1];
  crash_module modules[CRASH_MODULES];
  _Atomic size_t module_count;
  _Atomic long walker; /* the thread that walks its stack, which may be damaged */
  sigjmp_buf escape;
} crashing;

static const char *signal_name(int number) {
  switch (number) {
    case SIGSEGV: return "SIGSEGV";
    case SIGBUS: return "SIGBUS";
    case SIGILL: return "SIGILL";
    case SIGFPE: return "SIGFPE";
    case SIGABRT: return "SIGABRT";
    default: return "SIGTRAP";
  }
}

enum { HEX_TEXT_BYTES = 2 + 2 * sizeof(uintptr_t) + 1 };

static void hex_text(uintptr_t value, char out[HEX_TEXT_BYTES]) {
  size_t digits = 2 * sizeof value;
  out[0] = '0', out[1] = 'x', out[2 + digits] = 0;
  for (size_t i = 0; i < digits; i++, value >>= 4) out[1 + digits - i] = "0123456789abcdef"[value & 15];
}

/* Without zeros in front. */
static void short_hex_text(uintptr_t value, char out[HEX_TEXT_BYTES]) {
  hex_text(value, out);
  size_t zeros = 2;
  while (out[zeros] == '0' && out[zeros + 1]) zeros++;
  memmove(out + 2, out + zeros, HEX_TEXT_BYTES - zeros);
}

/* --- Crashes: modules --- */

/* Reads the GNU build id of a segment of notes: elf(5). */
static void take_build_id(crash_module *module, const char *notes, size_t bytes, size_t alignment) {
  size_t mask = (alignment == 8 ? 8 : 4) - 1;
  while (bytes >= 12) {
    uint32_t head[3];
    memcpy(head, notes, sizeof head);
    size_t description = (12 + (size_t)head[0] + mask) & ~mask, next = (description + head[1] + mask) & ~mask;
    if (head[0] > bytes || head[1] > bytes || next > bytes) return;
    if (head[2] == 3 && head[0] == 4 && memcmp(notes + 12, "GNU", 4) == 0 && head[1] <= BUILD_ID_BYTES) {
      for (size_t i = 0; i < head[1]; i++) {
        unsigned char byte = (unsigned char)notes[description + i];
        module->build_id[2 * i] = "0123456789abcdef"[byte >> 4];
        module->build_id[2 * i + 1] = "0123456789abcdef"[byte & 15];
      }
      module->build_id[2 * head[1]] = 0;
      return;
    }
    notes += next;
    bytes -= next;
  }
}

/* Whether a part of a file lies in it. */
static bool is_within(const crash_module *module, uint64_t offset, uint64_t bytes) {
  return offset <= module->file_bytes && bytes <= module->file_bytes - offset;
}

/* Finds the names of functions in the module's file: of .symtab, else of .dynsym. A file with another build id than the
 * module in memory is a newer one. false: there are no names. */
static bool find_names(crash_module *module, bool is_program) {
  ElfW(Ehdr) head;
  if (!is_within(module, 0, sizeof head)) return false;
  memcpy(&head, module->file, sizeof head);
  if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_shentsize != sizeof(ElfW(Shdr)) ||
      head.e_shoff % _Alignof(ElfW(Shdr)) != 0 || !is_within(module, head.e_shoff, (uint64_t)head.e_shnum * head.e_shentsize))
    return false;
  const ElfW(Shdr) *parts = (const ElfW(Shdr) *)(const void *)(module->file + head.e_shoff), *found = NULL;
  crash_module other = {.start = 0};
  for (size_t i = 0; i < head.e_shnum; i++) {
    if (!is_within(module, parts[i].sh_offset, parts[i].sh_size)) continue;
    if (parts[i].sh_type == SHT_NOTE && !other.build_id[0])
      take_build_id(&other, module->file + parts[i].sh_offset, parts[i].sh_size, parts[i].sh_addralign);
    bool has_names = parts[i].sh_type == SHT_SYMTAB || (parts[i].sh_type == SHT_DYNSYM && !found);
    if (has_names && parts[i].sh_link < head.e_shnum && parts[i].sh_offset % _Alignof(ElfW(Sym)) == 0) found = &parts[i];
  }
  if (!found || (!is_program && (!module->build_id[0] || strcmp(module->build_id, other.build_id) != 0))) return false;
  const ElfW(Shdr) *strings = &parts[found->sh_link];
  if (!is_within(module, strings->sh_offset, strings->sh_size)) return false;
  module->symbols = (const ElfW(Sym) *)(const void *)(module->file + found->sh_offset);
  module->symbol_count = found->sh_size / sizeof(ElfW(Sym));
  module->strings = module->file + strings->sh_offset;
  module->strings_bytes = strings->sh_size;
  return true;
}

/* Maps the file of a module, so that a handler finds names without a call. */
static void take_names(crash_module *module, const char *path, bool is_program) {
  struct stat facts;
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  void *memory = fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size > 0
                     ? mmap(NULL, (size_t)facts.st_size, PROT_READ, MAP_PRIVATE, file, 0)
                     : MAP_FAILED;
  close(file);
  if (memory == MAP_FAILED) return;
  module->file = memory;
  module->file_bytes = (size_t)facts.st_size;
  if (find_names(module, is_program)) return;
  munmap(memory, module->file_bytes);
  module->file = NULL;
}

static bool is_symbol(const char *text, size_t bytes_max) {
  size_t length = strnlen(text, bytes_max);
  for (size_t i = 0; i < length; i++)
    if (text[i] <= ' ' || text[i] > '~' || text[i] == '"' || text[i] == '\\') return false;
  return length > 0 && length < bytes_max;
}

/* The name of the function at an address of the module; NULL if its file does not say it. */
static const char *function_at(const crash_module *module, uintptr_t address) {
  uintptr_t place = address - module->bias;
  for (size_t i = 0; module->file && i < module->symbol_count; i++) {
    const ElfW(Sym) *symbol = &module->symbols[i];
    bool is_function = (symbol->st_info & 15) == STT_FUNC && symbol->st_shndx != SHN_UNDEF;
    if (!is_function || place < symbol->st_value || place - symbol->st_value >= symbol->st_size) continue;
    size_t name = symbol->st_name;
    if (name < module->strings_bytes && is_symbol(module->strings + name, module->strings_bytes - name))
      return module->strings + name;
  }
  return NULL;
}

static int take_module(struct dl_phdr_info *info, size_t size, void *context) {
  (void)size;
  size_t *count = context;
  if (*count == CRASH_MODULES) return 1;
  crash_module module = {.start = UINTPTR_MAX, .bias = (uintptr_t)info->dlpi_addr};
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *part = &info->dlpi_phdr[i];
    if (part->p_type != PT_LOAD) continue;
    uintptr_t start = module.bias + part->p_vaddr, end = start + part->p_memsz;
    if (start < module.start) module.start = start;
    if (end > module.end) module.end = end;
  }
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *part = &info->dlpi_phdr[i];
    uintptr_t start = module.bias + part->p_vaddr;
    bool is_loaded = start >= module.start && start + part->p_memsz <= module.end;
    if (part->p_type == PT_NOTE && is_loaded && !module.build_id[0])
      take_build_id(&module, (const char *)start, part->p_memsz, part->p_align);
  }
  /* The program is the first one, and has no name. */
  const char *path = info->dlpi_name && info->dlpi_name[0] ? info->dlpi_name : *count == 0 ? crashing.program : "";
  const char *slash = strrchr(path, '/');
  snprintf(module.name, sizeof module.name, "%.63s", slash ? slash + 1 : path);
  if (module.start >= module.end || !module.name[0]) return 0;
  bool is_program = *count == 0;
  take_names(&module, is_program ? "/proc/self/exe" : path, is_program);
  crashing.modules[(*count)++] = module;
  return 0;
}

/* A handler that runs meanwhile sees no module rather than half of one. */
static void take_modules(void) {
  ssize_t length = readlink("/proc/self/exe", crashing.program, sizeof crashing.program - 1);
  crashing.program[length > 0 ? length : 0] = 0;
  size_t count = 0, before = atomic_exchange(&crashing.module_count, 0);
  for (size_t i = 0; i < before; i++)
    if (crashing.modules[i].file) munmap((void *)(uintptr_t)crashing.modules[i].file, crashing.modules[i].file_bytes);
  dl_iterate_phdr(take_module, &count);
  atomic_store(&crashing.module_count, count);
}

static const crash_module *module_of(uintptr_t address) {
  size_t count = atomic_load(&crashing.module_count);
  for (size_t i = 0; i < count; i++)
    if (crashing.modules[i].start <= address && address < crashing.modules[i].end) return &crashing.modules[i];
  return NULL;
}

/* --- Crashes: the handler --- */

/* Where the program was. caller: where a function that was called returns to, if the program is at its first instruction;
 * on x86 the address of that. 0: not known on this processor. */
static uintptr_t interrupted(const void *context, uintptr_t *caller) {
  const ucontext_t *state = context;
#if defined(__x86_64__)
  *caller = (uintptr_t)state->uc_mcontext.gregs[REG_RSP];
  return (uintptr_t)state->uc_mcontext.gregs[REG_RIP];
#elif defined(__i386__)
  *caller = (uintptr_t)state->uc_mcontext.gregs[REG_ESP];
  return (uintptr_t)state->uc_mcontext.gregs[REG_EIP];
#elif defined(__aarch64__)
  *caller = (uintptr_t)state->uc_mcontext.regs[30];
  return (uintptr_t)state->uc_mcontext.pc;
#elif defined(__arm__)
  *caller = (uintptr_t)state->uc_mcontext.arm_lr;
  return (uintptr_t)state->uc_mcontext.arm_pc;
#else
  (void)state;
  return *caller = 0;
#endif
}

/* The frames of a crash: the first one faulted, the others are places to return to. */
typedef struct crash_stack {
  const void *context;
  size_t count;
  uintptr_t frames[CRASH_FRAMES + 1];
  const char *names[CRASH_FRAMES + 1];
} crash_stack;

/* A jump to an address without code: the stack may not be walked from there, but the call left its caller. */
static void find_caller(crash_stack *stack) {
  uintptr_t caller, place = interrupted(stack->context, &caller);
  if (module_of(place) || !caller) return;
#if defined(__x86_64__) || defined(__i386__)
  caller = *(const uintptr_t *)caller;
#endif
  stack->frames[1] = caller;
  stack->count = 2;
}

/* Finds the callers from here, in the handler, without the frames of the handler. */
static void find_callers(crash_stack *stack) {
#ifdef __GLIBC__
  uintptr_t caller, place = interrupted(stack->context, &caller);
  void *found[CRASH_FRAMES];
  int count = backtrace(found, CRASH_FRAMES), first = 0;
  while (first < count && (uintptr_t)found[first] != place) first++;
  if (first + 1 >= count) return;
  stack->count = 1;
  for (int i = first + 1; i < count; i++) stack->frames[stack->count++] = (uintptr_t)found[i];
#endif
}

static void find_functions(crash_stack *stack) {
  for (size_t i = 0; i < stack->count; i++) {
    uintptr_t address = stack->frames[i] - (i > 0);
    const crash_module *module = module_of(address);
    if (module) stack->names[i] = function_at(module, address);
  }
}

/* Does a step that may fault itself, since the stack is damaged or a file was cut. Then the step ends, not the report. */
static void on_crash_step(void (*step)(crash_stack *), crash_stack *stack) {
  if (sigsetjmp(crashing.escape, 1) == 0) {
    sigset_t faults, before;
    sigemptyset(&faults);
    sigaddset(&faults, SIGSEGV);
    sigaddset(&faults, SIGBUS);
    atomic_store(&crashing.walker, syscall(SYS_gettid));
    pthread_sigmask(SIG_UNBLOCK, &faults, &before);
    step(stack);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
  }
  atomic_store(&crashing.walker, 0);
}

/* One address a line, then the memory map. */
static size_t crash_payload(const crash_stack *stack) {
  size_t used = 0;
  for (size_t i = 0; i < stack->count; i++) {
    char line[HEX_TEXT_BYTES];
    hex_text(stack->frames[i], line);
    append(crashing.payload, &used, line);
    append(crashing.payload, &used, "\n");
  }
  append(crashing.payload, &used, "\n");
  int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  for (ssize_t got = 1; maps >= 0 && got > 0 && used < CRASH_PAYLOAD_BYTES; used += got > 0 ? (size_t)got : 0)
    got = read(maps, crashing.payload + used, CRASH_PAYLOAD_BYTES - used);
  if (maps >= 0) close(maps);
  return used;
}

/* Of a caller the frame is the instruction before the one to return to: its line is that of the call. */
static void frame_json(prism_json *meta, uintptr_t address, const char *name, bool is_caller) {
  char text[HEX_TEXT_BYTES];
  const crash_module *module = module_of(address - is_caller);
  prism_json_object(meta, NULL);
  if (name) prism_json_bytes(meta, "function", name, strnlen(name, CRASH_NAME_BYTES));
  if (module) {
    short_hex_text(address - is_caller - module->bias, text);
    prism_json_string(meta, "module", module->name);
    if (module->build_id[0]) prism_json_string(meta, "buildId", module->build_id);
    prism_json_string(meta, "offset", text);
  } else {
    short_hex_text(address, text);
    prism_json_string(meta, "address", text);
  }
  prism_json_close(meta);
}

static void word_json(prism_json *meta, const char *key, const char *word) {
  if (word[0]) prism_json_string(meta, key, word);
}

enum { CRUMBS = 20, CRUMB_BYTES = 120, CRUMBS_JSON_BYTES = 3000 };

/* The newest notes. A writer marks its place before and after, so that the handler of another thread leaves a part out. */
static struct {
  pthread_mutex_t lock;
  _Atomic uint64_t count;
  struct {
    _Atomic uint64_t number; /* counted from 1; 0 while it is written */
    int64_t time;
    char text[CRUMB_BYTES + 1];
  } all[CRUMBS];
} crumbs = {.lock = PTHREAD_MUTEX_INITIALIZER};

void prism_breadcrumb(const char *text) {
  if (!text) return;
  size_t length = 0;
  for (size_t next; text[length]; length += next) {
    next = utf8_length((const uint8_t *)text + length, strnlen(text + length, 4));
    if (next == 0) next = 1;
    if (length + next > CRUMB_BYTES) break;
  }
  pthread_mutex_lock(&crumbs.lock);
  uint64_t number = atomic_load(&crumbs.count) + 1;
  size_t place = number % CRUMBS;
  atomic_store(&crumbs.all[place].number, 0);
  crumbs.all[place].time = unix_ms();
  memcpy(crumbs.all[place].text, text, length);
  crumbs.all[place].text[length] = 0;
  atomic_store(&crumbs.all[place].number, number);
  atomic_store(&crumbs.count, number);
  pthread_mutex_unlock(&crumbs.lock);
}

/* The newest notes that fit beside a frame, in their order. */
static void crumbs_json(prism_json *meta) {
  uint64_t last = atomic_load(&crumbs.count), first = last > CRUMBS ? last - CRUMBS + 1 : 1;
  size_t room = 0, most = meta->capacity - meta->used - CRASH_FRAME_BYTES;
  if (most > CRUMBS_JSON_BYTES) most = CRUMBS_JSON_BYTES;
  uint64_t from = last + 1;
  while (from > first && room + strlen(crumbs.all[(from - 1) % CRUMBS].text) * 6 + 60 < most)
    room += strlen(crumbs.all[--from % CRUMBS].text) * 6 + 60;
  if (last == 0) return;
  prism_json_array(meta, "breadcrumbs");
  for (; from <= last; from++) {
    size_t place = from % CRUMBS;
    if (atomic_load(&crumbs.all[place].number) != from) continue;
    prism_json_object(meta, NULL);
    prism_json_int(meta, "time", crumbs.all[place].time);
    prism_json_bytes(meta, "text", crumbs.all[place].text, strnlen(crumbs.all[place].text, CRUMB_BYTES));
    prism_json_close(meta);
  }
  prism_json_close(meta);
}

static const char *crash_meta(int number, const siginfo_t *info, const crash_stack *stack) {
  char address[HEX_TEXT_BYTES], thread[17] = "";
  prism_json meta;
  prism_json_begin(&meta, crashing.meta, sizeof crashing.meta);
  prism_json_string(&meta, "reason", signal_name(number));
  prism_json_int(&meta, "signal", number);
  prism_json_int(&meta, "code", info->si_code);
  if (info->si_code > 0) {
    hex_text((uintptr_t)info->si_addr, address);
    prism_json_string(&meta, "address", address);
  }
  prism_json_int(&meta, "pid", getpid());
  prism_json_int(&meta, "tid", syscall(SYS_gettid));
  prctl(PR_GET_NAME, thread);
  word_json(&meta, "thread", thread);
  prism_json_int(&meta, "crashTime", unix_ms());
  word_json(&meta, "APP_NAME", crashing.app_name);
  word_json(&meta, "APP_VERSION", crashing.app_version);
  word_json(&meta, "APP_BUILD", crashing.app_build);
  /* Each byte may take six in JSON. */
  if (strlen(crashing.program) < 512) word_json(&meta, "program", crashing.program);
  crumbs_json(&meta);
  prism_json_array(&meta, "frames");
  for (size_t i = 0; i < stack->count && meta.used + CRASH_FRAME_BYTES < sizeof crashing.meta; i++)
    frame_json(&meta, stack->frames[i], stack->names[i], i > 0);
  prism_json_close(&meta);
  return prism_json_end(&meta);
}

static void on_crash(int number, siginfo_t *info, void *context) {
  static _Atomic int reporting;
  int saved = errno;
  if (atomic_load(&crashing.walker) == syscall(SYS_gettid)) siglongjmp(crashing.escape, 1);
  if (atomic_exchange(&reporting, 1) == 0) {
    uintptr_t caller;
    crash_stack stack = {.context = context, .count = 1, .frames = {interrupted(context, &caller)}};
    on_crash_step(find_caller, &stack);
    on_crash_step(find_callers, &stack);
    on_crash_step(find_functions, &stack);
    const char *meta = crash_meta(number, info, &stack);
    size_t length = crash_payload(&stack);
    if (meta) prism_crash_report(meta, crashing.payload, length);
    atomic_store(&reporting, 2);
  }
  /* Another thread that crashes waits for the one that writes. */
  for (int i = 0; i < 200 && atomic_load(&reporting) == 1; i++) nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
  for (int i = 0; i < CRASH_SIGNALS; i++)
    if (crash_signals[i] == number) sigaction(number, &crashing.before[i], NULL);
  errno = saved;
  if (info->si_code <= 0) raise(number); /* a fault happens again by itself; a signal that was sent does not */
}

/* --- Crashes: installing --- */

static bool install_handlers(void) {
  if (crashing.payload) return true;
  char *memory =
      mmap(NULL, CRASH_PAYLOAD_BYTES + CRASH_STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  stack_t stack = {.ss_sp = memory, .ss_size = CRASH_STACK_BYTES}, before;
  if (sigaltstack(NULL, &before) == 0 && (before.ss_flags & SS_DISABLE) && sigaltstack(&stack, NULL) != 0) {
    int error = errno;
    munmap(memory, CRASH_PAYLOAD_BYTES + CRASH_STACK_BYTES);
    return errno = error, false;
  }
  crashing.payload = memory + CRASH_STACK_BYTES;
#ifdef __GLIBC__
  void *frame;
  backtrace(&frame, 1); /* its first call allocates */
#endif
  struct sigaction action = {.sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK};
  sigemptyset(&action.sa_mask);
  for (int i = 0; i < CRASH_SIGNALS; i++)
    if (sigaction(crash_signals[i], &action, &crashing.before[i]) != 0) return false;
  return true;
}

static void crash_word(char out[CRASH_WORD_BYTES + 1], const char *word) {
  snprintf(out, CRASH_WORD_BYTES + 1, "%s", word ? word : "");
}

/* The reason why a crash spool was not opened, and what to do. */
static const char *crash_fault(prism_result result, const char *folder, int error) {
  static char text[PATH_MAX + 300];
  char reason[128];
  const char *words = strerror_r(error, reason, sizeof reason);
  if (result == PRISM_INVALID)
    return "name_space must be 1 to 64 of A-Z a-z 0-9 _ -, and type 1 to 128 of A-Z a-z 0-9 _ . : -";
  const char *advice = error == ENOENT || error == ENOTDIR
                           ? "it is missing: set crashSpool.folder of prismd, or name its folder by PRISM_CRASH_SPOOL"
                       : error == EACCES ? "it refuses this user: its mode must be 3733"
                                         : "it can't be written to";
  snprintf(text, sizeof text, "the crash spool %s: %s (%s)", crash_folder(folder), advice, words);
  return text;
}

const char *prism_crash_install(const prism_crash_options *given) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  prism_crash_options options = PRISM_CRASH_OPTIONS_INIT;
  if (given) memcpy(&options, given, given->size < sizeof options ? given->size : sizeof options);
  pthread_mutex_lock(&lock);
  const char *fault = NULL;
  bool is_open = atomic_load(&crash.folder) >= 0, has_names = options.name_space || options.type;
  if (options.folder || has_names || !is_open) {
    prism_result opened = is_open && !options.folder
                              ? crash_target(-1, options.name_space, options.type)
                              : prism_crash_open(options.folder, options.name_space, options.type);
    if (opened != PRISM_STORED) fault = crash_fault(opened, options.folder, errno);
  }
  if (!fault) {
    crash_word(crashing.app_name, options.app_name ? options.app_name : program_invocation_short_name);
    crash_word(crashing.app_version, options.app_version);
    crash_word(crashing.app_build, options.app_build);
    take_modules();
    if (!install_handlers()) fault = "the handlers of signals can't be installed: memory ran out";
  }
  pthread_mutex_unlock(&lock);
  return fault;
}
