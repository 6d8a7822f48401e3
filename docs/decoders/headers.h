/* The headers of a packet in a file, one a line, and the forms in which prism sends them. */
#include "common.h"

static char *headers, value[1 << 12];

static const char *header(const char *name) { /* the empty string if it is absent; lines may end with CRLF */
  size_t size = strlen(name), count = 0;
  value[0] = 0;
  for (char *line = headers; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
    if (strncasecmp(line, name, size) || line[size] != ':') continue;
    char *at = line + size + 1 + strspn(line + size + 1, " \t");
    size_t length = strcspn(at, "\n");
    while (length && strchr(" \t\r", at[length - 1])) length--;
    if (count++ || length >= sizeof value) refuse("header");
    memcpy(value, at, length);
    value[length] = 0;
  }
  return value;
}
/* The forms in which prism sends a header; no other one is taken. */
static int is_one_of(const char *text, const char *words) { /* each word has a space before and behind it */
  char word[64];
  return !strchr(text, ' ') && snprintf(word, sizeof word, " %s ", text) < 64 && strstr(words, word);
}
static int is_number(const char *text) {
  size_t size = strlen(text);
  return size && size < 20 && strspn(text, "0123456789") == size && (*text != '0' || size == 1);
}
static int is_uuid(const char *text) {
  for (int n = 0; n < 36; n++)
    if (!text[n] || !strchr(n == 8 || n == 13 || n == 18 || n == 23 ? "-" : "0123456789abcdef", text[n])) return 0;
  return text[36] == 0;
}
static void check_headers(void) {
  const char *types = " application/vnd.prism.meta application/vnd.prism.payload ";
  if (!is_one_of(header("Content-Type"), types)) refuse("contentType");
  if (!is_one_of(header("Prism-Encoding"), " gzip zstd none ")) refuse("header");
  if (!is_uuid(header("Prism-Packet-Id")) || !is_number(header("Prism-Item-Count"))) refuse("header");
  if (*header("Prism-Depends-On") && !is_uuid(value)) refuse("header");
  if (*header("Prism-Sent-Time") && !is_number(value)) refuse("header");
  if (*header("Prism-Form") && (strcmp(value, "columns") || !strstr(header("Content-Type"), "meta"))) refuse("header");
  if (*header("Prism-Dictionary") && !is_number(value)) refuse("header");
}
