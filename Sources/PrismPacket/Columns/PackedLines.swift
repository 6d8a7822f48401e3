import PrismBase
import PrismProtocol

/// Lines of JSON objects as they were packed. Only those values of them are made that a question names, a column at a time.
public struct PackedLines {
  /// The values of one member in all lines of a shape, in their order.
  public enum Values {
    /// No line has the first key of the path.
    case noKey
    /// Each has it, and the path leads nowhere.
    case noField
    /// All lines have this value.
    case one([UInt8])
    /// Some values, and which of them each line has.
    case words([[UInt8]], [Int])
    /// Numbers as integers: the last `most` digits are their fraction, of which zeros behind the first `least` are not written.
    case numbers([Int64], least: Int, most: Int)
    /// The places of the values in a text.
    case texts([UInt8], [Range<Int>])
    /// The places of whole lines: each may have the member or not.
    case lines([UInt8], [Range<Int>])
  }

  /// A line between these holds the members that the rows after it share, until the next such line (docs/packet.md, "Common
  /// information").
  static let (commonHead, commonTail) = (Array(#"{"$common":{"#.utf8), Array("}}".utf8))
  private static let commonKey = Array("$common".utf8)

  private let bytes: UnsafeBufferPointer<UInt8>
  /// nil: the bytes are the lines.
  private let block: ColumnBlock?
  /// The lines of each shape, ascending. Those of shape 0 have no shape in common.
  public private(set) var shapes: [[Int]]
  /// The lines that are rows.
  public private(set) var rows: [Int] = []
  /// Of each row's line that of its common information, below 0 without.
  public private(set) var commons: [Int]
  /// The first line of each shape, and the columns of its values.
  private var examples: [(line: Range<Int>, values: [(range: Range<Int>, column: Int)])] = []
  private var exampleText: [UInt8] = []
  /// The lines of shape 0.
  private var rest: (text: [UInt8], lines: [Range<Int>]) = ([], [])

  /// - Parameter head: of columns; nil: the bytes are the lines.
  init(_ bytes: UnsafeBufferPointer<UInt8>, _ head: ColumnHead?) throws(PacketError) {
    self.bytes = bytes
    guard let head else {
      rest.text = Array(bytes)
      rest.lines = Array(LineRanges(rest.text))
      (block, shapes, commons) = (nil, [Array(rest.lines.indices)], Array(repeating: -1, count: rest.lines.count))
      addRows(order: Array(repeating: 0, count: commons.count))
      return
    }
    let block = try ColumnBlock(bytes, head)
    var reader = block.order
    let order = reader.all(head.lines, bytes).map { Int($0) }
    shapes = Array(repeating: [], count: block.shapes.count)
    for (line, shape) in order.enumerated() { shapes[shape].append(line) }
    (self.block, commons) = (block, Array(repeating: -1, count: head.lines))
    rest = try written(shapes[0].count, of: 0)
    try addExamples(block)
    addRows(order: order)
  }

  private mutating func addExamples(_ block: ColumnBlock) throws(PacketError) {
    let room = block.head.textBytes
    var found = examples
    exampleText = try ColumnOutput.text(bytesMax: room) { output throws(PacketError) in
      for (shape, pieces) in block.shapes.enumerated() {
        let start = room - output.left
        var values: [(range: Range<Int>, column: Int)] = []
        for piece in block.pieces[pieces] where shape > 0 {
          try output.append(bytes, piece.text)
          guard let column = piece.column else { continue }
          let begin = room - output.left
          var reader = block.columns[column]
          try next(&reader, to: &output)
          values.append((begin - start..<room - output.left - start, column))
        }
        found.append((start..<room - output.left, values))
      }
    }
    examples = found
  }

  private mutating func addRows(order: [Int]) {
    let kinds = examples.map { Self.kind(exampleText[$0.line]) }
    var (common, next) = (-1, 0)
    rows.reserveCapacity(order.count)
    for (line, shape) in order.enumerated() {
      let kind: (isCommon: Bool, isObject: Bool)
      if shape > 0 {
        kind = kinds[shape]
      } else {
        kind = Self.kind(rest.text[rest.lines[next]])
        next += 1
      }
      if kind.isCommon {
        common = line
      } else {
        rows.append(line)
        if kind.isObject { commons[line] = common }
      }
    }
  }

  private static func kind(_ line: ArraySlice<UInt8>) -> (isCommon: Bool, isObject: Bool) {
    (line.starts(with: commonHead), line.first == UInt8(ascii: "{") && line.last == UInt8(ascii: "}"))
  }

  /// - Parameter path: keys, from the outermost object on; at least one. Within common information, for its lines.
  /// - Throws: `unpackFailed` for columns that are not what was packed.
  public func values(_ path: [[UInt8]], of shape: Int) throws(PacketError) -> Values {
    guard shape > 0, let block else { return .lines(rest.text, rest.lines) }
    // Keys and the places of values are the same in all lines of a shape.
    let (line, places) = examples[shape]
    let text = exampleText.span.extracting(line)
    switch MetaField.find(Self.kind(exampleText[line]).isCommon ? [Self.commonKey] + path : path, in: text) {
    case .noKey: return .noKey
    case .noField: return .noField
    case .field(let field):
      let within = places.filter { $0.range.overlaps(field.range) }
      guard let first = within.first else {
        return .one(Array(exampleText[line].dropFirst(field.range.lowerBound).prefix(field.range.count)))
      }
      guard within.count == 1, first.range == field.range else {
        let (text, lines) = try written(shapes[shape].count, of: shape)
        return .lines(text, lines)
      }
      return try values(block, first.column, shapes[shape].count)
    }
  }

  /// The path of a member in a line, which may be common information.
  public static func path(_ path: [[UInt8]], in line: ArraySlice<UInt8>) -> [[UInt8]] {
    kind(line).isCommon ? [commonKey] + path : path
  }

  /// The digits of a number of a column.
  public static func text(of number: Int64, least: Int, most: Int) throws(PacketError) -> [UInt8] {
    try ColumnOutput.text(bytesMax: 2 * ColumnOutput.spareBytes) { output throws(PacketError) in
      try output.append(number: number, least: least, most: most)
    }
  }

  // MARK: Columns

  private func values(_ block: ColumnBlock, _ column: Int, _ count: Int) throws(PacketError) -> Values {
    var reader = block.columns[column]
    switch reader.content {
    case .constant(let text): return .one(Array(bytes[text]))
    case .words(let words, var numbers):
      let indices = numbers.all(count, bytes).map { Int($0) }
      guard indices.allSatisfy((0..<words.count).contains) else { throw .unpackFailed }
      return .words(block.words[words].map { Array(bytes[$0]) }, indices)
    case .numbers(var numbers, let least, let most):
      return .numbers(numbers.all(count, bytes), least: least, most: most)
    case .others:
      let (text, ranges) = try written(count) { output throws(PacketError) in try next(&reader, to: &output) }
      return .texts(text, ranges)
    }
  }

  private func next(_ reader: inout ColumnReader, to output: inout ColumnOutput) throws(PacketError) {
    guard let words = block?.words else { throw .unpackFailed }
    try words.withUnsafeBufferPointer { words throws(PacketError) in try reader.next(bytes, words, to: &output) }
  }

  // MARK: Texts

  private func written(_ count: Int, of shape: Int) throws(PacketError) -> ([UInt8], [Range<Int>]) {
    guard let block, count > 0 else { return ([], []) }
    var columns = block.columns
    return try written(count) { output throws(PacketError) in
      for piece in block.pieces[block.shapes[shape]] {
        try output.append(bytes, piece.text)
        if let column = piece.column { try next(&columns[column], to: &output) }
      }
    }
  }

  private func written(
    _ count: Int, _ write: (inout ColumnOutput) throws(PacketError) -> Void
  ) throws(PacketError) -> ([UInt8], [Range<Int>]) {
    let room = block?.head.textBytes ?? 0
    var ranges: [Range<Int>] = []
    ranges.reserveCapacity(count)
    let text = try ColumnOutput.text(bytesMax: room) { output throws(PacketError) in
      for _ in 0..<count {
        let start = room - output.left
        try write(&output)
        ranges.append(start..<room - output.left)
      }
    }
    return (text, ranges)
  }
}
