import Glibc
import PrismProtocol

/// The lines of a block, sorted by their shapes.
struct ShapeTable {
  /// The most shapes of a block, and the most values of a line. Other lines stay as they are.
  static let (shapesMax, columnsMax) = (48, 64)
  /// A shape of fewer lines costs more than it saves.
  static let rowsMin = 4
  private static let typeKey = Array("MONITOR_TYPE\"".utf8)

  let text: UnsafeBufferPointer<UInt8>
  private(set) var lines: [TextPlace] = []
  /// Those of at least `rowsMin` lines.
  private(set) var shapes: [LineShape] = []
  /// Of each line: 0 if it stays as it is, else its shape's place in `shapes` and 1.
  private(set) var order: [UInt8] = []

  /// - Parameter text: not empty, below 4 GiB.
  init(_ text: UnsafeBufferPointer<UInt8>) {
    self.text = text
    var last = 0
    // The shape that came after each one the last time.
    var followers = [Int](repeating: 0, count: Self.shapesMax)
    var start = 0
    while start <= text.count {
      let rest = text.count - start
      let feed = rest > 0 ? memchr(text.baseAddress! + start, Int32(UInt8(ascii: "\n")), rest) : nil
      let end = feed.map { UnsafeRawPointer($0) - UnsafeRawPointer(text.baseAddress!) } ?? text.count
      lines.append(TextPlace(start, end - start))
      if let shape = find(start..<end, last, followers) {
        (followers[last], last) = (shape, shape)
        order.append(UInt8(shape + 1))
      } else {
        order.append(0)
      }
      start = end + 1
    }
    dropRareShapes()
  }

  private mutating func find(_ line: Range<Int>, _ last: Int, _ followers: [Int]) -> Int? {
    let base = text.baseAddress!
    if !shapes.isEmpty {
      let likely = followers[last]
      if shapes[likely].take(line, of: base) { return likely }
      for index in shapes.indices where index != likely && shapes[index].take(line, of: base) { return index }
    }
    guard shapes.count < Self.shapesMax, let shape = Self.learn(text[line]), shape.take(line, of: base) else {
      return nil
    }
    shapes.append(shape)
    return shapes.count - 1
  }

  private mutating func dropRareShapes() {
    var numbers: [UInt8] = [0]
    var kept: [LineShape] = []
    for shape in shapes {
      if shape.rows >= Self.rowsMin { kept.append(shape) }
      numbers.append(shape.rows >= Self.rowsMin ? UInt8(kept.count) : 0)
    }
    guard kept.count < shapes.count else { return }
    for index in order.indices { order[index] = numbers[Int(order[index])] }
    shapes = kept
  }

  /// The shape of a line: a value is what follows a colon and is no object, nor a list that begins with one.
  /// - Returns: nil if the line is no JSON object, or has too many values.
  private static func learn(_ line: Slice<UnsafeBufferPointer<UInt8>>) -> LineShape? {
    guard line.first == UInt8(ascii: "{"), (try? MetaFields(Array(line).span)) != nil else { return nil }
    let whole = UnsafeBufferPointer(rebasing: line)
    let base = whole.baseAddress!
    let end = base + whole.count
    var (text, at, columns) = ([UInt8](), base, 0)
    while at < end {
      let byte = at.pointee
      var behind = at + 1
      if byte == UInt8(ascii: "\"") {
        guard let close = JSONToken.stringEnd(at + 1, end) else { return nil }
        behind = close
      }
      text += UnsafeBufferPointer(start: at, count: behind - at)
      at = behind
      guard byte == UInt8(ascii: ":") else { continue }
      while at < end, at.pointee <= UInt8(ascii: " ") {
        text.append(at.pointee)
        at += 1
      }
      guard !beginsObjects(at, end), !(columns == 0 && text.count < 24 && isType(text)),
        let close = JSONToken.end(at, end)
      else { continue }
      text.append(LineShape.valueMark)
      (at, columns) = (close, columns + 1)
      guard columns <= columnsMax else { return nil }
    }
    return columns > 0 ? LineShape(text) : nil
  }

  private static func isType(_ text: [UInt8]) -> Bool {
    text.dropLast().suffix(typeKey.count) == typeKey[...]
  }

  private static func beginsObjects(_ at: UnsafePointer<UInt8>, _ end: UnsafePointer<UInt8>) -> Bool {
    var next = at
    while next < end, next.pointee == UInt8(ascii: "[") || next.pointee <= UInt8(ascii: " ") { next += 1 }
    return next < end && next.pointee == UInt8(ascii: "{")
  }
}
