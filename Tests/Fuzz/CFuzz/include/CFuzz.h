#pragma once
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/// libFuzzer's own main loop, for a program that has a main function. https://llvm.org/docs/LibFuzzer.html
int LLVMFuzzerRunDriver(int *argc, char ***argv, int (*one_input)(const uint8_t *bytes, size_t count));

/// Nanoseconds of processor time of this thread: other programs do not count.
static inline int64_t prism_thread_nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
