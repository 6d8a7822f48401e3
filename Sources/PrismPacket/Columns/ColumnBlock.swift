import Glibc

/// A block of columns that is turned back into its lines, trusting nothing in it.
struct ColumnBlock {
  /// A shape: its readers, and the pieces of text before each value and behind the last one.
  private struct Shape {
    var columns: Range<Int>
    var pieces: Range<Int>
    var rows = 0
  }

  private var input: ColumnInput
  private let head: ColumnHead
  private var shapes: [Shape] = []
  private var pieces: [Range<Int>] = []
  private var columns: [ColumnReader] = []
  private var words: [Range<Int>] = []
  private let order: IntegerReader

  /// The text of a block.
  /// - Parameter bytes: the unpacked columns.
  /// - Parameter head: was checked against the limits.
  /// - Throws: `unpackFailed` for anything that does not become exactly what the head says.
  static func text(_ bytes: [UInt8], _ head: ColumnHead) throws(PacketError) -> [UInt8] {
    var failure: PacketError?
    let text = bytes.withUnsafeBufferPointer { bytes in
      [UInt8](unsafeUninitializedCapacity: head.textBytes + ColumnOutput.spareBytes) { buffer, count in
        do throws(PacketError) {
          var block = try ColumnBlock(bytes, head)
          let room = UnsafeMutableBufferPointer(rebasing: buffer[..<(head.textBytes + ColumnOutput.spareBytes)])
          try block.write(to: ColumnOutput(room))
          count = head.textBytes
        } catch { failure = error }
      }
    }
    if let failure { throw failure }
    return text
  }

  private init(_ bytes: UnsafeBufferPointer<UInt8>, _ head: ColumnHead) throws(PacketError) {
    guard head.lines > 0 else { throw .unpackFailed }
    self.head = head
    input = try ColumnInput(bytes)
    let count = try input.number()
    // Each has a line at least, and a column.
    guard count <= min(head.lines, head.columns) else { throw .unpackFailed }
    columns.reserveCapacity(head.columns)
    words.reserveCapacity(head.words)
    // Lines without a shape: a value and nothing around it.
    var texts = [0..<0]
    for _ in 0..<count { texts.append(try input.text()) }
    order = try IntegerReader(&input, count: head.lines)
    var (numbers, rows) = (order, [Int](repeating: 0, count: count + 1))
    for _ in 0..<head.lines {
      let number = numbers.next(bytes)
      guard number >= 0, number <= count else { throw .unpackFailed }
      rows[Int(number)] += 1
    }
    for (index, text) in texts.enumerated() {
      try add(text, isLine: index == 0, rows: rows[index])
    }
    guard columns.count == head.columns, words.count == head.words, input.isAtEnd else { throw .unpackFailed }
  }

  /// Reads a shape's columns. - Parameter isLine: for lines without a shape.
  private mutating func add(_ text: Range<Int>, isLine: Bool, rows: Int) throws(PacketError) {
    let (firstColumn, firstPiece) = (columns.count, pieces.count)
    if isLine {
      pieces += [text, text]
    } else {
      var rest = text
      while let end = input.bytes.lineFeed(in: rest) {
        pieces.append(rest.lowerBound..<end)
        rest = end + 1..<rest.upperBound
        guard pieces.count - shapes.count <= head.columns + 2 else { throw .unpackFailed }
      }
      pieces.append(rest)
    }
    let count = pieces.count - firstPiece - 1
    guard isLine || rows > 0 && count > 0 else { throw .unpackFailed }
    if rows > 0 {
      guard columns.count + count <= head.columns else { throw .unpackFailed }
      for _ in 0..<count {
        columns.append(try ColumnReader(&input, rows: rows, &words, wordsMax: head.words))
      }
    }
    shapes.append(
      Shape(columns: firstColumn..<columns.count, pieces: firstPiece..<pieces.count, rows: rows))
  }

  private mutating func write(to output: consuming ColumnOutput) throws(PacketError) {
    var (output, order) = (output, order)
    let (bytes, head, shapes, pieces) = (input.bytes, head, shapes, pieces)
    try words.withUnsafeBufferPointer { words throws(PacketError) in
      try columns.withUnsafeMutableBufferPointer { columns throws(PacketError) in
        for line in 0..<head.lines {
          if line > 0 { try output.append(byte: UInt8(ascii: "\n")) }
          let shape = shapes[Int(order.next(bytes))]
          var piece = shape.pieces.lowerBound
          for column in shape.columns {
            try output.append(bytes, pieces[piece])
            try columns[column].next(bytes, words, to: &output)
            piece += 1
          }
          try output.append(bytes, pieces[piece])
        }
      }
    }
    guard output.isFull, columns.allSatisfy(\.isAtEnd) else { throw .unpackFailed }
  }
}
