#pragma once
#include <zlib.h>

/* inflateInit2 is a macro. 31: a gzip wrapper (RFC 1952) with the largest window, nothing else taken. */
static inline int prism_inflate_gzip_init(z_streamp stream) { return inflateInit2(stream, 31); }
