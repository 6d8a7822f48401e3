import Glibc

/// Writes the values of one column, in order. Its bytes were checked: it can only come to the end of the text, or to a value
/// that is not there.
struct ColumnReader {
  private let kind: ColumnKind
  /// The constant, the prefix of ids, or the run of texts, bits or bytes; what is left of it.
  private var run = 0..<0
  /// Of bytes, behind the bits.
  private var digits = 0
  /// Bytes of a hexadecimal string, digits of an id, or the least fraction digits.
  private var width = 0
  /// The base of ids, or the most fraction digits.
  private var base = 0
  private var integers = IntegerReader()
  /// In the dictionaries of the block.
  private var words = 0..<0
  private var row = 0

  /// - Parameter rows: values of the column; at least 1.
  /// - Parameter dictionary: of all columns; gets this one's words.
  /// - Parameter wordsMax: of all columns.
  init(
    _ input: inout ColumnInput, rows: Int, _ dictionary: inout [Range<Int>], wordsMax: Int
  ) throws(PacketError) {
    guard let kind = ColumnKind(rawValue: try input.byte()) else { throw .unpackFailed }
    self.kind = kind
    switch kind {
    case .constant:
      run = try input.text()
      // A value is at least a byte: so the work is bounded by the text.
      guard !run.isEmpty else { throw .unpackFailed }
    case .values, .strings: run = try input.text()
    case .booleans: run = try input.run((rows + 7) / 8)
    case .hexadecimal, .someHexadecimal:
      width = Int(try input.byte())
      if kind == .someHexadecimal { run = try input.run((rows + 7) / 8) }
      let filled = kind == .hexadecimal ? rows : Self.ones(input.bytes, run, rows)
      digits = try input.run(filled * width).lowerBound
    case .words:
      let count = try input.number()
      guard count > 0, dictionary.count + count <= wordsMax else { throw .unpackFailed }
      words = dictionary.count..<dictionary.count + count
      try input.texts(count, to: &dictionary)
      integers = try IntegerReader(&input, count: rows)
    case .ids:
      run = try input.text()
      (base, width) = (Int(try input.byte()), Int(try input.byte()))
      guard base == 10 || base == 16 && width > 0, width <= 16 else { throw .unpackFailed }
      integers = try IntegerReader(&input, count: rows)
    case .numbers:
      (width, base) = (Int(try input.byte()), Int(try input.byte()))
      guard width <= base, base <= 18 else { throw .unpackFailed }
      integers = try IntegerReader(&input, count: rows)
    }
  }

  /// The bits of the first `rows` that are 1.
  private static func ones(_ bytes: UnsafeBufferPointer<UInt8>, _ run: Range<Int>, _ rows: Int) -> Int {
    let spare = bytes[run.upperBound - 1] >> UInt8((rows - 1) % 8 + 1)
    return bytes[run].reduce(-spare.nonzeroBitCount) { $0 + $1.nonzeroBitCount }
  }

  /// The values of a column before the first is read.
  enum Content {
    case constant(Range<Int>)
    /// In the dictionaries of the block, and the number of each.
    case words(Range<Int>, IntegerReader)
    case numbers(IntegerReader, least: Int, most: Int)
    case others
  }

  var content: Content {
    switch kind {
    case .constant: .constant(run)
    case .words: .words(words, integers)
    case .numbers: .numbers(integers, least: width, most: base)
    default: .others
    }
  }

  /// Whether all that was read for it is used.
  var isAtEnd: Bool { kind != .values && kind != .strings || run.isEmpty }

  /// Writes the value of the next row.
  /// - Throws: `unpackFailed` without room or for a value that can't be.
  mutating func next(
    _ bytes: UnsafeBufferPointer<UInt8>, _ dictionary: UnsafeBufferPointer<Range<Int>>, to output: inout ColumnOutput
  ) throws(PacketError) {
    defer { row += 1 }
    switch kind {
    case .constant: try output.append(bytes, run)
    case .values: try output.append(bytes, try line(bytes))
    case .strings: try output.append(quoted: bytes, try line(bytes))
    case .words:
      let number = integers.next(bytes)
      guard number >= 0, number < words.count else { throw .unpackFailed }
      try output.append(bytes, dictionary[words.lowerBound + Int(number)])
    case .booleans: try output.append(bit(bytes) ? "true" : "false")
    case .hexadecimal: try appendHexadecimal(bytes, to: &output)
    case .someHexadecimal:
      if bit(bytes) { try appendHexadecimal(bytes, to: &output) } else { try output.append("\"\"") }
    case .ids: try output.append(id: UInt64(bitPattern: integers.next(bytes)), bytes, run, width, base)
    case .numbers: try output.append(number: integers.next(bytes), least: width, most: base)
    }
  }

  private func bit(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
    bytes[run.lowerBound + row / 8] >> UInt8(row % 8) & 1 == 1
  }

  private mutating func line(_ bytes: UnsafeBufferPointer<UInt8>) throws(PacketError) -> Range<Int> {
    guard let end = bytes.lineFeed(in: run) else { throw .unpackFailed }
    defer { run = end + 1..<run.upperBound }
    return run.lowerBound..<end
  }

  private mutating func appendHexadecimal(
    _ bytes: UnsafeBufferPointer<UInt8>, to output: inout ColumnOutput
  ) throws(PacketError) {
    try output.append(hexadecimal: bytes, digits..<digits + width)
    digits += width
  }
}

/// The form of a column's values. The raw values are those of docs/packet.md, "Columns".
enum ColumnKind: UInt8, CaseIterable {
  /// One value for all rows.
  case constant = 0
  /// Values as they are, each ended by a line feed.
  case values = 1
  /// Strings without their quotes, each ended by a line feed.
  case strings = 2
  /// Few different values: each once, and the number of each row's value.
  case words = 3
  /// A bit for each row.
  case booleans = 4
  /// Strings of lower-case hexadecimal digits, as many in each row: the bytes.
  case hexadecimal = 5
  /// The same where some strings are empty: a bit for each row first, which is 1 with a string.
  case someHexadecimal = 6
  /// Strings that are one prefix and a number: of one number of digits, or decimal without leading zeros.
  case ids = 7
  /// Numbers without an exponent, as integers.
  case numbers = 8
}
