#define _GNU_SOURCE
#include "CFaultVFS.h"

#include <pthread.h>
#include <sqlite3.h>
#include <string.h>

#include "recording.h"

const char *const fvfs_name = "prism-fault";

static sqlite3_vfs *base;
static sqlite3_vfs vfs;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct {
  enum fvfs_fault fault;
  int64_t k, calls, failures, bytes;
  int forever;
} plan;

typedef struct {
  sqlite3_file file;
  int name;            /* index in the recording; -1: not recorded (temporary files) */
  sqlite3_file *below; /* the platform's own, right behind this struct */
} FaultFile;

static sqlite3_file *below(sqlite3_file *file) { return ((FaultFile *)file)->below; }

/* Who is called after each change of a kept file. */
static struct {
  void (*call)(void *context);
  void *context;
} observer;

void fvfs_on_change(void (*call)(void *context), void *context) {
  pthread_mutex_lock(&lock);
  observer.call = call;
  observer.context = context;
  pthread_mutex_unlock(&lock);
}

static int changed(int code) {
  pthread_mutex_lock(&lock);
  void (*call)(void *) = code == SQLITE_OK ? observer.call : NULL;
  void *context = observer.context;
  pthread_mutex_unlock(&lock);
  if (call) call(context);
  return code;
}

/* ---- Faults ---- */

enum call { CALL_OPEN, CALL_READ, CALL_WRITE, CALL_TRUNCATE, CALL_SYNC, CALL_DELETE };

static int concerns(enum fvfs_fault fault, enum call call) {
  switch (fault) {
    case FVFS_EIO: return 1;
    case FVFS_ENOSPC: case FVFS_SHORT_WRITE: return call == CALL_WRITE;
    case FVFS_SYNC_FAILS: return call == CALL_SYNC;
  }
  return 0;
}

/* Whether this call is to fail; counts it. */
static int fails(enum call call) {
  pthread_mutex_lock(&lock);
  int hit = 0;
  if (concerns(plan.fault, call)) {
    plan.calls++;
    hit = plan.k > 0 && (plan.forever ? plan.calls >= plan.k : plan.calls == plan.k);
    plan.failures += hit;
  }
  pthread_mutex_unlock(&lock);
  return hit;
}

void fvfs_arm(enum fvfs_fault fault, int64_t k, int forever) {
  pthread_mutex_lock(&lock);
  memset(&plan, 0, sizeof plan);
  plan.fault = fault;
  plan.k = k;
  plan.forever = forever;
  pthread_mutex_unlock(&lock);
}

void fvfs_heal(void) {
  pthread_mutex_lock(&lock);
  plan.k = 0;
  pthread_mutex_unlock(&lock);
}

static int64_t locked_read(const int64_t *value) {
  pthread_mutex_lock(&lock);
  int64_t result = *value;
  pthread_mutex_unlock(&lock);
  return result;
}

int64_t fvfs_bytes(void) { return locked_read(&plan.bytes); }
int64_t fvfs_calls(void) { return locked_read(&plan.calls); }
int64_t fvfs_failures(void) { return locked_read(&plan.failures); }

/* ---- A file ---- */

static int file_close(sqlite3_file *file) { return below(file)->pMethods->xClose(below(file)); }

static int file_read(sqlite3_file *file, void *bytes, int count, sqlite3_int64 offset) {
  if (fails(CALL_READ)) return SQLITE_IOERR_READ;
  return below(file)->pMethods->xRead(below(file), bytes, count, offset);
}

static int write_below(sqlite3_file *file, const void *bytes, int count, sqlite3_int64 offset) {
  int code = below(file)->pMethods->xWrite(below(file), bytes, count, offset);
  pthread_mutex_lock(&lock);
  plan.bytes += count;
  pthread_mutex_unlock(&lock);
  if (code == SQLITE_OK) recording_write(((FaultFile *)file)->name, offset, bytes, count);
  return changed(code);
}

static int file_write(sqlite3_file *file, const void *bytes, int count, sqlite3_int64 offset) {
  if (fails(CALL_WRITE)) {
    if (plan.fault == FVFS_EIO) return SQLITE_IOERR_WRITE;
    if (plan.fault == FVFS_SHORT_WRITE) write_below(file, bytes, count / 2, offset);
    return SQLITE_FULL;
  }
  return write_below(file, bytes, count, offset);
}

static int file_truncate(sqlite3_file *file, sqlite3_int64 size) {
  if (fails(CALL_TRUNCATE)) return SQLITE_IOERR_TRUNCATE;
  int code = below(file)->pMethods->xTruncate(below(file), size);
  if (code == SQLITE_OK) recording_truncate(((FaultFile *)file)->name, size);
  return changed(code);
}

static int file_sync(sqlite3_file *file, int flags) {
  if (fails(CALL_SYNC)) return SQLITE_IOERR_FSYNC;
  int code = below(file)->pMethods->xSync(below(file), flags);
  if (code == SQLITE_OK) recording_sync(((FaultFile *)file)->name);
  return changed(code);
}

static int file_size(sqlite3_file *file, sqlite3_int64 *size) { return below(file)->pMethods->xFileSize(below(file), size); }
static int file_lock(sqlite3_file *file, int level) { return below(file)->pMethods->xLock(below(file), level); }
static int file_unlock(sqlite3_file *file, int level) { return below(file)->pMethods->xUnlock(below(file), level); }
static int file_reserved(sqlite3_file *file, int *result) {
  return below(file)->pMethods->xCheckReservedLock(below(file), result);
}
static int file_control(sqlite3_file *file, int op, void *argument) {
  return below(file)->pMethods->xFileControl(below(file), op, argument);
}
static int file_sector(sqlite3_file *file) { return below(file)->pMethods->xSectorSize(below(file)); }

/* The platform's promises (power-safe overwrite and the like) are kept from SQLite, unless a test counts what is written:
 * torn writes are what is tested. */
static int neighbours_kept;
void fvfs_keep_neighbours(int keep) { neighbours_kept = keep; }
static int file_characteristics(sqlite3_file *file) {
  (void)file;
  return neighbours_kept ? SQLITE_IOCAP_POWERSAFE_OVERWRITE : 0;
}

static int shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **result) {
  return below(file)->pMethods->xShmMap(below(file), page, size, extend, result);
}
static int shm_lock(sqlite3_file *file, int offset, int count, int flags) {
  return below(file)->pMethods->xShmLock(below(file), offset, count, flags);
}
static void shm_barrier(sqlite3_file *file) { below(file)->pMethods->xShmBarrier(below(file)); }
static int shm_unmap(sqlite3_file *file, int delete) { return below(file)->pMethods->xShmUnmap(below(file), delete); }

static const sqlite3_io_methods methods = {
    2, file_close, file_read, file_write, file_truncate, file_sync, file_size, file_lock, file_unlock, file_reserved,
    file_control, file_sector, file_characteristics, shm_map, shm_lock, shm_barrier, shm_unmap, 0, 0};

/* ---- The file system ---- */

static int vfs_open(sqlite3_vfs *self, const char *path, sqlite3_file *file, int flags, int *out_flags) {
  (void)self;
  FaultFile *result = (FaultFile *)file;
  memset(result, 0, sizeof *result);
  if (fails(CALL_OPEN)) return SQLITE_CANTOPEN;
  result->below = (sqlite3_file *)(result + 1);
  int code = base->xOpen(base, path, result->below, flags, out_flags);
  if (code != SQLITE_OK) return code;
  int kept = SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL;
  result->name = path && (flags & kept) ? recording_open(path) : -1;
  result->file.pMethods = &methods;
  return SQLITE_OK;
}

static int vfs_delete(sqlite3_vfs *self, const char *path, int sync) {
  (void)self;
  if (fails(CALL_DELETE)) return SQLITE_IOERR_DELETE;
  int code = base->xDelete(base, path, sync);
  if (code == SQLITE_OK) recording_delete(path);
  return code;
}

static int vfs_access(sqlite3_vfs *self, const char *path, int flags, int *result) {
  (void)self;
  return base->xAccess(base, path, flags, result);
}
static int vfs_full_path(sqlite3_vfs *self, const char *path, int size, char *result) {
  (void)self;
  return base->xFullPathname(base, path, size, result);
}
static int vfs_random(sqlite3_vfs *self, int count, char *result) { (void)self; return base->xRandomness(base, count, result); }
static int vfs_sleep(sqlite3_vfs *self, int microseconds) { (void)self; return base->xSleep(base, microseconds); }
static int vfs_time(sqlite3_vfs *self, double *result) { (void)self; return base->xCurrentTime(base, result); }
static int vfs_error(sqlite3_vfs *self, int size, char *text) { (void)self; return base->xGetLastError(base, size, text); }
static int vfs_time64(sqlite3_vfs *self, sqlite3_int64 *result) { (void)self; return base->xCurrentTimeInt64(base, result); }

int fvfs_register(void) {
  pthread_mutex_lock(&lock);
  int code = SQLITE_OK;
  if (!base) {
    base = sqlite3_vfs_find(NULL);
    vfs = (sqlite3_vfs){.iVersion = 2,
                        .szOsFile = (int)sizeof(FaultFile) + base->szOsFile,
                        .mxPathname = base->mxPathname,
                        .zName = fvfs_name,
                        .xOpen = vfs_open,
                        .xDelete = vfs_delete,
                        .xAccess = vfs_access,
                        .xFullPathname = vfs_full_path,
                        .xRandomness = vfs_random,
                        .xSleep = vfs_sleep,
                        .xCurrentTime = vfs_time,
                        .xGetLastError = vfs_error,
                        .xCurrentTimeInt64 = vfs_time64};
    code = sqlite3_vfs_register(&vfs, 0);
  }
  pthread_mutex_unlock(&lock);
  return code;
}
