#include "CJoinedWrites.h"

#include <sqlite3.h>
#include <string.h>

/* sqlite.org/fileformat.html, The Write-Ahead Log: a header, then frames of a header and a page of the store's size. */
enum { LOG_HEADER = 32, FRAME_HEADER = 24, FRAME = FRAME_HEADER + 4096, JOINED_MAX = 16 * FRAME };
/* In a frame's header: what all frames have in common until the log begins again. */
enum { SALTS = 8, SALTS_SIZE = 8 };
enum { WRITE_LOCK = 0, CHECKPOINT_LOCK = 1, FIRST_READ_LOCK = 3 };

/* Behind it in memory: the file of the VFS below. */
typedef struct JoinedFile {
  sqlite3_file file;
  int joins;           /* a log, or a database while a checkpoint copies; else writes go straight down */
  int is_log;
  sqlite3_int64 start; /* where `joined` belongs */
  int count;           /* bytes in it */
  unsigned char *joined;
  struct JoinedFile *other; /* a log's database, a database's log; NULL: it is not open */
  int begins;               /* a log: the next write is the first of a transaction */
  sqlite3_int64 end;        /* a log: where the last write ended */
  int held_back;            /* a database: a reader holds the checkpoint back */
  int failed;               /* a database: the last copies of a checkpoint; the next call reports it */
} JoinedFile;

typedef struct {
  sqlite3_vfs vfs;
  sqlite3_vfs *base;
} JoinedVFS;

static JoinedFile *joined(sqlite3_file *file) { return (JoinedFile *)file; }
static sqlite3_file *below(sqlite3_file *file) { return (sqlite3_file *)(joined(file) + 1); }
static sqlite3_vfs *base(sqlite3_vfs *vfs) { return ((JoinedVFS *)vfs)->base; }

/* ---- A file ---- */

/* A failed write is dropped: SQLite gives the transaction up, and a later write would bring it back. */
static int flush(sqlite3_file *file) {
  JoinedFile *self = joined(file);
  int count = self->count, failed = self->failed;
  self->count = 0;
  self->failed = SQLITE_OK;
  if (count == 0 || failed != SQLITE_OK) return failed;
  return below(file)->pMethods->xWrite(below(file), self->joined, count, self->start);
}

/* Joining begins with a whole frame. The rest of a frame must not wait. On a disk without
 * SQLITE_IOCAP_POWERSAFE_OVERWRITE SQLite syncs the first part of a commit's last frame, writes the rest, and publishes the
 * commit without another sync. */
static int begins_frame(sqlite3_int64 offset) {
  return offset == 0 || (offset >= LOG_HEADER && (offset - LOG_HEADER) % FRAME == 0);
}

static int may_wait(const JoinedFile *self, int count, sqlite3_int64 offset) {
  if (!self->joins || count > JOINED_MAX) return 0;
  return self->count > 0 || !self->is_log || begins_frame(offset);
}

/* Cuts the log where a transaction begins over the frames of one that was given up. Behind fewer new frames the rest of
 * the old ones would look like commits behind a damaged frame. Frames of an earlier round through the log may stay.
 * Do not ask for the log's size: that reads its times, too, and Linux then gives the next write a time of its own. Each
 * sync would write the inode. See docs.kernel.org/filesystems/multigrain-ts.html. */
static int cut_given_up(sqlite3_file *file, const unsigned char *bytes, int count, sqlite3_int64 offset) {
  unsigned char old[FRAME_HEADER];
  if (count != FRAME_HEADER || offset < LOG_HEADER) return SQLITE_OK;
  int code = below(file)->pMethods->xRead(below(file), old, FRAME_HEADER, offset);
  if (code == SQLITE_IOERR_SHORT_READ) return SQLITE_OK; /* the log ends here */
  if (code != SQLITE_OK || memcmp(old + SALTS, bytes + SALTS, SALTS_SIZE) != 0) return code;
  return below(file)->pMethods->xTruncate(below(file), offset);
}

static int file_write(sqlite3_file *file, const void *bytes, int count, sqlite3_int64 offset) {
  JoinedFile *self = joined(file);
  if (self->begins) {
    self->count = 0; /* of the transaction that was given up */
    /* Behind the end of the last transaction there is no other. */
    int code = offset == self->end ? SQLITE_OK : cut_given_up(file, bytes, count, offset);
    if (code != SQLITE_OK) return code;
    self->begins = 0;
  }
  self->end = offset + count;
  if (self->failed != SQLITE_OK) return flush(file);
  if (self->count > 0 && (offset != self->start + self->count || count > JOINED_MAX - self->count)) {
    int code = flush(file);
    if (code != SQLITE_OK) return code;
  }
  if (self->count == 0) self->start = offset;
  if (self->joins && !self->joined) self->joined = sqlite3_malloc(JOINED_MAX);
  if (!self->joined || !may_wait(self, count, offset)) {
    return below(file)->pMethods->xWrite(below(file), bytes, count, offset);
  }
  memcpy(self->joined + self->count, bytes, (size_t)count);
  self->count += count;
  return SQLITE_OK;
}

static int file_read(sqlite3_file *file, void *bytes, int count, sqlite3_int64 offset) {
  JoinedFile *self = joined(file);
  if (offset < self->start + self->count && self->start < offset + count) {
    int code = flush(file);
    if (code != SQLITE_OK) return code;
  }
  return below(file)->pMethods->xRead(below(file), bytes, count, offset);
}

#define AFTER_FLUSH(call)                           \
  int code = flush(file);                           \
  return code != SQLITE_OK ? code : below(file)->pMethods->call

static int file_truncate(sqlite3_file *file, sqlite3_int64 size) { AFTER_FLUSH(xTruncate)(below(file), size); }
static int file_sync(sqlite3_file *file, int flags) { AFTER_FLUSH(xSync)(below(file), flags); }
static int file_size(sqlite3_file *file, sqlite3_int64 *size) { AFTER_FLUSH(xFileSize)(below(file), size); }
static int file_unlock(sqlite3_file *file, int level) { AFTER_FLUSH(xUnlock)(below(file), level); }

static int file_close(sqlite3_file *file) {
  int flushed = flush(file);
  if (joined(file)->other) joined(file)->other->other = NULL;
  sqlite3_free(joined(file)->joined);
  int closed = below(file)->pMethods->xClose(below(file));
  return flushed != SQLITE_OK ? flushed : closed;
}

static int file_lock(sqlite3_file *file, int level) { return below(file)->pMethods->xLock(below(file), level); }
static int file_check_reserved(sqlite3_file *file, int *result) {
  return below(file)->pMethods->xCheckReservedLock(below(file), result);
}
/* SQLite calls with CKPT_DONE after the copies of a checkpoint, before other connections may read them in the database. It
 * ignores the result. Where it copied all of the log, it truncates the file next, and that reports the failure. */
static void copies_end(JoinedFile *self) {
  self->joins = 0;
  self->failed = flush(&self->file);
}

static int file_control(sqlite3_file *file, int operation, void *argument) {
  if (operation == SQLITE_FCNTL_CKPT_START) joined(file)->joins = !joined(file)->held_back;
  if (operation == SQLITE_FCNTL_CKPT_DONE) copies_end(joined(file));
  return below(file)->pMethods->xFileControl(below(file), operation, argument);
}
static int file_sector_size(sqlite3_file *file) { return below(file)->pMethods->xSectorSize(below(file)); }
static int file_characteristics(sqlite3_file *file) {
  return below(file)->pMethods->xDeviceCharacteristics(below(file));
}
static int file_shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **map) {
  return below(file)->pMethods->xShmMap(below(file), page, size, extend, map);
}
static int file_shm_lock(sqlite3_file *file, int offset, int count, int flags) {
  int code = below(file)->pMethods->xShmLock(below(file), offset, count, flags);
  /* sqlite.org/walformat.html, WAL Locks. A checkpoint asks for each reader's lock before it begins to copy. */
  if (flags != (SQLITE_SHM_LOCK | SQLITE_SHM_EXCLUSIVE)) return code;
  if (code == SQLITE_OK && offset == WRITE_LOCK && joined(file)->other) joined(file)->other->begins = 1;
  if (code == SQLITE_OK && offset == CHECKPOINT_LOCK) joined(file)->held_back = 0;
  if (code == SQLITE_BUSY && offset > FIRST_READ_LOCK) joined(file)->held_back = 1;
  return code;
}
static void file_shm_barrier(sqlite3_file *file) { below(file)->pMethods->xShmBarrier(below(file)); }
static int file_shm_unmap(sqlite3_file *file, int deletes) {
  return below(file)->pMethods->xShmUnmap(below(file), deletes);
}

/* Version 2: no memory mapping, which would read past what is joined here. */
static const sqlite3_io_methods methods = {
    2,           file_close,          file_read,    file_write,       file_truncate,        file_sync,
    file_size,   file_lock,           file_unlock,  file_check_reserved, file_control,      file_sector_size,
    file_characteristics, file_shm_map, file_shm_lock, file_shm_barrier, file_shm_unmap,    0, 0,
};

/* ---- The VFS: all but the opening is the base's ---- */

static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out_flags) {
  memset(file, 0, sizeof(JoinedFile));
  int code = base(vfs)->xOpen(base(vfs), name, below(file), flags, out_flags);
  if (below(file)->pMethods) file->pMethods = &methods;
  joined(file)->joins = joined(file)->is_log = (flags & SQLITE_OPEN_WAL) != 0;
  if (code == SQLITE_OK && joined(file)->is_log) {
    joined(file)->other = joined(sqlite3_database_file_object(name));
    joined(file)->other->other = joined(file);
  }
  return code;
}
static int vfs_delete(sqlite3_vfs *vfs, const char *name, int sync) {
  return base(vfs)->xDelete(base(vfs), name, sync);
}
static int vfs_access(sqlite3_vfs *vfs, const char *name, int flags, int *result) {
  return base(vfs)->xAccess(base(vfs), name, flags, result);
}
static int vfs_full_path(sqlite3_vfs *vfs, const char *name, int count, char *path) {
  return base(vfs)->xFullPathname(base(vfs), name, count, path);
}
static int vfs_randomness(sqlite3_vfs *vfs, int count, char *bytes) {
  return base(vfs)->xRandomness(base(vfs), count, bytes);
}
static int vfs_sleep(sqlite3_vfs *vfs, int microseconds) { return base(vfs)->xSleep(base(vfs), microseconds); }
static int vfs_time(sqlite3_vfs *vfs, double *time) { return base(vfs)->xCurrentTime(base(vfs), time); }
static int vfs_time64(sqlite3_vfs *vfs, sqlite3_int64 *time) { return base(vfs)->xCurrentTimeInt64(base(vfs), time); }
static int vfs_last_error(sqlite3_vfs *vfs, int count, char *text) {
  return base(vfs)->xGetLastError(base(vfs), count, text);
}

const char *prism_joined_writes_vfs(const char *base_name) {
  sqlite3_vfs *found = sqlite3_vfs_find(base_name);
  if (!found) return NULL;
  char *name = sqlite3_mprintf("prism-joined-writes-%s", found->zName);
  sqlite3_vfs *known = name ? sqlite3_vfs_find(name) : NULL;
  if (known) {
    sqlite3_free(name);
    return known->zName;
  }
  JoinedVFS *self = name ? sqlite3_malloc(sizeof *self) : NULL;
  if (!self) {
    sqlite3_free(name);
    return NULL;
  }
  memset(self, 0, sizeof *self);
  self->base = found;
  self->vfs = (sqlite3_vfs){
      .iVersion = 2, .szOsFile = (int)sizeof(JoinedFile) + found->szOsFile, .mxPathname = found->mxPathname, .zName = name,
      .xOpen = vfs_open, .xDelete = vfs_delete, .xAccess = vfs_access, .xFullPathname = vfs_full_path,
      .xRandomness = vfs_randomness, .xSleep = vfs_sleep, .xCurrentTime = vfs_time, .xGetLastError = vfs_last_error,
      .xCurrentTimeInt64 = vfs_time64,
  };
  return sqlite3_vfs_register(&self->vfs, 0) == SQLITE_OK ? name : NULL;
}
