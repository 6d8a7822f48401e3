/* The scenario program of Tests/ClientTests: reports from many threads while the driver ends, stops and starves the daemon.
 * clients/python/tests/client_load.py takes the same flags and writes the same log.
 *
 * Each report has a number. The log gets a line "NUMBER RESULT" for each when its call returns. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <prism.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct {
  const char *socket, *spool, *log, *program;
  long spool_bytes, threads, reports, seed, first, share, deadline, pace, children, close_ms;
  int signals, inherits_nothing;
} flags = {.threads = 8, .reports = 1000, .share = 30, .deadline = 2000, .close_ms = 10000};

static prism_client *client;
static int log_file;
static _Atomic long next_number, waits, slow_calls, calls_at_once, longest_us;
static long last_number;

static void die(const char *what) {
  fprintf(stderr, "client-load: %s\n", what);
  exit(2);
}

static const char *result_word(prism_result result) {
  switch (result) {
    case PRISM_STORED: return "stored";
    case PRISM_QUEUED: return "queued";
    case PRISM_SPOOLED: return "spooled";
    case PRISM_REFUSED: return "refused";
    case PRISM_DROPPED: return "dropped";
    default: return "error";
  }
}

static long micros(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000L + now.tv_nsec / 1000;
}

static unsigned long random_next(unsigned long *state) {
  *state = *state * 6364136223846793005ul + 1442695040888963407ul;
  return *state >> 33;
}

/* A call with deadline 0 never waits: it gives up the processor by itself (a voluntary switch) in no call, however busy
 * the machine is. Wall time is only printed. */
static prism_result call(const prism_report_data *report, uint32_t deadline) {
  struct rusage before, after;
  if (deadline > 0) return prism_report(client, report, deadline, NULL);
  getrusage(RUSAGE_THREAD, &before);
  long start = micros();
  prism_result result = prism_report(client, report, 0, NULL);
  long took = micros() - start;
  getrusage(RUSAGE_THREAD, &after);
  atomic_fetch_add(&calls_at_once, 1);
  if (after.ru_nvcsw != before.ru_nvcsw) atomic_fetch_add(&waits, 1);
  if (took > 1000) atomic_fetch_add(&slow_calls, 1);
  for (long longest = atomic_load(&longest_us); took > longest;)
    if (atomic_compare_exchange_weak(&longest_us, &longest, took)) break;
  return result;
}

static void report_one(long number, unsigned long *random) {
  char meta[200], line[64], payload[200];
  snprintf(meta, sizeof meta, "{\"n\":%ld,\"text\":\"an order of %ld items\"}", number, number % 97);
  prism_report_data report = PRISM_REPORT_INIT("sample", meta);
  report.name_space = "shop";
  if (number % 10 == 0) {
    memset(payload, (int)('a' + number % 26), sizeof payload);
    report.payload = payload;
    report.payload_bytes = sizeof payload;
  }
  int waits_for_it = random_next(random) % 100 < (unsigned long)flags.share;
  prism_result result = call(&report, waits_for_it ? (uint32_t)flags.deadline : 0);
  int length = snprintf(line, sizeof line, "%ld %s\n", number, result_word(result));
  if (write(log_file, line, (size_t)length) != length) die("the log cannot be written");
}

static void *report_many(void *argument) {
  unsigned long random = (unsigned long)flags.seed * 31 + (unsigned long)argument;
  for (long number; (number = atomic_fetch_add(&next_number, 1)) < last_number;) {
    report_one(number, &random);
    if (flags.pace > 0) nanosleep(&(struct timespec){flags.pace / 1000000, flags.pace % 1000000 * 1000}, NULL);
  }
  return NULL;
}

static void print_stats(prism_result closed, const prism_stats *s) {
  printf("{\"pid\":%d,\"closed\":\"%s\",\"accepted\":%llu,\"stored\":%llu,\"refused\":%llu,\"droppedQueue\":%llu,"
         "\"droppedSpool\":%llu,\"damagedBytes\":%llu,\"connects\":%llu,\"atOnce\":%ld,\"waits\":%ld,\"slow\":%ld,"
         "\"longestMicros\":%ld}\n",
         (int)getpid(), result_word(closed), (unsigned long long)s->accepted, (unsigned long long)s->stored,
         (unsigned long long)s->refused, (unsigned long long)s->dropped_queue, (unsigned long long)s->dropped_spool,
         (unsigned long long)s->damaged_bytes, (unsigned long long)s->connects, atomic_load(&calls_at_once),
         atomic_load(&waits), atomic_load(&slow_calls), atomic_load(&longest_us));
  fflush(stdout);
}

/* The counts of the loss callback; those of prism_close itself come only by it. */
static _Atomic unsigned long long told[4];
static void on_loss(void *context, prism_loss loss, uint64_t count, const char *code, const char *message) {
  (void)context, (void)code, (void)message;
  atomic_fetch_add(&told[loss], count);
}

static void close_and_print(void) {
  prism_stats stats = {.size = sizeof stats};
  prism_flush(client, (uint32_t)flags.close_ms);
  prism_get_stats(client, &stats);
  prism_result closed = prism_close(client, 0);
  stats.dropped_spool = atomic_load(&told[PRISM_LOSS_SPOOL]);
  stats.refused = atomic_load(&told[PRISM_LOSS_REFUSED]);
  print_stats(closed, &stats);
}

/* A child reports with the client that it inherited, then becomes a program that has inherited nothing. */
static void run_child(long index) {
  unsigned long random = (unsigned long)(flags.seed + index);
  for (long i = 0; i < 100; i++) report_one(flags.first + (index + 1) * 10000000 + i, &random);
  atomic_fetch_and(&told[PRISM_LOSS_SPOOL], 0);
  close_and_print();
  char *const words[] = {(char *)(uintptr_t)flags.program, (char *)(uintptr_t)"--inherits-nothing", NULL};
  execv(words[0], words);
  die("exec failed");
}

static int list_inherited(void) {
  DIR *list = opendir("/proc/self/fd");
  int count = 0;
  for (struct dirent *item; (item = readdir(list));) {
    int number = atoi(item->d_name);
    if (item->d_name[0] != '.' && number > 2 && number != dirfd(list)) count++;
  }
  closedir(list);
  return count == 0 ? 0 : 3;
}

static void on_signal(int number) { (void)number; }

static long number_of(const char *text) {
  char *end;
  long value = strtol(text, &end, 10);
  if (*end) die("a number is expected");
  return value;
}

static void read_flags(int count, char **words) {
  flags.program = words[0];
  for (int i = 1; i < count; i++) {
    const char *name = words[i];
    if (strcmp(name, "--inherits-nothing") == 0) {
      flags.inherits_nothing = 1;
      continue;
    }
    if (strcmp(name, "--signals") == 0) {
      flags.signals = 1;
      continue;
    }
    if (++i == count) die("a value is missing");
    struct { const char *name; const char **text; long *number; } known[] = {
        {"--socket", &flags.socket, NULL}, {"--spool", &flags.spool, NULL}, {"--log", &flags.log, NULL},
        {"--spool-bytes", NULL, &flags.spool_bytes}, {"--threads", NULL, &flags.threads},
        {"--reports", NULL, &flags.reports}, {"--seed", NULL, &flags.seed}, {"--first", NULL, &flags.first},
        {"--share", NULL, &flags.share}, {"--deadline", NULL, &flags.deadline}, {"--pace", NULL, &flags.pace},
        {"--children", NULL, &flags.children}, {"--close", NULL, &flags.close_ms}};
    size_t n = 0;
    while (n < sizeof known / sizeof *known && strcmp(known[n].name, name) != 0) n++;
    if (n == sizeof known / sizeof *known) die("unknown flag");
    if (known[n].text) *known[n].text = words[i];
    else *known[n].number = number_of(words[i]);
  }
}

int main(int count, char **words) {
  read_flags(count, words);
  if (flags.inherits_nothing) return list_inherited();
  prism_options options = PRISM_OPTIONS_INIT;
  options.socket = flags.socket;
  options.spool = flags.spool;
  options.spool_bytes = (uint64_t)flags.spool_bytes;
  options.app_name = "client-load-c";
  options.app_version = PRISM_CLIENT_VERSION;
  options.on_loss = on_loss;
  client = prism_open(&options, NULL);
  log_file = open(flags.log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (!client || log_file < 0) die("no client or no log");
  if (flags.signals) {
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 3000}, {0, 3000}}, NULL);
  }
  atomic_store(&next_number, flags.first);
  last_number = flags.first + flags.reports;
  pthread_t threads[64];
  if (flags.threads > 64) die("at most 64 threads");
  for (long i = 0; i < flags.threads; i++) pthread_create(&threads[i], NULL, report_many, (void *)i);
  pid_t children[64];
  for (long i = 0; i < flags.children && i < 64; i++) {
    usleep(100000);
    children[i] = fork();
    if (children[i] == 0) run_child(i);
  }
  for (long i = 0; i < flags.threads; i++) pthread_join(threads[i], NULL);
  int failed = 0, status;
  for (long i = 0; i < flags.children && i < 64; i++) {
    while (waitpid(children[i], &status, 0) < 0 && errno == EINTR) {
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) failed = 1;
  }
  close_and_print();
  return failed ? 4 : 0;
}
