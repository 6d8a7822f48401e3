/// The condition that a program sets on a change of a record; if it does not hold, nothing is changed.
public enum VersionCondition: Sendable, Equatable, CustomStringConvertible {
  /// The record has this version.
  case version(Int64)
  /// There is no such record.
  case absent
  /// There is such a record.
  case present

  /// - Parameter version: of the record; nil: it does not exist.
  public func holds(_ version: Int64?) -> Bool {
    switch self {
    case .version(let wanted): version == wanted
    case .absent: version == nil
    case .present: version != nil
    }
  }

  /// Reads the member `ifVersion` of a change: a version, 0 for an absent record, `*` for any version. nil if it is no
  /// such value.
  public init?(_ value: JSONValue) {
    if value.string == "*" {
      self = .present
    } else if let version = value.int, version >= 0 {
      self = version == 0 ? .absent : .version(Int64(version))
    } else {
      return nil
    }
  }

  /// The value of the member `ifVersion`.
  public var json: JSONValue {
    switch self {
    case .version(let version): .int(version)
    case .absent: 0
    case .present: "*"
    }
  }

  public var description: String {
    switch self {
    case .version(let version): "version \(version)"
    case .absent: "an absent record"
    case .present: "an existing record"
    }
  }
}
