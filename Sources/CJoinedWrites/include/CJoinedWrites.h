#pragma once

/// Registers a VFS over the one named `base` (NULL: the system's) that joins writes to neighbouring places into one. It does so
/// in a write-ahead log, and in a database while a checkpoint copies the log into it. SQLite writes each frame of its log in
/// two calls, and each page of a checkpoint in one. Returns the name of the VFS; NULL without memory or without such a base.
///
/// Joined writes are handed down before a sync, a read of the same place, a truncation, the question for the size, an
/// unlock and the close. Other connections read a frame only after the commit that wrote it. With `synchronous = FULL` a
/// commit syncs the log first, so only writes of an open transaction wait here. A write that fails is reported by the
/// sync.
///
/// A transaction that begins over the frames of one that was given up cuts these off.
///
/// Pages of a checkpoint are handed down at SQLITE_FCNTL_CKPT_DONE: before the shared memory says that they are in the
/// database, so other connections never look for them too early. If that fails, the truncation that ends a whole checkpoint
/// reports it, and the shared memory stays as it was. A checkpoint that a reader holds back ends without another call, so its
/// pages are not joined: each write reports its own failure.
/// Source: sqlite.org/vfs.html, sqlite.org/c3ref/io_methods.html, sqlite.org/c3ref/c_fcntl_begin_atomic_write.html,
/// sqlite.org/walformat.html (nBackfill).
const char *prism_joined_writes_vfs(const char *base);
