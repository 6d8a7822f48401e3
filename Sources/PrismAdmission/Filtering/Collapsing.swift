import PrismConfig
import PrismProtocol

/// Tells which reports of a type are equal (`collapse`), by a hash of fields as they came: before they are redacted. Pure.
struct Collapsing: Sendable {
  /// The store's own members of a row that counts.
  private static let keys: Set = ["REPEAT_COUNT", "REPEAT_FIRST", "REPEAT_LAST"]

  let type: String
  let by: [FieldPath]
  let windowMilliseconds: Int64

  /// nil if the meta lacks all of the fields: then nothing says that it is equal to another.
  func repeated(_ meta: JSONValue, unixMilliseconds now: Int64) -> ReportBatch.Repeat? {
    let values = by.map { Sampling.value(of: $0, in: meta)?.bytes }
    guard values.contains(where: { $0 != nil }) else { return nil }
    return ReportBatch.Repeat(
      high: hash(values, salt: 1), low: hash(values, salt: 2), arrivedTime: now, windowMilliseconds: windowMilliseconds)
  }

  /// SipHash under a key of this process: a client can't make two different reports equal.
  private func hash(_ values: [[UInt8]?], salt: Int) -> UInt64 {
    var hasher = Hasher()
    hasher.combine(salt)
    hasher.combine(type)
    hasher.combine(values)
    return UInt64(bitPattern: Int64(hasher.finalize()))
  }

  /// Without the members that the store writes.
  static func cleaned(_ meta: JSONValue) -> JSONValue {
    .object((meta.object ?? []).filter { !keys.contains($0.key) })
  }
}
