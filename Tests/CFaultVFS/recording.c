#define _GNU_SOURCE
#include "recording.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "CFaultVFS.h"

enum { FILES_MAX = 8, SECTOR_BYTES = 512 };

enum kind { OPENED, WRITTEN, TRUNCATED, SYNCED, DELETED, ACKNOWLEDGED };

typedef struct {
  enum kind kind;
  int file;
  int64_t offset; /* TRUNCATED: the size. ACKNOWLEDGED: how many */
  int count;
  uint8_t *bytes;
} Event;

/* A file's bytes as far as they are known to be on the disk. */
typedef struct {
  int exists;
  uint8_t *bytes;
  int64_t size, capacity;
} Image;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int running;
static char *names[FILES_MAX];
static int name_count;
static Event *events;
static int64_t event_count, event_capacity;

/* The disk with everything synced up to `rebuilt`, kept between calls of fvfs_rebuild. */
static Image durable[FILES_MAX];
static int64_t rebuilt;

/* ---- Recording ---- */

static void forget(void) {
  for (int64_t i = 0; i < event_count; i++) free(events[i].bytes);
  event_count = 0;
  for (int i = 0; i < name_count; i++) free(names[i]);
  name_count = 0;
  for (int i = 0; i < FILES_MAX; i++) {
    free(durable[i].bytes);
    durable[i] = (Image){0};
  }
  rebuilt = 0;
}

static void append(Event event) {
  if (event_count == event_capacity) {
    event_capacity = event_capacity ? event_capacity * 2 : 1024;
    events = realloc(events, (size_t)event_capacity * sizeof *events);
  }
  events[event_count++] = event;
}

static void note(int file, enum kind kind, int64_t offset, const void *bytes, int count) {
  pthread_mutex_lock(&lock);
  if (running && file >= 0) {
    uint8_t *copy = bytes ? memcpy(malloc((size_t)count), bytes, (size_t)count) : NULL;
    append((Event){kind, file, offset, count, copy});
  }
  pthread_mutex_unlock(&lock);
}

static int index_of(const char *path) {
  const char *slash = strrchr(path, '/');
  const char *name = slash ? slash + 1 : path;
  for (int i = 0; i < name_count; i++)
    if (strcmp(names[i], name) == 0) return i;
  if (name_count == FILES_MAX) return -1;
  names[name_count] = strdup(name);
  return name_count++;
}

int recording_open(const char *path) {
  pthread_mutex_lock(&lock);
  int file = running ? index_of(path) : -1;
  if (file >= 0) append((Event){OPENED, file, 0, 0, NULL});
  pthread_mutex_unlock(&lock);
  return file;
}

void recording_delete(const char *path) {
  pthread_mutex_lock(&lock);
  int file = running ? index_of(path) : -1;
  if (file >= 0) {
    append((Event){DELETED, file, 0, 0, NULL});
    /* A journaling file system has done it by the next sync of anything; a journal that came back much later, over a
     * database that was synced many times since, is a disk that there is not. */
    append((Event){SYNCED, file, 0, 0, NULL});
  }
  pthread_mutex_unlock(&lock);
}

void recording_write(int file, int64_t offset, const void *bytes, int count) { note(file, WRITTEN, offset, bytes, count); }
void recording_truncate(int file, int64_t size) { note(file, TRUNCATED, size, NULL, 0); }
void recording_sync(int file) { note(file, SYNCED, 0, NULL, 0); }

static void run(int on) {
  pthread_mutex_lock(&lock);
  if (on) forget();
  running = on;
  pthread_mutex_unlock(&lock);
}

void fvfs_record(void) { run(1); }
void fvfs_record_end(void) { run(0); }
void fvfs_record_ack(int64_t acknowledged) { note(0, ACKNOWLEDGED, acknowledged, NULL, 0); }

int64_t fvfs_events(void) {
  pthread_mutex_lock(&lock);
  int64_t result = event_count;
  pthread_mutex_unlock(&lock);
  return result;
}

/* ---- Rebuilding ---- */

/* splitmix64 */
static uint64_t draw(uint64_t *state) {
  uint64_t x = (*state += 0x9e3779b97f4a7c15ull);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

static void resize(Image *image, int64_t size) {
  if (size > image->capacity) {
    image->capacity = size * 2;
    image->bytes = realloc(image->bytes, (size_t)image->capacity);
  }
  if (size > image->size) memset(image->bytes + image->size, 0, (size_t)(size - image->size));
  image->size = size;
}

static void put(Image *image, int64_t offset, const uint8_t *bytes, int64_t count) {
  image->exists = 1;
  if (offset + count > image->size) resize(image, offset + count);
  memcpy(image->bytes + offset, bytes, (size_t)count);
}

static void apply(Image *image, const Event *event) {
  switch (event->kind) {
    case OPENED: image->exists = 1; break;
    case WRITTEN: put(image, event->offset, event->bytes, event->count); break;
    case TRUNCATED: resize(image, event->offset); break;
    case DELETED: image->exists = 0; image->size = 0; break;
    case SYNCED: case ACKNOWLEDGED: break;
  }
}

/* What the disk may have of a write that was not synced: sectors of it, each or none. */
static void apply_torn(Image *image, const Event *event, uint64_t *random) {
  for (int64_t at = 0; at < event->count; at += SECTOR_BYTES) {
    int64_t count = event->count - at < SECTOR_BYTES ? event->count - at : SECTOR_BYTES;
    if (draw(random) & 1) put(image, event->offset + at, event->bytes + at, count);
  }
}

static void apply_perhaps(Image *image, const Event *event, uint64_t *random) {
  uint64_t fate = draw(random) % 100;
  if (fate < 40) apply(image, event);
  else if (fate < 60 && event->kind == WRITTEN) apply_torn(image, event, random);
}

/* Moves `durable` on to `point`: at a file's sync, all that it was told before is on the disk. */
static void advance(int64_t point) {
  if (point < rebuilt) {
    for (int i = 0; i < FILES_MAX; i++) durable[i].exists = 0, durable[i].size = 0;
    rebuilt = 0;
  }
  static int64_t applied[FILES_MAX]; /* per file: events before this are in `durable` */
  if (rebuilt == 0) memset(applied, 0, sizeof applied);
  for (int64_t i = rebuilt; i < point; i++) {
    if (events[i].kind != SYNCED) continue;
    int file = events[i].file;
    for (int64_t j = applied[file]; j < i; j++)
      if (events[j].file == file) apply(&durable[file], &events[j]);
    applied[file] = i;
  }
  rebuilt = point;
}

static int64_t last_sync(int file, int64_t point) {
  for (int64_t i = point - 1; i >= 0; i--)
    if (events[i].kind == SYNCED && events[i].file == file) return i;
  return -1;
}

static int write_image(const Image *image, const char *folder, const char *name) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  if (!image->exists) {
    unlink(path);
    return 0;
  }
  int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
  if (fd < 0) return -1;
  int64_t done = 0;
  while (done < image->size) {
    ssize_t count = write(fd, image->bytes + done, (size_t)(image->size - done));
    if (count <= 0) break;
    done += count;
  }
  close(fd);
  return done == image->size ? 0 : -1;
}

static int rebuild_file(int file, int64_t point, uint64_t *random, const char *folder) {
  Image image = {durable[file].exists, NULL, 0, 0};
  resize(&image, durable[file].size);
  if (image.size) memcpy(image.bytes, durable[file].bytes, (size_t)image.size);
  for (int64_t i = last_sync(file, point) + 1; i < point; i++)
    if (events[i].file == file) apply_perhaps(&image, &events[i], random);
  int code = write_image(&image, folder, names[file]);
  free(image.bytes);
  return code;
}

int64_t fvfs_rebuild(int64_t point, uint64_t seed, const char *folder) {
  pthread_mutex_lock(&lock);
  advance(point);
  int64_t acknowledged = 0;
  for (int64_t i = point - 1; i >= 0 && !acknowledged; i--)
    if (events[i].kind == ACKNOWLEDGED) acknowledged = events[i].offset;
  int code = 0;
  for (int file = 0; file < name_count && code == 0; file++) code = rebuild_file(file, point, &seed, folder);
  pthread_mutex_unlock(&lock);
  return code == 0 ? acknowledged : -1;
}
