#pragma once

/// Registers a VFS over the one named `base` (NULL: the system's) that joins writes to neighbouring places of a
/// write-ahead log into one. SQLite writes each frame of its log in two calls; that is a third of what a commit costs the
/// kernel. Returns the name of the VFS; NULL without memory or without such a base.
///
/// Joined writes are handed down before a sync, a read of the same place, a truncation, the question for the size, an
/// unlock and the close. Other connections read a frame only after the commit that wrote it. With `synchronous = FULL` a
/// commit syncs the log first, so only writes of an open transaction wait here. A write that fails is reported by the
/// sync.
///
/// A transaction that begins over the frames of one that was given up cuts these off.
///
/// Writes of a checkpoint to the database file are not joined. If a reader holds the checkpoint back, SQLite lets all
/// connections read its pages from the database file without a sync before.
/// Source: sqlite.org/vfs.html, sqlite.org/c3ref/io_methods.html, sqlite.org/walformat.html (nBackfill).
const char *prism_joined_writes_vfs(const char *base);
