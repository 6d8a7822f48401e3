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
