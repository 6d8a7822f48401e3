import PrismControl
public import PrismProtocol

/// The changes by which admission takes reports of a sender that can send neither another type nor a smaller meta.
public struct Mending: Sendable {
  /// The type of a report whose own type is not taken: it is no name, or one too many. nil: it is refused.
  public var otherType: ReportType?
  /// The members that its meta gets then, as JSON.
  public var otherMembers: [UInt8] = []
  /// A meta over the limit is cut. The whole record is its payload, if the type uploads payloads and has no filter.
  public var cuts = false
  /// A cut is named in `MENDED`, as other changes of a report whose sender can't send it again.
  public var marks = false
  /// A payload that is too large is left out, and the report says how large it was; so it is with `cuts`, too.
  public var leavesPayloadOut = false
  /// Refusals that end when a file of the configuration is there: the report waits, and is handed over again.
  public var waits: Set<RefusalCode> = []

  /// All such refusals: of a report whose namespace is the operator's word.
  public static let untilConfigured: Set<RefusalCode> = [.unknownNamespace, .unknownType]

  /// Changes nothing.
  public init() {}

  /// Bytes that are left for the common information of the row, by attempt.
  private static let reservedBytes = [512, 2048, 5120]

  /// The same report as it can be taken. - Parameter attempt: the number of cuts before.
  /// - Returns: nil if the refusal stays.
  func mended(
    _ submission: Submission, after refusal: Refusal, attempt: Int, _ rules: AdmissionRules, contextBytes: Int
  ) -> Submission? {
    switch refusal.code {
    case .unknownType:
      guard let otherType, submission.name.type != otherType.text else { return nil }
      return submission.replacing(type: otherType, adding: otherMembers)
    case .metaTooLarge where cuts && attempt < Self.reservedBytes.count:
      let bytesMax = Limits.metaBytesMax - contextBytes - Self.reservedBytes[attempt]
      return cut(submission, bytesMax: max(64, bytesMax), payloadBytesMax: payloadBytesMax(submission, rules))
    default: return nil
    }
  }

  private func payloadBytesMax(_ submission: Submission, _ rules: AdmissionRules) -> Int {
    let name = submission.name
    guard submission.payload == nil, let namespace = name.namespace.flatMap({ rules.namespace($0) }) else { return 0 }
    return name.type.flatMap { namespace.index(ofType: $0, from: submission.source.peer.accountID) }.map {
      namespace.wholeBytesMax(of: $0)
    } ?? 0
  }

  private func cut(_ submission: Submission, bytesMax: Int, payloadBytesMax: Int) -> Submission? {
    let isUploaded = payloadBytesMax > 0
    let known = submission.reduced.map { (members: Array(submission.members), rest: $0) }
    guard
      let (members, reduced) =
        known ?? ReducedMeta.reducing(submission.text.span, submission.membersRange, hasContent: isUploaded),
      let came = try? JSONValue(parsingMembers: members, allowsDuplicateKeys: true)
    else { return nil }
    let tree = JSONValue.object((came.object ?? []).filter { !marks || $0.key != MendedMeta.marker })
    let named = (isUploaded ? reduced.key : nil).map {
      "\(JSONValue.object([.init(Self.payloadKey, .string($0))]).text.dropFirst().dropLast()),"
    }
    let before = (came[MendedMeta.marker]?.string ?? "").split(separator: ",").map { $0.filter { $0 != " " } }
    let all = before.filter { $0 != "cut" } + ["cut"]
    let mark = marks ? ",\"\(MendedMeta.marker)\":\"\(all.joined(separator: ", "))\"" : ""
    let room = bytesMax - (named ?? "").utf8.count - mark.utf8.count
    let shorter = MetaCut.cut(tree, textBytes: tree.bytes.count, bytesMax: room, lostBytes: reduced.lostBytes)
    var cut = submission.replacing(members: Array((named ?? "").utf8) + shorter + mark.utf8)
    if isUploaded { cut.attach(reduced.content, bytesMax: payloadBytesMax) }
    return cut
  }

  /// Names the field that became the payload.
  public static let payloadKey = "PAYLOAD_FIELD"
}

/// The facts of a meta that is kept without the long ends of its strings. One reference, so that the others are moved fast.
final class ReducedMeta: Sendable {
  /// That were left out.
  let lostBytes: Int
  /// Of the meta as it came.
  let bytes: Int
  /// Of the one long text that `content` is; nil: it is the whole meta.
  let key: String?
  /// Empty without `hasContent`.
  let content: [UInt8]

  private init(lostBytes: Int, bytes: Int, key: String?, content: [UInt8]) {
    (self.lostBytes, self.bytes, self.key, self.content) = (lostBytes, bytes, key, content)
  }

  /// - Parameter range: of the members, without the braces around them.
  /// - Returns: the members that are kept, as JSON without braces: five quarters of `MendedMeta.readBytesMax` at most, since a
  ///   tree takes many times its bytes. nil for what is no JSON.
  static func reducing(
    _ input: Span<UInt8>, _ range: Range<Int>, hasContent: Bool
  ) -> (members: [UInt8], rest: ReducedMeta)? {
    let (bytesMax, stringBytesMax) = (MendedMeta.readBytesMax, Limits.metaBytesMax)
    guard let reduced = ReducedMembers(input, range, bytesMax: bytesMax, stringBytesMax: stringBytesMax) else {
      return nil
    }
    let text = reduced.longest.flatMap { hasContent && 2 * $0.value.range.count > range.count ? $0 : nil }
    var content: [UInt8] = []
    if let text {
      content.reserveCapacity(ReducedMembers.plainBytes(input, text.value.range))
      text.value.append(from: input, to: &content)
    } else if hasContent {
      content.append(UInt8(ascii: "{"))
      content.append(copying: input, range)
      content.append(UInt8(ascii: "}"))
    }
    let rest = ReducedMeta(
      lostBytes: reduced.lostBytes, bytes: range.count + 2, key: text.map { $0.key.string(in: input) },
      content: content)
    return (reduced.text, rest)
  }
}
