#define _GNU_SOURCE
#include "CSymbols.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define OWN_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OWN_ARCH AUDIT_ARCH_AARCH64
#else
#error "name the architecture of seccomp(2)"
#endif

enum { WRITING = O_ACCMODE | O_CREAT | O_TRUNC | O_APPEND, ANY = 0xff };

/* A call that is let through where no bit of `mask` is set in its argument. */
struct allowed {
  unsigned call, argument, mask;
};

static const struct allowed calls[] = {
    {SYS_read, ANY, 0}, {SYS_write, ANY, 0}, {SYS_close, ANY, 0}, {SYS_lseek, ANY, 0}, {SYS_pread64, ANY, 0},
    {SYS_readv, ANY, 0}, {SYS_writev, ANY, 0}, {SYS_fstat, ANY, 0}, {SYS_newfstatat, ANY, 0}, {SYS_statx, ANY, 0},
    {SYS_openat, 2, WRITING}, {SYS_readlinkat, ANY, 0}, {SYS_faccessat, ANY, 0}, {SYS_getcwd, ANY, 0},
    /* F_DUPFD to F_SETLKW: not those that choose the receiver of a signal. */
    {SYS_fcntl, 1, ~7u}, {SYS_mmap, ANY, 0}, {SYS_munmap, ANY, 0}, {SYS_mprotect, ANY, 0}, {SYS_mremap, ANY, 0},
    {SYS_madvise, ANY, 0}, {SYS_brk, ANY, 0}, {SYS_rt_sigaction, ANY, 0}, {SYS_rt_sigprocmask, ANY, 0},
    {SYS_rt_sigreturn, ANY, 0}, {SYS_futex, ANY, 0}, {SYS_set_tid_address, ANY, 0}, {SYS_set_robust_list, ANY, 0},
    {SYS_rseq, ANY, 0}, {SYS_getrandom, ANY, 0}, {SYS_clock_gettime, ANY, 0}, {SYS_uname, ANY, 0},
    {SYS_getpid, ANY, 0}, {SYS_gettid, ANY, 0}, {SYS_exit, ANY, 0}, {SYS_exit_group, ANY, 0}, {SYS_execve, ANY, 0},
    /* Its own limits, which are hard ones. */
    {SYS_prlimit64, 0, ~0u},
#ifdef __x86_64__
    {SYS_arch_prctl, ANY, 0}, {SYS_access, ANY, 0}, {SYS_readlink, ANY, 0}, {SYS_stat, ANY, 0}, {SYS_lstat, ANY, 0},
#endif
};

enum { CALLS = sizeof calls / sizeof *calls };

/* 0, or -1: the kernel has no seccomp(2), or the filter of a service forbids it. */
static int confine(void) {
  struct sock_filter program[4 + 5 * CALLS + 1];
  unsigned short size = 0;
  const unsigned short load = BPF_LD | BPF_W | BPF_ABS;
  program[size++] = (struct sock_filter)BPF_STMT(load, offsetof(struct seccomp_data, arch));
  program[size++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OWN_ARCH, 1, 0);
  program[size++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  program[size++] = (struct sock_filter)BPF_STMT(load, offsetof(struct seccomp_data, nr));
  for (int i = 0; i < CALLS; i++) {
    int has_mask = calls[i].argument != ANY;
    program[size++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i].call, 0, has_mask ? 4 : 1);
    if (has_mask) {
      unsigned place = (unsigned)offsetof(struct seccomp_data, args) + 8 * calls[i].argument;
      program[size++] = (struct sock_filter)BPF_STMT(load, place);  // both are little-endian
      program[size++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, calls[i].mask, 0, 1);
      program[size++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    }
    program[size++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  }
  program[size++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
  struct sock_fprog filter = {size, program};
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

/* Past the limit the kernel sends a signal; past the hard one of CPU time SIGKILL. */
static void limit(int resource, rlim_t most) {
  struct rlimit value = {most, most + (resource == RLIMIT_CPU)};
  if (setrlimit(resource, &value) != 0) _exit(126);
}

/* In the child, of a process that may have threads: only what a handler of a signal may call. */
static void run(char *const words[], int output, struct prism_confinement limits) {
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) _exit(126);
  for (int number = 1; number < 32; number++) signal(number, SIG_DFL);
  sigset_t empty;
  sigemptyset(&empty);
  sigprocmask(SIG_SETMASK, &empty, 0);
  int null = open("/dev/null", O_RDWR);
  if (null < 0 || dup2(output, 1) < 0 || dup2(null, 0) < 0 || dup2(null, 2) < 0 || chdir("/") != 0) _exit(126);
  syscall(436 /* close_range, Linux 5.9: on an older one they close with the exec */, 3u, ~0u, 0u);
  limit(RLIMIT_CPU, limits.cpu_seconds);
  limit(RLIMIT_AS, limits.memory_bytes);
  limit(RLIMIT_FSIZE, limits.file_bytes);
  limit(RLIMIT_CORE, 0);
  if (limits.file_bytes == 0 && confine() != 0) _exit(126);
  char *const environment[] = {0};
  execve(words[0], words, environment);
  _exit(127);
}

pid_t prism_start_confined(char *const words[], int output, struct prism_confinement limits) {
  pid_t child = fork();
  if (child == 0) run(words, output, limits);
  return child;
}
