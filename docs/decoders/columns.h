/* Turns a block of columns into its lines, as docs/packet.md says ("Columns"). All that it makes is counted against the
 * head before it is made. */
#include "common.h"
#include <stdint.h>

enum { HEAD_BYTES = 16, COLUMNS_MAX = 4096, WORDS_MAX = 65536, FAR_MIN = 256, FRACTION_MAX = 18, ID_DIGITS_MAX = 16 };
typedef struct { uint32_t lines, text, columns, words; } column_head;
typedef struct { bytes text; size_t room; } line_buffer;

static column_head head;         /* what is left of it, while columns are read */
static bytes near_part, far_part; /* what is left of them */

static void must(int is_sound) {
  if (!is_sound) refuse("unpackFailed");
}
static uint32_t big_endian(const unsigned char *at) {
  return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}
static void read_head(bytes block, long rows) { /* before anything is unpacked */
  must(block.size >= HEAD_BYTES);
  uint32_t n[4];
  for (int index = 0; index < 4; index++) n[index] = big_endian(block.at + 4 * index);
  head = (column_head){n[0], n[1], n[2], n[3]};
  if (head.lines > 2 * (uint64_t)rows) refuse("countMismatch");
  if (head.text > PLAIN_MAX || head.columns > COLUMNS_MAX || head.words > WORDS_MAX) refuse("tooLarge");
}
static bytes cut(bytes *part, uint64_t size) {
  must(size <= part->size);
  bytes run = {part->at, size};
  part->at += size;
  part->size -= size;
  return run;
}
static unsigned byte(void) { return *cut(&near_part, 1).at; }
static uint64_t bits(void) {
  uint64_t all = 0;
  for (int shift = 0;; shift += 7) {
    unsigned next = byte();
    must(shift < 63 || next <= 1);
    all |= (uint64_t)(next & 127) << shift;
    if (next < 128) return all;
  }
}
static uint64_t number(void) {
  uint64_t all = bits();
  must(all < (uint64_t)1 << 56);
  return all;
}
static uint64_t signed_number(void) {
  uint64_t all = bits();
  return all >> 1 ^ -(all & 1);
}
static bytes run(uint64_t size) { return cut(size < FAR_MIN ? &near_part : &far_part, size); }
static bytes text(void) { return run(number()); }
static bytes next_line(bytes *part) { /* up to its line feed, which is cut off too */
  unsigned char *end = part->size ? memchr(part->at, '\n', part->size) : NULL;
  must(end != NULL);
  bytes found = cut(part, end - part->at);
  cut(part, 1);
  return found;
}
static uint64_t *integers(size_t count) { /* sums wrap around, so they are without a sign until the end */
  unsigned mode = byte(), width;
  must(mode <= 2 && count > mode);
  uint64_t *all = calloc(count, sizeof *all), begins[2] = {0};
  for (unsigned n = 0; n < mode; n++) begins[n] = signed_number();
  uint64_t least = signed_number();
  must((width = byte()) <= 8);
  for (size_t n = mode; n < count; n++) all[n] = least;
  for (unsigned plane = 0; plane < width; plane++) {
    bytes low = run(count - mode);
    for (size_t n = mode; n < count; n++) all[n] += (uint64_t)low.at[n - mode] << 8 * plane;
  }
  for (unsigned n = mode; n-- > 0;) {
    all[n] = begins[n];
    for (size_t at = n + 1; at < count; at++) all[at] += all[at - 1];
  }
  return all;
}
static void append(line_buffer *line, const void *at, size_t size) {
  must(size <= head.text);
  head.text -= size;
  if (line->text.size + size > line->room) {
    line->room = 2 * (line->text.size + size);
    line->text.at = realloc(line->text.at, line->room);
  }
  if (size) memcpy(line->text.at + line->text.size, at, size);
  line->text.size += size;
}
static void append_id(line_buffer *line, bytes prefix, uint64_t id, unsigned base, unsigned digits) {
  char text[24];
  int size = snprintf(text, sizeof text, base == 16 ? "%0*llx" : "%0*llu", (int)digits, (unsigned long long)id);
  must(!digits || (unsigned)size == digits);
  append(line, "\"", 1);
  append(line, prefix.at, prefix.size);
  append(line, text, size);
  append(line, "\"", 1);
}
static void append_number(line_buffer *line, uint64_t all, unsigned least, unsigned fraction) {
  int is_negative = all >> 63;
  uint64_t size = is_negative ? -all : all;
  for (; fraction > least && size % 10 == 0; fraction--) size /= 10;
  char digits[24];
  int count = snprintf(digits, sizeof digits, "%0*llu", (int)fraction + 1, (unsigned long long)size) - (int)fraction;
  if (is_negative) append(line, "-", 1);
  append(line, digits, count);
  if (fraction) append(line, ".", 1);
  append(line, digits + count, fraction);
}
static void append_words(line_buffer *lines, size_t rows) {
  uint64_t count = number();
  must(count > 0 && count <= head.words);
  head.words -= count;
  bytes all = text(), *words = calloc(count, sizeof *words);
  for (uint64_t n = 0; n < count; n++) must((words[n] = next_line(&all)).size > 0);
  must(all.size == 0);
  uint64_t *chosen = integers(rows);
  for (size_t n = 0; n < rows; n++) {
    must(chosen[n] < count);
    append(&lines[n], words[chosen[n]].at, words[chosen[n]].size);
  }
  free(words);
  free(chosen);
}
static void append_hexadecimal(line_buffer *lines, size_t rows, int has_gaps) {
  unsigned width = byte();
  bytes flags = has_gaps ? run((rows + 7) / 8) : (bytes){0};
  uint64_t full = 0;
  for (size_t n = 0; n < rows; n++) full += !has_gaps || flags.at[n / 8] >> n % 8 & 1;
  bytes all = run(width * full);
  for (size_t n = 0; n < rows; n++) {
    bytes own = cut(&all, !has_gaps || flags.at[n / 8] >> n % 8 & 1 ? width : 0);
    append(&lines[n], "\"", 1);
    for (size_t at = 0; at < own.size; at++) {
      char digits[3];
      snprintf(digits, sizeof digits, "%02x", own.at[at]);
      append(&lines[n], digits, 2);
    }
    append(&lines[n], "\"", 1);
  }
}
static void append_column(line_buffer *lines, size_t rows) { /* the next column: a value for each of these lines */
  must(head.columns > 0);
  head.columns--;
  unsigned kind = byte();
  must(kind <= 8);
  if (kind == 3) return append_words(lines, rows);
  if (kind == 5 || kind == 6) return append_hexadecimal(lines, rows, kind == 6);
  if (kind == 0) {
    bytes all = text();
    must(all.size > 0);
    for (size_t n = 0; n < rows; n++) append(&lines[n], all.at, all.size);
  } else if (kind <= 2) {
    bytes all = text();
    for (size_t n = 0; n < rows; n++) {
      bytes own = next_line(&all);
      if (kind == 2) append(&lines[n], "\"", 1);
      append(&lines[n], own.at, own.size);
      if (kind == 2) append(&lines[n], "\"", 1);
    }
    must(all.size == 0);
  } else if (kind == 4) {
    bytes flags = run((rows + 7) / 8);
    for (size_t n = 0; n < rows; n++)
      flags.at[n / 8] >> n % 8 & 1 ? append(&lines[n], "true", 4) : append(&lines[n], "false", 5);
  } else {
    bytes prefix = kind == 7 ? text() : (bytes){0};
    unsigned first = byte(), second = byte(); /* base and digits, or the least and the most fraction digits */
    must(kind == 7 ? (first == 10 || (first == 16 && second)) && second <= ID_DIGITS_MAX
                   : first <= second && second <= FRACTION_MAX);
    uint64_t *all = integers(rows);
    for (size_t n = 0; n < rows; n++)
      kind == 7 ? append_id(&lines[n], prefix, all[n], first, second) : append_number(&lines[n], all[n], first, second);
    free(all);
  }
}
static line_buffer *lines_of_shape(bytes shape, size_t rows) {
  line_buffer *lines = calloc(rows + 1, sizeof *lines);
  while (shape.size && memchr(shape.at, '\n', shape.size)) {
    bytes piece = next_line(&shape);
    for (size_t n = 0; n < rows; n++) append(&lines[n], piece.at, piece.size);
    append_column(lines, rows);
  }
  for (size_t n = 0; n < rows; n++) append(&lines[n], shape.at, shape.size);
  return lines;
}
/* The lines, joined with line feeds. data: what is behind the head, unpacked. */
static bytes text_of_columns(bytes data) {
  must(head.lines > 0 && head.text >= head.lines - 1);
  bytes all = take(head.text);
  size_t line_count = head.lines, at = 0;
  head.text -= line_count - 1; /* the line feeds */
  near_part = data;
  bytes first = cut(&near_part, number());
  far_part = near_part;
  near_part = first;
  uint64_t count = number();
  must(count <= line_count && count <= head.columns);
  bytes *shapes = calloc(count + 1, sizeof *shapes);
  shapes[0] = of("\n"); /* a line without a shape is a value */
  for (uint64_t n = 1; n <= count; n++) shapes[n] = text();
  uint64_t *order = integers(line_count);
  size_t *rows = calloc(count + 1, sizeof *rows);
  for (size_t n = 0; n < line_count; n++) {
    must(order[n] <= count);
    rows[order[n]]++;
  }
  line_buffer **made = calloc(count + 1, sizeof *made);
  for (uint64_t n = 0; n <= count; n++) {
    must(n == 0 || (rows[n] && shapes[n].size && memchr(shapes[n].at, '\n', shapes[n].size)));
    if (rows[n]) made[n] = lines_of_shape(shapes[n], rows[n]);
    rows[n] = 0;
  }
  must(!near_part.size && !far_part.size && !head.columns && !head.words && !head.text);
  for (size_t n = 0; n < line_count; n++) {
    bytes line = made[order[n]][rows[order[n]]++].text;
    if (n) all.at[at++] = '\n';
    if (line.size) memcpy(all.at + at, line.at, line.size);
    at += line.size;
  }
  return all;
}
