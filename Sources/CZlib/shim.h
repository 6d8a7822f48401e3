#pragma once
#include <zlib.h>

/* inflateInit2 is a macro. 31: a gzip wrapper (RFC 1952) with the largest window, nothing else taken. */
static inline int prism_inflate_gzip_init(z_streamp stream) { return inflateInit2(stream, 31); }

/* deflateInit2 is a macro. The same wrapper, at the level (1 to 9). */
static inline int prism_deflate_gzip_init(z_streamp stream, int level) {
  return deflateInit2(stream, level, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY);
}
