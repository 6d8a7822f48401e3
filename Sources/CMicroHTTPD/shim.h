#pragma once
#include <stdint.h>
#include <sys/socket.h>
#include <microhttpd.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

// Swift can't call variadic C functions: these are the calls that PrismHTTP makes, with their types written out.

// Called with the target of each request before it is decoded; what it returns is put into the request's slot.
typedef void *(*prism_http_target_callback)(void *context, const char *target, struct MHD_Connection *connection);

// MHD_start_daemon is variadic. `options` ends with MHD_OPTION_END; `context` is passed to all four callbacks.
static inline struct MHD_Daemon *prism_http_start(
    unsigned int flags, void *context, MHD_AccessHandlerCallback answer, MHD_RequestCompletedCallback completed,
    MHD_NotifyConnectionCallback connection, prism_http_target_callback target, const struct MHD_OptionItem *options) {
  return MHD_start_daemon(flags, 0, NULL, NULL, answer, context,
                          MHD_OPTION_URI_LOG_CALLBACK, target, context,
                          MHD_OPTION_NOTIFY_COMPLETED, completed, context,
                          MHD_OPTION_NOTIFY_CONNECTION, connection, context,
                          MHD_OPTION_ARRAY, options, MHD_OPTION_END);
}

// MHD_get_connection_info is variadic, and answers with a union of pointers. NULL for a peer without an address.
static inline const struct sockaddr *prism_http_peer(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
  return info == NULL ? NULL : info->client_addr;
}

// As above. -1 when libmicrohttpd doesn't know.
static inline int prism_http_socket(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  return info == NULL ? -1 : info->connect_fd;
}

// As above. The bytes of the request's head; 0 when libmicrohttpd doesn't know.
static inline size_t prism_http_head_bytes(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
  return info == NULL ? 0 : info->header_size;
}

// As above, and GnuTLS's verification takes its arguments in arrays of unions. libmicrohttpd asks for a client's
// certificate but never checks it. Returns whether the client showed a certificate of the given authority that is valid
// today and not limited to other uses.
static inline int prism_http_client_is_certified(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
  if (info == NULL || info->tls_session == NULL) return 0;
  gnutls_typed_vdata_st purpose = {
      .type = GNUTLS_DT_KEY_PURPOSE_OID, .data = (unsigned char *)GNUTLS_KP_TLS_WWW_CLIENT, .size = 0};
  unsigned int status = ~0u;
  int result = gnutls_certificate_verify_peers((gnutls_session_t)info->tls_session, &purpose, 1, &status);
  return result == GNUTLS_E_SUCCESS && status == 0;
}
