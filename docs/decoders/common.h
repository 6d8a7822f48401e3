/* What the two programs share: bytes, files, hexadecimal digits, HKDF-SHA-256 and HMAC-SHA-256. */
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
static bytes decrypt_gcm(const EVP_CIPHER *cipher, bytes key, unsigned char *nonce, bytes sealed, bytes associated) {
  int n = 0, rest = 0;
  if (sealed.size < 16) refuse("decryptionFailed");
  EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
  bytes out = take(sealed.size);
  EVP_DecryptInit_ex(c, cipher, NULL, key.at, nonce);
  EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_TAG, 16, sealed.at + sealed.size - 16);
  EVP_DecryptUpdate(c, NULL, &n, associated.at, associated.size);
  EVP_DecryptUpdate(c, out.at, &n, sealed.at, sealed.size - 16);
  if (EVP_DecryptFinal_ex(c, out.at + n, &rest) <= 0) refuse("decryptionFailed");
  out.size = n;
  EVP_CIPHER_CTX_free(c);
  return out;
}
static bytes decrypt(const char *name, bytes key, bytes block, bytes associated) {
  const EVP_CIPHER *cipher = EVP_get_cipherbyname(name);
  size_t nonce = EVP_CIPHER_get_iv_length(cipher);
  int n = 0, rest = 0;
  if (block.size < nonce) refuse("decryptionFailed");
  bytes sealed = {block.at + nonce, block.size - nonce};
  if (nonce == 12) return decrypt_gcm(cipher, key, block.at, sealed, associated);
  EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new(); /* aes-128-cbc: check_mac comes before */
  bytes out = take(sealed.size);
  EVP_DecryptInit_ex(c, cipher, NULL, key.at, block.at);
  EVP_DecryptUpdate(c, out.at, &n, sealed.at, sealed.size);
  if (EVP_DecryptFinal_ex(c, out.at + n, &rest) <= 0) refuse("decryptionFailed");
  out.size = n + rest;
  return out;
}
static void check_mac(const char *cipher, bytes key, bytes context, bytes body, const char *hex) {
  bytes mac = unhex(hex), code = hmac(hkdf(key, of(""), of("prism1 mac"), 32), join(context, body));
  if (strstr(cipher, "cbc") && (mac.size != 32 || CRYPTO_memcmp(mac.at, code.at, 32))) refuse("macMismatch");
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
