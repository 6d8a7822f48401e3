/// The layout of the pages of SQLite's trees (https://www.sqlite.org/fileformat.html#b_tree_pages). Nothing of a page is
/// believed: an offset that points out of it is ignored.
enum BTreePage {
  static let interiorIndex: UInt8 = 2
  static let interiorTable: UInt8 = 5
  static let leafIndex: UInt8 = 10
  static let leafTable: UInt8 = 13

  /// The file's own header precedes the first page's.
  static func headerOffset(_ page: [UInt8]) -> Int { page.starts(with: Array("SQLite format 3".utf8)) ? 100 : 0 }

  static func kind(_ page: [UInt8]) -> UInt8 { page[headerOffset(page)] }

  static func isInterior(_ page: [UInt8]) -> Bool { [interiorIndex, interiorTable].contains(kind(page)) }

  static func cellOffsets(_ page: [UInt8]) -> [Int] {
    let header = headerOffset(page)
    let start = header + (isInterior(page) ? 12 : 8)
    let count = min(page.bigEndian16(header + 3), (page.count - start) / 2)
    return (0..<count).map { page.bigEndian16(start + 2 * $0) }
      .filter { $0 >= start + 2 * count && $0 <= page.count - 4 }
  }

  static func children(_ page: [UInt8]) -> [Int] {
    guard isInterior(page) else { return [] }
    return cellOffsets(page).map { page.bigEndian32($0) } + [page.bigEndian32(headerOffset(page) + 8)]
  }

  /// - Returns: the number and where it ends; nil where the page does.
  static func variableInt(_ bytes: [UInt8], _ start: Int) -> (value: Int64, end: Int)? {
    var value: UInt64 = 0
    for index in 0..<9 {
      guard start + index < bytes.count else { return nil }
      let byte = bytes[start + index]
      if index == 8 { return (Int64(bitPattern: value << 8 | UInt64(byte)), start + 9) }
      value = value << 7 | UInt64(byte & 0x7F)
      if byte < 0x80 { return (Int64(bitPattern: value), start + index + 1) }
    }
    return nil
  }
}

/// A page that holds rows of a table.
enum TableLeaf {
  struct Cell {
    var id: Int64
    var bytes: Int
    /// Where the record begins.
    var start: Int
  }

  static func cells(_ page: [UInt8]) -> [Cell] {
    guard BTreePage.kind(page) == BTreePage.leafTable else { return [] }
    return BTreePage.cellOffsets(page).compactMap { offset in
      guard let bytes = BTreePage.variableInt(page, offset), let id = BTreePage.variableInt(page, bytes.end),
        (1...DamagedDatabase.recordBytesMax).contains(Int(bytes.value))
      else { return nil }
      return Cell(id: id.value, bytes: Int(bytes.value), start: id.end)
    }
  }
}

/// Numbers as a SQLite file has them; the caller has checked that they lie within.
extension [UInt8] {
  func bigEndian16(_ at: Int) -> Int { Int(self[at]) << 8 | Int(self[at + 1]) }
  func bigEndian32(_ at: Int) -> Int { bigEndian16(at) << 16 | bigEndian16(at + 2) }

  mutating func putBigEndian32(_ value: UInt32, at offset: Int) {
    for byte in 0..<4 { self[offset + byte] = UInt8(truncatingIfNeeded: value >> (24 - 8 * UInt32(byte))) }
  }
}
