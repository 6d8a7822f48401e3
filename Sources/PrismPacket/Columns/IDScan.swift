import Glibc

/// Strings of a column as one prefix and a number each.
struct IDScan {
  private static let sampleMax = 48

  /// The prefix's bytes, without the quote.
  let prefix: Int
  /// 10 or 16.
  let base: UInt8
  /// Of each number; 0: decimal numbers without leading zeros.
  let digits: Int

  /// - Parameter values: get the numbers.
  /// - Returns: nil if a string is not of this form, or if the numbers are as good as random.
  init?(
    _ text: UnsafePointer<UInt8>, _ places: UnsafeBufferPointer<TextPlace>,
    _ values: UnsafeMutableBufferPointer<Int64>
  ) {
    // A few tell mostly that the strings are something else.
    let sample = UnsafeBufferPointer(rebasing: places.prefix(Self.sampleMax))
    guard sample.count == places.count || Self(text, whole: sample, values) != nil else { return nil }
    self.init(text, whole: places, values)
  }

  private init?(
    _ text: UnsafePointer<UInt8>, whole places: UnsafeBufferPointer<TextPlace>,
    _ values: UnsafeMutableBufferPointer<Int64>
  ) {
    let first = places[0]
    let begin = text + first.start
    guard first.count > 2, HexDigits.value(begin[first.count - 2]) != nil else { return nil }
    var (shared, isEqualLong) = (first.count - 2, true)
    for place in places {
      let string = text + place.start
      guard place.count > 2, string[0] == UInt8(ascii: "\""), string[place.count - 1] == UInt8(ascii: "\"") else {
        return nil
      }
      isEqualLong = isEqualLong && place.count == first.count
      shared = min(shared, place.count - 2)
      if memcmp(begin + 1, string + 1, shared) != 0 {
        shared = (0..<shared).first { begin[1 + $0] != string[1 + $0] } ?? shared
      }
    }
    while shared > 0, !isEqualLong, begin[shared] &- UInt8(ascii: "0") < 10 { shared -= 1 }
    prefix = shared
    digits = isEqualLong ? first.count - 2 - shared : 0
    guard digits <= 16 else { return nil }
    if Self.read(text, places, values, prefix, digits, base: 10) {
      base = 10
    } else if digits > 0, Self.read(text, places, values, prefix, digits, base: 16) {
      base = 16
    } else {
      return nil
    }
    guard digits > 0, places.count > 8 else { return }
    // Four bits a digit are what the bytes of hexadecimal take.
    let costs = IntegerColumn.costs(UnsafeBufferPointer(rebasing: values[..<places.count]))
    let count = min(places.count, IntegerColumn.sampleMax)
    guard min(costs.plain, costs.first, costs.second) < 3 * digits * count else { return nil }
  }

  private static func read(
    _ text: UnsafePointer<UInt8>, _ places: UnsafeBufferPointer<TextPlace>,
    _ values: UnsafeMutableBufferPointer<Int64>, _ prefix: Int, _ digits: Int, base: UInt8
  ) -> Bool {
    for index in places.indices {
      let place = places[index]
      let (begin, count) = (text + place.start + 1 + prefix, place.count - 2 - prefix)
      guard count > 0, count <= 16, digits > 0 || count == 1 || begin[0] != UInt8(ascii: "0") else { return false }
      var number: Int64 = 0
      for place in 0..<count {
        guard let digit = HexDigits.value(begin[place]), digit < base else { return false }
        number = number &* Int64(base) &+ Int64(digit)
      }
      values[index] = number
    }
    return true
  }
}
