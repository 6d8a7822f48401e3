import Glibc

/// Turns the lines of a meta block into columns (docs/packet.md, "Columns").
struct ColumnPacker {
  private let text: UnsafePointer<UInt8>
  private var runs = ColumnRuns()
  private var (columns, words): (Int, Int) = (0, 0)
  /// Working memory for the integers of a column, and for their fraction digits.
  private let values: UnsafeMutableBufferPointer<Int64>
  private let digits: UnsafeMutableBufferPointer<UInt8>
  private var dictionary = WordTable()

  /// - Parameter text: lines, joined with line feeds.
  /// - Returns: the head, the columns, and where parts of them begin; nil for a text that stays rows.
  static func pack(_ text: [UInt8]) -> (head: ColumnHead, bytes: [UInt8], cuts: [Int])? {
    text.withUnsafeBufferPointer { text in
      guard text.count > 0, text.count <= UInt32.max, let table = ShapeTable(text) else { return nil }
      var packer = ColumnPacker(text.baseAddress!, lines: table.lines.count)
      defer {
        packer.values.deallocate()
        packer.digits.deallocate()
      }
      packer.append(table)
      let head = ColumnHead(
        lines: table.lines.count, textBytes: text.count, columns: packer.columns, words: packer.words)
      let (bytes, cuts) = packer.runs.joined()
      return (head, bytes, cuts)
    }
  }

  private init(_ text: UnsafePointer<UInt8>, lines: Int) {
    self.text = text
    (values, digits) = (.allocate(capacity: lines), .allocate(capacity: lines))
  }

  private mutating func append(_ table: ShapeTable) {
    runs.append(table.shapes.count)
    for shape in table.shapes { shape.text.withUnsafeBufferPointer { runs.append(text: $0) } }
    for (index, number) in table.order.enumerated() { values[index] = Int64(number) }
    IntegerColumn.append(first(table.lines.count), to: &runs)
    let rest = table.order.indices.filter { table.order[$0] == 0 }.map { table.lines[$0] }
    if !rest.isEmpty {
      columns += 1
      rest.withUnsafeBufferPointer { appendLines($0) }
    }
    for shape in table.shapes {
      columns += shape.columns
      for index in 0..<shape.columns { append(shape.column(index)) }
    }
  }

  private func first(_ count: Int) -> UnsafeMutableBufferPointer<Int64> {
    UnsafeMutableBufferPointer(rebasing: values[..<count])
  }

  private mutating func append(kind: ColumnKind) { runs.append(byte: kind.rawValue) }

  // MARK: Columns

  /// Lines that have no shape: common information is often repeated.
  private mutating func appendLines(_ places: UnsafeBufferPointer<TextPlace>) {
    if !appendWords(places) { appendValues(places) }
  }

  private mutating func append(_ places: UnsafeBufferPointer<TextPlace>) {
    let place = places[0]
    if isConstant(places) {
      append(kind: .constant)
      runs.append(text: UnsafeBufferPointer(start: text + place.start, count: place.count))
      return
    }
    switch text[place.start] {
    case UInt8(ascii: "\""):
      if appendIDs(places) || appendWords(places) || appendHexadecimal(places) || appendStrings(places) { return }
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
      if appendNumbers(places) || appendWords(places) { return }
    default:
      if appendBooleans(places) || appendWords(places) { return }
    }
    appendValues(places)
  }

  private func isConstant(_ places: UnsafeBufferPointer<TextPlace>) -> Bool {
    let first = places[0]
    return places.allSatisfy {
      $0.count == first.count && memcmp(text + $0.start, text + first.start, first.count) == 0
    }
  }

  private mutating func appendValues(_ places: UnsafeBufferPointer<TextPlace>) {
    append(kind: .values)
    append(places, without: 0)
  }

  private mutating func appendStrings(_ places: UnsafeBufferPointer<TextPlace>) -> Bool {
    guard places.allSatisfy({ text[$0.start] == UInt8(ascii: "\"") }) else { return false }
    append(kind: .strings)
    append(places, without: 1)
    return true
  }

  /// Texts in a run, each ended by a line feed. - Parameter edge: bytes that each lacks at its begin and at its end.
  private mutating func append(_ places: UnsafeBufferPointer<TextPlace>, without edge: Int) {
    let count = places.reduce(0) { $0 + $1.count + 1 - 2 * edge }
    runs.append(count)
    runs.append(run: count) { bytes in
      var at = bytes
      for place in places {
        memcpy(at, text + place.start + edge, place.count - 2 * edge)
        at += place.count - 2 * edge
        at.pointee = UInt8(ascii: "\n")
        at += 1
      }
    }
  }

  private mutating func appendNumbers(_ places: UnsafeBufferPointer<TextPlace>) -> Bool {
    guard let scan = NumberScan(text, places, values, digits) else { return false }
    append(kind: .numbers)
    runs.append(byte: UInt8(scan.least))
    runs.append(byte: UInt8(scan.most))
    IntegerColumn.append(first(places.count), to: &runs)
    return true
  }

  private mutating func appendBooleans(_ places: UnsafeBufferPointer<TextPlace>) -> Bool {
    for (index, place) in places.enumerated() {
      let isTrue = text[place.start] == UInt8(ascii: "t")
      let isWhole =
        place.count == (isTrue ? 4 : 5) && memcmp(text + place.start, isTrue ? "true" : "false", place.count) == 0
      guard isWhole else { return false }
      digits[index] = isTrue ? 1 : 0
    }
    append(kind: .booleans)
    appendBits(places.count)
    return true
  }

  /// A bit for each of the first `digits`, the first in the lowest place.
  private mutating func appendBits(_ count: Int) {
    runs.append(run: (count + 7) / 8) { bytes in
      for index in 0..<count { bytes[index / 8] |= digits[index] << UInt8(index % 8) }
    }
  }

  private mutating func appendWords(_ places: UnsafeBufferPointer<TextPlace>) -> Bool {
    guard dictionary.fill(text, places, numbers: values, wordsMax: ColumnHead.wordsMax - words) else { return false }
    append(kind: .words)
    runs.append(dictionary.words.count)
    words += dictionary.words.count
    dictionary.words.withUnsafeBufferPointer { append($0, without: 0) }
    IntegerColumn.append(first(places.count), to: &runs)
    return true
  }

  // MARK: Strings of digits

  private mutating func appendHexadecimal(_ places: UnsafeBufferPointer<TextPlace>) -> Bool {
    let width = places.reduce(0) { max($0, $1.count - 2) }
    guard width > 0, width % 2 == 0, width <= 510 else { return false }
    var filled = 0
    for (index, place) in places.enumerated() {
      guard text[place.start] == UInt8(ascii: "\""), place.count == 2 || place.count == width + 2 else { return false }
      digits[index] = place.count > 2 ? 1 : 0
      filled += Int(digits[index])
    }
    let bytes = UnsafeMutablePointer<UInt8>.allocate(capacity: filled * width / 2)
    defer { bytes.deallocate() }
    var at = bytes
    for place in places where place.count > 2 {
      guard HexDigits.decode(text + place.start + 1, width, at) else { return false }
      at += width / 2
    }
    append(kind: filled == places.count ? .hexadecimal : .someHexadecimal)
    runs.append(byte: UInt8(width / 2))
    if filled < places.count { appendBits(places.count) }
    runs.append(run: filled * width / 2, isNoise: true) { memcpy($0, bytes, filled * width / 2) }
    return true
  }

  private mutating func appendIDs(_ places: UnsafeBufferPointer<TextPlace>) -> Bool {
    guard let scan = IDScan(text, places, values) else { return false }
    append(kind: .ids)
    let first = places[0].start + 1
    runs.append(text: UnsafeBufferPointer(start: text + first, count: scan.prefix))
    runs.append(byte: scan.base)
    runs.append(byte: UInt8(scan.digits))
    IntegerColumn.append(self.first(places.count), to: &runs)
    return true
  }
}
