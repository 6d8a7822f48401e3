#pragma once
#include <sys/types.h>

/// The limits of a program that reads what is hostile.
struct prism_confinement {
  unsigned cpu_seconds;
  unsigned long memory_bytes;
  /// Of each file that it writes. 0: it can read files and write to `output`, and nothing else: no network, no other process.
  unsigned long file_bytes;
};

/// Starts a program within limits. It has an empty environment, and ends with the thread that started it. Its process, or -1
/// with errno. It exits with 126 where it can't be confined, with 127 where it can't be started.
pid_t prism_start_confined(char *const words[], int output, struct prism_confinement limits);
