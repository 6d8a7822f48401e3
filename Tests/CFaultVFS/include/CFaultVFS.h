#pragma once
#include <stdint.h>

/* A SQLite VFS for tests, over the platform's own: it fails chosen I/O calls, and it records every change to every file
 * so that the disk can be rebuilt as a power loss at any point would have left it. C, because SQLite calls it back with
 * pointers into tables of functions. One store at a time; all calls from any thread. */

/* The name to open a database with. */
extern const char *const fvfs_name;

/* Makes the VFS known to SQLite; again is harmless. Answers a SQLite code. */
int fvfs_register(void);

/* ---- Faults ---- */

enum fvfs_fault {
  FVFS_EIO = 1,        /* the call fails and has done nothing */
  FVFS_ENOSPC = 2,     /* a write finds no space; other calls work */
  FVFS_SHORT_WRITE = 3,/* half of a write is done, then no space; other calls work */
  FVFS_SYNC_FAILS = 4, /* a sync fails; other calls work */
};

/* Counts I/O calls (open, read, write, truncate, sync, delete) from 1 from now on, and fails the `k`-th that `fault`
 * concerns, or it and every later one. `k` 0: none fails, calls are only counted. */
void fvfs_arm(enum fvfs_fault fault, int64_t k, int forever);
/* Ends faults; counting goes on. */
void fvfs_heal(void);
/* Calls that `fault` of the last fvfs_arm concerns, since then. */
int64_t fvfs_calls(void);
/* Calls that were failed since the last fvfs_arm. */
int64_t fvfs_failures(void);

/* Bytes written since the last fvfs_arm. */
int64_t fvfs_bytes(void);
/* From the next opening on, files say that a torn write damages nothing but what it writes (as Linux's own do), or not. */
void fvfs_keep_neighbours(int keep);

/* Calls `call` after each write, truncation and sync that worked, on the thread that made it; NULL: nobody. It must not
 * use this VFS. */
void fvfs_on_change(void (*call)(void *context), void *context);

/* ---- Power loss ---- */

/* Begins a recording; the files of the store must not exist yet. */
void fvfs_record(void);
/* Notes that `acknowledged` reports have been answered by now. */
void fvfs_record_ack(int64_t acknowledged);
/* Ends it; the recording stays until the next fvfs_record. */
void fvfs_record_end(void);
/* Number of recorded events: every point between two is a place where power can fail. */
int64_t fvfs_events(void);

/* The disk at one point: writes that were synced are there; each later one is there whole (40 %), torn at 512 bytes
 * (20 %) or not at all (40 %), drawn from `seed`; order between un-synced writes is not kept. Files are written to
 * `folder` (empty). Answers how many reports had been acknowledged before that point, or -1 where `folder` can't be
 * written. Points are cheap in ascending order. */
int64_t fvfs_rebuild(int64_t point, uint64_t seed, const char *folder);
