/// Names with short texts by which operators choose devices (docs/fleet.md, "Tags"). They are the fields of a record of the table
/// `prism.tags`.
public struct DeviceTags: Equatable, Sendable {
  /// The writer of tags, which is the id of the record. Of one name the tag of the later source counts.
  public enum Source: String, Sendable, CaseIterable {
    /// The device's own file, `device.tags`. A device writes no other record.
    case device
    /// The token that enrolled it.
    case enrollment
    case `operator`

    /// The id of the record.
    public var id: RecordID { RecordID(rawValue)! }
  }

  /// Tags of one record.
  public static let countMax = 32
  /// Bytes of a tag's text at most.
  public static let valueBytesMax = 128
  /// For messages.
  public static let rule =
    "at most \(countMax) names of 1 to 64 of A-Z a-z 0-9 _ -, with texts of 1 to \(valueBytesMax) bytes"

  /// By name.
  public let values: [String: String]

  /// nil if a name or a text is not allowed, or if there are too many.
  public init?(_ values: [String: String]) {
    guard values.count <= Self.countMax, values.allSatisfy({ Self.isName($0.key) && Self.isValue($0.value) }) else {
      return nil
    }
    self.values = values
  }

  /// Reads the fields of a record. nil if they are no tags.
  public init?(_ fields: JSONValue?) {
    guard let members = fields?.object else { return nil }
    var values: [String: String] = [:]
    for member in members {
      guard let text = member.value.string else { return nil }
      values[member.key] = text
    }
    self.init(values)
  }

  /// Whether it can be the name of a tag.
  public static func isName(_ text: String) -> Bool { text.isName(bytesMax: 64, punctuation: "_-") }

  /// Whether it can be the text of a tag.
  public static func isValue(_ text: String) -> Bool {
    (1...valueBytesMax).contains(text.utf8.count)
      && !text.unicodeScalars.contains { $0.properties.generalCategory == .control }
  }

  /// The fields of a record, by name.
  public var fields: JSONValue {
    .object(values.sorted { $0.key < $1.key }.map { JSONValue.Member($0.key, .string($0.value)) })
  }
}
