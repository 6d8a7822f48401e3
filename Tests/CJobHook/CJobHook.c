#include "CJobHook.h"
#include <stddef.h>

/* SerialExecutorRef of the Swift runtime; both fields zero is the global executor. */
typedef struct {
  void *identity;
  uintptr_t implementation;
} executor_ref;

typedef __attribute__((swiftcall)) void (*enqueue)(void *job);
extern __attribute__((swiftcall)) void (*swift_task_enqueueGlobal_hook)(void *job, enqueue original);
extern __attribute__((swiftcall)) void swift_job_run(void *job, executor_ref executor);

static job_sink the_sink;
static job_context the_lookup;
static _Thread_local void *bound;

static __attribute__((swiftcall)) void hook(void *job, enqueue original) {
  void *context = bound != NULL ? bound : the_lookup();
  if (context != NULL) {
    the_sink(context, job);
  } else {
    original(job);
  }
}

void job_hook_install(job_sink sink, job_context lookup) {
  the_sink = sink;
  the_lookup = lookup;
  swift_task_enqueueGlobal_hook = hook;
}

void job_hook_bind(void *context) { bound = context; }

void job_run(void *job) {
  executor_ref global = {NULL, 0};
  swift_job_run(job, global);
}
