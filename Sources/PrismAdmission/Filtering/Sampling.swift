import PrismConfig
import PrismProtocol

/// Decides by a hash of a value whether a report is kept: equal values are kept or left out together, on every device. Pure.
struct Sampling: Sendable {
  static let key = "MONITOR_SAMPLE"

  let share: Double
  /// nil: the report id.
  let field: FieldPath?

  /// - Parameter reportID: the client's. Where there is neither a field nor an id, chance decides.
  func keeps(_ meta: JSONValue, reportID: [UInt8]?) -> Bool {
    let value = field.flatMap { Self.value(of: $0, in: meta) }
    let bytes = value.map { $0.string.map { Array($0.utf8) } ?? $0.bytes } ?? reportID
    let hash = bytes.map { Self.hash($0) } ?? UInt64.random(in: .min ... .max)
    return Double(hash >> 11) * 0x1p-53 < share
  }

  /// Says the rate in place of anything that the client said.
  func marked(_ meta: JSONValue) -> JSONValue {
    .object((meta.object ?? []).filter { $0.key != Self.key } + [.init(Self.key, .double(share))])
  }

  /// The first member on the path.
  static func value(of field: FieldPath, in meta: JSONValue) -> JSONValue? { value(field.keys[...], meta) }

  private static func value(_ path: ArraySlice<String>, _ value: JSONValue) -> JSONValue? {
    if path.isEmpty { return value }
    if case .array(let elements) = value, path.first == "*" {
      return elements.lazy.compactMap { Self.value(path.dropFirst(), $0) }.first
    }
    for member in value.object ?? [] {
      if path.first == "*", let found = Self.value(path.dropFirst(), member.value) { return found }
      for count in 1...path.count where path.prefix(count).joined(separator: ".") == member.key {
        if let found = Self.value(path.dropFirst(count), member.value) { return found }
      }
    }
    return nil
  }

  /// FNV-1a of 64 bits, with its bits mixed.
  private static func hash(_ bytes: [UInt8]) -> UInt64 {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    hash = (hash ^ hash >> 33) &* 0xff51_afd7_ed55_8ccd
    hash = (hash ^ hash >> 33) &* 0xc4ce_b9fe_1a85_ec53
    return hash ^ hash >> 33
  }
}
