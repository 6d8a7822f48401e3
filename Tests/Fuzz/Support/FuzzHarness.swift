/// A reader of bytes from outside, and what must hold after each input. It runs under libFuzzer (`scripts/fuzz`), and over its
/// corpus as an ordinary test (`FuzzTests`).
public protocol FuzzHarness: SendableMetatype {
  /// The input is text that stays meaningful when it is repeated.
  static var repeatsInput: Bool { get }
  /// A shorter input may take as long as one of this size: below it the fixed cost of a run counts for more than its bytes.
  static var bytesMin: Int { get }
  /// Ends the process where a rule is broken.
  static func run(_ input: ArraySlice<UInt8>)
}

extension FuzzHarness {
  public static var repeatsInput: Bool { true }
  public static var bytesMin: Int { 4096 }
}

extension ArraySlice<UInt8> {
  /// Takes one byte off the front; 0 if the input is used up. Steers a harness.
  public mutating func takeByte() -> UInt8 { popFirst() ?? 0 }

  /// Takes a number off the front, high byte first.
  public mutating func takeNumber() -> Int { Int(takeByte()) << 8 | Int(takeByte()) }
}
