#pragma once

/// Registers a VFS over the one named `base` (NULL: the system's) that joins writes to neighbouring places of a file into
/// one, and answers its name; NULL without memory or without such a base. SQLite writes each frame of its log in two
/// calls and each page of a checkpoint in one; that is a third of what a commit costs the kernel.
///
/// What is joined is handed down before a sync, a read of the same place, a truncation, the question for the size, an
/// unlock and the close. So it needs `synchronous = FULL`: there a commit syncs the log before anyone is told of it, and
/// what waits here is never more than an open transaction's or a checkpoint's. A write that fails is told by the sync.
/// Source: sqlite.org/vfs.html, sqlite.org/c3ref/io_methods.html.
const char *prism_joined_writes_vfs(const char *base);
