#pragma once
#include <stdint.h>

/* What CFaultVFS.c tells the recording; nothing happens while none runs. */
int recording_open(const char *path); /* the file's index; -1 while none runs */
void recording_write(int file, int64_t offset, const void *bytes, int count);
void recording_truncate(int file, int64_t size);
void recording_sync(int file);
void recording_delete(const char *path);
