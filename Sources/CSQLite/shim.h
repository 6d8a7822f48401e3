#pragma once
#include <sqlite3.h>

/// `sqlite3_config` is variadic. SQLite counts no memory, which costs a lock of all threads for each block.
static inline int prism_sqlite3_count_no_memory(void) { return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); }

/// `sqlite3_db_config` is variadic, which Swift can't call. Defensive: no statement can corrupt the file on purpose.
static inline int prism_sqlite3_set_defensive(sqlite3 *db) {
  return sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, (int *)0);
}

/// Closing the last connection neither checkpoints nor deletes the log.
static inline int prism_sqlite3_keep_log_on_close(sqlite3 *db) {
  return sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *)0);
}

/// `SQLITE_TRANSIENT` is a cast of -1 to a function pointer, which Swift doesn't import: SQLite copies the bytes.
static inline int prism_sqlite3_bind_blob_copy(sqlite3_stmt *statement, int index, const void *bytes, int count) {
  return sqlite3_bind_blob(statement, index, bytes, count, SQLITE_TRANSIENT);
}
static inline int prism_sqlite3_bind_text_copy(sqlite3_stmt *statement, int index, const char *bytes, int count) {
  return sqlite3_bind_text(statement, index, bytes, count, SQLITE_TRANSIENT);
}
