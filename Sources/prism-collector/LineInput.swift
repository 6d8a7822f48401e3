import Glibc

/// Standard input in parts of whole lines, each for one transaction.
struct LineInput {
  private static let linesMax = 1000
  /// Below what a request may have.
  private static let bytesMax = 4 * 1_048_576
  private static let readBytes = 65_536

  private let firstLine: Int
  private var rest: [UInt8] = []
  private var isAtEnd = false
  /// Lines that were returned or left out.
  private(set) var lineCount = 0
  /// Reading failed: the lines that were returned are not all.
  private(set) var hasFailed = false

  /// - Parameter firstLine: the lines before it are left out.
  init(from firstLine: Int) { self.firstLine = firstLine }

  /// - Returns: at most a thousand lines, with the number of the first one; nil behind the last.
  mutating func next() -> (text: [UInt8], firstLine: Int)? {
    while lineCount + 1 < firstLine {
      guard part(atMost: min(Self.linesMax, firstLine - 1 - lineCount)) != nil else { return nil }
    }
    let first = lineCount + 1
    return part(atMost: Self.linesMax).map { ($0, first) }
  }

  private mutating func part(atMost limit: Int) -> [UInt8]? {
    while true {
      let (end, lines) = wholeLines(atMost: limit)
      if lines == limit || end > 0 && rest.count > Self.bytesMax { return take(end, lines) }
      // A line that is longer than any change is refused by the collector.
      if isAtEnd || rest.count > Self.bytesMax {
        return rest.isEmpty || hasFailed ? nil : take(rest.count, rest.count > end ? lines + 1 : lines)
      }
      read()
    }
  }

  private func wholeLines(atMost limit: Int) -> (end: Int, lines: Int) {
    rest.withUnsafeBytes { text in
      var (end, lines) = (0, 0)
      while lines < limit, end < text.count,
        let found = memchr(text.baseAddress! + end, Int32(UInt8(ascii: "\n")), text.count - end)
      {
        let next = UnsafeRawPointer(found) - text.baseAddress! + 1
        guard end == 0 || next <= Self.bytesMax else { break }
        (end, lines) = (next, lines + 1)
      }
      return (end, lines)
    }
  }

  private mutating func take(_ count: Int, _ lines: Int) -> [UInt8] {
    defer { rest.removeFirst(count) }
    lineCount += lines
    return Array(rest.prefix(count))
  }

  private mutating func read() {
    var buffer = [UInt8](repeating: 0, count: Self.readBytes)
    let count = Glibc.read(STDIN_FILENO, &buffer, buffer.count)
    if count < 0, errno == EINTR { return }
    if count < 0 { hasFailed = true }
    if count <= 0 { isAtEnd = true } else { rest += buffer.prefix(count) }
  }
}
