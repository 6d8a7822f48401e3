#pragma once
#include <curl/curl.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

// Swift can't call C's variadic functions: each wrapper below gives curl_easy_setopt, curl_easy_getinfo or
// curl_multi_setopt one fixed type of argument.

/// For options that take a `long`: switches, sizes, milliseconds.
static inline CURLcode prism_curl_set_long(CURL *easy, CURLoption option, long value) {
  return curl_easy_setopt(easy, option, value);
}

/// For options that take a `curl_off_t` (those that end in _LARGE).
static inline CURLcode prism_curl_set_offset(CURL *easy, CURLoption option, curl_off_t value) {
  return curl_easy_setopt(easy, option, value);
}

/// For options that take a string; curl copies it. NULL unsets the option.
static inline CURLcode prism_curl_set_text(CURL *easy, CURLoption option, const char *value) {
  return curl_easy_setopt(easy, option, value);
}

/// For CURLOPT_ERRORBUFFER: CURL_ERROR_SIZE bytes that must outlive the transfer.
static inline CURLcode prism_curl_set_error_buffer(CURL *easy, char *buffer) {
  return curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, buffer);
}

/// For CURLOPT_HTTPHEADER; the list must outlive the transfer.
static inline CURLcode prism_curl_set_headers(CURL *easy, struct curl_slist *headers) {
  return curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
}

/// For options that take file contents from memory; curl copies them, and keeps connections of other contents apart.
static inline CURLcode prism_curl_set_blob(CURL *easy, CURLoption option, const void *bytes, size_t count) {
  struct curl_blob blob = {(void *)bytes, count, CURL_BLOB_COPY};
  return curl_easy_setopt(easy, option, &blob);
}

/// For every callback of a transfer at once: Swift's function pointers don't convert to each option's type by themselves.
static inline CURLcode prism_curl_set_callbacks(
    CURL *easy, void *context, curl_read_callback read, curl_seek_callback seek, curl_write_callback header,
    curl_write_callback body, curl_prereq_callback prerequest, curl_debug_callback debug) {
  CURLcode code = curl_easy_setopt(easy, CURLOPT_READDATA, context);
  if (!code) code = curl_easy_setopt(easy, CURLOPT_READFUNCTION, read);
  if (!code) code = curl_easy_setopt(easy, CURLOPT_SEEKDATA, context);
  if (!code) code = curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, seek);
  if (!code) code = curl_easy_setopt(easy, CURLOPT_HEADERDATA, context);
  if (!code) code = curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, header);
  if (!code) code = curl_easy_setopt(easy, CURLOPT_WRITEDATA, context);
  if (!code) code = curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, body);
  if (!code) code = curl_easy_setopt(easy, CURLOPT_PREREQDATA, context);
  if (!code) code = curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, prerequest);
  if (!code) code = curl_easy_setopt(easy, CURLOPT_DEBUGDATA, context);
  if (!code) code = curl_easy_setopt(easy, CURLOPT_DEBUGFUNCTION, debug);
  return code;
}

/// For CURLINFO_TOTAL_TIME_T: microseconds; 0 when curl doesn't know.
static inline curl_off_t prism_curl_total_microseconds(CURL *easy) {
  curl_off_t value = 0;
  return curl_easy_getinfo(easy, CURLINFO_TOTAL_TIME_T, &value) == CURLE_OK ? value : 0;
}

/// For CURLINFO_NUM_CONNECTS: connections that the transfer opened; 0: it runs on a kept one.
static inline long prism_curl_connects(CURL *easy) {
  long count = 0;
  return curl_easy_getinfo(easy, CURLINFO_NUM_CONNECTS, &count) == CURLE_OK ? count : 1;
}

/// A connection's round trip by the kernel's TCP.
typedef struct {
  /// Smoothed, and the least of the last 5 minutes (net.ipv4.tcp_min_rtt_wlen).
  uint32_t microseconds, least_microseconds;
} prism_round_trip;

/// The round trip of the connection that carried the transfer, before the handle leaves its multi handle.
/// 0, or -1 if the connection is closed, is not TCP, or has no sample yet.
static inline int prism_curl_round_trip(CURL *easy, prism_round_trip *trip) {
  // The beginning of struct tcp_info of linux/tcp.h, which does not go together with glibc's netinet/tcp.h.
  struct { uint8_t states[8]; uint32_t before[15], rtt, between[8]; uint64_t rates[4]; uint32_t segments[3], min_rtt; } info;
  _Static_assert(offsetof(__typeof__(info), rtt) == 68 && offsetof(__typeof__(info), min_rtt) == 148, "struct tcp_info");
  curl_socket_t descriptor = CURL_SOCKET_BAD;
  socklen_t size = sizeof info;
  if (curl_easy_getinfo(easy, CURLINFO_ACTIVESOCKET, &descriptor) != CURLE_OK || descriptor == CURL_SOCKET_BAD) return -1;
  if (getsockopt(descriptor, IPPROTO_TCP, 11 /* TCP_INFO */, &info, &size) != 0 || size < sizeof info) return -1;
  trip->microseconds = info.rtt;
  trip->least_microseconds = info.min_rtt;
  return info.rtt == 0 || info.min_rtt == 0 || info.min_rtt == UINT32_MAX ? -1 : 0;
}

/// For multi options that take a `long`.
static inline CURLMcode prism_curl_multi_set_long(CURLM *multi, CURLMoption option, long value) {
  return curl_multi_setopt(multi, option, value);
}

/// For CURLOPT_COPYPOSTFIELDS, which curl copies. CURLOPT_POSTFIELDSIZE_LARGE must be set before.
static inline CURLcode prism_curl_copy_body(CURL *easy, const void *bytes) {
  return curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, bytes);
}

/// A certificate that another side gave: of whom it is, who signed it, and when it is valid.
typedef struct {
  uint64_t transfer;
  char subject[200], issuer[200], from[24], until[24];
} prism_certificate;

/// The certificates of the newest handshakes of this thread, one for each. A handshake that fails leaves no other trace:
/// curl tells certificates only of those that succeed. Identified by number, since a connection outlives its transfer.
static inline prism_certificate *prism_certificate_of(uint64_t transfer) {
  enum { kept = 64 };
  static _Thread_local prism_certificate certificates[kept];
  return &certificates[transfer % kept];
}

static inline void prism_certificate_name(X509_NAME *name, char *text, size_t size) {
  BIO *memory = BIO_new(BIO_s_mem());
  text[0] = 0;
  if (!memory) return;
  if (X509_NAME_print_ex(memory, name, 0, XN_FLAG_ONELINE & ~ASN1_STRFLGS_ESC_MSB) >= 0) {
    int count = BIO_read(memory, text, (int)size - 1);
    text[count > 0 ? count : 0] = 0;
  }
  BIO_free(memory);
}

static inline void prism_certificate_time(const ASN1_TIME *time, char text[24]) {
  struct tm parts;
  memset(&parts, 0, sizeof parts);
  text[0] = 0;
  if (time && ASN1_TIME_to_tm(time, &parts) == 1) strftime(text, 24, "%Y-%m-%dT%H:%M:%SZ", &parts);
}

/// OpenSSL asks this for each certificate of a chain, the other side's own last unless one fails before it.
static inline int prism_certificate_seen(int is_good, X509_STORE_CTX *chain) {
  SSL *connection = (SSL *)X509_STORE_CTX_get_ex_data(chain, SSL_get_ex_data_X509_STORE_CTX_idx());
  X509 *certificate = X509_STORE_CTX_get_current_cert(chain);
  if (!connection || !certificate) return is_good;
  uint64_t transfer = (uint64_t)(uintptr_t)SSL_CTX_get_app_data(SSL_get_SSL_CTX(connection));
  prism_certificate *seen = prism_certificate_of(transfer);
  seen->transfer = transfer;
  prism_certificate_name(X509_get_subject_name(certificate), seen->subject, sizeof seen->subject);
  prism_certificate_name(X509_get_issuer_name(certificate), seen->issuer, sizeof seen->issuer);
  prism_certificate_time(X509_get0_notBefore(certificate), seen->from);
  prism_certificate_time(X509_get0_notAfter(certificate), seen->until);
  return is_good;
}

static inline CURLcode prism_certificate_watch(CURL *easy, void *context, void *transfer) {
  (void)easy;
  SSL_CTX_set_app_data((SSL_CTX *)context, transfer);
  SSL_CTX_set_verify((SSL_CTX *)context, SSL_VERIFY_PEER, prism_certificate_seen);
  return CURLE_OK;
}

/// Keeps the certificate that decides a handshake, for `prism_curl_certificate`. Verification stays as it is.
/// - Parameter transfer: a number that no other transfer has.
static inline CURLcode prism_curl_watch_certificate(CURL *easy, uint64_t transfer) {
  CURLcode code = curl_easy_setopt(easy, CURLOPT_SSL_CTX_DATA, (void *)(uintptr_t)transfer);
  if (!code) code = curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, prism_certificate_watch);
  return code;
}

/// On the thread of the transfer. NULL if no certificate came, or more than 64 handshakes were made since.
static inline const prism_certificate *prism_curl_certificate(uint64_t transfer) {
  const prism_certificate *seen = prism_certificate_of(transfer);
  return transfer != 0 && seen->transfer == transfer ? seen : NULL;
}
