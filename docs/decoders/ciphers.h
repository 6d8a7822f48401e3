/* The ciphers of packets, and the code of those that are not authenticated by themselves. */
#include "common.h"

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
/* The three ciphers of a packet. OpenSSL knows more, and most prove nothing: a stream cipher "decrypts" any bytes. */
static const EVP_CIPHER *cipher_of(const char *name, bytes key) {
  const EVP_CIPHER *cipher = !strcmp(name, "aes-128-gcm")   ? EVP_aes_128_gcm()
                             : !strcmp(name, "aes-256-gcm") ? EVP_aes_256_gcm()
                             : !strcmp(name, "aes-128-cbc") ? EVP_aes_128_cbc()
                                                            : NULL;
  if (!cipher) refuse("header");
  if (key.size != (size_t)EVP_CIPHER_get_key_length(cipher)) refuse("keyLength");
  return cipher;
}
static bytes decrypt(const EVP_CIPHER *cipher, bytes key, bytes block, bytes associated) {
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
static void check_mac(const EVP_CIPHER *cipher, bytes key, bytes context, bytes body, const char *hex) {
  if (EVP_CIPHER_get_mode(cipher) == EVP_CIPH_GCM_MODE) return; /* each block has its tag */
  bytes code = hmac(hkdf(key, of(""), of("prism1 mac"), 32), join(context, body)), digits = take(64);
  for (size_t n = 0; n < 32; n++) sprintf((char *)digits.at + 2 * n, "%02x", code.at[n]);
  if (strlen(hex) != 64 || CRYPTO_memcmp(hex, digits.at, 64)) refuse("macMismatch");
}
