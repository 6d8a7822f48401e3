#pragma once
#include <curl/curl.h>

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

/// For options that take a string; curl copies it. NULL brings the option back to "none".
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

/// For multi options that take a `long`.
static inline CURLMcode prism_curl_multi_set_long(CURLM *multi, CURLMoption option, long value) {
  return curl_multi_setopt(multi, option, value);
}
