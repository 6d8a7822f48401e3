/* Receipts, keys of devices, sealed payloads and dictionaries as docs/packet.md describes them: a reference in C.
 *
 * usage: keys receipt KEY-HEX CONTEXT-HEX ANSWER-HEX                 prints the code of the receipt
 *        keys device-key MASTER-HEX KEY-ID DEVICE-ID CIPHER          prints the device's key
 *        keys unseal PRIVATE-KEY-HEX DEVICE-ID NAMESPACE REPORT-ID FILE   prints the payload in hex
 *        keys dictionary KEY-HEX CIPHER CONTEXT-HEX MAC-HEX FILE     prints the dictionary in hex; MAC-HEX may be empty
 * cc keys.c -lcrypto -lz */
#include "ciphers.h"

static bytes sha256(bytes text) {
  bytes out = take(32);
  EVP_Digest(text.at, text.size, out.at, NULL, EVP_sha256(), NULL);
  return out;
}
static bytes line(bytes before, const char *text) { return join(join(before, of(text)), of("\n")); }

static bytes unseal(bytes secret, const char *device, const char *namespace, const char *report, bytes sealed) {
  if (secret.size != 32) refuse("keyLength");
  if (sealed.size < 52 || memcmp(sealed.at, "PSL1", 4)) refuse("shortHeader");
  bytes own = {sealed.at + 4, 32}, box = {sealed.at + 36, sealed.size - 36}, public = take(32), shared = take(32);
  EVP_PKEY *key = EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, NULL, secret.at, 32);
  EVP_PKEY *peer = EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, NULL, own.at, 32);
  EVP_PKEY_get_raw_public_key(key, public.at, &public.size);
  EVP_PKEY_CTX *c = EVP_PKEY_CTX_new(key, NULL);
  EVP_PKEY_derive_init(c);
  EVP_PKEY_derive_set_peer(c, peer);
  if (EVP_PKEY_derive(c, shared.at, &shared.size) <= 0) refuse("decryptionFailed");
  bytes material = hkdf(shared, join(own, public), of("prism2 seal"), 44);
  bytes associated = line(line(line(of("prism2 seal\n"), device), namespace), report);
  return gunzip(decrypt_gcm(EVP_aes_256_gcm(), material, material.at + 32, box, associated));
}
int main(int argc, char **argv) {
  if (argc == 5 && !strcmp(argv[1], "receipt")) {
    bytes code_key = hkdf(unhex(argv[2]), of(""), of("prism2 receipt"), 32);
    print_hex(hmac(code_key, join(unhex(argv[3]), sha256(unhex(argv[4])))));
  } else if (argc == 6 && !strcmp(argv[1], "device-key")) {
    bytes info = join((bytes){(unsigned char *)"prism device", 13}, of(argv[4]));
    bytes key = hkdf(unhex(argv[2]), of(argv[3]), info, strcmp(argv[5], "aes-256-gcm") ? 16 : 32);
    cipher_of(argv[5], key);
    print_hex(key);
  } else if (argc == 7 && !strcmp(argv[1], "unseal")) {
    print_hex(unseal(unhex(argv[2]), argv[3], argv[4], argv[5], file(argv[6])));
  } else if (argc == 7 && !strcmp(argv[1], "dictionary")) {
    bytes key = unhex(argv[2]), bound = unhex(argv[4]), body = file(argv[6]);
    const EVP_CIPHER *cipher = cipher_of(argv[3], key);
    check_mac(cipher, key, bound, body, argv[5]);
    print_hex(gunzip(decrypt(cipher, key, body, join(bound, of("0")))));
  } else {
    refuse("usage: see the head of keys.c");
  }
}
