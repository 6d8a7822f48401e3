#pragma once
#include <librdkafka/rdkafka.h>

// The call with headers has variable arguments, which Swift can't pass.

/// Copies the key and the value into the producer's queue. The producer owns `headers` if this returns no error.
static inline rd_kafka_resp_err_t prism_kafka_produce(rd_kafka_t *producer, const char *topic, const void *key,
                                                      size_t key_bytes, const void *value, size_t value_bytes,
                                                      int64_t milliseconds, rd_kafka_headers_t *headers, void *opaque) {
  return rd_kafka_producev(producer, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_KEY(key, key_bytes),
                           RD_KAFKA_V_VALUE((void *)value, value_bytes), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                           RD_KAFKA_V_TIMESTAMP(milliseconds), RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_OPAQUE(opaque),
                           RD_KAFKA_V_END);
}
