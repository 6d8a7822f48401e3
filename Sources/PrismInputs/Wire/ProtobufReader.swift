/// Reads the fields of one protobuf message (protobuf.dev/programming-guides/encoding), without building anything.
///
/// It holds only positions; the bytes are handed to every call as a bounds-checked `Span`. A length is checked against
/// the message's end before it is used. Groups, which proto3 does not have, are malformed.
struct ProtobufReader {
  enum Value: Equatable {
    case varint(UInt64)
    case fixed64(UInt64)
    /// Positions in the whole input.
    case bytes(Range<Int>)
    case fixed32(UInt32)
  }

  struct Field: Equatable {
    let number: Int
    let value: Value
  }

  enum Fault: Error, Equatable {
    /// The input is not protobuf at this byte.
    case malformed(offset: Int)
    /// The JSON would be over `ProtobufTranscoder.depthMax` levels deep.
    case tooDeep
    /// The message has more than `ProtobufTranscoder.fieldsMax` fields, those of its parts included.
    case tooManyFields
    /// The JSON would be over `ProtobufTranscoder.outputBytesMax`.
    case tooLarge
  }

  private(set) var position: Int
  private let end: Int

  /// - Parameter range: the message in the input.
  init(_ range: Range<Int>) { (position, end) = (range.lowerBound, range.upperBound) }

  /// The next field; nil at the end of the message.
  mutating func next(_ input: Span<UInt8>) throws(Fault) -> Field? {
    guard position < end else { return nil }
    let tag = try varint(input)
    let number = tag >> 3
    guard 1...0x1FFF_FFFF ~= number else { throw .malformed(offset: position) }
    return Field(number: Int(number), value: try value(ofType: tag & 7, input))
  }

  private mutating func value(ofType type: UInt64, _ input: Span<UInt8>) throws(Fault) -> Value {
    switch type {
    case 0: return .varint(try varint(input))
    case 1: return .fixed64(try fixed(8, input))
    case 2:
      let count = try varint(input)
      guard count <= UInt64(end - position) else { throw .malformed(offset: position) }
      let start = position
      position += Int(count)
      return .bytes(start..<position)
    case 5: return .fixed32(UInt32(try fixed(4, input)))
    default: throw .malformed(offset: position)
    }
  }

  /// A number without a tag: an element of a packed list.
  @inline(__always) mutating func varint(_ input: Span<UInt8>) throws(Fault) -> UInt64 {
    var (result, shift): (UInt64, UInt64) = (0, 0)
    while position < end, shift < 64 {
      let byte = input[position]
      position += 1
      result |= UInt64(byte & 127) << shift
      if byte < 0x80 { return result }
      shift += 7
    }
    throw .malformed(offset: position)
  }

  /// A little-endian number without a tag.
  mutating func fixed(_ count: Int, _ input: Span<UInt8>) throws(Fault) -> UInt64 {
    guard count <= end - position else { throw .malformed(offset: position) }
    var result: UInt64 = 0
    for index in 0..<count { result |= UInt64(input[position + index]) << UInt64(8 * index) }
    position += count
    return result
  }

  var isAtEnd: Bool { position >= end }
}
