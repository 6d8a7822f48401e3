#define _GNU_SOURCE
#include "CSpawn.h"

#include <errno.h>
#include <linux/close_range.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

// PR_SET_PDEATHSIG sends its signal when the *thread* ends that forked, and threads of a pool come and go. So every
// program is started by one thread that never ends.

struct order {
    const char *path;
    char *const *arguments, *const *environment;
    const int *streams;
    pid_t result;
    int is_done;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct order *placed;
static pthread_once_t once = PTHREAD_ONCE_INIT;

// In the child, which shares its parent's memory until it executes: system calls only.
static void execute(const struct order *order, pid_t parent, volatile int *failure) {
    sigset_t none;
    for (int number = 0; number < 3; number++) {
        if (dup2(order->streams[number], number) < 0) goto failed;
    }
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) goto failed;
    if (getppid() != parent) _exit(127);  // it ended before it could be watched
    if (close_range(3, ~0U, 0) != 0) goto failed;
    signal(SIGPIPE, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve(order->path, order->arguments, order->environment);
failed:
    *failure = errno;
    _exit(127);
}

static pid_t start(const struct order *order) {
    sigset_t all, before;
    volatile int failure = 0;
    pid_t parent = getpid();
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);  // no handler of the parent's may run in the child
    pid_t child = vfork();
    if (child == 0) execute(order, parent, &failure);
    int error = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (child < 0) return -error;
    return failure != 0 ? -failure : child;
}

static void *serve(void *unused) {
    (void)unused;
    pthread_mutex_lock(&mutex);
    for (;;) {
        while (placed == NULL || placed->is_done) pthread_cond_wait(&changed, &mutex);
        placed->result = start(placed);
        placed->is_done = 1;
        pthread_cond_broadcast(&changed);
    }
    return NULL;
}

static void begin(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, serve, NULL) == 0) pthread_detach(thread);
}

pid_t prism_spawn(const char *path, char *const arguments[], char *const environment[], const int streams[3]) {
    struct order order = {path, arguments, environment, streams, 0, 0};
    pthread_once(&once, begin);
    pthread_mutex_lock(&mutex);
    while (placed != NULL) pthread_cond_wait(&changed, &mutex);
    placed = &order;
    pthread_cond_broadcast(&changed);
    while (!order.is_done) pthread_cond_wait(&changed, &mutex);
    placed = NULL;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
    return order.result;
}
