import PrismProtocol

/// Takes a body in chunks apart (RFC 9112, 7.1); extensions and trailers are read over.
struct ChunkedBody: Equatable {
  private enum State: Equatable {
    case size, trailer, done
    case data(remaining: Int)
    case afterData
  }

  struct Malformed: Error, Equatable {}

  static let lineBytesMax = 4096
  private var state = State.size
  private(set) var body: [UInt8] = []

  var isDone: Bool { state == .done }

  /// Takes what it can from the front of `input`.
  mutating func consume(_ input: inout ArraySlice<UInt8>) throws(Malformed) {
    while true {
      switch state {
      case .size:
        guard let line = try Self.line(&input) else { return }
        let remaining = try Self.size(line)
        state = remaining == 0 ? .trailer : .data(remaining: remaining)
      case .data(let remaining):
        let piece = input.prefix(remaining)
        if piece.isEmpty { return }
        body += piece
        input = input.dropFirst(piece.count)
        state = piece.count == remaining ? .afterData : .data(remaining: remaining - piece.count)
      case .afterData:
        guard let line = try Self.line(&input) else { return }
        guard line.isEmpty else { throw Malformed() }
        state = .size
      case .trailer:
        guard let line = try Self.line(&input) else { return }
        if line.isEmpty { state = .done }
      case .done: return
      }
    }
  }

  /// Up to CR LF; nil while it isn't whole.
  private static func line(_ input: inout ArraySlice<UInt8>) throws(Malformed) -> ArraySlice<UInt8>? {
    guard let end = input.firstIndex(of: 0x0A) else {
      guard input.count <= lineBytesMax else { throw Malformed() }
      return nil
    }
    guard end > input.startIndex, input[end - 1] == 0x0D, end - input.startIndex <= lineBytesMax else {
      throw Malformed()
    }
    defer { input = input[(end + 1)...] }
    return input[..<(end - 1)]
  }

  /// Hexadecimal digits, then possibly an extension.
  private static func size(_ line: ArraySlice<UInt8>) throws(Malformed) -> Int {
    let digits = line.prefix { $0 != 0x3B && $0 != 0x20 && $0 != 0x09 }
    guard 1...8 ~= digits.count, let size = Int(String(decoding: digits, as: UTF8.self), radix: 16), size >= 0,
      digits.first != 0x2B, digits.first != 0x2D
    else { throw Malformed() }
    return size
  }
}
