import Glibc
import PrismBase
import PrismProtocol
import Synchronization

/// Reads reports of the ingest protocol from a file, as the daemon divides its input. Used by one reader at a time, on the
/// client's queue.
final class RequestLines: Sendable {
  private static let chunkBytes = 64 * 1024

  private struct State {
    var framer = RequestFramer()
    var line = 0
    /// A report whose payload is not whole yet: half of it is not sent.
    var begun: [UInt8] = []
    var whole: [UInt8] = []
    var reports = 0
    var failure: Failure?
  }

  private let path: String
  private let descriptor: Int32
  private let state = Mutex(State())
  /// Lines in the file; nil where it can't be read twice.
  let countIfKnown: Int?

  /// `-`: standard input. - Throws: 66 (EX_NOINPUT).
  init(path: String) throws(Failure) {
    self.path = path
    descriptor = path == "-" ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw Failure(Failure.noInput, "\(path): \(Files.reason()): can't be read") }
    countIfKnown = Terminal.errorIsTerminal ? Self.countLines(descriptor) : nil
  }

  deinit { close(descriptor) }

  /// Why the rest of the file was not sent.
  var failure: Failure? { state.withLock { $0.failure } }

  /// Whole reports and how many they are; nil at the end.
  func next() -> (bytes: [UInt8], reports: Int)? {
    state.withLock { state in
      while state.failure == nil, state.reports == 0 {
        do throws(Failure) {
          let chunk = try read()
          try take(chunk.span, &state)
          if chunk.isEmpty { break }
        } catch { state.failure = error }
      }
      defer { (state.whole, state.reports) = ([], 0) }
      return state.reports == 0 ? nil : (state.whole, state.reports)
    }
  }

  /// - Parameter chunk: empty: the end.
  private func take(_ chunk: Span<UInt8>, _ state: inout State) throws(Failure) {
    guard !chunk.isEmpty else {
      switch state.framer.end() {
      case .clean: return
      case .heldLine: try take(line: state.framer.takeHeld().span, &state)
      case .withinPayload: break
      }
      guard state.begun.isEmpty else { throw fault("the file ends within the payload of line \(state.line)") }
      return
    }
    var position = 0
    while true {
      switch state.framer.next(chunk, &position, lineBytesMax: 2 * Files.payloadBytesMax) {
      case .line(let range): try take(line: chunk.extracting(range), &state)
      case .heldLine: try take(line: state.framer.takeHeld().span, &state)
      case .payload(let range, let isLast):
        state.begun.append(copying: chunk, range)
        if isLast { Self.end(&state) }
      case .tooLong, .lost: throw fault("line \(state.line + 1) has more than \(Files.payloadBytesMax >> 19) MiB")
      case .starved: return
      }
    }
  }

  /// A line that is no request is sent, too: the daemon refuses it, and says why.
  private func take(line: Span<UInt8>, _ state: inout State) throws(Failure) {
    state.line += 1
    if line.isBlank { return }
    let scanned = RequestScanner.scan(line, reserved: ReservedKeys([]))
    if case .success(let request) = scanned.request {
      guard case .report = request else { throw fault("line \(state.line) is no report; --ndjson sends reports only") }
    }
    guard scanned.followingBytes <= Files.payloadBytesMax else {
      throw fault("line \(state.line): a payload has at most \(Files.payloadBytesMax >> 20) MiB")
    }
    state.begun.append(copying: line, line.indices)
    state.begun.append(UInt8(ascii: "\n"))
    if scanned.followingBytes > 0 { return state.framer.expectPayload(scanned.followingBytes) }
    Self.end(&state)
  }

  private static func end(_ state: inout State) {
    state.whole += state.begun
    state.begun = []
    state.reports += 1
  }

  private func fault(_ what: String) -> Failure { Failure(Failure.data, "\(path): \(what)") }

  /// Empty: the end.
  private func read() throws(Failure) -> [UInt8] {
    var chunk = [UInt8](repeating: 0, count: Self.chunkBytes)
    while true {
      let count = Glibc.read(descriptor, &chunk, chunk.count)
      if count >= 0 { return Array(chunk[..<count]) }
      guard errno == EINTR else { throw Failure(Failure.noInput, "\(path): \(Files.reason()): can't be read") }
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
