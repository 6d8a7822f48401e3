#pragma once
#include <sys/types.h>

/// The limits of a program that reads hostile files.
struct prism_confinement {
  unsigned cpu_seconds;
  unsigned long memory_bytes;
};

/// Starts a program that can read files and write to `output`, and nothing else: no network, no other process, no file that is
/// written. It has an empty environment, and ends with the thread that started it. Its process, or -1 with errno. It exits with
/// 126 where it can't be confined, with 127 where it can't be started.
pid_t prism_start_confined(char *const words[], int output, struct prism_confinement limits);
