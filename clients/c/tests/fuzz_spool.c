/* For libFuzzer: the segment of a spool that an ended program left, with any content. Includes prism.c to reach what is static.
 * A record that was appended to the content must be found again, and every byte is a record's or damaged. */
#include "../prism.c"

#include <sys/mman.h>

static prism_client client;
static worker reader = {.client = &client, .folder = -1, .lock = -1};
static segment held = {.file = -1};

static const char request[] = "{\"reportId\":\"fuzzed-1\",\"type\":\"net\",\"meta\":{\"n\":1}}\n";

static void require(bool condition) {
  if (!condition) abort();
}

static void load(const uint8_t *content, size_t length) {
  if (held.file < 0) require((held.file = memfd_create("segment", MFD_CLOEXEC)) >= 0);
  require(ftruncate(held.file, 0) == 0 && pwrite(held.file, content, length, 0) == (ssize_t)length);
  held.capacity = held.end = length;
  held.waiting = held.read_at = 0;
}

/* Reads all records. Returns those that wait; the last one is in the scratch buffer. */
static uint64_t walk(uint64_t *damaged, size_t *length) {
  uint64_t offset = 0, records = 0, waiting = 0;
  uint32_t state;
  while (record_read(&reader, &held, &offset, length, &state, damaged)) {
    char id[ID_BYTES_MAX + 1];
    request_id(reader.scratch, *length, id);
    require(strlen(id) <= ID_BYTES_MAX);
    if (state != RECORD_DONE) waiting++;
    offset += RECORD_HEADER + *length;
    records += RECORD_HEADER + *length;
  }
  require(offset == held.end && records + *damaged == held.end);
  return waiting;
}

int LLVMFuzzerTestOneInput(const uint8_t *content, size_t length);
int LLVMFuzzerTestOneInput(const uint8_t *content, size_t length) {
  uint64_t damaged = 0, offset;
  size_t last = 0;
  load(content, length);
  segment_scan(&reader, &held);
  require(held.waiting == walk(&damaged, &last));

  /* A program's own segment goes on behind its content. */
  uint64_t before = held.waiting;
  held.capacity = UINT64_MAX;
  reader.current = &held;
  reader.folder = reader.lock = 0; /* it is open */
  uint64_t damaged_again = 0;
  if (spool_append(&reader, request, sizeof request - 1, &offset) == &held) {
    uint64_t waiting = walk(&damaged_again, &last);
    /* The last damaged record may say that it is longer than the content was. */
    require(waiting >= before && waiting <= before + 1 && offset == length);
  }
  return 0;
}
