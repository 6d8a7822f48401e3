import Glibc
import PrismBase
import PrismProtocol

/// Starts a unit `prism-command@NAME.service` through the socket of `prism-run.socket`, and waits for its end (docs/records.md, "Run a
/// unit"). Blocks.
enum UnitRun {
  /// Of the output that is kept.
  static let outputBytesMax = 8192

  struct Ran: Equatable {
    /// systemd's word: `success`, `exit-code`, `timeout` and others.
    var result: String
    /// The exit code, or the number of the signal.
    var exit: Int
    /// The last bytes of its output.
    var output: [UInt8]
  }

  /// The reason why a unit was not run, or why its end is not known.
  struct Fault: Error, Equatable {
    let message: String
  }

  /// The request is the name and a line feed. The answer is a line `RESULT EXIT` or `refused REASON`, then the output.
  static func run(_ name: String, socket path: String, seconds: Int) throws(Fault) -> Ran {
    guard let address = UnixAddress(path: path) else {
      throw Fault(message: "commands.runSocket is no path of a socket")
    }
    let connection = address.connect()
    guard connection >= 0 else {
      throw Fault(
        message: "\(path): \(String(cString: strerror(errno))); is prism-run.socket enabled? (docs/records.md)")
    }
    defer { close(connection) }
    var limit = timeval(tv_sec: seconds, tv_usec: 0)
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    let request = Array((name + "\n").utf8)
    guard send(connection, request, request.count, Int32(MSG_NOSIGNAL)) == request.count else {
      throw Fault(message: "\(path) does not take the request")
    }
    return try answer(from: connection)
  }

  private static func answer(from connection: Int32) throws(Fault) -> Ran {
    var (head, output, hasHead): ([UInt8], [UInt8], Bool) = ([], [], false)
    var chunk = [UInt8](repeating: 0, count: 16 * 1024)
    while true {
      let count = recv(connection, &chunk, chunk.count, 0)
      if count < 0 && errno == EINTR { continue }
      guard count >= 0 else { throw Fault(message: "the unit did not end in time; whether it goes on is not known") }
      if count == 0 { break }
      var bytes = chunk[..<count]
      if !hasHead {
        let end = bytes.firstIndex(of: UInt8(ascii: "\n")) ?? bytes.endIndex
        head += bytes[..<end]
        guard head.count <= 256 else { throw Fault(message: "the answer of prism-run is not understood") }
        hasHead = end < bytes.endIndex
        bytes = hasHead ? bytes[(end + 1)...] : []
      }
      output += bytes
      if output.count > 2 * outputBytesMax { output.removeFirst(output.count - outputBytesMax) }
    }
    guard hasHead else { throw Fault(message: "prism-run ended without an answer; whether the unit ran is not known") }
    let words = String(decoding: head, as: UTF8.self).split(separator: " ", maxSplits: 1).map(String.init)
    if words.count == 2, words[0] == "refused" { throw Fault(message: words[1].printable) }
    guard words.count == 2, let exit = Int(words[1]) else {
      throw Fault(message: "the answer of prism-run is not understood")
    }
    return Ran(result: words[0], exit: exit, output: Array(output.suffix(outputBytesMax)))
  }
}
