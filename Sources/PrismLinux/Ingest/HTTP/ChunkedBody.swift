import PrismProtocol

/// Takes a body in chunks apart (RFC 9112, 7.1); extensions and trailers are read over.
struct ChunkedBody: Equatable {
  private enum State: Equatable {
    case size, trailer, done
    case data(remaining: Int)
    case afterData
  }

  enum Fault: Error, Equatable { case malformed, tooLarge }

  static let lineBytesMax = 4096
  private var state = State.size
  /// A line as far as it came.
  private var line: [UInt8] = []

  var isDone: Bool { state == .done }
  var heldBytes: Int { line.count }

  /// Takes what it can from `chunk`, each byte once.
  /// - Parameter position: moved behind what was taken.
  mutating func consume(
    _ chunk: Span<UInt8>, _ position: inout Int, into body: inout [UInt8], bodyBytesMax: Int
  ) throws(Fault) {
    while position < chunk.count, !isDone {
      if case .data(let remaining) = state {
        let end = min(chunk.count, position + remaining)
        body.append(copying: chunk, position..<end)
        state = end - position == remaining ? .afterData : .data(remaining: remaining - (end - position))
        position = end
      } else if try takeLine(chunk, &position) {
        try endLine(bodyBytesMax - body.count)
      }
    }
  }

  private mutating func takeLine(_ chunk: Span<UInt8>, _ position: inout Int) throws(Fault) -> Bool {
    let end = RequestFramer.lineFeed(chunk, from: position)
    let piece = position..<(end.map { $0 + 1 } ?? chunk.count)
    guard line.count + piece.count <= Self.lineBytesMax else { throw .malformed }
    line.append(copying: chunk, piece)
    position = piece.upperBound
    return end != nil
  }

  private mutating func endLine(_ room: Int) throws(Fault) {
    guard line.count >= 2, line[line.count - 2] == UInt8(ascii: "\r") else { throw .malformed }
    let text = line[..<(line.count - 2)]
    switch state {
    case .size:
      let size = try Self.size(text)
      guard size <= room else { throw .tooLarge }
      state = size == 0 ? .trailer : .data(remaining: size)
    case .afterData:
      guard text.isEmpty else { throw .malformed }
      state = .size
    case .trailer: if text.isEmpty { state = .done }
    case .data, .done: break
    }
    line.removeAll(keepingCapacity: true)
  }

  /// Hexadecimal digits, then possibly an extension.
  private static func size(_ line: ArraySlice<UInt8>) throws(Fault) -> Int {
    let digits = line.prefix { $0 != UInt8(ascii: ";") && $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "\t") }
    guard 1...8 ~= digits.count, let size = Int(String(decoding: digits, as: UTF8.self), radix: 16), size >= 0,
      digits.first != UInt8(ascii: "+"), digits.first != UInt8(ascii: "-")
    else { throw .malformed }
    return size
  }
}
