/// Splits what arrives on an ingest connection, in pieces of any size, into request lines and the raw bytes that follow
/// some of them. A line that arrives in one piece is not copied.
public struct RequestFramer: Sendable {
  /// A step in the input: a line, a payload, or its end.
  public enum Event: Sendable, Equatable {
    /// A whole line in the chunk, without its line feed.
    case line(Range<Int>)
    /// A whole line that came in several pieces: `takeHeld()`.
    case heldLine
    /// The next bytes of the payload that `expectPayload` announced.
    case payload(Range<Int>, isLast: Bool)
    /// A line exceeded the limit; its beginning is held. The rest of it is skipped.
    case tooLong
    /// A refused request has more bytes than may be skipped; the rest of the input can't be divided into requests.
    case lost
    /// The chunk is used up.
    case starved
  }

  /// The request that ended with the input.
  public enum End: Sendable, Equatable {
    case clean
    /// A last line without line feed: `takeHeld()`.
    case heldLine
    /// The announced payload didn't come whole.
    case withinPayload
  }

  private enum State: Equatable {
    case line
    case payload(remaining: Int)
    case skipping(remaining: Int)
    case skippingLine(skipped: Int)
    case lost
  }

  /// The most bytes that are skipped after a refusal; the connection of a client that sends more is closed.
  public static let skippedBytesMax = 64 * 1024 * 1024

  private var state = State.line
  private var held: [UInt8] = []

  public init() {}

  /// Bytes of a request that is not complete yet; the receiver of the payload holds payload bytes.
  public var heldBytes: Int { held.count }

  /// Whether a request has begun and the rest of it is due.
  public var isWithinRequest: Bool { state != .line || !held.isEmpty }

  /// - Parameter position: in the chunk; moved behind the bytes of the returned event.
  public mutating func next(_ chunk: Span<UInt8>, _ position: inout Int, lineBytesMax: Int) -> Event {
    while true {
      switch state {
      case .line: return nextLine(chunk, &position, lineBytesMax)
      case .payload(let remaining):
        let end = min(chunk.count, position + remaining)
        let range = position..<end
        if range.isEmpty && remaining > 0 { return .starved }
        position = end
        state = range.count == remaining ? .line : .payload(remaining: remaining - range.count)
        return .payload(range, isLast: range.count == remaining)
      case .skipping(let remaining):
        let skipped = min(chunk.count - position, remaining)
        position += skipped
        state = skipped == remaining ? .line : .skipping(remaining: remaining - skipped)
        if skipped < remaining { return .starved }
      case .skippingLine(let skipped):
        guard let event = skipLine(chunk, &position, skipped) else { continue }
        return event
      case .lost:
        position = chunk.count
        return .starved
      }
    }
  }

  /// The next `bytes` bytes are a payload.
  public mutating func expectPayload(_ bytes: Int) { state = .payload(remaining: bytes) }

  /// The next `bytes` bytes belong to a refused request.
  /// - Returns: false if there are too many bytes to skip; then the input can't be divided any further.
  public mutating func skip(_ bytes: Int) -> Bool {
    state = bytes <= Self.skippedBytesMax ? .skipping(remaining: bytes) : .lost
    return state != .lost
  }

  /// Returns the bytes that are held, and forgets them.
  public mutating func takeHeld() -> [UInt8] {
    defer { held = [] }
    return held
  }

  /// Ends the input, or the body that takes its place, and starts again with the next one.
  public mutating func end() -> End {
    defer { state = .line }
    return switch state {
    case .line: held.isEmpty ? .clean : .heldLine
    case .payload: .withinPayload
    case .skipping, .skippingLine, .lost: .clean
    }
  }

  private mutating func nextLine(_ chunk: Span<UInt8>, _ position: inout Int, _ lineBytesMax: Int) -> Event {
    guard position < chunk.count else { return .starved }
    let found = Self.lineFeed(chunk, from: position)
    let piece = position..<(found ?? chunk.count)
    guard held.count + piece.count <= lineBytesMax else {
      held.append(copying: chunk, piece.lowerBound..<piece.lowerBound + lineBytesMax - held.count)
      position = piece.upperBound + (found == nil ? 0 : 1)
      state = found == nil ? .skippingLine(skipped: piece.count) : .line
      return .tooLong
    }
    position = piece.upperBound + (found == nil ? 0 : 1)
    if found != nil && held.isEmpty { return .line(piece) }
    held.append(copying: chunk, piece)
    return found == nil ? .starved : .heldLine
  }

  /// nil: the line's end was found.
  private mutating func skipLine(_ chunk: Span<UInt8>, _ position: inout Int, _ skipped: Int) -> Event? {
    if let end = Self.lineFeed(chunk, from: position) {
      position = end + 1
      state = .line
      return nil
    }
    let total = skipped + chunk.count - position
    position = chunk.count
    state = total <= Self.skippedBytesMax ? .skippingLine(skipped: total) : .lost
    return state == .lost ? .lost : .starved
  }

  /// The next line feed, searched eight bytes at a time in whole words; nil if there is no line feed.
  package static func lineFeed(_ chunk: Span<UInt8>, from start: Int) -> Int? {
    var position = start
    let (bytes, ones) = (chunk.bytes, UInt64(0x0101_0101_0101_0101))
    while position + 8 <= chunk.count {
      let word = UInt64(littleEndian: bytes.unsafeLoadUnaligned(fromByteOffset: position, as: UInt64.self))
      let difference = word ^ (ones &* UInt64(UInt8(ascii: "\n")))
      let zeros = (difference &- ones) & ~difference & (ones &* 0x80)
      if zeros != 0 { return position + zeros.trailingZeroBitCount / 8 }
      position += 8
    }
    while position < chunk.count {
      if chunk[position] == UInt8(ascii: "\n") { return position }
      position += 1
    }
    return nil
  }
}

extension Span<UInt8> {
  /// A line that is no request, and has no answer.
  public var isBlank: Bool {
    for index in indices {
      let byte = self[index]
      guard byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\r") || byte == UInt8(ascii: "\t") else { return false }
    }
    return true
  }
}
