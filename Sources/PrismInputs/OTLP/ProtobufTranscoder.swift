import PrismProtocol

/// Writes OTLP's protobuf messages as OTLP's JSON, without a tree between.
///
/// Fields keep the order of the wire; a list whose elements came apart is put together, and of fields that exclude each
/// other the last one counts, as proto3 says.
struct ProtobufTranscoder {
  typealias Fault = ProtobufReader.Fault

  /// Below what a meta may have (docs/ingest-protocol.md), with room for the object around a record.
  static let depthMax = 60
  /// Of one record.
  static let fieldsMax = 100_000

  private struct Part {
    let field: Int
    let value: ProtobufReader.Value
  }

  /// The fields of all messages that are open, the innermost last.
  private var parts: [Part] = []
  private var fieldCount = 0
  /// The most that `output` may have.
  var outputBytesMax = Int.max

  /// Appends the members of a message, without braces.
  /// - Throws: a fault; then `output` ends somewhere within the message.
  mutating func append(
    _ message: OTLPMessage, _ range: Range<Int>, of input: Span<UInt8>, to output: inout [UInt8]
  ) throws(Fault) {
    (parts, fieldCount) = ([], 0)
    try members(message, range, input, &output, depth: 1)
  }

  private mutating func object(
    _ message: OTLPMessage, _ range: Range<Int>, _ input: Span<UInt8>, _ output: inout [UInt8], depth: Int
  ) throws(Fault) {
    guard depth < Self.depthMax else { throw .tooDeep }
    output.append(.openBrace)
    try members(message, range, input, &output, depth: depth + 1)
    output.append(.closeBrace)
  }

  private mutating func members(
    _ message: OTLPMessage, _ range: Range<Int>, _ input: Span<UInt8>, _ output: inout [UInt8], depth: Int
  ) throws(Fault) {
    let fields = message.fields
    let start = parts.count
    defer { parts.removeSubrange(start...) }
    if try collect(fields, range, input) { sort(from: start) }
    let end = parts.count
    var index = start
    while index < end {
      guard let field = fields[parts[index].field] else { break }
      guard output.count <= outputBytesMax else { throw .tooLarge }
      let next = (index..<end).first { parts[$0].field != field.number } ?? end
      output.appendSeparator()
      output.append(keyOf: field)
      if field.isRepeated {
        try list(field, index..<next, input, &output, depth: depth)
      } else {
        try value(field, parts[next - 1].value, input, &output, depth: depth)
      }
      index = next
    }
  }

  /// Appends the known fields of a message to `parts`. - Returns: whether they must be sorted.
  private mutating func collect(
    _ fields: [OTLPField?], _ range: Range<Int>, _ input: Span<UInt8>
  ) throws(Fault) -> Bool {
    var reader = ProtobufReader(range)
    var (mustSort, choice): (Bool, Int?) = (false, nil)
    // Bit n: field n was there; no table has a larger number than 16.
    var (seen, last): (UInt32, Int) = (0, 0)
    while let found = try reader.next(input) {
      fieldCount += 1
      guard fieldCount <= Self.fieldsMax else { throw .tooManyFields }
      guard found.number < fields.count, let field = fields[found.number] else { continue }
      let part = Part(field: found.number, value: found.value)
      if field.isChoice, let choice {
        parts[choice] = part
        continue
      }
      if field.isChoice { choice = parts.count }
      let bit: UInt32 = 1 << UInt32(found.number)
      if found.number != last, seen & bit != 0 { mustSort = true }
      (seen, last) = (seen | bit, found.number)
      parts.append(part)
    }
    return mustSort
  }

  private mutating func sort(from start: Int) {
    let sorted = parts[start...].enumerated().sorted { ($0.element.field, $0.offset) < ($1.element.field, $1.offset) }
    parts.replaceSubrange(start..., with: sorted.map(\.element))
  }

  private mutating func list(
    _ field: OTLPField, _ indices: Range<Int>, _ input: Span<UInt8>, _ output: inout [UInt8], depth: Int
  ) throws(Fault) {
    guard depth < Self.depthMax else { throw .tooDeep }
    output.append(.openBracket)
    for index in indices {
      let part = parts[index].value
      guard output.count <= outputBytesMax else { throw .tooLarge }
      if case .bytes(let range) = part, field.isNumber {
        try packed(field, range, input, &output)
        continue
      }
      output.appendSeparator()
      try value(field, part, input, &output, depth: depth + 1)
    }
    output.append(.closeBracket)
  }

  private mutating func packed(
    _ field: OTLPField, _ range: Range<Int>, _ input: Span<UInt8>, _ output: inout [UInt8]
  ) throws(Fault) {
    var reader = ProtobufReader(range)
    while !reader.isAtEnd {
      let number: ProtobufReader.Value
      switch field.form {
      case .fixed64, .double, .signedFixed64: number = .fixed64(try reader.fixed(8, input))
      default: number = .varint(try reader.varint(input))
      }
      fieldCount += 1
      guard fieldCount <= Self.fieldsMax else { throw .tooManyFields }
      output.appendSeparator()
      try value(field, number, input, &output, depth: 0)
    }
  }

  private mutating func value(
    _ field: OTLPField, _ value: ProtobufReader.Value, _ input: Span<UInt8>, _ output: inout [UInt8], depth: Int
  ) throws(Fault) {
    switch (field.form, value) {
    case (.message(let message), .bytes(let range)): try object(message, range, input, &output, depth: depth)
    case (.string, .bytes(let range)): output.appendQuoted(input.extracting(range))
    case (.base64, .bytes(let range)): output.append(base64: input.extracting(range))
    case (.hexadecimal, .bytes(let range)): output.append(hexadecimal: input.extracting(range))
    case (.bool, .varint(let number)): output.append(word: number != 0 ? "true" : "false")
    case (.varint32, .varint(let number)): output.append(decimal: Int64(Int32(truncatingIfNeeded: number)))
    case (.unsigned32, .varint(let number)): output.append(decimal: UInt64(UInt32(truncatingIfNeeded: number)))
    case (.zigzag32, .varint(let number)):
      let folded = UInt32(truncatingIfNeeded: number)
      output.append(decimal: Int64(Int32(bitPattern: folded >> 1) ^ -Int32(bitPattern: folded & 1)))
    case (.fixed32, .fixed32(let number)): output.append(decimal: UInt64(number))
    case (.double, .fixed64(let bits)): output.appendNumber(Double(bitPattern: bits))
    case (.signed64, .varint(let number)), (.signedFixed64, .fixed64(let number)):
      output.appendQuotedDecimal(Int64(bitPattern: number))
    case (.unsigned64, .varint(let number)), (.fixed64, .fixed64(let number)): output.appendQuotedDecimal(number)
    default: throw .malformed(offset: 0)
    }
  }
}

extension OTLPField {
  /// Lists of it may be packed.
  fileprivate var isNumber: Bool {
    switch form {
    case .string, .base64, .hexadecimal, .message: false
    default: true
    }
  }
}
