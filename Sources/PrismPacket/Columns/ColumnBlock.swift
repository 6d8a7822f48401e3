import Glibc

/// A block of columns that is turned back into its lines, trusting nothing in it.
struct ColumnBlock {
  /// A piece of a shape's text, and the column of the value behind it.
  struct Piece {
    var text: Range<Int>
    /// nil: no value follows.
    var column: Int?
  }

  private var input: ColumnInput
  let head: ColumnHead
  private(set) var shapes: [Range<Int>] = []
  private(set) var pieces: [Piece] = []
  private(set) var columns: [ColumnReader] = []
  private(set) var words: [Range<Int>] = []
  let order: IntegerReader

  /// The text of a block.
  /// - Parameter bytes: the unpacked columns.
  /// - Parameter head: was checked against the limits.
  /// - Throws: `unpackFailed` for anything that does not become exactly what the head says.
  static func text(_ bytes: [UInt8], _ head: ColumnHead) throws(PacketError) -> [UInt8] {
    try bytes.withUnsafeBufferPointer { (bytes) throws(PacketError) in
      try ColumnOutput.text(bytesMax: head.textBytes) { (output) throws(PacketError) in
        var block = try ColumnBlock(bytes, head)
        try block.write(to: &output)
      }
    }
  }

  init(_ bytes: UnsafeBufferPointer<UInt8>, _ head: ColumnHead) throws(PacketError) {
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
    var column = firstColumn
    if isLine {
      pieces.append(Piece(text: text, column: column))
      column += 1
    } else {
      try addPieces(of: text, &column)
    }
    let count = column - firstColumn
    guard isLine || rows > 0 && count > 0 else { throw .unpackFailed }
    if rows > 0 {
      guard columns.count + count <= head.columns else { throw .unpackFailed }
      for _ in 0..<count {
        columns.append(try ColumnReader(&input, rows: rows, &words, wordsMax: head.words))
      }
    }
    shapes.append(firstPiece..<pieces.count)
  }

  /// - Parameter column: of the first value in the text; becomes that of the first one behind it.
  private mutating func addPieces(of text: Range<Int>, _ column: inout Int) throws(PacketError) {
    var rest = text
    while let end = input.bytes.lineFeed(in: rest) {
      pieces.append(Piece(text: rest.lowerBound..<end, column: column))
      rest = end + 1..<rest.upperBound
      column += 1
      guard column <= head.columns else { throw .unpackFailed }
    }
    pieces.append(Piece(text: rest))
  }

  private mutating func write(to text: inout ColumnOutput) throws(PacketError) {
    // In variables of its own: what is reached by a reference is looked up for every value.
    var (output, order) = (text, order)
    let (bytes, head, shapes, pieces) = (input.bytes, head, shapes, pieces)
    try words.withUnsafeBufferPointer { words throws(PacketError) in
      try columns.withUnsafeMutableBufferPointer { columns throws(PacketError) in
        for line in 0..<head.lines {
          if line > 0 { try output.append(byte: UInt8(ascii: "\n")) }
          for place in shapes[Int(order.next(bytes))] {
            let piece = pieces[place]
            try output.append(bytes, piece.text)
            if let column = piece.column { try columns[column].next(bytes, words, to: &output) }
          }
        }
      }
    }
    guard output.left == 0, columns.allSatisfy(\.isAtEnd) else { throw .unpackFailed }
    text = output
  }
}
