/// Reads msgpack (github.com/msgpack/msgpack/blob/master/spec.md) token by token, without building anything.
///
/// It holds only a position. A length is checked against what is there before it is used; a claimed count of elements
/// allocates nothing, as libmsgpack-c does for it before it has seen one.
struct MsgPackReader {
  enum Token: Equatable {
    case null
    case bool(Bool)
    case signed(Int64)
    case unsigned(UInt64)
    case double(Double)
    case string(Range<Int>)
    case binary(Range<Int>)
    case array(Int)
    case map(Int)
    case other(type: Int8, Range<Int>)
  }

  enum Fault: Error, Equatable {
    /// The input ends within the token, which needs at least `neededBytes` bytes of input.
    case incomplete(neededBytes: Int)
    /// Byte 0xC1, which msgpack never uses.
    case malformed(offset: Int)
    case tooDeep
    /// The JSON of a record would be over `EventRecord.textBytesMax`.
    case tooLarge
  }

  /// Of a record, as `Limits.jsonDepthMax` with room for the object around it.
  static let depthMax = 60

  var position: Int
  let end: Int

  init(_ range: Range<Int>) { (position, end) = (range.lowerBound, range.upperBound) }

  var isAtEnd: Bool { position >= end }

  mutating func next(_ input: Span<UInt8>) throws(Fault) -> Token {
    guard position < end else { throw .incomplete(neededBytes: position + 1) }
    let first = input[position]
    switch first {
    case 0x00...0x7F: return short(.unsigned(UInt64(first)))
    case 0x80...0x8F: return short(.map(Int(first & 15)))
    case 0x90...0x9F: return short(.array(Int(first & 15)))
    case 0xA0...0xBF: return .string(try bytes(headBytes: 1, count: Int(first & 31)))
    case 0xC0: return short(.null)
    case 0xC1: throw .malformed(offset: position)
    case 0xC2, 0xC3: return short(.bool(first == 0xC3))
    case 0xE0...0xFF: return short(.signed(Int64(Int8(bitPattern: first))))
    default: return try long(first, input)
    }
  }

  @inline(__always) private mutating func short(_ token: Token) -> Token {
    position += 1
    return token
  }

  private mutating func long(_ first: UInt8, _ input: Span<UInt8>) throws(Fault) -> Token {
    switch first {
    case 0xC4...0xC6: return .binary(try sized(first - 0xC4, input))
    case 0xC7...0xC9: return try extended(first - 0xC7, input)
    case 0xCA: return .double(Double(Float(bitPattern: UInt32(try number(4, input)))))
    case 0xCB: return .double(Double(bitPattern: try number(8, input)))
    case 0xCC...0xCF: return .unsigned(try number(1 << Int(first - 0xCC), input))
    case 0xD0...0xD3:
      let bits = 64 - (8 << Int(first - 0xD0))
      return .signed(Int64(bitPattern: try number(1 << Int(first - 0xD0), input) << UInt64(bits)) >> Int64(bits))
    case 0xD4...0xD8: return try other(headBytes: 1, count: 1 << Int(first - 0xD4), input)
    case 0xD9...0xDB: return .string(try sized(first - 0xD9, input))
    case 0xDC, 0xDD: return .array(Int(try number(first == 0xDC ? 2 : 4, input)))
    default: return .map(Int(try number(first == 0xDE ? 2 : 4, input)))
    }
  }

  /// A big-endian number after the first byte.
  private mutating func number(_ count: Int, _ input: Span<UInt8>) throws(Fault) -> UInt64 {
    let result = try peek(count, input)
    position += 1 + count
    return result
  }

  private func peek(_ count: Int, _ input: Span<UInt8>) throws(Fault) -> UInt64 {
    guard count < end - position else { throw .incomplete(neededBytes: position + 1 + count) }
    var result: UInt64 = 0
    for index in 1...count { result = result << 8 | UInt64(input[position + index]) }
    return result
  }

  /// - Parameter size: 0, 1, 2: a length of 1, 2, 4 bytes.
  private mutating func sized(_ size: UInt8, _ input: Span<UInt8>) throws(Fault) -> Range<Int> {
    let lengthBytes = 1 << Int(size)
    return try bytes(headBytes: 1 + lengthBytes, count: Int(try peek(lengthBytes, input)))
  }

  private mutating func extended(_ size: UInt8, _ input: Span<UInt8>) throws(Fault) -> Token {
    let lengthBytes = 1 << Int(size)
    return try other(headBytes: 1 + lengthBytes, count: Int(try peek(lengthBytes, input)), input)
  }

  private mutating func other(headBytes: Int, count: Int, _ input: Span<UInt8>) throws(Fault) -> Token {
    let start = position
    let content = try bytes(headBytes: headBytes + 1, count: count)
    return .other(type: Int8(bitPattern: input[start + headBytes]), content)
  }

  private mutating func bytes(headBytes: Int, count: Int) throws(Fault) -> Range<Int> {
    guard count <= end - position - headBytes else { throw .incomplete(neededBytes: position + headBytes + count) }
    let start = position + headBytes
    position = start + count
    return start..<position
  }

  /// Passes over one value with all that is in it.
  mutating func skip(_ input: Span<UInt8>) throws(Fault) {
    var framer = MsgPackFramer(from: position)
    guard try framer.advance(input.extracting(0..<end)) else { throw .incomplete(neededBytes: framer.neededBytes) }
    position = framer.position
  }
}

/// Finds the end of a value that arrives in pieces. Each byte is looked at once.
struct MsgPackFramer {
  /// More than a record may have: what is too deep in one record does not cost the others.
  static let depthMax = 1_000

  /// Behind what was looked at.
  private(set) var position: Int
  /// The bytes of input that the next call of `advance` needs.
  private(set) var neededBytes: Int
  /// Elements that are still to come, of each container that is open; the innermost last.
  private var open: [Int] = [1]

  init(from position: Int) { (self.position, neededBytes) = (position, position + 1) }

  /// - Returns: whether the value is whole: then it ends at `position`.
  mutating func advance(_ input: Span<UInt8>) throws(MsgPackReader.Fault) -> Bool {
    var reader = MsgPackReader(position..<input.count)
    defer { position = reader.position }
    do throws(MsgPackReader.Fault) {
      while let left = open.last {
        if left == 0 {
          open.removeLast()
          continue
        }
        let token = try reader.next(input)
        open[open.count - 1] = left - 1
        switch token {
        case .array(let count): open.append(count)
        case .map(let count): open.append(2 * count)
        default: continue
        }
        guard open.count <= Self.depthMax else { throw .tooDeep }
      }
      return true
    } catch {
      guard case .incomplete(let needed) = error else { throw error }
      neededBytes = needed
      return false
    }
  }
}
