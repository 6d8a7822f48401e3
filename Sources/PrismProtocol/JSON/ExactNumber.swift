/// A JSON number by its digits, so that numbers of any size are compared exactly: 9223372036854775809 is more than
/// 9223372036854775808, and 1.50 equals 1.5.
public struct ExactNumber: Sendable, Comparable {
  /// Larger exponents count as this one: both are beyond all numbers that a program makes.
  private static let exponentMax = 1 << 40
  /// Digits that fit an integer of 64 bits.
  private static let smallDigitsMax = 18

  /// The number itself, if it is a short integer; then there are no digits.
  private let small: Int64?
  private let isNegative: Bool
  /// Without zeros at both ends: `0.DIGITS` times 10 to the power of `exponent`. Empty for 0.
  private let digits: [UInt8]
  private let exponent: Int

  /// - Parameter text: a number in JSON's form; other text makes a number without sense.
  public init(_ text: Span<UInt8>) {
    let begin = text.count > 0 && text[0] == UInt8(ascii: "-") ? 1 : 0
    isNegative = begin == 1
    var value: Int64 = 0
    var isShort = text.count - begin <= Self.smallDigitsMax
    for index in begin..<text.count where isShort {
      let digit = text[index] &- UInt8(ascii: "0")
      isShort = digit < 10
      value = value &* 10 &+ Int64(digit)
    }
    guard !isShort else {
      (small, digits, exponent) = (isNegative ? -value : value, [], 0)
      return
    }
    (digits, exponent) = Self.decimal(text, from: begin)
    // 0.0 and 1e2 are short integers, too: equal numbers have one form.
    small = Self.integer(digits, exponent, isNegative)
  }

  private static func decimal(_ text: Span<UInt8>, from begin: Int) -> ([UInt8], Int) {
    var (digits, exponent, index) = ([UInt8](), 0, begin)
    var isFraction = false
    while index < text.count, text[index] != UInt8(ascii: "e"), text[index] != UInt8(ascii: "E") {
      if text[index] == UInt8(ascii: ".") {
        isFraction = true
      } else {
        if !digits.isEmpty || text[index] != UInt8(ascii: "0") {
          digits.append(text[index] &- UInt8(ascii: "0"))
          if !isFraction { exponent += 1 }
        } else if isFraction {
          exponent -= 1
        }
      }
      index += 1
    }
    while digits.last == 0 { digits.removeLast() }
    guard !digits.isEmpty else { return ([], 0) }
    return (digits, max(-exponentMax, min(exponentMax, exponent + power(text, behind: index))))
  }

  private static func power(_ text: Span<UInt8>, behind index: Int) -> Int {
    var (value, at) = (0, index + 1)
    let isNegative = at < text.count && text[at] == UInt8(ascii: "-")
    if at < text.count, isNegative || text[at] == UInt8(ascii: "+") { at += 1 }
    while at < text.count, value < exponentMax {
      value = value * 10 + Int(text[at] &- UInt8(ascii: "0"))
      at += 1
    }
    return isNegative ? -value : value
  }

  private static func integer(_ digits: [UInt8], _ exponent: Int, _ isNegative: Bool) -> Int64? {
    guard !digits.isEmpty else { return 0 }
    guard exponent >= digits.count, exponent <= smallDigitsMax else { return nil }
    let value = (0..<exponent).reduce(Int64(0)) { $0 * 10 + ($1 < digits.count ? Int64(digits[$1]) : 0) }
    return isNegative ? -value : value
  }

  public static func == (a: Self, b: Self) -> Bool {
    a.small == b.small && a.isNegative == b.isNegative && a.exponent == b.exponent && a.digits == b.digits
      || a.small != nil && a.small == b.small
  }

  public static func < (a: Self, b: Self) -> Bool {
    if let first = a.small, let second = b.small { return first < second }
    let (first, second) = (a.sign, b.sign)
    guard first == second else { return first < second }
    let (low, high) = first < 0 ? (b.decimal, a.decimal) : (a.decimal, b.decimal)
    guard low.exponent == high.exponent else { return low.exponent < high.exponent }
    return low.digits.lexicographicallyPrecedes(high.digits)
  }

  private var sign: Int { small.map { Int($0.signum()) } ?? (isNegative ? -1 : 1) }

  private var decimal: (digits: [UInt8], exponent: Int) {
    guard let small, digits.isEmpty else { return (digits, exponent) }
    return Self.decimal(Array(String(small.magnitude).utf8).span, from: 0)
  }
}
