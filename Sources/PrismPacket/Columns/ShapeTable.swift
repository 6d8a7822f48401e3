import Glibc

/// The lines of a block, sorted by their shapes.
struct ShapeTable {
  /// Fewer lines stay rows.
  static let linesMin = 50
  /// From this number of lines without a shape on, packing ends if they are three quarters of all.
  private static let restMin = 96
  /// The most shapes of a block, and the most values of a line. Other lines stay as they are.
  static let (shapesMax, columnsMax) = (48, 64)
  /// A shape of fewer lines costs more than it saves.
  static let rowsMin = 8
  /// Vain comparisons with a shape: this many, and three for each line. So lines of ever other shapes cost little.
  private static let vainMax = 256
  private static let typeKey = Array("MONITOR_TYPE\"".utf8)

  let text: UnsafeBufferPointer<UInt8>
  private(set) var lines: [TextPlace] = []
  /// Those of at least `rowsMin` lines.
  private(set) var shapes: [LineShape] = []
  /// Of each line: 0 if it stays as it is, else its shape's place in `shapes` and 1.
  private(set) var order: [UInt8] = []
  /// The last shape of lines that begin alike, by their hash.
  private var recent = [UInt8](repeating: 0, count: 512)
  private var vain = 0
  /// Lines without a shape, until now.
  private var rest = 0

  /// - Parameter text: not empty, below 4 GiB.
  /// - Returns: nil for few lines, and if most lines have no shape.
  init?(_ text: UnsafeBufferPointer<UInt8>) {
    self.text = text
    var (start, last) = (0, 0)
    while start <= text.count {
      let left = text.count - start
      let feed = left > 0 ? memchr(text.baseAddress! + start, Int32(UInt8(ascii: "\n")), left) : nil
      let end = feed.map { UnsafeRawPointer($0) - UnsafeRawPointer(text.baseAddress!) } ?? text.count
      lines.append(TextPlace(start, end - start))
      if let shape = find(start..<end, last) {
        last = shape
        order.append(UInt8(shape + 1))
      } else {
        order.append(0)
        rest += 1
        guard rest < Self.restMin || 4 * rest < 3 * lines.count else { return nil }
      }
      start = end + 1
    }
    dropRareShapes()
    guard lines.count >= Self.linesMin, 2 * order.count(where: { $0 == 0 }) < lines.count else { return nil }
  }

  private mutating func find(_ line: Range<Int>, _ last: Int) -> Int? {
    let base = text.baseAddress!
    let slot = Self.hash(base + line.lowerBound, line.count)
    let likely = Int(recent[slot])
    if !shapes.isEmpty {
      if shapes[likely].take(line, of: base) { return likely }
      if last != likely, shapes[last].take(line, of: base) { return last }
      guard vain < Self.vainMax + 3 * lines.count else { return nil }
      for index in shapes.indices where index != likely && index != last {
        if shapes[index].take(line, of: base) {
          recent[slot] = UInt8(index)
          return index
        }
        vain += 1
      }
    }
    // A shape costs some lines: if ever other ones come, only some are learned.
    guard shapes.count < min(Self.shapesMax, 8 + lines.count / 4), let shape = Self.learn(text[line]),
      shape.take(line, of: base)
    else {
      return nil
    }
    recent[slot] = UInt8(shapes.count)
    shapes.append(shape)
    return shapes.count - 1
  }

  /// Of the first bytes, which mostly are the keys and the type before the first value.
  private static func hash(_ line: UnsafePointer<UInt8>, _ count: Int) -> Int {
    var hash: UInt64 = 0
    for index in stride(from: 0, to: count >= 48 ? 32 : count >= 24 ? 24 : count & 8, by: 8) {
      hash = (hash ^ UnsafeRawPointer(line + index).loadUnaligned(as: UInt64.self)) &* 0x9E37_79B9_7F4A_7C15
    }
    return Int(hash >> 55)
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
  /// - Returns: nil if the line begins no JSON object, or has no value, or too many.
  private static func learn(_ line: Slice<UnsafeBufferPointer<UInt8>>) -> LineShape? {
    guard line.first == UInt8(ascii: "{") else { return nil }
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
