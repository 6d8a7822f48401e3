/// Bytes in, lines out, and never more held than one line's limit (and what came with it).
struct LineBuffer {
  enum Next: Equatable {
    case line([UInt8])
    /// The line is not whole yet.
    case incomplete
    /// Whole or not, it is longer than allowed.
    case tooLong
  }

  let lineBytesMax: Int
  private var bytes: [UInt8] = []
  private var scanned = 0

  init(lineBytesMax: Int) { self.lineBytesMax = lineBytesMax }

  /// Reading on would hold more than a line.
  var isFull: Bool { bytes.count > lineBytesMax }

  mutating func append(_ new: some Collection<UInt8>) { bytes += new }

  /// Takes the next line, without its line feed and a carriage return before it.
  mutating func next() -> Next {
    guard let end = bytes[scanned...].firstIndex(of: UInt8(ascii: "\n")) else {
      scanned = bytes.count
      return bytes.count > lineBytesMax ? .tooLong : .incomplete
    }
    var line = Array(bytes[..<end])
    bytes.removeSubrange(...end)
    scanned = 0
    guard line.count <= lineBytesMax else { return .tooLong }
    if line.last == UInt8(ascii: "\r") { line.removeLast() }
    return .line(line)
  }
}
