#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
#include "CArguments.h"

#include <sys/prctl.h>

static int count;
static char **words;

// glibc calls constructors with the arguments of `main` (elf/dl-init.c and csu/libc-start.c).
__attribute__((constructor)) static void prism_keep_arguments(int argc, char **argv) {
  count = argc;
  words = argv;
}

int prism_argument_count(void) { return count; }

const char *prism_argument(int index) { return index >= 0 && index < count ? words[index] : ""; }

const char *prism_commit(void) { return PRISM_COMMIT; }

void prism_forbid_dumps(void) { prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }

void prism_give_back_large_blocks(void) {
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
  mallopt(M_TRIM_THRESHOLD, 4 << 20);
  mallopt(M_ARENA_MAX, 2);
}

int prism_flush_output(void) {
  errno = 0;
  if (fflush(stdout) == 0 && !ferror(stdout)) return 0;
  return errno ? errno : EIO;
}

static int signal_writer = -1;

static void signal_came(int number) {
  int before = errno;
  unsigned char byte = (unsigned char)number;
  ssize_t written = write(signal_writer, &byte, 1);  // a full pipe tells enough already
  (void)written;
  errno = before;
}

int prism_take_signals(const int *numbers, int count) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return -1;
  signal_writer = ends[1];
  for (int index = 0; index < count; index++) signal(numbers[index], signal_came);
  return ends[0];
}
