/* Opens one packet of version 2 as docs/packet.md says: a reference in C.
 *
 * usage: open_packet KEY-HEX HEADERS BODY DICTIONARY     three files; DICTIONARY may be empty
 * Prints the lines of the meta block, a line `--`, and each payload in hex. Else ends with 1, the reason on stderr.
 * cc open_packet.c -lcrypto -lz -lzstd */
#include "ciphers.h"
#include "headers.h"
#include "columns.h"
#include <zstd.h>

static bytes key, dictionary;

static bytes context(int is_payload) {
  const char *names[] = {"Prism-Device-Id", "Prism-Namespace", "Prism-Packet-Id", NULL,
                         "Prism-Depends-On", "Prism-Item-Count", "Prism-Ledger", "Prism-Sent-Time"};
  bytes all = of("prism2\n");
  for (int n = 0; n < 8; n++)
    all = join(join(all, of(names[n] ? header(names[n]) : is_payload ? "payload" : "meta")), of("\n"));
  return *header("Prism-Form") ? join(join(all, of(value)), of("\n")) : all;
}
static bytes unpack(bytes in) {
  if (!strcmp(header("Prism-Encoding"), "none")) return in;
  if (!strcmp(value, "gzip")) return gunzip(in);
  unsigned named = strtoul(header("Prism-Dictionary"), NULL, 10);
  if (in.size < 4 || memcmp(in.at, "\x28\xb5\x2f\xfd", 4) || ZSTD_getDictID_fromFrame(in.at, in.size) != named ||
      ZSTD_findFrameCompressedSize(in.at, in.size) != in.size) refuse("unpackFailed");
  if (ZSTD_getFrameContentSize(in.at, in.size) > PLAIN_MAX) refuse("unpackFailed"); /* or a frame that does not say it */
  bytes out = take(PLAIN_MAX);
  out.size = ZSTD_decompress_usingDict(ZSTD_createDCtx(), out.at, out.size, in.at, in.size, dictionary.at,
                                       named ? dictionary.size : 0);
  if (ZSTD_isError(out.size)) refuse("unpackFailed");
  return end_text(out);
}
static unsigned split(bytes body, bytes *blocks) { /* the number of payloads */
  unsigned count = body.size < 3 ? 0 : body.at[2];
  if (body.size < 3 + 4 * (size_t)count) refuse("shortHeader");
  unsigned char *at = body.at + 3 + 4 * count, *end = body.at + body.size, *s = body.at - 1;
  for (unsigned n = 0; n <= count; n++, s += 4) {
    size_t size = n ? (size_t)s[0] << 24 | s[1] << 16 | s[2] << 8 | s[3] : (size_t)body.at[0] << 8 | body.at[1];
    if (size > (size_t)(end - at)) refuse("lengthMismatch");
    blocks[n] = (bytes){at, size};
    at += size;
  }
  if (at != end) refuse("lengthMismatch");
  return count;
}
static int is_one_object(const char *line, size_t size) { /* `{"$common":{…}}` with no key behind the object */
  int depth = 0, is_quoted = 0;
  for (size_t n = 0; n < size; n++) {
    if (line[n] == '"') is_quoted = !is_quoted;
    if (line[n] == '\\') n++;
    if (is_quoted) continue;
    depth += line[n] == '{' || line[n] == '[' ? 1 : line[n] == '}' || line[n] == ']' ? -1 : 0;
    if (depth == 1 && n > 11 && n + 2 < size) return 0;
  }
  return !is_quoted && depth == 0;
}
static int count_rows(bytes text) {
  int rows = 0;
  if (!text.size || text.at[0] != '{') refuse("unpackFailed");
  if (strlen((char *)text.at) != text.size) refuse("metaSyntax"); /* a byte 0 would hide what is behind it */
  for (char *line = (char *)text.at, *end; line; line = end ? end + 1 : NULL) {
    size_t size = (end = strchr(line, '\n')) ? (size_t)(end - line) : strlen(line);
    int is_common = !strncmp(line, "{\"$common\":{", 12);
    if (size > LINE_MAX_BYTES) refuse("tooLarge");
    /* A JSON library would parse this line, and put its members into the rows after it: Python does that. */
    if (is_common && !is_one_object(line, size)) refuse("unpackFailed");
    rows += !is_common;
  }
  return rows;
}
int main(int argc, char **argv) {
  if (argc != 5) refuse("usage: open_packet KEY-HEX HEADERS BODY DICTIONARY");
  bytes blocks[256] = {file(argv[3])}, body = blocks[0];
  headers = (char *)file(argv[2]).at, key = unhex(argv[1]), dictionary = file(argv[4]);
  check_headers();
  int is_payload = strstr(header("Content-Type"), "payload") != NULL;
  const EVP_CIPHER *cipher = cipher_of(header("Prism-Cipher"), key);
  bytes bound = context(is_payload);
  check_mac(cipher, key, bound, body, header("Prism-Mac"));
  unsigned count = is_payload ? split(body, blocks) : 0;
  int has_columns = *header("Prism-Form") != 0;
  for (unsigned n = 0; n <= count; n++) {
    char index[12] = {0};
    sprintf(index, "%u", n);
    bytes packed = decrypt(cipher, key, blocks[n], join(bound, of(index)));
    if (has_columns) {
      read_head(packed, atol(header("Prism-Item-Count")));
      cut(&packed, HEAD_BYTES);
    }
    blocks[n] = has_columns ? text_of_columns(unpack(packed)) : unpack(packed);
  }
  int rows = count_rows(blocks[0]);
  if (rows != atoi(header("Prism-Item-Count")) || (is_payload && rows != (int)count)) refuse("countMismatch");
  printf("%s\n--\n", blocks[0].at);
  for (unsigned n = 1; n <= count; n++) print_hex(blocks[n]);
}
