/* devices: a fleet of simulated devices, each with a stream and a connection of its own, that post packets (docs/packet.md) to a
 * collector at an interval, each until it has its answer 200.
 *
 *   devices --to HOST:PORT --key HEX [--devices N] [--interval S] [--seconds S] [--rows N] [--tls] [--close]
 *           [--strangers N] [--idle] [--first N] [--patience S]
 *
 *   --close      a new connection for each packet
 *   --strangers  so many connections beside them that prove nothing, and hold back the most of a body of 8 MiB
 *   --first      the number of the first one, for another program with the numbers before
 *   --idle       each device posts one packet, and then keeps its connection
 *   --patience   after --seconds, go on until each device had an answer 200, until so many seconds are over
 *
 * Devices begin over the first interval, from addresses 127.1.x.y of their own, 200 at each. One line of JSON on standard output.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

enum { DEVICES_AN_ADDRESS = 200, ANSWER_SECONDS = 60, BODY_BYTES_MAX = 1 << 20 };
enum step { RESTS, CONNECTS, SHAKES_HANDS, WRITES, READS };

static struct {
  char *host;
  int port, devices, strangers, rows, first;
  double interval, seconds, patience;
  bool tls, closes, is_idle;
  unsigned char key[32];
  int key_bytes;
} options = {"127.0.0.1", 0, 1000, 0, 10, 0, 5, 30, 0, false, false, false, {0}, 0};

struct device {
  int descriptor;
  enum step step;
  SSL *tls;
  /* Of the packet on its way and of the last one that was taken; empty: there is none. */
  char packet[37], last[37];
  long taken, failures;
  /* When the next packet is due, and when the one on its way was begun. */
  double due, begun;
  char *request;
  size_t request_bytes, sent;
  char answer[2048];
  size_t answer_bytes;
};

static struct device *devices;
static int poller;
static SSL_CTX *context;
static struct { long posts, taken, refused, lost, late, connections, open, open_most, statuses[600]; } counts;
static struct { float *seconds; size_t count, room; } latencies;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int64_t milliseconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  return time.tv_sec * 1000LL + time.tv_nsec / 1000000;
}

static uint64_t random_word(void) {
  static uint64_t state = 0;
  if (!state) RAND_bytes((unsigned char *)&state, sizeof state);
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}

static double random_part(void) { return (double)(random_word() >> 11) / 9007199254740992.0; }

static void fail(const char *what) {
  fprintf(stderr, "devices: %s: %s\n", what, strerror(errno));
  exit(1);
}

// MARK: - The packet

static void name_packet(struct device *device) {
  uint64_t time = (uint64_t)milliseconds(), high = random_word(), low = random_word();
  snprintf(device->packet, sizeof device->packet, "%08x-%04x-7%03x-%04x-%012llx", (unsigned)(time >> 16),
           (unsigned)(time & 0xffff), (unsigned)(high & 0xfff), (unsigned)(0x8000 | (high >> 20 & 0x3fff)),
           (unsigned long long)(low >> 16));
}

static size_t write_metas(char *at, const char *name, const struct device *device) {
  char *begin = at;
  at += sprintf(at, "{\"$common\":{\"APP_NAME\":\"bench\",\"APP_VERSION\":\"5.12.3\",\"SYS_DEVICE_ID\":\"%s\"}}", name);
  for (int row = 0; row < options.rows; row++) {
    long number = device->taken * options.rows + row;
    at += sprintf(at, "\n{\"MONITOR_TYPE\":\"net\",\"REPORT_ID\":\"%s-%ld\",\"CREATE_TIME\":%lld,\"seq\":%ld,\"ms\":%d,\"page\":\"/home\"}",
                  name, number, (long long)milliseconds(), number, (int)(random_word() % 8000));
  }
  return (size_t)(at - begin);
}

static size_t compress_metas(const char *metas, size_t bytes, unsigned char *into) {
  z_stream stream = {0};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = (unsigned char *)metas, stream.avail_in = (unsigned)bytes;
  stream.next_out = into, stream.avail_out = BODY_BYTES_MAX;
  deflate(&stream, Z_FINISH);
  size_t count = stream.total_out;
  deflateEnd(&stream);
  return count;
}

/* The nonce, the encrypted bytes, the tag. */
static int seal(const char *headers, const unsigned char *plain, size_t bytes, unsigned char *into) {
  const EVP_CIPHER *cipher = options.key_bytes == 16 ? EVP_aes_128_gcm() : EVP_aes_256_gcm();
  EVP_CIPHER_CTX *sealing = EVP_CIPHER_CTX_new();
  int part, count = 12;
  RAND_bytes(into, 12);
  EVP_EncryptInit_ex(sealing, cipher, NULL, options.key, into);
  EVP_EncryptUpdate(sealing, NULL, &part, (const unsigned char *)headers, (int)strlen(headers));
  EVP_EncryptUpdate(sealing, into + count, &part, plain, (int)bytes);
  count += part;
  EVP_EncryptFinal_ex(sealing, into + count, &part);
  EVP_CIPHER_CTX_ctrl(sealing, EVP_CTRL_GCM_GET_TAG, 16, into + count);
  EVP_CIPHER_CTX_free(sealing);
  return count + 16;
}

static void build(struct device *device) {
  static char metas[BODY_BYTES_MAX];
  static unsigned char packed[BODY_BYTES_MAX], sealed[BODY_BYTES_MAX + 64];
  char name[32], headers[512];
  long long sent_time = (long long)milliseconds();
  snprintf(name, sizeof name, "device-%06d", options.first + (int)(device - devices));
  size_t bytes = compress_metas(metas, write_metas(metas, name, device), packed);
  if (!*device->packet) name_packet(device);
  snprintf(headers, sizeof headers, "prism2\n%s\nbench\n%s\nmeta\n%s\n%d\n\n%lld\n0", name, device->packet, device->last,
           options.rows, sent_time);
  int body_bytes = seal(headers, packed, bytes, sealed);
  free(device->request);
  device->request = malloc((size_t)body_bytes + 1024);
  int head_bytes = sprintf(device->request,
                           "POST /prism/meta HTTP/1.1\r\nHost: %s\r\nContent-Type: application/vnd.prism.meta\r\nPrism-Version: 2\r\n"
                           "Prism-Namespace: bench\r\nPrism-Device-Id: %s\r\nPrism-Packet-Id: %s\r\n%s%s%s"
                           "Prism-Item-Count: %d\r\nPrism-Sent-Time: %lld\r\nPrism-Cipher: aes-%d-gcm\r\nPrism-Key-Id: main\r\n"
                           "Prism-Encoding: gzip\r\nContent-Length: %d\r\n%s\r\n",
                           options.host, name, device->packet, *device->last ? "Prism-Depends-On: " : "", device->last,
                           *device->last ? "\r\n" : "", options.rows, sent_time, options.key_bytes * 8, body_bytes,
                           options.closes ? "Connection: close\r\n" : "");
  memcpy(device->request + head_bytes, sealed, (size_t)body_bytes);
  device->request_bytes = (size_t)(head_bytes + body_bytes);
  device->sent = device->answer_bytes = 0;
  counts.posts++;
}

// MARK: - The connection

static void watch(struct device *device, int how, uint32_t events) {
  struct epoll_event interest = {events, {.u32 = (uint32_t)(device - devices)}};
  epoll_ctl(poller, how, device->descriptor, &interest);
}

static void hang_up(struct device *device) {
  if (device->descriptor < 0) return;
  SSL_free(device->tls);
  device->tls = NULL;
  close(device->descriptor);
  device->descriptor = -1;
  counts.open--;
}

/* As the daemon does: again after a pause that doubles, from 1 s to 5 min, with full jitter. */
static void again(struct device *device) {
  hang_up(device);
  device->failures++;
  double pause = device->failures > 8 ? 300 : (double)(1 << (device->failures - 1));
  device->step = RESTS;
  device->due = now() + pause * (0.1 + 0.9 * random_part());
}

static int open_connection(int number) {
  struct sockaddr_in own = {.sin_family = AF_INET}, to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)options.port)};
  int place = number / DEVICES_AN_ADDRESS, yes = 1;
  int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (descriptor < 0) fail("a socket");
  own.sin_addr.s_addr = htonl((uint32_t)(0x7f010001 + (place / 200) * 256 + place % 200));
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  setsockopt(descriptor, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &yes, sizeof yes);
  if (bind(descriptor, (void *)&own, sizeof own)) fail("an address of 127.1.0.0/16");
  inet_pton(AF_INET, options.host, &to.sin_addr);
  if (connect(descriptor, (void *)&to, sizeof to) && errno != EINPROGRESS) {
    close(descriptor);
    return -1;
  }
  return descriptor;
}

static void begin(struct device *device) {
  device->begun = now();
  device->step = WRITES;
  if (device->descriptor >= 0) {
    build(device);
    watch(device, EPOLL_CTL_MOD, EPOLLOUT);
    return;
  }
  device->descriptor = open_connection(options.first + (int)(device - devices));
  counts.connections++;
  counts.open++;
  if (counts.open > counts.open_most) counts.open_most = counts.open;
  if (device->descriptor < 0) { again(device); return; }
  device->step = CONNECTS;
  watch(device, EPOLL_CTL_ADD, EPOLLOUT);
}

/* What the socket took or gave; 0: it has to be waited for; -1: it ended. */
static ssize_t move(struct device *device) {
  bool is_write = device->step == WRITES;
  char *at = is_write ? device->request + device->sent : device->answer + device->answer_bytes;
  size_t room = is_write ? device->request_bytes - device->sent : sizeof device->answer - 1 - device->answer_bytes;
  ssize_t count;
  if (device->tls) {
    count = is_write ? SSL_write(device->tls, at, (int)room) : SSL_read(device->tls, at, (int)room);
    int error = count > 0 ? 0 : SSL_get_error(device->tls, (int)count);
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) return 0;
    return count > 0 ? count : -1;
  }
  count = is_write ? write(device->descriptor, at, room) : read(device->descriptor, at, room);
  return count > 0 ? count : count < 0 && errno == EAGAIN ? 0 : -1;
}

static void answered(struct device *device) {
  int status = atoi(device->answer + 9);
  counts.statuses[status > 0 && status < 600 ? status : 0]++;
  if (status != 200) {
    counts.refused++;
    again(device);
    return;
  }
  if (latencies.count < latencies.room) latencies.seconds[latencies.count++] = (float)(now() - device->begun);
  counts.taken++;
  device->taken++;
  device->failures = 0;
  strcpy(device->last, device->packet);
  *device->packet = 0;
  device->step = RESTS;
  device->due = options.is_idle ? 1e18 : device->due + options.interval;
  if (device->due < now()) device->due = now() + options.interval * random_part();
  if (options.closes) hang_up(device);
  else watch(device, EPOLL_CTL_MOD, EPOLLIN | EPOLLRDHUP);
}

static bool is_whole(struct device *device) {
  device->answer[device->answer_bytes] = 0;
  char *end = strstr(device->answer, "\r\n\r\n"), *length = strcasestr(device->answer, "content-length:");
  size_t body_bytes = length ? strtoul(length + 15, NULL, 10) : 0;
  return end && device->answer_bytes >= (size_t)(end + 4 - device->answer) + body_bytes;
}

/* The connection ended. One that was kept may have been closed before the packet came: that one goes again at once. */
static void ended(struct device *device) {
  if (device->step == RESTS) { hang_up(device); return; }
  counts.lost++;
  bool was_kept = device->taken > 0 && device->failures == 0;
  if (!was_kept) { again(device); return; }
  hang_up(device);
  device->failures = 1;
  begin(device);
}

static void shake_hands(struct device *device) {
  int done = SSL_do_handshake(device->tls), error = done == 1 ? 0 : SSL_get_error(device->tls, done);
  if (error == SSL_ERROR_WANT_READ) { watch(device, EPOLL_CTL_MOD, EPOLLIN); return; }
  if (error == SSL_ERROR_WANT_WRITE) { watch(device, EPOLL_CTL_MOD, EPOLLOUT); return; }
  if (error) { ended(device); return; }
  device->step = WRITES;
  build(device);
  watch(device, EPOLL_CTL_MOD, EPOLLOUT);
}

static void connected(struct device *device) {
  int error = 0;
  socklen_t bytes = sizeof error;
  getsockopt(device->descriptor, SOL_SOCKET, SO_ERROR, &error, &bytes);
  if (error) { counts.lost++; again(device); return; }
  device->step = options.tls ? SHAKES_HANDS : WRITES;
  if (!options.tls) { build(device); return; }
  device->tls = SSL_new(context);
  SSL_set_fd(device->tls, device->descriptor);
  SSL_set_connect_state(device->tls);
  shake_hands(device);
}

static void go_on(struct device *device) {
  if (device->step == CONNECTS) connected(device);
  else if (device->step == SHAKES_HANDS) shake_hands(device);
  else if (device->step == RESTS) { if (move(device) < 0) ended(device); device->answer_bytes = 0; }
  else {
    ssize_t count = move(device);
    if (count < 0) ended(device);
    else if (device->step == WRITES && (device->sent += (size_t)count) == device->request_bytes) {
      device->step = READS;
      watch(device, EPOLL_CTL_MOD, EPOLLIN);
    } else if (device->step == READS) {
      device->answer_bytes += (size_t)count;
      if (is_whole(device)) answered(device);
    }
  }
}

// MARK: - The fleet

/* Each says that 8 MiB come, and sends 16 KiB of them; one that is closed comes again. */
struct stranger { int descriptor; bool has_sent; };

static void keep_strangers(struct stranger *strangers) {
  static char body[16384];
  const char *head = "POST /prism/meta HTTP/1.1\r\nHost: h\r\nContent-Type: application/vnd.prism.meta\r\nPrism-Version: 2\r\n"
                     "Prism-Namespace: bench\r\nPrism-Device-Id: device-000000\r\nPrism-Item-Count: 1\r\nPrism-Sent-Time: 1795000000000\r\n"
                     "Prism-Packet-Id: 019ac000-0000-7000-8000-000000000000\r\nPrism-Cipher: aes-128-gcm\r\nPrism-Key-Id: main\r\n"
                     "Prism-Encoding: gzip\r\nContent-Length: 8388608\r\n\r\n";
  for (int number = 0; number < options.strangers; number++) {
    struct stranger *stranger = strangers + number;
    char answer[512];
    if (stranger->descriptor >= 0 && !stranger->has_sent) {
      stranger->has_sent = write(stranger->descriptor, head, strlen(head)) > 0 && write(stranger->descriptor, body, sizeof body) > 0;
      continue;
    }
    if (stranger->descriptor >= 0 && (read(stranger->descriptor, answer, sizeof answer) > 0 || errno == EAGAIN)) continue;
    if (stranger->descriptor >= 0) close(stranger->descriptor);
    *stranger = (struct stranger){open_connection(options.first + options.devices + number), false};
  }
}

static void look_at_times(double time) {
  for (struct device *device = devices; device < devices + options.devices; device++) {
    if (device->step == RESTS && device->due <= time) begin(device);
    else if (device->step != RESTS && time - device->begun > ANSWER_SECONDS) { counts.late++; again(device); }
  }
}

static long never_taken(void) {
  long count = 0;
  for (int number = 0; number < options.devices; number++) count += devices[number].taken == 0;
  return count;
}

static void run(void) {
  struct stranger *strangers = calloc((size_t)options.strangers + 1, sizeof *strangers);
  double begun = now(), looked = 0;
  for (int number = 0; number < options.strangers; number++) strangers[number].descriptor = -1;
  for (int number = 0; number < options.devices; number++) {
    devices[number].descriptor = -1;
    devices[number].due = begun + options.interval * (number + random_part()) / options.devices;
  }
  while (now() - begun < options.seconds || (now() - begun < options.patience && never_taken() > 0)) {
    struct epoll_event ready[1024];
    int count = epoll_wait(poller, ready, 1024, 5);
    for (int index = 0; index < count; index++)
      if (devices[ready[index].data.u32].descriptor >= 0) go_on(&devices[ready[index].data.u32]);
    if (now() - looked < 0.02) continue;
    looked = now();
    look_at_times(looked);
    keep_strangers(strangers);
  }
}

static int by_value(const void *a, const void *b) {
  float x = *(const float *)a, y = *(const float *)b;
  return (x > y) - (x < y);
}

static double latency(double part) {
  return latencies.count ? (double)latencies.seconds[(size_t)((double)(latencies.count - 1) * part)] : -1;
}

static void report(void) {
  long waiting = 0;
  for (int number = 0; number < options.devices; number++) waiting += devices[number].failures > 0;
  qsort(latencies.seconds, latencies.count, sizeof(float), by_value);
  printf("{\"devices\":%d,\"posts\":%ld,\"taken\":%ld,\"refused\":%ld,\"lost\":%ld,\"late\":%ld,\"connections\":%ld,\"openMost\":%ld,"
         "\"never\":%ld,\"waiting\":%ld,\"p50Seconds\":%.4f,\"p99Seconds\":%.4f,\"mostSeconds\":%.4f,\"statuses\":{",
         options.devices, counts.posts, counts.taken, counts.refused, counts.lost, counts.late, counts.connections, counts.open_most,
         never_taken(), waiting, latency(0.5), latency(0.99), latency(1));
  bool is_first = true;
  for (int status = 0; status < 600; status++)
    if (counts.statuses[status]) {
      printf("%s\"%d\":%ld", is_first ? "" : ",", status, counts.statuses[status]);
      is_first = false;
    }
  printf("}}\n");
}

static void parse(int argc, char **argv) {
  for (int index = 1; index < argc; index++) {
    char *name = argv[index];
    if (!strcmp(name, "--tls")) { options.tls = true; continue; }
    if (!strcmp(name, "--close")) { options.closes = true; continue; }
    if (!strcmp(name, "--idle")) { options.is_idle = true; continue; }
    if (index + 1 == argc) { fprintf(stderr, "devices: %s: unknown, or its value is missing\n", name); exit(64); }
    char *value = argv[++index], *colon = strrchr(value, ':');
    if (!strcmp(name, "--to") && colon) { *colon = 0; options.host = value; options.port = atoi(colon + 1); }
    else if (!strcmp(name, "--devices")) options.devices = atoi(value);
    else if (!strcmp(name, "--first")) options.first = atoi(value);
    else if (!strcmp(name, "--interval")) options.interval = atof(value);
    else if (!strcmp(name, "--seconds")) options.seconds = atof(value);
    else if (!strcmp(name, "--patience")) options.patience = atof(value);
    else if (!strcmp(name, "--rows")) options.rows = atoi(value);
    else if (!strcmp(name, "--strangers")) options.strangers = atoi(value);
    else if (!strcmp(name, "--key") && (strlen(value) == 32 || strlen(value) == 64)) {
      options.key_bytes = (int)strlen(value) / 2;
      for (int place = 0; place < options.key_bytes; place++) sscanf(value + 2 * place, "%2hhx", &options.key[place]);
    } else { fprintf(stderr, "devices: %s: unknown, or its value is none\n", name); exit(64); }
  }
  if (!options.port || !options.key_bytes || options.rows > 4000) {
    fprintf(stderr, "devices: give --to HOST:PORT and --key HEX; at most 4,000 rows\n");
    exit(64);
  }
}

int main(int argc, char **argv) {
  parse(argc, argv);
  signal(SIGPIPE, SIG_IGN);
  struct rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  if (options.tls) {
    context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  }
  latencies.room = (size_t)(options.devices * ((options.seconds + options.patience) / options.interval + 2) + 1000);
  latencies.seconds = malloc(sizeof(float) * latencies.room);
  devices = calloc((size_t)options.devices, sizeof *devices);
  poller = epoll_create1(EPOLL_CLOEXEC);
  run();
  report();
  return 0;
}
