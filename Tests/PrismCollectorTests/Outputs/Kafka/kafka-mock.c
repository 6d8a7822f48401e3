// Librdkafka's mock cluster as a program. Usage: kafka-mock BROKERS PARTITIONS
// It prints the brokers' addresses, then answers each line of standard input, and ends with the input:
//   down BROKER, up BROKER, rtt BROKER MILLISECONDS, leader PARTITION BROKER
//   errors CODE COUNT    the next requests to produce fail
//   read                 every message, a line each: partition, key, four headers, value, with tabs between; then END
#include <inttypes.h>
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char topic[] = "prism";
static const char *const headers[] = {"prism-packet", "prism-device", "prism-namespace", "prism-type"};

static void quiet(const rd_kafka_t *handle, int level, const char *facility, const char *text) {
  (void)handle, (void)level, (void)facility, (void)text;
}

static rd_kafka_t *open_handle(rd_kafka_type_t type, const char *names[][2], int count) {
  char reason[512];
  rd_kafka_conf_t *configuration = rd_kafka_conf_new();
  rd_kafka_conf_set_log_cb(configuration, quiet);
  for (int i = 0; i < count; i++) rd_kafka_conf_set(configuration, names[i][0], names[i][1], reason, sizeof reason);
  rd_kafka_t *handle = rd_kafka_new(type, configuration, reason, sizeof reason);
  if (!handle) {
    fprintf(stderr, "kafka-mock: %s\n", reason);
    exit(70);
  }
  return handle;
}

static void print_message(const rd_kafka_message_t *message) {
  rd_kafka_headers_t *list = NULL;
  rd_kafka_message_headers(message, &list);
  printf("%" PRId32 "\t%.*s", message->partition, (int)message->key_len, (const char *)message->key);
  for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
    const void *value = "";
    size_t bytes = 0;
    if (list) rd_kafka_header_get_last(list, headers[i], &value, &bytes);
    printf("\t%.*s", (int)bytes, (const char *)value);
  }
  printf("\t%.*s\n", (int)message->len, (const char *)message->payload);
}

static void read_all(const char *brokers, int partitions) {
  const char *names[][2] = {{"bootstrap.servers", brokers}, {"group.id", "reader"}, {"enable.partition.eof", "true"},
                            {"fetch.wait.max.ms", "10"},    {"auto.offset.reset", "earliest"}};
  rd_kafka_t *reader = open_handle(RD_KAFKA_CONSUMER, names, 5);
  rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(partitions);
  for (int i = 0; i < partitions; i++)
    rd_kafka_topic_partition_list_add(list, topic, i)->offset = RD_KAFKA_OFFSET_BEGINNING;
  rd_kafka_poll_set_consumer(reader);
  rd_kafka_assign(reader, list);
  rd_kafka_topic_partition_list_destroy(list);
  for (int left = partitions; left > 0;) {
    rd_kafka_message_t *message = rd_kafka_consumer_poll(reader, 1000);
    if (!message) continue;
    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) left--;
    if (!message->err) print_message(message);
    rd_kafka_message_destroy(message);
  }
  rd_kafka_destroy(reader);
  puts("END");
}

static const char *obey(rd_kafka_mock_cluster_t *cluster, const char *brokers, int partitions, const char *line) {
  int one = 0, other = 0;
  rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR_NO_ERROR;
  if (sscanf(line, "down %d", &one) == 1) {
    code = rd_kafka_mock_broker_set_down(cluster, one);
  } else if (sscanf(line, "up %d", &one) == 1) {
    code = rd_kafka_mock_broker_set_up(cluster, one);
  } else if (sscanf(line, "rtt %d %d", &one, &other) == 2) {
    code = rd_kafka_mock_broker_set_rtt(cluster, one, other);
  } else if (sscanf(line, "leader %d %d", &one, &other) == 2) {
    code = rd_kafka_mock_partition_set_leader(cluster, topic, one, other);
  } else if (sscanf(line, "errors %d %d", &one, &other) == 2) {
    for (int i = 0; i < other; i++) rd_kafka_mock_push_request_errors(cluster, 0, 1, one);
  } else if (!strncmp(line, "read", 4)) {
    read_all(brokers, partitions);
    return NULL;
  } else {
    return "what is this?";
  }
  return code ? rd_kafka_err2str(code) : "ok";
}

int main(int count, char **words) {
  if (count != 3) return 64;
  int brokers = atoi(words[1]), partitions = atoi(words[2]);
  setvbuf(stdout, NULL, _IOLBF, 0);
  rd_kafka_t *handle = open_handle(RD_KAFKA_PRODUCER, NULL, 0);
  rd_kafka_mock_cluster_t *cluster = rd_kafka_mock_cluster_new(handle, brokers);
  rd_kafka_mock_topic_create(cluster, topic, partitions, brokers);
  const char *addresses = rd_kafka_mock_cluster_bootstraps(cluster);
  puts(addresses);
  char line[256];
  while (fgets(line, sizeof line, stdin)) {
    const char *answer = obey(cluster, addresses, partitions, line);
    if (answer) puts(answer);
  }
  rd_kafka_mock_cluster_destroy(cluster);
  rd_kafka_destroy(handle);
  return 0;
}
