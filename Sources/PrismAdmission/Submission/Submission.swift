package import PrismControl
public import PrismProtocol
import Synchronization

/// A report in no protocol's form: what any input hands to admission.
///
/// Its text is one allocation. Nothing of it is checked before admission reads it; what is wrong comes back as the refusal
/// that a client of the ingest socket would get.
public struct Submission: Sendable {
  /// The sender, and the common information.
  public let source: SubmissionSource
  /// Namespace, type, report id and meta, one after the other.
  private(set) var text: [UInt8]
  private let namespaceEnd: Int
  private var typeEnd: Int
  private var idEnd: Int
  private(set) var payload: [UInt8]?
  /// The meta is too large to be read, and was reduced as it came: on the thread of its input, so that no other user waits.
  private(set) var reduced: ReducedMeta?
  package var isReduced: Bool { reduced != nil }
  /// Of a payload that there was no room for: the report says how many bytes are left out. 0: there is no such one.
  public var unreadBytes = 0
  let createdTime: Int64?

  /// - Parameter type: must be in the monitor list of `namespace`.
  /// - Parameter meta: a JSON object with at least one member; line feeds become spaces, also within a string. An input whose
  ///   sender may make it large, and that cuts it (`Mending.cuts`), gives `members:`.
  /// - Parameter createdTime: milliseconds since 1970; nil: now.
  /// - Parameter reportID: the same id, from the same user to the same namespace, is stored once. An input that hands a
  ///   report over again after a crash or a lost answer gives one; nil: the daemon makes one.
  public init(
    _ type: String, in namespace: String, meta: some Sequence<UInt8>, payload: [UInt8]? = nil,
    createdTime: Int64? = nil, reportID: ReportID? = nil, from source: SubmissionSource
  ) {
    let id = reportID?.text ?? ""
    self.init(namespace, type, id, metaBytes: meta.underestimatedCount, payload, nil, createdTime, source) { text in
      let start = text.count
      text += meta
      text.replaceLineFeeds(from: start)
    }
  }

  /// - Parameter members: of a meta, as JSON on one line, without the braces around them; the rest is as `meta:` has it.
  public init(
    _ type: String, in namespace: String, members: Span<UInt8>, payload: [UInt8]? = nil, createdTime: Int64? = nil,
    reportID: ReportID? = nil, from source: SubmissionSource
  ) {
    let isReduced = source.mending.cuts && members.count + 2 > Self.scannedBytesMax
    let kept = isReduced ? ReducedMeta.reducing(members, members.indices, hasContent: payload == nil) : nil
    let (id, bytes) = (reportID?.text ?? "", kept?.members.count ?? members.count)
    self.init(namespace, type, id, metaBytes: bytes + 2, payload, kept?.rest, createdTime, source) { text in
      text.append(UInt8(ascii: "{"))
      if let kept { text += kept.members } else { text.append(copying: members, members.indices) }
      text.append(UInt8(ascii: "}"))
    }
  }

  private init(
    _ namespace: String, _ type: String, _ reportID: String, metaBytes: Int, _ payload: [UInt8]?,
    _ reduced: ReducedMeta?, _ createdTime: Int64?, _ source: SubmissionSource, appendMeta: (inout [UInt8]) -> Void
  ) {
    var text: [UInt8] = []
    text.reserveCapacity(namespace.utf8.count + type.utf8.count + reportID.utf8.count + metaBytes)
    text += namespace.utf8
    namespaceEnd = text.count
    text += type.utf8
    typeEnd = text.count
    text += reportID.utf8
    idEnd = text.count
    appendMeta(&text)
    (self.source, self.text, self.payload, self.reduced) = (source, text, payload, reduced)
    self.createdTime = createdTime
  }

  /// It has an id.
  public var isIdentified: Bool { idEnd > typeEnd }

  /// The members of its meta, without the braces around them.
  package var members: ArraySlice<UInt8> { text[membersRange] }
  var membersRange: Range<Int> { (idEnd + 1)..<(text.count - 1) }

  /// The same report with other members.
  func replacing(members: [UInt8]) -> Submission {
    var result = self
    result.text = text[...idEnd] + members + text.suffix(1)  // the long text is not copied
    result.reduced = nil
    return result
  }

  /// Its payload is what was cut. - Parameter bytesMax: of a larger one the report says its bytes.
  mutating func attach(_ content: [UInt8], bytesMax: Int) {
    if content.count <= bytesMax { payload = content } else { unreadBytes = content.count }
  }

  /// The same report of another type. - Parameter members: that its meta gets.
  func replacing(type: ReportType, adding members: [UInt8]) -> Submission {
    var result = self
    if !members.isEmpty { result.text.insert(contentsOf: [UInt8(ascii: ",")] + members, at: text.count - 1) }
    result.text.replaceSubrange(namespaceEnd..<typeEnd, with: type.text.utf8)
    let growth = type.text.utf8.count - (typeEnd - namespaceEnd)
    (result.typeEnd, result.idEnd) = (typeEnd + growth, idEnd + growth)
    return result
  }

  /// Bytes that it holds in memory.
  public var bytes: Int {
    MemoryLayout<Submission>.stride + text.count + (payload?.count ?? 0) + (reduced?.content.count ?? 0)
  }

  /// A longer meta is not read: it is too large with any of its members left out. To read 8 MiB would keep all others waiting.
  private static let scannedBytesMax = 4 * Limits.metaBytesMax
  private var isLarge: Bool { reduced != nil || text.count - idEnd > Self.scannedBytesMax }

  /// The same as ranges of `text`, as admission reads a report of any input.
  /// - Parameter reserved: keys that the meta may not have unseen. - Throws: `bad_request`, `meta_too_large`.
  func scanned(reserved: ReservedKeys) throws(Refusal) -> ScannedReport {
    guard !isLarge else { throw Admission.metaTooLarge(reduced?.bytes ?? text.count - idEnd) }
    var report = ScannedReport(type: ScannedString(range: namespaceEnd..<typeEnd, hasEscapes: false))
    report.namespace = ScannedString(range: 0..<namespaceEnd, hasEscapes: false)
    report.meta = try ScannedReport.Meta(scanning: text.span, from: idEnd, reserved: reserved)
    if idEnd > typeEnd { report.reportID = ScannedString(range: typeEnd..<idEnd, hasEscapes: false) }
    if let payload { report.payload = .following(bytes: payload.count) }
    if unreadBytes > 0 { (report.payload, report.isPayloadUnread) = (.following(bytes: unreadBytes), true) }
    report.mayLosePayload = source.mending.cuts || source.mending.leavesPayloadOut
    if let createdTime { report.createdTime = try CreatedTime.checked(createdTime) }
    return report
  }

  /// For those who follow the feed, and for the log.
  package var name: TailReport {
    func part(_ range: Range<Int>) -> String { String(decoding: text[range], as: UTF8.self) }
    var name = TailReport()
    (name.namespace, name.type) = (part(0..<namespaceEnd), part(namespaceEnd..<typeEnd))
    name.reportId = isIdentified ? part(typeEnd..<idEnd) : nil
    return name
  }
}

extension [UInt8] {
  /// Line feeds and carriage returns become spaces.
  fileprivate mutating func replaceLineFeeds(from start: Int) {
    withUnsafeMutableBufferPointer { bytes in
      for index in start..<bytes.count {
        let isLineFeed = bytes[index] == UInt8(ascii: "\n") || bytes[index] == UInt8(ascii: "\r")
        bytes[index] = isLineFeed ? UInt8(ascii: " ") : bytes[index]
      }
    }
  }
}

/// Where submissions come from: who sends them, and what they have in common. Made once for a connection, a resource or a
/// file, and shared by all of its submissions, so that their common information is stored once.
public final class SubmissionSource: Sendable {
  /// The sender, as the kernel says.
  public let peer: ReportingPeer
  /// The changes by which its reports are taken.
  let mending: Mending
  private let app: [String: String]
  private let members: [CommonMember]
  private let sessionID: String
  private let reduces: Bool
  private let session = Mutex<Session?>(nil)

  /// - Parameter peer: as the kernel says, not as the sender does: `allow`, quotas and report ids follow it.
  /// - Parameter app: common information of the app (`CommonInformation.appKeys`); other keys are left out, and a value is
  ///   cut at `Limits.commonValueBytesMax` bytes.
  /// - Parameter members: further common information of this input, as JSON values. They count towards the size of each
  ///   merged meta, and win over a member of a meta with the same key.
  /// - Parameter mending: the changes by which its reports are taken.
  /// - Parameter sessionID: `APP_SESSION_ID`, unless `app` has one.
  /// - Parameter reduces: its reports are numbers that the input counted together (`CommonContext.reduces`).
  public init(
    peer: ReportingPeer, app: [String: String] = [:], members: [CommonMember] = [], mending: Mending = Mending(),
    sessionID: String, reduces: Bool = false
  ) {
    self.reduces = reduces
    self.app = app.filter { CommonInformation.appKeys.contains($0.key) }
      .mapValues { $0.cut(atBytes: Limits.commonValueBytesMax) }
    (self.peer, self.members, self.mending, self.sessionID) = (peer, members, mending, sessionID)
  }

  /// Lets `body` use the session that is in force, made for `rules` where it is older.
  func withSession<Result: Sendable>(
    _ rules: AdmissionRules, host: HostFacts, _ body: (inout Session) throws(Refusal) -> Result
  ) throws(Refusal) -> Result {
    let result = session.withLock { kept -> Swift.Result<Result, Refusal> in
      var session =
        kept
        ?? Session(
          rules: rules, host: host, peer: peer, sessionID: sessionID, greeting: Greeting(app), members: members,
          reduces: reduces)
      kept = nil
      defer { kept = session }
      session.take(rules)
      session.take(host.clock)
      do throws(Refusal) { return .success(try body(&session)) } catch { return .failure(error) }
    }
    return try result.get()
  }
}
