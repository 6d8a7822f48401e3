import Glibc

/// Tells the service manager how a program is (sd_notify(3)): a datagram of `NAME=value` lines to `NOTIFY_SOCKET`.
/// Without one, every call does nothing.
public struct ServiceNotifier: Sendable {
  private let address: UnixAddress?
  /// How often `watchdog()` must be called, half of the manager's limit; nil if there is no watchdog.
  public let watchdogInterval: Duration?

  /// Reads `NOTIFY_SOCKET`, `WATCHDOG_USEC` and `WATCHDOG_PID`, and takes them out of the environment, so that no child
  /// speaks in our name. Call it once, before there are other threads.
  public static func fromEnvironment() -> ServiceNotifier {
    let names = ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"]
    let values = names.map { name in getenv(name).map { String(cString: $0) } }
    for name in names { unsetenv(name) }
    return ServiceNotifier(socket: values[0], watchdogMicroseconds: values[1], watchdogProcess: values[2])
  }

  /// - Parameter socket: a path, or `@name` for an abstract one; any other value disables notifications.
  init(socket: String?, watchdogMicroseconds: String? = nil, watchdogProcess: String? = nil) {
    address = socket.flatMap(Self.address)
    let isForUs = watchdogProcess.map { $0 == String(getpid()) } ?? true
    let allowed = watchdogMicroseconds.flatMap { Int64($0) }.flatMap { $0 > 0 ? Duration.microseconds($0) : nil }
    watchdogInterval = isForUs ? allowed.map { $0 / 2 } : nil
  }

  private static func address(_ socket: String) -> UnixAddress? {
    if socket.hasPrefix("@") { return UnixAddress(abstract: String(socket.dropFirst())) }
    guard socket.hasPrefix("/") else { return nil }
    return UnixAddress(path: socket)
  }

  /// Announces that the start or a reload is complete.
  public func ready(status: String) { send(["READY=1", Self.line(status)]) }
  /// Announces a reload. `ready` must follow once the reload is over, with any result.
  public func reloading() {
    var now = timespec()
    clock_gettime(CLOCK_MONOTONIC, &now)
    send(["RELOADING=1", "MONOTONIC_USEC=\(now.tv_sec * 1_000_000 + now.tv_nsec / 1000)"])
  }
  /// Announces that the program is stopping.
  public func stopping(status: String) { send(["STOPPING=1", Self.line(status)]) }
  /// Tells the manager's watchdog that the program is alive.
  public func watchdog() { send(["WATCHDOG=1"]) }

  private static func line(_ status: String) -> String {
    "STATUS=" + status.map { $0.isNewline ? " " : String($0) }.joined()
  }

  private func send(_ lines: [String]) {
    guard let address else { return }
    let message = Array(lines.joined(separator: "\n").utf8)
    let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { return }
    defer { close(descriptor) }
    var wait = timeval(tv_sec: 1, tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &wait, socklen_t(MemoryLayout<timeval>.size))
    // A failure is ignored: it is the manager's matter whether it listens.
    _ = address.withPointer { sendto(descriptor, message, message.count, Int32(MSG_NOSIGNAL), $0, $1) }
  }
}
