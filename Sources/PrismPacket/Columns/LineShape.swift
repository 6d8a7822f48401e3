/// A place in a text, in 8 bytes: a table of them is the largest memory of packing.
struct TextPlace {
  private let bits: UInt64

  init(_ start: Int, _ count: Int) { bits = UInt64(start) << 32 | UInt64(count) }

  var start: Int { Int(bits >> 32) }
  var count: Int { Int(bits & 0xFFFF_FFFF) }
}

/// The common text of lines: all but their values. So it has the keys in their order, all marks between them, and the type. Also
/// the places of the values in each line that was taken.
final class LineShape {
  /// In place of a value in `text`. No line has it.
  static let valueMark = UInt8(ascii: "\n")

  /// A line with a mark in place of each value.
  let text: [UInt8]
  /// Values of a line.
  let columns: Int
  /// Lines that were taken.
  private(set) var rows = 0
  /// `text` without its marks, and where each piece of it ends.
  private let pieces: UnsafeMutablePointer<UInt8>
  private let ends: UnsafeMutablePointer<Int>
  /// A column after the other, each with room for `capacity` rows.
  private var places: UnsafeMutablePointer<TextPlace>
  private var capacity = 64

  /// - Parameter text: with a mark at least.
  init(_ text: [UInt8]) {
    self.text = text
    pieces = .allocate(capacity: text.count)
    ends = .allocate(capacity: text.count + 1)
    var (end, columns) = (0, 0)
    for byte in text {
      if byte == Self.valueMark {
        ends[columns] = end
        columns += 1
      } else {
        pieces[end] = byte
        end += 1
      }
    }
    ends[columns] = end
    self.columns = columns
    places = .allocate(capacity: columns * capacity)
  }

  deinit {
    pieces.deallocate()
    ends.deallocate()
    places.deallocate()
  }

  func column(_ index: Int) -> UnsafeBufferPointer<TextPlace> {
    UnsafeBufferPointer(start: places + index * capacity, count: rows)
  }

  /// Notes the values of a line, if it has this shape.
  /// - Returns: whether it has.
  func take(_ line: Range<Int>, of text: UnsafePointer<UInt8>) -> Bool {
    if rows == capacity { grow() }
    var (at, piece) = (text + line.lowerBound, 0)
    let end = text + line.upperBound
    var place = places + rows
    for column in 0..<columns {
      let count = ends[column] - piece
      guard end - at > count, Self.areEqual(at, pieces + piece, count) else { return false }
      (at, piece) = (at + count, ends[column])
      guard let behind = JSONToken.end(at, end) else { return false }
      place.initialize(to: TextPlace(at - text, behind - at))
      (at, place) = (behind, place + capacity)
    }
    guard end - at == ends[columns] - piece, Self.areEqual(at, pieces + piece, end - at) else { return false }
    rows += 1
    return true
  }

  /// For some bytes: a call would cost more than they do.
  @inline(__always)
  private static func areEqual(_ a: UnsafePointer<UInt8>, _ b: UnsafePointer<UInt8>, _ count: Int) -> Bool {
    func word(_ bytes: UnsafePointer<UInt8>, _ index: Int) -> UInt64 {
      UnsafeRawPointer(bytes + index).loadUnaligned(as: UInt64.self)
    }
    var index = 0
    guard count >= 8 else {
      while index < count, a[index] == b[index] { index += 1 }
      return index == count
    }
    while index + 8 <= count {
      guard word(a, index) == word(b, index) else { return false }
      index += 8
    }
    return word(a, count - 8) == word(b, count - 8)
  }

  private func grow() {
    let larger = UnsafeMutablePointer<TextPlace>.allocate(capacity: 4 * columns * capacity)
    for column in 0..<columns {
      (larger + 4 * column * capacity).initialize(from: places + column * capacity, count: rows)
    }
    places.deallocate()
    (places, capacity) = (larger, 4 * capacity)
  }
}

/// Finds values in JSON text without checking it: a value is put back as it was, whether it is JSON or not.
enum JSONToken {
  /// The end of the value at `at`: a string, a list, or what no mark or space ends. nil for an object, and for no value.
  @inline(__always)
  static func end(_ at: UnsafePointer<UInt8>, _ end: UnsafePointer<UInt8>) -> UnsafePointer<UInt8>? {
    guard at < end else { return nil }
    switch at.pointee {
    case UInt8(ascii: "\""): return stringEnd(at + 1, end)
    case UInt8(ascii: "["): return listEnd(at, end)
    case UInt8(ascii: "{"): return nil
    default:
      var next = at
      // The digits, the signs and the point lie together.
      while next < end, next.pointee &- UInt8(ascii: "-") < 13 || !isMark(next.pointee) { next += 1 }
      return next > at ? next : nil
    }
  }

  private static func isMark(_ byte: UInt8) -> Bool {
    byte <= UInt8(ascii: " ") || byte == UInt8(ascii: ",") || byte == UInt8(ascii: "}") || byte == UInt8(ascii: "]")
  }

  /// - Parameter at: behind the opening quote.
  /// - Returns: the end behind the closing quote; nil without one.
  static func stringEnd(_ at: UnsafePointer<UInt8>, _ end: UnsafePointer<UInt8>) -> UnsafePointer<UInt8>? {
    var next = at
    while end - next >= 8 {
      let word = UnsafeRawPointer(next).loadUnaligned(as: UInt64.self).littleEndian
      let marks = zeros(word ^ 0x2222_2222_2222_2222) | zeros(word ^ 0x5C5C_5C5C_5C5C_5C5C)
      guard marks != 0 else {
        next += 8
        continue
      }
      next += marks.trailingZeroBitCount / 8
      if next.pointee == UInt8(ascii: "\"") { return next + 1 }
      next += 2
    }
    while next < end {
      if next.pointee == UInt8(ascii: "\"") { return next + 1 }
      next += next.pointee == UInt8(ascii: "\\") ? 2 : 1
    }
    return nil
  }

  /// The top bit of each byte that is 0. (A borrow may mark bytes above the lowest mark too; only the lowest is used.)
  @inline(__always) private static func zeros(_ word: UInt64) -> UInt64 {
    (word &- 0x0101_0101_0101_0101) & ~word & 0x8080_8080_8080_8080
  }

  private static func listEnd(_ at: UnsafePointer<UInt8>, _ end: UnsafePointer<UInt8>) -> UnsafePointer<UInt8>? {
    var (next, depth) = (at, 0)
    while next < end {
      switch next.pointee {
      case UInt8(ascii: "\""):
        guard let behind = stringEnd(next + 1, end) else { return nil }
        next = behind
        continue
      case UInt8(ascii: "["), UInt8(ascii: "{"): depth += 1
      case UInt8(ascii: "]"), UInt8(ascii: "}"): depth -= 1
      default: break
      }
      next += 1
      if depth == 0 { return next }
    }
    return nil
  }
}
