public import PrismProtocol

/// Decides whether a report may be taken, and what it becomes: the steps of docs/ingest-protocol.md in their order. Pure.
public enum Admission {
  /// A stamp that is further ahead than this is set to now.
  public static let aheadMax: Duration = .seconds(300)

  /// A report that may be stored.
  public struct Admitted: Sendable {
    /// The meta's members.
    public enum Body: Sendable, Equatable {
      /// A range of the line: the members exactly as they came.
      case asWritten(Range<Int>)
      /// Written again because it collided with the common information, or repeated a key.
      case rewritten(Rewritten)
    }
    /// Milliseconds since 1970.
    public var createdTime: Int64
    /// The rules of its namespace.
    public let namespace: AdmissionRules.Namespace
    /// In the namespace's monitor list.
    public let type: Int
    /// The meta's members.
    public let body: Body
    /// Bytes of the merged meta.
    public let metaBytes: Int
    /// The decision of a filter of its type; nil in most cases.
    public var mark: ReportBatch.Mark?
    /// Its payload is not stored.
    public internal(set) var leavesPayloadOut = false
    /// Bytes of a meta that a filter read; 0 in most cases.
    var filteredBytes = 0

    init(_ accepted: Accepted, body: Body, metaBytes: Int) {
      (createdTime, namespace, type) = (accepted.createdTime, accepted.namespace, accepted.type)
      (self.body, self.metaBytes) = (body, metaBytes)
    }
  }

  /// A report whose names were accepted.
  struct Accepted {
    let namespace: AdmissionRules.Namespace
    let type: Int
    let createdTime: Int64
    /// Milliseconds since 1970.
    let now: Int64

    var isCrash: Bool { namespace.rowType(type).priority == .crash }
  }

  /// Members that were put together again.
  public struct Rewritten: Sendable, Equatable {
    /// JSON members without braces.
    public var members: [UInt8]
    /// A crash's: the common information is in it, except where the crash's own was kept.
    public var isSelfContained = false
    /// The members have a `CREATE_TIME` of their own.
    public var hasOwnCreateTime = false
  }

  /// - Parameter session: of the report's connection; it remembers what it looked up.
  /// - Parameter unixMilliseconds: now.
  /// - Throws: the refusal of the first step that says no.
  public static func decide(
    _ report: ScannedReport, in line: Span<UInt8>, session: inout Session, unixMilliseconds: Int64
  ) throws(Refusal) -> Admitted {
    let namespace = try session.namespace(report.namespace, in: line)
    guard namespace.isGather else {
      throw Refusal(.gatherOff, "\(namespace.name) has `isGather` off: nothing is taken")
    }
    let type = try session.type(report.type, of: namespace, in: line)
    let created = try createdTime(report.createdTime, unixMilliseconds: unixMilliseconds)
    let accepted = Accepted(namespace: namespace, type: type, createdTime: created, now: unixMilliseconds)
    if namespace.hasFilters, let filter = namespace.filter(of: type) {
      return try decide(report, in: line, filter, accepted, session: session)
    }
    return try admit(report, in: line, merge(report.meta, in: line, accepted, session), accepted, session)
  }

  /// Steps 7 and 8.
  static func admit(
    _ report: ScannedReport, in line: Span<UInt8>, _ body: Admitted.Body, _ accepted: Accepted, _ session: Session
  ) throws(Refusal) -> Admitted {
    let namespace = accepted.namespace
    func metaBytes(_ body: Admitted.Body) throws(Refusal) -> Int {
      let bytes = mergedBytes(
        body, report: report, in: line, type: namespace.monitorTypeBytes(accepted.type),
        isBusiness: namespace.name.isBusiness, contextBytes: session.context.members.count,
        createdTime: accepted.createdTime)
      guard bytes <= Limits.metaBytesMax else { throw metaTooLarge(bytes) }
      return bytes
    }
    let bytes = try metaBytes(body)
    guard try leavesOut(report, in: line, accepted) else {
      return Admitted(accepted, body: body, metaBytes: bytes)
    }
    let noted = noting(report.payload.bytes(in: line), on: body, in: line)
    var admitted = Admitted(accepted, body: noted, metaBytes: try metaBytes(noted))
    admitted.leavesPayloadOut = true
    return admitted
  }

  static func metaTooLarge(_ bytes: Int) -> Refusal {
    Refusal(.metaTooLarge, "the merged meta has \(bytes) bytes; at most \(Limits.metaBytesMax) are taken")
  }

  /// Whether a namespace gathers, for a client that asks before it reports. - Throws: `forbidden`, `unknown_namespace`.
  public static func isGather(
    _ namespace: ScannedString, in line: Span<UInt8>, session: inout Session
  ) throws(Refusal) -> Bool {
    try session.namespace(namespace, in: line).isGather
  }

  static func createdTime(_ given: Int64?, unixMilliseconds now: Int64) throws(Refusal) -> Int64 {
    if let given { try CreatedTime.check(given, unixMilliseconds: now) }
    guard let given, given <= now + aheadMax.components.seconds * 1000 else { return now }
    return given
  }

  /// Step 8. - Returns: whether the report is to be stored without its payload, which is too large, or of a type whose payloads
  /// are not uploaded: it would wait until it expires.
  static func leavesOut(
    _ report: ScannedReport, in line: Span<UInt8>, _ accepted: Accepted
  ) throws(Refusal) -> Bool {
    let payload = report.payload
    guard payload != .none else { return false }
    if report.isPayloadUnread { return true }
    guard accepted.namespace.uploadsPayloads(of: accepted.type) else { return true }
    let rules = accepted.namespace.payloads
    guard payload.bytes(in: line) > rules.bytesMax else { return false }
    let mayLoseIt = rules.leavesLargeOnesOut || report.mayLosePayload || accepted.isCrash
    guard mayLoseIt else { throw payloadTooLarge(max: rules.bytesMax) }
    return true
  }

  static func payloadTooLarge(max: Int) -> Refusal {
    Refusal(
      .payloadTooLarge,
      "the payload is larger than \(max) bytes: the namespace's maxBodyMByte, or what ingest.memoryMByte has room for")
  }

  // MARK: Merging

  /// Steps 5 and 6.
  static func merge(
    _ meta: ScannedReport.Meta, in line: Span<UInt8>, _ accepted: Accepted, _ session: Session
  ) throws(Refusal) -> Admitted.Body {
    switch meta {
    case .missing: throw Refusal(.badRequest, "`meta` is missing")
    case .notAnObject: throw Refusal(.badRequest, "`meta` must be an object")
    case .empty: throw Refusal(.badRequest, "`meta` must have at least one member")
    case .members(let range, mayCollide: false): return .asWritten(range)
    case .members(let range, mayCollide: true):
      let members = MetaMembers(line, range)
      let keys = Set(members.members.map(\.key))
      let collides = !keys.isDisjoint(with: session.reserved.keys)
      if collides && accepted.isCrash { return .rewritten(crash(members, keys, line, session)) }
      let kept = members.joined(line) { !session.reserved.keys.contains($0) }
      return .rewritten(Rewritten(members: kept))
    }
  }

  /// The meta says how many bytes of payload were left out.
  private static func noting(_ bytes: Int, on body: Admitted.Body, in line: Span<UInt8>) -> Admitted.Body {
    var rewritten: Rewritten
    switch body {
    case .asWritten(let range):
      rewritten = Rewritten(members: [])
      rewritten.members.append(copying: line, range)
    case .rewritten(let before): rewritten = before
    }
    if !rewritten.members.isEmpty { rewritten.members.append(UInt8(ascii: ",")) }
    rewritten.members += "\"\(CommonInformation.payloadLeftOutKey)\":\(bytes)".utf8
    return .rewritten(rewritten)
  }

  /// A crash reports an earlier run: its own members win, but not over what the daemon and the kernel say.
  private static func crash(
    _ members: MetaMembers, _ keys: Set<String>, _ line: Span<UInt8>, _ session: Session
  ) -> Rewritten {
    let foreign = CommonInformation.kernelKeys.union(CommonInformation.rowKeys)
      .subtracting([CommonInformation.createTimeKey])
    let own = members.joined(line) { !foreign.contains($0) }
    let common = CommonInformation.text(
      session.commonMembers.filter { !keys.contains($0.key) || foreign.contains($0.key) })
    return Rewritten(
      members: common.isEmpty || own.isEmpty ? common + own : common + [UInt8(ascii: ",")] + own, isSelfContained: true,
      hasOwnCreateTime: keys.contains(CommonInformation.createTimeKey))
  }

  /// Step 7: the size of what `MetaSplicing` will make of it.
  private static func mergedBytes(
    _ body: Admitted.Body, report: ScannedReport, in line: Span<UInt8>, type monitorTypeBytes: Int, isBusiness: Bool,
    contextBytes: Int, createdTime: Int64
  ) -> Int {
    let bodyBytes: Int
    var (context, created): (Int, Int64?) = (contextBytes, createdTime)
    switch body {
    case .asWritten(let range): bodyBytes = range.count
    case .rewritten(let rewritten):
      bodyBytes = rewritten.members.count
      if rewritten.isSelfContained { context = 0 }
      if rewritten.hasOwnCreateTime { created = nil }
    }
    let idBytes = report.reportID.map { $0.hasEscapes ? $0.string(in: line).utf8.count : $0.range.count }
    return MetaSplicing.size(
      monitorTypeBytes: monitorTypeBytes, reportIDBytes: idBytes ?? RowID.reportIDBytes, createdTime: created,
      isBusiness: isBusiness, contextBytes: context, bodyBytes: bodyBytes)
  }

  /// Steps 5 to 8 for a report of a type with filters: they see the meta before anything else does.
  static func decide(
    _ report: ScannedReport, in line: Span<UInt8>, _ filter: TypeFilter, _ accepted: Accepted, session: Session
  ) throws(Refusal) -> Admitted {
    try filter.count(userID: session.peer.accountID, unixMilliseconds: accepted.now)
    guard filter.readsMeta, case .members(let range, _) = report.meta else {
      return try admit(report, in: line, merge(report.meta, in: line, accepted, session), accepted, session)
    }
    guard range.count <= Limits.metaBytesMax else { throw metaTooLarge(range.count) }
    var meta = [UInt8(ascii: "{")]
    meta.append(copying: line, range)
    meta.append(UInt8(ascii: "}"))
    let id = report.reportID.map { Array($0.string(in: line).utf8) }
    let outcome = try filter.apply(to: meta, reportID: id, unixMilliseconds: accepted.now)
    if outcome.mark == .sampledOut {
      var admitted = Admitted(accepted, body: .rewritten(Rewritten(members: [])), metaBytes: 0)
      (admitted.mark, admitted.filteredBytes) = (outcome.mark, meta.count)
      admitted.leavesPayloadOut = try leavesOut(report, in: line, accepted)
      return admitted
    }
    let filtered = try ScannedReport.Meta(scanning: outcome.meta.span, from: 0, reserved: session.reserved)
    let body = try rewritten(filtered, in: outcome.meta.span, accepted, session)
    var admitted = try admit(report, in: line, body, accepted, session)
    let bytesMax = admitted.metaBytes + (outcome.mark == nil ? 0 : ReportBatch.Repeat.membersBytesMax)
    guard bytesMax <= Limits.metaBytesMax else { throw metaTooLarge(bytesMax) }
    (admitted.mark, admitted.filteredBytes) = (outcome.mark, meta.count)
    return admitted
  }

  /// The members after their filters; a range of them is no range of the line.
  private static func rewritten(
    _ meta: ScannedReport.Meta, in text: Span<UInt8>, _ accepted: Accepted, _ session: Session
  ) throws(Refusal) -> Admitted.Body {
    if meta == .empty { return .rewritten(Rewritten(members: [])) }
    let body = try merge(meta, in: text, accepted, session)
    guard case .asWritten(let range) = body else { return body }
    var members: [UInt8] = []
    members.append(copying: text, range)
    return .rewritten(Rewritten(members: members))
  }
}
