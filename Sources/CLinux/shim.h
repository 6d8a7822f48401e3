#pragma once
// No _GNU_SOURCE: Swift's Glibc module is built without it, and structures that differ between the two don't compile.
#include <sys/timex.h>
#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/time.h>
#include <unistd.h>
#include <elf.h>
#include <malloc.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/inotify.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/stat.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/inet_diag.h>
#include <netinet/in.h>
#include <string.h>

// --- Files (PrismStore/Safety) ---

/// statx is hidden without _GNU_SOURCE.
extern int statx(int folder, const char *path, int flags, unsigned mask, struct statx *facts);

/// The identity of the file at `path`, without its times. On Linux 6.13 and newer a question for a file's times makes the
/// next write also write the inode. That is a third of the time of a small commit
/// (docs.kernel.org/filesystems/multigrain-ts.html).
/// 0, or -1 with errno.
static inline int prism_file_identity(const char *path, uint64_t *device, uint64_t *inode) {
  struct statx facts;
  if (statx(AT_FDCWD, path, 0, STATX_INO, &facts) != 0) return -1;
  *device = (uint64_t)facts.stx_dev_major << 32 | facts.stx_dev_minor;
  *inode = facts.stx_ino;
  return 0;
}

// --- Unix sockets (PrismLinux/Sockets) ---

extern int accept4(int listener, struct sockaddr *address, socklen_t *size, int flags);

/// accept4 is hidden without _GNU_SOURCE, which Swift's Glibc module is built without. -1 with errno on failure.
static inline int prism_accept(int listener) {
  return accept4(listener, 0, 0, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

/// SOCK_* are an enum to Swift, not integers that can be combined. -1 with errno on failure.
static inline int prism_unix_socket(void) {
  return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/// `struct ucred` is hidden without _GNU_SOURCE. 0, or -1 with errno.
static inline int prism_peer_credentials(int socket, int *pid, unsigned *uid, unsigned *gid) {
  struct { int pid; unsigned uid, gid; } peer;
  socklen_t size = sizeof peer;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return -1;
  *pid = peer.pid;
  *uid = peer.uid;
  *gid = peer.gid;
  return 0;
}

/// SO_PEERGROUPS (Linux 4.13) isn't in glibc's headers: the peer's supplementary groups when it connected.
/// The number of groups written to `groups`, or -1 with errno (ERANGE: more than `capacity`).
static inline int prism_peer_groups(int socket, unsigned *groups, int capacity) {
  socklen_t size = (socklen_t)capacity * sizeof *groups;
  if (getsockopt(socket, SOL_SOCKET, 59 /* SO_PEERGROUPS */, groups, &size) != 0) return -1;
  return (int)(size / sizeof *groups);
}

/// SO_PEERPIDFD (Linux 6.5) isn't in glibc's headers: a descriptor of the process that connected, which is readable once
/// that has ended. -1 with errno (ENOPROTOOPT: the kernel is older; else the process is gone).
static inline int prism_peer_process(int socket) {
  int process = -1;
  socklen_t size = sizeof process;
  if (getsockopt(socket, SOL_SOCKET, 77 /* SO_PEERPIDFD */, &process, &size) != 0) return -1;
  return process;
}

/// Writes the address and the port of one end of a TCP connection. - Returns: the family, 0 for another socket.
static inline int prism_tcp_end(const struct sockaddr_storage *end, unsigned *address, unsigned short *port) {
  if (end->ss_family == AF_INET) {
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)end;
    memcpy(address, &v4->sin_addr, 4);
    *port = v4->sin_port;
    return AF_INET;
  }
  if (end->ss_family != AF_INET6) return 0;
  const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)end;
  memcpy(address, &v6->sin6_addr, 16);
  *port = v6->sin6_port;
  return AF_INET6;
}

struct prism_tcp_question {
  struct nlmsghdr head;
  struct inet_diag_req_v2 body;
};

/// Asks for the other end of a connection (sock_diag(7)). 0, or -1 if it is no TCP connection.
static inline int prism_tcp_question_set(struct prism_tcp_question *question, int connection) {
  struct sockaddr_storage own, peer;
  socklen_t own_size = sizeof own, peer_size = sizeof peer;
  if (getsockname(connection, (struct sockaddr *)&own, &own_size) != 0) return -1;
  if (getpeername(connection, (struct sockaddr *)&peer, &peer_size) != 0) return -1;
  memset(question, 0, sizeof *question);
  struct inet_diag_sockid *id = &question->body.id;
  int family = prism_tcp_end(&peer, id->idiag_src, &id->idiag_sport);
  if (family == 0 || prism_tcp_end(&own, id->idiag_dst, &id->idiag_dport) != family) return -1;
  id->idiag_cookie[0] = id->idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  question->body.sdiag_family = (unsigned char)family;
  question->body.sdiag_protocol = IPPROTO_TCP;
  question->body.idiag_states = ~0u;
  question->head.nlmsg_len = sizeof *question;
  question->head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question->head.nlmsg_flags = NLM_F_REQUEST;
  return 0;
}

/// The user of the socket at the other end of a TCP connection on this machine. Does not wait: the kernel answers within
/// `send`. 0, or -1 if there is no such socket, or no process has it open: of a closed one the kernel says user 0.
static inline int prism_tcp_peer_user(int connection, unsigned *user) {
  struct prism_tcp_question question;
  if (prism_tcp_question_set(&question, connection) != 0) return -1;
  int descriptor = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);
  if (descriptor < 0) return -1;
  struct { struct nlmsghdr head; struct inet_diag_msg body; char more[512]; } answer;
  memset(&answer, 0, sizeof answer);
  ssize_t count = -1;
  if (send(descriptor, &question, sizeof question, MSG_NOSIGNAL) == (ssize_t)sizeof question)
    count = recv(descriptor, &answer, sizeof answer, 0);
  close(descriptor);
  if (count < (ssize_t)(sizeof answer.head + sizeof answer.body)) return -1;
  if (answer.head.nlmsg_type != SOCK_DIAG_BY_FAMILY || answer.body.idiag_inode == 0) return -1;
  // ESTABLISHED, FIN_WAIT1, FIN_WAIT2, CLOSE_WAIT: a listener, or a socket that only tries to connect, is another one.
  if ((1 << answer.body.idiag_state & (1 << 1 | 1 << 4 | 1 << 5 | 1 << 8)) == 0) return -1;
  if (answer.body.id.idiag_sport != question.body.id.idiag_sport) return -1;
  if (answer.body.id.idiag_dport != question.body.id.idiag_dport) return -1;
  *user = answer.body.idiag_uid;
  return 0;
}

/// MSG_* are an enum to Swift. Never raises SIGPIPE. The bytes sent, or -1 with errno.
static inline ssize_t prism_send(int socket, const void *bytes, size_t count) {
  return send(socket, bytes, count, MSG_NOSIGNAL);
}

/// A Unix socket for datagrams whose kernel names the sender of each (SO_PASSCRED). -1 with errno.
static inline int prism_unix_datagram_socket(void) {
  int descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;
  if (descriptor >= 0) setsockopt(descriptor, SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
  return descriptor;
}

/// Receives a datagram, and its sender where the socket has one (unix(7)): `sender` is process, user and group, or all -1.
/// Descriptors that come with it have no room and are closed. Does not wait.
/// The whole length, which may be more than `capacity`, or -1 with errno.
static inline ssize_t prism_receive(int socket, void *bytes, size_t capacity, unsigned *sender) {
  union { struct cmsghdr head; char bytes[CMSG_SPACE(12)]; } control;
  struct iovec part = {bytes, capacity};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  ssize_t count = recvmsg(socket, &message, MSG_DONTWAIT | MSG_TRUNC | MSG_CMSG_CLOEXEC);
  sender[0] = sender[1] = sender[2] = ~0u;
  struct cmsghdr *head = count < 0 ? 0 : CMSG_FIRSTHDR(&message);
  if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == 2 /* SCM_CREDENTIALS */) memcpy(sender, CMSG_DATA(head), 12);
  return count;
}

/// Datagrams that the kernel dropped because the socket had no room, since it was opened (SO_MEMINFO of Linux 4.12, the counter
/// of SO_RXQ_OVFL, also while nothing comes).
static inline unsigned prism_dropped(int socket) {
  unsigned figures[9] = {0};
  socklen_t size = sizeof figures;
  return getsockopt(socket, SOL_SOCKET, 55 /* SO_MEMINFO */, figures, &size) == 0 ? figures[8] : 0;
}

// --- Which sockets are ready (PrismLinux/Sockets); EPOLL* are an enum to Swift, and its event is packed ---

/// -1 with errno.
static inline int prism_poll_new(void) { return epoll_create1(EPOLL_CLOEXEC); }

/// Sets the events that a socket is watched for. Without events its hang-up is reported, once.
/// 0, or -1 with errno; only the first call for a socket can fail.
static inline int prism_poll_set(int poll, int socket, int isNew, int reads, int writes, unsigned long long id) {
  unsigned events = (reads ? EPOLLIN : 0) | (writes ? EPOLLOUT : 0);
  struct epoll_event event = {.events = events ? events : EPOLLONESHOT, .data.u64 = id};
  return epoll_ctl(poll, isNew ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, socket, &event);
}

static inline void prism_poll_remove(int poll, int socket) {
  struct epoll_event event = {0};
  epoll_ctl(poll, EPOLL_CTL_DEL, socket, &event);
}

enum { PRISM_POLL_EVENTS = 512 };

/// The `id`s of those that are ready, at most PRISM_POLL_EVENTS of them, waited for at most `milliseconds` (-1: for
/// ever); how many.
static inline int prism_poll_ready(int poll, unsigned long long *ids, int milliseconds) {
  struct epoll_event ready[PRISM_POLL_EVENTS];
  int count = epoll_wait(poll, ready, PRISM_POLL_EVENTS, milliseconds);
  for (int index = 0; index < count; index++) ids[index] = ready[index].data.u64;
  return count < 0 ? 0 : count;
}

/// A descriptor that wakes a poll; EFD_* are an enum to Swift. Reading it doesn't block. -1 with errno.
static inline int prism_event_new(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

// --- Memory (PrismLinux/Process) ---

/// dl_iterate_phdr is hidden without _GNU_SOURCE.
struct prism_loaded_object {
  Elf64_Addr base;
  const char *name;
  const Elf64_Phdr *segments;
  Elf64_Half count;
};
extern int dl_iterate_phdr(int (*visit)(struct prism_loaded_object *, size_t, void *), void *context);

static int prism_forget_object(struct prism_loaded_object *object, size_t size, void *context) {
  (void)size, (void)context;
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  for (int index = 0; index < object->count; index++) {
    const Elf64_Phdr *segment = &object->segments[index];
    // Pages that may be written, or were written by relocation, are not in the file.
    if (segment->p_type != PT_LOAD || (segment->p_flags & PF_W)) continue;
    uintptr_t start = (object->base + segment->p_vaddr + page - 1) & ~(page - 1);
    uintptr_t end = (object->base + segment->p_vaddr + segment->p_memsz) & ~(page - 1);
    if (end > start) madvise((void *)start, end - start, MADV_DONTNEED);
  }
  return 0;
}

/// Unmaps the pages of code and constants of the program and its libraries. They are in files and are read again when
/// they are used.
static inline void prism_forget_code(void) { dl_iterate_phdr(prism_forget_object, 0); }

// --- Routes and links (PrismLinux/Network) ---

/// SOCK_* are an enum to Swift. Bound to `groups` (RTMGRP_*; 0: only answers). Without groups, reading waits at most a second.
/// -1 with errno.
static inline int prism_netlink_socket(unsigned groups) {
  int descriptor = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | (groups ? SOCK_NONBLOCK : 0), NETLINK_ROUTE);
  if (descriptor < 0) return -1;
  struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = groups};
  struct timeval wait = {1, 0};
  if (bind(descriptor, (struct sockaddr *)&address, sizeof address) != 0 ||
      setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait) != 0) {
    int failure = errno;
    close(descriptor);
    errno = failure;
    return -1;
  }
  return descriptor;
}

/// Asks for all links (RTM_GETLINK) or all routes (RTM_GETROUTE). The structures' padding macros don't reach Swift.
/// The bytes sent, or -1 with errno.
static inline ssize_t prism_netlink_request_dump(int descriptor, unsigned short type, unsigned sequence) {
  struct {
    struct nlmsghdr header;
    union { struct rtmsg route; struct ifinfomsg link; } body;
  } request = {0};
  request.header.nlmsg_len = NLMSG_LENGTH(type == RTM_GETROUTE ? sizeof(struct rtmsg) : sizeof(struct ifinfomsg));
  request.header.nlmsg_type = type;
  request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  request.header.nlmsg_seq = sequence;
  return send(descriptor, &request, request.header.nlmsg_len, MSG_NOSIGNAL);
}

// --- Watching files (PrismLinux/Files) ---

/// IN_CLOEXEC and IN_NONBLOCK are an enum to Swift. -1 with errno.
static inline int prism_inotify(void) { return inotify_init1(IN_CLOEXEC | IN_NONBLOCK); }

/// Watches a folder for every change of its files, by name or content. The watch, or -1 with errno.
static inline int prism_inotify_watch_folder(int descriptor, const char *path) {
  return inotify_add_watch(descriptor, path, IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_CLOSE_WRITE |
      IN_MODIFY | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR);
}

// --- The clock (prismctl) ---

/// adjtimex(2), whose header Swift's Glibc leaves out: 1 where something keeps the clock in time, 0 where nothing does,
/// -1 where the kernel does not tell.
static inline int prism_clock_is_kept(void) {
  struct timex kernel = {0};
  if (adjtimex(&kernel) == -1) return -1;
  return (kernel.status & STA_UNSYNC) == 0;
}

// --- systemd (PrismLinux/Inputs) ---

/// The manager's times of this boot (org.freedesktop.systemd1(5)): microseconds, 0 where a phase was not passed.
struct prism_boot_times {
  uint64_t firmware, loader, initrd, userspace, finish;
};

/// Asks systemd over D-Bus by libsystemd, which is loaded for this and let go again. 0, or -1 where systemd can't be asked.
static inline int prism_read_boot_times(struct prism_boot_times *times) {
  void *library = dlopen("libsystemd.so.0", RTLD_NOW | RTLD_LOCAL);
  if (!library) return -1;
  int (*open_bus)(void **) = (int (*)(void **))dlsym(library, "sd_bus_open_system");
  int (*set_timeout)(void *, uint64_t) = (int (*)(void *, uint64_t))dlsym(library, "sd_bus_set_method_call_timeout");
  int (*get)(void *, const char *, const char *, const char *, const char *, void *, char, void *) =
      (int (*)(void *, const char *, const char *, const char *, const char *, void *, char, void *))dlsym(
          library, "sd_bus_get_property_trivial");
  void *(*close_bus)(void *) = (void *(*)(void *))dlsym(library, "sd_bus_flush_close_unref");
  void *bus = NULL;
  int result = -1;
  if (open_bus && set_timeout && get && close_bus && open_bus(&bus) >= 0) {
    const struct { const char *name; uint64_t *value; } wanted[] = {
        {"FirmwareTimestampMonotonic", &times->firmware}, {"LoaderTimestampMonotonic", &times->loader},
        {"InitRDTimestampMonotonic", &times->initrd}, {"UserspaceTimestampMonotonic", &times->userspace},
        {"FinishTimestampMonotonic", &times->finish}};
    set_timeout(bus, 5000000);
    result = 0;
    for (int i = 0; i < 5 && result == 0; i++)
      if (get(bus, "org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager",
              wanted[i].name, NULL, 't', wanted[i].value) < 0) result = -1;
    close_bus(bus);
  }
  dlclose(library);
  return result;
}

/// The calls of libsystemd that read a journal (sd-journal(3)), by their names without `sd_journal_`.
struct prism_journal_calls {
  void *library;
  int (*open)(void **, int);
  int (*open_directory)(void **, const char *, int);
  void (*close)(void *);
  int (*add_match)(void *, const void *, size_t);
  int (*add_disjunction)(void *);
  int (*seek_realtime_usec)(void *, uint64_t);
  int (*seek_cursor)(void *, const char *);
  int (*test_cursor)(void *, const char *);
  int (*next)(void *);
  int (*get_cursor)(void *, char **);
  int (*get_realtime_usec)(void *, uint64_t *);
  int (*set_data_threshold)(void *, size_t);
  int (*get_data)(void *, const char *, const void **, size_t *);
  void (*restart_data)(void *);
  int (*enumerate_available_data)(void *, const void **, size_t *);
  int (*get_fd)(void *);
  int (*get_events)(void *);
  int (*process)(void *);
  int (*has_runtime_files)(void *);
  int (*has_persistent_files)(void *);
};

/// Loads libsystemd, which is there only where a journal is read. 0, or -1 where it is missing or too old.
static inline int prism_journal_load(struct prism_journal_calls *calls) {
  calls->library = dlopen("libsystemd.so.0", RTLD_NOW | RTLD_LOCAL);
  if (!calls->library) return -1;
  const struct { const char *name; void **call; } wanted[] = {
      {"open", (void **)&calls->open}, {"open_directory", (void **)&calls->open_directory},
      {"close", (void **)&calls->close}, {"add_match", (void **)&calls->add_match},
      {"add_disjunction", (void **)&calls->add_disjunction},
      {"seek_realtime_usec", (void **)&calls->seek_realtime_usec}, {"seek_cursor", (void **)&calls->seek_cursor},
      {"test_cursor", (void **)&calls->test_cursor}, {"next", (void **)&calls->next},
      {"get_cursor", (void **)&calls->get_cursor}, {"get_realtime_usec", (void **)&calls->get_realtime_usec},
      {"set_data_threshold", (void **)&calls->set_data_threshold},
      {"get_data", (void **)&calls->get_data}, {"restart_data", (void **)&calls->restart_data},
      {"enumerate_available_data", (void **)&calls->enumerate_available_data}, {"get_fd", (void **)&calls->get_fd},
      {"get_events", (void **)&calls->get_events},
      {"process", (void **)&calls->process}, {"has_runtime_files", (void **)&calls->has_runtime_files},
      {"has_persistent_files", (void **)&calls->has_persistent_files}};
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
    char name[64] = "sd_journal_";
    strcat(name, wanted[i].name);
    *wanted[i].call = dlsym(calls->library, name);
    if (!*wanted[i].call) return dlclose(calls->library), -1;
  }
  return 0;
}
