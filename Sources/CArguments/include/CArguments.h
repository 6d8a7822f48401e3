#pragma once

/// The words of the command line, the program's name included; without reading /proc, which a chroot or a container may
/// not have and which `CommandLine.arguments` needs.
int prism_argument_count(void);

/// No core of this process is written from now on, and no other program of its user may read its memory, which has keys
/// (PR_SET_DUMPABLE of prctl(2)).
void prism_forbid_dumps(void);

/// The heap gives back blocks of 1 MiB and more as soon as they are free. Else it keeps them once it has seen larger ones, for
/// each of its threads. Call it first in a program that serves.
void prism_give_back_large_blocks(void);

/// One of them, from 0 on; it stays valid.
const char *_Nonnull prism_argument(int index);

/// The commit that the programs were built from; empty: it was not said.
const char *_Nonnull prism_commit(void);

/// Writes what was printed and is not written yet. Returns 0, or the errno of what could not be written.
int prism_flush_output(void);

/// From now until the process ends, each of these signals comes as a byte, its number, from the descriptor that this returns.
/// Reading it never waits. Call it once. -1 with errno: the signals do what they did.
///
/// libdispatch's own signal sources read a signalfd, which reports only signals that the process's first thread blocks. If an
/// ignored signal is not blocked, the kernel drops it, and whether that thread blocks signals depends on how it waits. The
/// handler is C: one in Swift could allocate or lock.
int prism_take_signals(const int *_Nonnull numbers, int count);
