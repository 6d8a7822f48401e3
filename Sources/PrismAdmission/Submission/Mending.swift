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
  /// More than that is not read as JSON: a tree takes many times its bytes.
  private static let readBytesMax = 256 * 1024

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
    let members = submission.membersRange
    let input = submission.text.span
    let reduced = ReducedMembers(input, members, bytesMax: Self.readBytesMax, stringBytesMax: Limits.metaBytesMax)
    guard let reduced, let came = try? JSONValue(parsingMembers: reduced.text, allowsDuplicateKeys: true) else {
      return nil
    }
    let tree = JSONValue.object((came.object ?? []).filter { !marks || $0.key != MendedMeta.marker })
    // The whole of one long text is the payload as it is.
    let text = reduced.longest.flatMap { payloadBytesMax > 0 && 2 * $0.value.range.count > members.count ? $0 : nil }
    let named = text.map {
      "\(JSONValue.object([.init(Self.payloadKey, .string($0.key.string(in: input)))]).text.dropFirst().dropLast()),"
    }
    let before = (came[MendedMeta.marker]?.string ?? "").split(separator: ",").map { $0.filter { $0 != " " } }
    let all = before.filter { $0 != "cut" } + ["cut"]
    let mark = marks ? ",\"\(MendedMeta.marker)\":\"\(all.joined(separator: ", "))\"" : ""
    let room = bytesMax - (named ?? "").utf8.count - mark.utf8.count
    let shorter = MetaCut.cut(tree, textBytes: tree.bytes.count, bytesMax: room, lostBytes: reduced.lostBytes)
    var cut = submission.replacing(members: Array((named ?? "").utf8) + shorter + mark.utf8)
    if payloadBytesMax > 0 { cut.attach(text?.value, of: submission, bytesMax: payloadBytesMax) }
    return cut
  }

  /// Names the field that became the payload.
  public static let payloadKey = "PAYLOAD_FIELD"
}
