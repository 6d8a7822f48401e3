/// One line of the ingest protocol, taken apart; ranges are positions in the line (docs/ingest-protocol.md).
public enum ScannedRequest: Sendable, Equatable {
  case report(ScannedReport)
  /// The range of its object.
  case hello(Range<Int>)
  /// Whether a namespace gathers.
  case isGather(ScannedString)
  /// The common information as it would be merged.
  case common
  /// A request about records, or to watch the state of something. The range of its object.
  case record(RecordVerb, Range<Int>)
}

/// A report as a client wrote it: its form is sound, nothing of it has been compared with the configuration yet.
public struct ScannedReport: Sendable, Equatable {
  /// The meta: missing, or where it is in the line.
  public enum Meta: Sendable, Equatable {
    /// Not given, not an object, or without members.
    case missing, notAnObject, empty
    /// The members, without the braces and the white space around them.
    ///
    /// `mayCollide`: a key may stand twice, or may be one of the reserved ones; the members have to be looked at one by
    /// one (`MetaMembers`). Otherwise they are known to be neither.
    case members(Range<Int>, mayCollide: Bool)
  }

  /// The payload: absent, in the line, or raw bytes after it.
  public enum Payload: Sendable, Equatable {
    case none
    /// That many raw bytes follow the line.
    case following(bytes: Int)
    case base64(ScannedString)

    /// Bytes of the payload; of base64 the length that it decodes to if it is sound.
    public func bytes(in line: Span<UInt8>) -> Int {
      switch self {
      case .none: return 0
      case .following(let bytes): return bytes
      case .base64(let text):
        let (count, last): (Int, [UInt8])
        if text.hasEscapes {  // some encoders write a slash as \/
          let plain = Array(text.string(in: line).utf8)
          (count, last) = (plain.count, plain.suffix(2))
        } else {
          (count, last) = (text.range.count, text.range.suffix(2).map { line[$0] })
        }
        return max(0, count / 4 * 3 - last.count { $0 == UInt8(ascii: "=") })
      }
    }
  }

  /// nil: `prism`.
  public var namespace: ScannedString?
  /// The type as it was written.
  public var type: ScannedString
  /// The meta of the report.
  public var meta = Meta.missing
  /// The payload of the report.
  public var payload = Payload.none
  /// Of the form that docs/ingest-protocol.md allows.
  public var reportID: ScannedString?
  /// Milliseconds since 1970; nil: now.
  public var createdTime: Int64?
  /// A payload that is too large is left out: its sender can't send the report again.
  public var mayLosePayload = false
  /// It had no room, so that it is left out in any case.
  public var isPayloadUnread = false

  public init(type: ScannedString) { self.type = type }
}

/// The result of scanning one line.
public struct ScannedLine: Sendable {
  /// The request, or why the line is refused.
  public var request: Result<ScannedRequest, Refusal>
  /// Raw bytes that follow the line and belong to it, also where it is refused: so that the next line is found.
  public var followingBytes: Int
}
