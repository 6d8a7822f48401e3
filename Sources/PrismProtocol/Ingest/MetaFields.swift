/// The fields that a receiver reads from a meta: its type, its report id and its creation time. Reads the text once and
/// builds no tree.
public struct MetaFields: Sendable, Equatable {
  /// `MONITOR_TYPE`; nil if it is missing or no string. If a key is repeated the last value counts, here and below.
  public private(set) var type: ScannedString?
  /// `REPORT_ID`; nil as above.
  public private(set) var reportID: ScannedString?
  /// `CREATE_TIME`, milliseconds since 1970; nil if it is missing or no whole number.
  public private(set) var createdTime: Int64?
  /// `SYS_CLOCK_STEP`, milliseconds; 0 if it is missing or no whole number.
  public private(set) var clockStep: Int64 = 0
  /// `SYS_CLOCK_BOOT` is `earlier`.
  public private(set) var isOfEarlierBoot = false
  /// All members of `common` can follow the members of the meta: it has some, and their keys are others.
  public private(set) var isApart = false

  /// - Parameter common: the members that are to follow those of `meta`.
  /// - Throws: where `meta` is not exactly one JSON object in UTF-8.
  public init(_ meta: Span<UInt8>, before common: CommonMembers? = nil) throws(JSONError) {
    var scanner = JSONScanner()
    guard scanner.next(meta) == UInt8(ascii: "{") else { throw scanner.failure("an object is expected") }
    if try scanner.enter(meta, close: UInt8(ascii: "}"), depth: 0) {
      isApart = true
      repeat { try readMember(&scanner, meta, common) } while try scanner.another(meta, close: UInt8(ascii: "}"))
    }
    guard scanner.next(meta) == nil else { throw scanner.failure("the object is followed by something") }
    if let position = scanner.invalidUTF8 { throw JSONError("not UTF-8", at: position) }
  }

  private mutating func readMember(
    _ scanner: inout JSONScanner, _ meta: Span<UInt8>, _ common: CommonMembers?
  ) throws(JSONError) {
    let key = try scanner.key(meta)
    if let common, isApart, common.contains(key, meta) { isApart = false }
    if Self.isKey(key, "MONITOR_TYPE", meta) {
      type = try Self.string(&scanner, meta)
    } else if Self.isKey(key, "REPORT_ID", meta) {
      reportID = try Self.string(&scanner, meta)
    } else if Self.isKey(key, "CREATE_TIME", meta) {
      createdTime = try Self.wholeNumber(&scanner, meta)
    } else if Self.isKey(key, "SYS_CLOCK_STEP", meta) {
      clockStep = try Self.string(&scanner, meta).flatMap { Int64($0.string(in: meta)) } ?? 0
    } else if Self.isKey(key, "SYS_CLOCK_BOOT", meta) {
      isOfEarlierBoot = try Self.string(&scanner, meta)?.string(in: meta) == ClockMembers.earlierBoot
    } else {
      try scanner.skipValue(meta, depth: 1)
    }
  }

  @inline(__always)
  private static func isKey(_ key: ScannedString, _ name: StaticString, _ meta: Span<UInt8>) -> Bool {
    guard !key.hasEscapes else { return key.string(in: meta) == name.description }
    return key.range.count == name.utf8CodeUnitCount && meta.equals(name, at: key.range)
  }

  private static func string(_ scanner: inout JSONScanner, _ meta: Span<UInt8>) throws(JSONError) -> ScannedString? {
    if scanner.next(meta) == UInt8(ascii: "\"") { return try scanner.string(meta) }
    try scanner.skipValue(meta, depth: 1)
    return nil
  }

  private static func wholeNumber(_ scanner: inout JSONScanner, _ meta: Span<UInt8>) throws(JSONError) -> Int64? {
    _ = scanner.next(meta)
    let start = scanner.position
    try scanner.skipValue(meta, depth: 1)
    guard start < meta.count else { return nil }
    let isNegative = meta[start] == UInt8(ascii: "-")
    var value: Int64 = 0
    for index in (isNegative ? start + 1 : start)..<scanner.position {
      guard let digit = Int64(exactly: Int(meta[index]) - Int(UInt8(ascii: "0"))), 0...9 ~= digit else { return nil }
      let (tenfold, overflow) = value.multipliedReportingOverflow(by: 10)
      let (sum, carry) = tenfold.subtractingReportingOverflow(digit)  // below zero there is room for the smallest, too
      guard !overflow, !carry else { return nil }
      value = sum
    }
    return isNegative ? value : value == .min ? nil : -value
  }
}
