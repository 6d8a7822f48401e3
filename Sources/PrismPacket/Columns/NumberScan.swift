/// Numbers of a column: integers that have the fraction's digits in them.
struct NumberScan {
  /// More digits need not fit an integer of 64 bits.
  private static let digitsMax = 18
  /// 10⁰ to 10¹⁸.
  static let powers: [Int64] = (0...18).map { (0..<$0).reduce(1) { power, _ in power * 10 } }

  /// The least and the most fraction digits of the column. A number has as many as it needs, and at least the least.
  private(set) var (least, most) = (Int.max, 0)
  /// The most fraction digits of a number whose last one is 0.
  private var mostWithZero = 0

  /// - Parameter values: get the integers.
  /// - Returns: nil if a number would not come back as it is written.
  init?(
    _ text: UnsafePointer<UInt8>, _ places: UnsafeBufferPointer<TextPlace>,
    _ values: UnsafeMutableBufferPointer<Int64>, _ digits: UnsafeMutableBufferPointer<UInt8>
  ) {
    for index in places.indices {
      let place = places[index]
      guard place.count <= Self.digitsMax + 2, let fraction = Self.scan(text + place.start, place.count, &values[index])
      else { return nil }
      (least, most) = (min(least, fraction), max(most, fraction))
      digits[index] = UInt8(fraction)
      if fraction > 0, text[place.start + place.count - 1] == UInt8(ascii: "0") {
        mostWithZero = max(mostWithZero, fraction)
      }
    }
    guard mostWithZero <= least else { return nil }
    guard least < most else { return }
    for index in places.indices {
      let (value, overflow) = values[index].multipliedReportingOverflow(by: Self.powers[most - Int(digits[index])])
      guard !overflow else { return nil }
      values[index] = value
    }
  }

  /// Reads `-`, digits without leading zeros, a point and digits.
  /// - Returns: the digits behind the point; nil for a number in another form, and for a negative zero.
  @inline(__always)
  private static func scan(_ text: UnsafePointer<UInt8>, _ count: Int, _ value: inout Int64) -> Int? {
    let isNegative = text[0] == UInt8(ascii: "-")
    let begin = isNegative ? 1 : 0
    var (number, point, index) = (Int64(0), count, begin)
    while index < count {
      let digit = text[index] &- UInt8(ascii: "0")
      if digit < 10 {
        number = number &* 10 &+ Int64(digit)
      } else {
        guard text[index] == UInt8(ascii: "."), point == count else { return nil }
        point = index
      }
      index += 1
    }
    let hasPoint = point < count
    let fraction = hasPoint ? count - point - 1 : 0
    guard point > begin, !hasPoint || fraction > 0, count - begin - (hasPoint ? 1 : 0) <= digitsMax,
      point == begin + 1 || text[begin] != UInt8(ascii: "0"), !isNegative || number != 0
    else { return nil }
    value = isNegative ? -number : number
    return fraction
  }
}
