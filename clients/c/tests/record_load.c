/* Puts records from several threads while the daemon may be killed, and follows their table:
 * record-load SOCKET THREADS PUTS PAUSE_MS. Prints "ID NUMBER VERSION" for the last put of each record. */
#define _GNU_SOURCE
#include <prism.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RECORDS = 5, DEADLINE_MS = 120000 };

static prism_client *client;
static int puts_each, pause_ms;
static _Atomic int failures;
static _Atomic long long watched = -1;
static _Atomic int changes;

static void on_change(void *context, const prism_change *change) {
  (void)context;
  if (change->generation < 0) fprintf(stderr, "the watch: %s %s\n", change->code, change->message);
  else atomic_store(&watched, (long long)change->generation);
  atomic_fetch_add(&changes, 1);
}

static void *put_many(void *argument) {
  int thread = (int)(long)argument;
  long long last[RECORDS] = {0}, version[RECORDS] = {0};
  for (int n = 1; n <= puts_each; n++) {
    char id[32], fields[64];
    snprintf(id, sizeof id, "c%d-%d", thread, n % RECORDS);
    snprintf(fields, sizeof fields, "{\"n\":%d}", n);
    prism_record_data record = PRISM_RECORD_INIT("part", id);
    record.name_space = "shop";
    record.fields = fields;
    /* The version is known: another one would be a lost or doubled change. */
    record.if_version = version[n % RECORDS] ? version[n % RECORDS] : PRISM_ABSENT;
    prism_record_answer answer;
    prism_result result = prism_put(client, &record, DEADLINE_MS, &answer);
    if (result != PRISM_STORED) {
      fprintf(stderr, "%s: %s %s\n", id, prism_result_name(result), answer.message);
      atomic_fetch_add(&failures, 1);
      return NULL;
    }
    last[n % RECORDS] = n;
    nanosleep(&(struct timespec){pause_ms / 1000, pause_ms % 1000 * 1000000L}, NULL);
    version[n % RECORDS] = answer.version;
  }
  for (int i = 0; i < RECORDS; i++) printf("c%d-%d %lld %lld\n", thread, i, last[i], version[i]);
  return NULL;
}

/* Whether the watch comes to the table's generation. */
static int is_followed(void) {
  prism_record_data table = PRISM_RECORD_INIT("part", NULL);
  table.name_space = "shop";
  prism_record_answer answer;
  if (prism_list(client, &table, 1, DEADLINE_MS, &answer) != PRISM_STORED) return 0;
  long long wanted = strtoll(strstr(answer.json, "\"generation\":") + 13, NULL, 10);
  free(answer.json);
  for (int i = 0; i < DEADLINE_MS && atomic_load(&watched) < wanted; i++)
    nanosleep(&(struct timespec){0, 1000000}, NULL);
  return atomic_load(&watched) >= wanted;
}

int main(int count, char **words) {
  if (count != 5) return 64;
  prism_options options = PRISM_OPTIONS_INIT;
  options.socket = words[1];
  options.spool = "";
  client = prism_open(&options, NULL);
  int threads = atoi(words[2]);
  puts_each = atoi(words[3]);
  pause_ms = atoi(words[4]);
  prism_watch *watch = prism_watch_table(client, "shop", "part", on_change, NULL, NULL);
  pthread_t running[64];
  if (threads > 64 || !watch) return 64;
  for (long i = 0; i < threads; i++) pthread_create(&running[i], NULL, put_many, (void *)i);
  for (long i = 0; i < threads; i++) pthread_join(running[i], NULL);
  int is_whole = atomic_load(&failures) == 0 && is_followed();
  fprintf(stderr, "%d changes were told, up to generation %lld\n", atomic_load(&changes), atomic_load(&watched));
  prism_watch_end(watch);
  prism_close(client, 0);
  return is_whole ? 0 : 1;
}
