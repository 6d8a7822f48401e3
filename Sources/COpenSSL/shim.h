#pragma once
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>

/* EVP_PKEY_CTX_add1_hkdf_info and its like are macros with casts in some versions and functions in others: one name that
 * Swift can call. HKDF-SHA-256 (RFC 5869); no salt with a salt_count of 0. Answers 1 for success. */
static inline int prism_hkdf_sha256(const unsigned char *key, size_t key_count, const unsigned char *salt,
                                    size_t salt_count, const unsigned char *info, size_t info_count,
                                    unsigned char *result, size_t result_count) {
  EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_id(EVP_PKEY_HKDF, NULL);
  int ok = context && EVP_PKEY_derive_init(context) > 0 && EVP_PKEY_CTX_set_hkdf_md(context, EVP_sha256()) > 0 &&
           EVP_PKEY_CTX_set1_hkdf_key(context, key, (int)key_count) > 0 &&
           (salt_count == 0 || EVP_PKEY_CTX_set1_hkdf_salt(context, salt, (int)salt_count) > 0) &&
           EVP_PKEY_CTX_add1_hkdf_info(context, info, (int)info_count) > 0 &&
           EVP_PKEY_derive(context, result, &result_count) > 0;
  EVP_PKEY_CTX_free(context);
  return ok;
}

/* HMAC-SHA-256 by EVP_Q_mac, whose parameter list Swift can't import for its defaults. Answers 1 for success. */
static inline int prism_hmac_sha256(const unsigned char *key, size_t key_count, const unsigned char *text,
                                    size_t text_count, unsigned char result[32]) {
  size_t count = 32;
  return EVP_Q_mac(NULL, "HMAC", NULL, "SHA256", NULL, key, key_count, text, text_count, result, 32, &count) != NULL;
}

/* AES-128-GMAC (NIST SP 800-38D). Answers 1 for success. */
static inline int prism_gmac(const unsigned char key[16], const unsigned char nonce[12], const unsigned char *text,
                             size_t text_count, unsigned char result[16]) {
  size_t count = 16;
  OSSL_PARAM parameters[] = {OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_IV, (void *)nonce, 12),
                             OSSL_PARAM_construct_end()};
  return EVP_Q_mac(NULL, "GMAC", NULL, "AES-128-GCM", parameters, key, 16, text, text_count, result, 16, &count) != NULL;
}

/* HMAC-SHA-256 over pieces: EVP_MAC_update, EVP_MAC_final and EVP_MAC_CTX_free follow. NULL without memory. */
static inline EVP_MAC_CTX *prism_hmac_sha256_begin(const unsigned char *key, size_t key_count) {
  EVP_MAC *method = EVP_MAC_fetch(NULL, "HMAC", NULL);
  EVP_MAC_CTX *context = method ? EVP_MAC_CTX_new(method) : NULL;
  OSSL_PARAM parameters[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)"SHA256", 0),
                             OSSL_PARAM_construct_end()};
  EVP_MAC_free(method);
  if (context && EVP_MAC_init(context, key, key_count, parameters) == 1) return context;
  EVP_MAC_CTX_free(context);
  return NULL;
}

/* X25519 (RFC 7748). Returns 1 for success, 0 for a public key of small order. */
static inline int prism_x25519(const unsigned char private_key[32], const unsigned char public_key[32],
                               unsigned char shared[32]) {
  size_t count = 32;
  EVP_PKEY *own = EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, NULL, private_key, 32);
  EVP_PKEY *other = EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, NULL, public_key, 32);
  EVP_PKEY_CTX *context = own ? EVP_PKEY_CTX_new(own, NULL) : NULL;
  int ok = other && context && EVP_PKEY_derive_init(context) > 0 && EVP_PKEY_derive_set_peer(context, other) > 0 &&
           EVP_PKEY_derive(context, shared, &count) > 0 && count == 32;
  EVP_PKEY_CTX_free(context);
  EVP_PKEY_free(other);
  EVP_PKEY_free(own);
  if (!ok) ERR_clear_error();
  return ok;
}

/* A public key of two numbers: of RSA its modulus and exponent, else a point of P-256. NULL where they are no key. */
static inline EVP_PKEY *prism_public_key(int is_rsa, const unsigned char *a, size_t a_count, const unsigned char *b,
                                         size_t b_count) {
  EVP_PKEY *key = NULL;
  EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, is_rsa ? "RSA" : "EC", NULL);
  OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
  BIGNUM *first = BN_bin2bn(a, (int)a_count, NULL), *second = BN_bin2bn(b, (int)b_count, NULL);
  unsigned char point[65] = {4};
  int ok = context && builder && first && second && (is_rsa || (a_count == 32 && b_count == 32));
  if (ok && !is_rsa) BN_bn2binpad(first, point + 1, 32), BN_bn2binpad(second, point + 33, 32);
  ok = ok && (is_rsa ? OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_N, first) &&
                           OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_E, second)
                     : OSSL_PARAM_BLD_push_utf8_string(builder, OSSL_PKEY_PARAM_GROUP_NAME, "P-256", 0) &&
                           OSSL_PARAM_BLD_push_octet_string(builder, OSSL_PKEY_PARAM_PUB_KEY, point, sizeof point));
  OSSL_PARAM *parameters = ok ? OSSL_PARAM_BLD_to_param(builder) : NULL;
  if (parameters && EVP_PKEY_fromdata_init(context) == 1) {
    (void)EVP_PKEY_fromdata(context, &key, EVP_PKEY_PUBLIC_KEY, parameters);
  }
  OSSL_PARAM_free(parameters);
  OSSL_PARAM_BLD_free(builder);
  BN_free(first);
  BN_free(second);
  EVP_PKEY_CTX_free(context);
  return key;
}

/* Whether a signature of RFC 7518 is valid: RS256 or ES256, whose two numbers are one behind the other. 1: it is. */
static inline int prism_web_signature(int is_rsa, const unsigned char *a, size_t a_count, const unsigned char *b,
                                      size_t b_count, const unsigned char *text, size_t text_count,
                                      const unsigned char *signature, size_t signature_count) {
  unsigned char *der = NULL;
  int ok = 0, der_count = 0;
  if (!is_rsa) {
    ECDSA_SIG *numbers = signature_count == 64 ? ECDSA_SIG_new() : NULL;
    BIGNUM *r = numbers ? BN_bin2bn(signature, 32, NULL) : NULL;
    BIGNUM *s = numbers ? BN_bin2bn(signature + 32, 32, NULL) : NULL;
    if (r && s && ECDSA_SIG_set0(numbers, r, s)) {
      der_count = i2d_ECDSA_SIG(numbers, &der);
    } else {
      BN_free(r);
      BN_free(s);
    }
    ECDSA_SIG_free(numbers);
  }
  EVP_PKEY *key = prism_public_key(is_rsa, a, a_count, b, b_count);
  EVP_MD_CTX *context = EVP_MD_CTX_new();
  if (key && context && (is_rsa || der_count > 0) && EVP_DigestVerifyInit(context, NULL, EVP_sha256(), NULL, key) == 1) {
    ok = EVP_DigestVerify(context, is_rsa ? signature : der, is_rsa ? signature_count : (size_t)der_count, text,
                          text_count) == 1;
  }
  EVP_MD_CTX_free(context);
  EVP_PKEY_free(key);
  OPENSSL_free(der);
  ERR_clear_error();
  return ok;
}
