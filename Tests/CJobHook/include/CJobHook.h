#pragma once
#include <stdint.h>

/* Takes the jobs of Swift's global executor (tasks, and actors without an executor of their own) out of its hands, so
 * that a simulation runs them itself, one at a time. C, because the runtime's hook is a variable with the calling
 * convention of Swift's own functions. */

/* Takes a job with the context of the thread that enqueued it. */
typedef void (*job_sink)(void *context, void *job);
/* The context of the current thread where none is bound; NULL: its jobs are none of the simulation's. */
typedef void *(*job_context)(void);

/* For the whole process, for good; jobs of threads without a context go where they always went. */
void job_hook_install(job_sink sink, job_context lookup);
/* The jobs that this thread enqueues are `context`'s from now on; NULL: no longer. */
void job_hook_bind(void *context);
/* Runs a job here and now, up to its next suspension. */
void job_run(void *job);
