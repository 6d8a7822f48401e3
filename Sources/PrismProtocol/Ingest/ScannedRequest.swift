/// One line of the ingest protocol, taken apart; ranges are positions in the line (docs/ingest-protocol.md).
public enum ScannedRequest: Sendable, Equatable {
  case report(ScannedReport)
  /// The range of its object.
  case hello(Range<Int>)
  /// Whether a namespace gathers.
  case isGather(ScannedString)
  /// The common information as it would be merged.
  case common
}

/// A report as a client wrote it: its form is sound, nothing of it has been compared with the configuration yet.
public struct ScannedReport: Sendable, Equatable {
  public enum Meta: Sendable, Equatable {
    /// Not given, not an object, or without members.
    case missing, notAnObject, empty
    /// The members, without the braces and the white space around them.
    ///
    /// `mayCollide`: a key may stand twice, or may be one of the reserved ones; the members have to be looked at one by
    /// one (`MetaMembers`). Otherwise they are known to be neither.
    case members(Range<Int>, mayCollide: Bool)
  }

  public enum Payload: Sendable, Equatable {
    case none
    /// That many raw bytes follow the line.
    case following(bytes: Int)
    case base64(ScannedString)
  }

  /// nil: `prism`.
  public var namespace: ScannedString?
  public var type: ScannedString
  public var meta = Meta.missing
  public var payload = Payload.none
  /// Of the form that docs/ingest-protocol.md allows.
  public var reportID: ScannedString?
  /// Milliseconds since 1970; nil: now.
  public var createdTime: Int64?

  public init(type: ScannedString) { self.type = type }
}

/// What became of one line.
public struct ScannedLine: Sendable {
  public var request: Result<ScannedRequest, Refusal>
  /// Raw bytes that follow the line and belong to it, also where it is refused: so that the next line is found.
  public var followingBytes: Int
}
