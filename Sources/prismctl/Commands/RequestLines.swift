import Glibc
import PrismBase
import Synchronization

/// Reads a file of request lines in chunks that end with a line. Used by one reader at a time, on the client's queue.
final class RequestLines: Sendable {
  private static let chunkBytes = 64 * 1024

  private let descriptor: Int32
  private let rest = Mutex<[UInt8]>([])
  /// Lines in the file; nil where it can't be read twice.
  let countIfKnown: Int?

  /// `-`: standard input. nil where the file can't be opened (errno).
  init?(path: String) {
    descriptor = path == "-" ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    countIfKnown = Terminal.errorIsTerminal ? Self.countLines(descriptor) : nil
  }

  deinit { close(descriptor) }

  /// Whole lines and how many they are; nil at the end.
  func next() -> (bytes: [UInt8], reports: Int)? {
    rest.withLock { rest in
      while true {
        if let end = rest.lastIndex(of: UInt8(ascii: "\n")) {
          let lines = Array(rest[...end])
          rest.removeFirst(end + 1)
          if let result = Self.counted(lines) { return result }
        }
        guard let more = read() else {
          defer { rest = [] }
          return rest.isEmpty ? nil : Self.counted(rest + [UInt8(ascii: "\n")])
        }
        rest += more
      }
    }
  }

  /// Empty lines are no requests: the daemon would not answer them.
  private static func counted(_ lines: [UInt8]) -> (bytes: [UInt8], reports: Int)? {
    let requests = lines.split(separator: UInt8(ascii: "\n")).filter { line in
      !line.allSatisfy { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\r") || $0 == UInt8(ascii: "\t") }
    }
    return requests.isEmpty
      ? nil : (Array(requests.joined(separator: [UInt8(ascii: "\n")])) + [UInt8(ascii: "\n")], requests.count)
  }

  private func read() -> ArraySlice<UInt8>? {
    var chunk = [UInt8](repeating: 0, count: Self.chunkBytes)
    while true {
      let count = Glibc.read(descriptor, &chunk, chunk.count)
      if count > 0 { return chunk[..<count] }
      if count == 0 || errno != EINTR { return nil }
    }
  }

  private static func countLines(_ descriptor: Int32) -> Int? {
    guard lseek(descriptor, 0, SEEK_CUR) == 0 else { return nil }
    var chunk = [UInt8](repeating: 0, count: chunkBytes)
    var lines = 0
    while case let count = Glibc.read(descriptor, &chunk, chunk.count), count > 0 {
      lines += chunk[..<count].count { $0 == UInt8(ascii: "\n") }
    }
    return lseek(descriptor, 0, SEEK_SET) == 0 ? lines : nil
  }
}
