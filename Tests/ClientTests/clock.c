/* Preloaded into a program: its wall clock is behind by the seconds that the file PRISM_CLOCK_BEHIND holds, eight bytes. Its timers, and
 * the clocks that count from the boot, stay as they are. (libfaketime moves absolute timers of all clocks, so none of them ends.) */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *behind;

__attribute__((constructor)) static void begin(void) {
  int file = open(getenv("PRISM_CLOCK_BEHIND"), O_RDONLY | O_CLOEXEC);
  void *mapped = mmap(NULL, sizeof *behind, PROT_READ, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED) abort();
  behind = mapped;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  int result = (int)syscall(SYS_clock_gettime, clock, now);
  if (result == 0 && behind && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec -= *behind;
  return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  (void)zone;
  struct timespec exact;
  int result = clock_gettime(CLOCK_REALTIME, &exact);
  *now = (struct timeval){exact.tv_sec, exact.tv_nsec / 1000};
  return result;
}

time_t time(time_t *now) {
  struct timespec exact = {0};
  clock_gettime(CLOCK_REALTIME, &exact);
  if (now) *now = exact.tv_sec;
  return exact.tv_sec;
}
