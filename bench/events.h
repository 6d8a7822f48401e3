/* Events as the benchmarks send them: the content is a function of seed and sequence number only. */
#pragma once
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static uint64_t event_seed = 1;

/* splitmix64 */
static uint64_t event_mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

static char *put_text(char *at, const char *text) {
  size_t bytes = strlen(text);
  memcpy(at, text, bytes);
  return at + bytes;
}

static char *put_number(char *at, uint64_t value) {
  char digits[20];
  int count = 0;
  do digits[count++] = (char)('0' + value % 10);
  while (value /= 10);
  while (count) *at++ = digits[--count];
  return at;
}

static char *put_hex(char *at, uint64_t value) {
  for (int shift = 60; shift >= 0; shift -= 4) *at++ = "0123456789abcdef"[value >> shift & 15];
  return at;
}

static const char *const models[] = {"gateway-200", "kiosk-7", "terminal-x2", "camera-4k", "meter-nb2", "panel-15"};
static const char *const systems[] = {"debian-12.4", "debian-12.7", "yocto-4.0.15", "ubuntu-22.04"};
static const char *const pages[] = {"/home/feed", "/home/detail", "/cart", "/checkout/pay", "/settings/network", "/profile"};
static const char *const messages[] = {"request finished", "cache miss, fetched from origin", "retry after timeout",
                                       "frame budget exceeded", "item exposed in list", "user tapped the banner"};

/* The members of event number `sequence`, with their braces: about 250 bytes. */
static char *put_meta(char *at, uint64_t sequence) {
  uint64_t a = event_mix(event_seed ^ sequence * 0x2545f4914f6cdd1dull), b = event_mix(a);
  uint64_t device = event_mix(event_seed + a % 3000);
  at = put_text(at, "{\"seq\":");
  at = put_number(at, sequence);
  at = put_text(at, ",\"uid\":\"");
  at = put_hex(at, device);
  at = put_text(at, "\",\"dev\":{\"model\":\"");
  at = put_text(at, models[device % 6]);
  at = put_text(at, "\",\"os\":\"");
  at = put_text(at, systems[device >> 8 & 3]);
  at = put_text(at, "\"},\"page\":\"");
  at = put_text(at, pages[(a >> 20) % 6]);
  at = put_text(at, "\",\"ms\":");
  at = put_number(at, (b & 0xff) * (b >> 8 & 0x1f));
  at = put_text(at, ",\"mem\":");
  at = put_number(at, 100 + (b >> 13 & 0xff));
  at = put_text(at, ",\"cpu\":");
  at = put_number(at, (b >> 21) % 100);
  *at++ = '.';
  at = put_number(at, (b >> 30) % 10);
  at = put_text(at, ",\"fps\":");
  at = put_number(at, 30 + (a >> 32) % 31);
  at = put_text(at, a >> 40 & 15 ? ",\"code\":200,\"ok\":true,\"rid\":\"" : ",\"code\":503,\"ok\":false,\"rid\":\"");
  at = put_hex(at, event_mix(b));
  at = put_text(at, "\",\"msg\":\"");
  at = put_text(at, messages[(a >> 24) % 6]);
  return put_text(at, "\"}");
}
