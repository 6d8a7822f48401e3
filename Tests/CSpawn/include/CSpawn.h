#ifndef PRISM_CSPAWN_H
#define PRISM_CSPAWN_H

#include <sys/types.h>

/// Starts a program that the kernel kills when this process ends, however it ends.
///
/// It has the three streams given (each a descriptor of 3 or more), no other descriptor, no blocked signal and no ignored
/// SIGPIPE. Safe from any thread.
/// Returns its process id, or a negative errno.
pid_t prism_spawn(const char *path, char *const arguments[], char *const environment[], const int streams[3]);

#endif
