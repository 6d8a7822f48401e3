#pragma once
#include <libpq-fe.h>

// The fields of a result are named by character constants, which Swift doesn't import.

/// The SQLSTATE of an error; NULL if the server gave no code.
static inline const char *prism_pq_state(const PGresult *result) { return PQresultErrorField(result, PG_DIAG_SQLSTATE); }
static inline const char *prism_pq_constraint(const PGresult *result) { return PQresultErrorField(result, PG_DIAG_CONSTRAINT_NAME); }

/// The first line of a message, without the details, which may hold a row's content.
static inline const char *prism_pq_message(const PGresult *result) {
  return PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
}

/// WARNING, NOTICE, … in English, in any language of the server.
static inline const char *prism_pq_severity(const PGresult *result) {
  return PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
}
