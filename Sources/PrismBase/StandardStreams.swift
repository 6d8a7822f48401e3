import Synchronization

#if canImport(Glibc)
  public import Glibc
#endif

/// Standard error of a daemon, which may be closed, full, or without a reader.
public enum StandardStreams {
  /// Call it first thing in a program. A standard descriptor that is closed becomes `/dev/null`: else the first file that
  /// is opened gets its number, and log lines are written into it. A reader that is gone is an error, no signal.
  public static func prepare() {
    signal(SIGPIPE, SIG_IGN)
    for descriptor in [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO] where fcntl(descriptor, F_GETFD) < 0 {
      // The lowest number that is free is this one.
      _ = open("/dev/null", descriptor == STDIN_FILENO ? O_RDONLY : O_WRONLY)
    }
  }

  /// Waits for its reader: for what a program says before it serves, or was asked for.
  public static func say(_ text: String, to descriptor: Int32 = STDERR_FILENO) {
    _ = write(Array(text.utf8)[...], to: descriptor)
  }

  /// Waits for its reader. - Returns: false: the reader is gone, or the disk is full; `errno` says which.
  public static func write(_ bytes: ArraySlice<UInt8>, to descriptor: Int32) -> Bool {
    bytes.withUnsafeBytes { write($0, to: descriptor) }
  }

  /// The same, to any file.
  static func write(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) -> Bool {
    var start = 0
    while start < bytes.count {
      let written = Glibc.write(descriptor, bytes.baseAddress! + start, bytes.count - start)
      if written < 0 && errno == EINTR { continue }
      guard written > 0 else { return false }
      start += written
    }
    return true
  }

  /// Never waits for a reader. - Returns: false where it takes no more, and `line` is lost.
  public static let offer: @Sendable (String) -> Bool = { standardError.offer($0) }

  private static let standardError = LogDescriptor(STDERR_FILENO)
}

/// A descriptor that lines are written to as long as they are taken.
final class LogDescriptor: Sendable {
  private let descriptor: Int32
  /// Whether the last line was taken in part only.
  private let endsInLine = Mutex(false)

  init(_ descriptor: Int32) { self.descriptor = descriptor }

  func offer(_ line: String) -> Bool {
    endsInLine.withLock { endsInLine in
      let bytes = Array((endsInLine ? "\n" + line : line).utf8)
      var start = 0
      while start < bytes.count {
        let written = takesMore ? write(bytes[start...].prefix(Int(PIPE_BUF))) : 0
        guard written > 0 else {
          endsInLine = endsInLine || start > 0
          return false
        }
        start += written
      }
      endsInLine = false
      return true
    }
  }

  /// A pipe, a socket or a terminal that says so takes `PIPE_BUF` bytes without waiting.
  private var takesMore: Bool {
    var look = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
    return poll(&look, 1, 0) == 1 && look.revents & Int16(POLLOUT) != 0
  }

  private func write(_ bytes: ArraySlice<UInt8>) -> Int {
    bytes.withUnsafeBytes { bytes in
      while true {
        let written = Glibc.write(descriptor, bytes.baseAddress, bytes.count)
        if written >= 0 || errno != EINTR { return written }
      }
    }
  }
}
