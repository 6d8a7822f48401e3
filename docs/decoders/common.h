#pragma once
/* What the programs share: bytes, files, hexadecimal digits, HKDF-SHA-256 and HMAC-SHA-256. */
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

typedef struct { unsigned char *at; size_t size; } bytes;
enum { PLAIN_MAX = 64 << 20, LINE_MAX_BYTES = 10240 };

static void refuse(const char *why) { fprintf(stderr, "%s\n", why); exit(1); }
static bytes take(size_t size) { return (bytes){calloc(size + 1, 1), size}; }
static bytes of(const char *text) { return (bytes){(unsigned char *)text, strlen(text)}; }
static bytes join(bytes a, bytes b) {
  bytes all = take(a.size + b.size);
  memcpy(all.at, a.at, a.size);
  memcpy(all.at + a.size, b.at, b.size);
  return all;
}
static bytes file(const char *path) {
  FILE *in = fopen(path, "rb");
  bytes all = take(PLAIN_MAX);
  if (!in) refuse(path);
  all.size = fread(all.at, 1, PLAIN_MAX, in);
  fclose(in);
  return all;
}
static bytes unhex(const char *text) {
  if (strlen(text) % 2 || strspn(text, "0123456789abcdefABCDEF") != strlen(text)) refuse("no hexadecimal digits");
  bytes out = take(strlen(text) / 2);
  for (size_t n = 0; n < out.size; n++) sscanf(text + 2 * n, "%2hhx", out.at + n);
  return out;
}
static void print_hex(bytes b) {
  for (size_t n = 0; n < b.size; n++) printf("%02x", b.at[n]);
  puts("");
}
static bytes hkdf(bytes key, bytes salt, bytes info, size_t size) {
  bytes out = take(size);
  EVP_PKEY_CTX *c = EVP_PKEY_CTX_new_id(EVP_PKEY_HKDF, NULL);
  EVP_PKEY_derive_init(c);
  EVP_PKEY_CTX_set_hkdf_md(c, EVP_sha256());
  EVP_PKEY_CTX_set1_hkdf_key(c, key.at, key.size);
  if (salt.size) EVP_PKEY_CTX_set1_hkdf_salt(c, salt.at, salt.size);
  EVP_PKEY_CTX_add1_hkdf_info(c, info.at, info.size);
  if (EVP_PKEY_derive(c, out.at, &size) <= 0) refuse("internal");
  EVP_PKEY_CTX_free(c);
  return out;
}
static bytes hmac(bytes key, bytes text) {
  bytes out = take(32);
  EVP_Q_mac(NULL, "HMAC", NULL, "SHA256", NULL, key.at, key.size, text.at, text.size, out.at, 32, &out.size);
  return out;
}
static bytes end_text(bytes text) { /* a library may have written behind what it says to have written */
  text.at[text.size] = 0;
  return text;
}
static bytes gunzip(bytes in) {
  bytes out = take(PLAIN_MAX);
  z_stream z = {.next_in = in.at, .avail_in = in.size, .next_out = out.at, .avail_out = out.size};
  if (inflateInit2(&z, 31) || inflate(&z, Z_FINISH) != Z_STREAM_END || z.avail_in) refuse("unpackFailed");
  out.size = z.total_out;
  inflateEnd(&z);
  return end_text(out);
}
