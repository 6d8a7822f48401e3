public import PrismProtocol

/// A report in no protocol's form: what any input hands to admission.
///
/// Its text is one allocation. Nothing of it is checked before admission reads it; what is wrong comes back as the refusal
/// that a client of the ingest socket would get.
public struct Submission: Sendable {
  /// The sender, and the common information.
  public let source: SubmissionSource
  /// Namespace, type, report id and meta, one after the other.
  let text: [UInt8]
  private let namespaceEnd: Int
  private let typeEnd: Int
  private let idEnd: Int
  let payload: [UInt8]?
  let createdTime: Int64?

  /// - Parameter type: must be in the monitor list of `namespace`.
  /// - Parameter meta: a JSON object with at least one member; line feeds between its tokens become spaces.
  /// - Parameter createdTime: milliseconds since 1970; nil: now.
  /// - Parameter reportID: the same id, from the same user to the same namespace, is stored once. An input that hands a
  ///   report over again after a crash or a lost answer gives one; nil: the daemon makes one.
  public init(
    _ type: String, in namespace: String, meta: some Sequence<UInt8>, payload: [UInt8]? = nil,
    createdTime: Int64? = nil, reportID: ReportID? = nil, from source: SubmissionSource
  ) {
    var text = Array(namespace.utf8)
    namespaceEnd = text.count
    text += type.utf8
    typeEnd = text.count
    if let reportID { text += reportID.text.utf8 }
    idEnd = text.count
    text += meta
    for index in idEnd..<text.count where text[index] == UInt8(ascii: "\n") || text[index] == UInt8(ascii: "\r") {
      text[index] = UInt8(ascii: " ")
    }
    (self.source, self.text, self.payload, self.createdTime) = (source, text, payload, createdTime)
  }

  /// Bytes that it holds in memory.
  public var bytes: Int { MemoryLayout<Submission>.stride + text.count + (payload?.count ?? 0) }

  /// The same as ranges of `text`, as admission reads a report of any input.
  /// - Parameter reserved: keys that the meta may not have unseen. - Throws: `bad_request`.
  func scanned(reserved: ReservedKeys) throws(Refusal) -> ScannedReport {
    var report = ScannedReport(type: ScannedString(range: namespaceEnd..<typeEnd, hasEscapes: false))
    report.namespace = ScannedString(range: 0..<namespaceEnd, hasEscapes: false)
    report.meta = try ScannedReport.Meta(scanning: text.span, from: idEnd, reserved: reserved)
    if idEnd > typeEnd { report.reportID = ScannedString(range: typeEnd..<idEnd, hasEscapes: false) }
    if let payload { report.payload = .following(bytes: payload.count) }
    if let createdTime { report.createdTime = try CreatedTime.checked(createdTime) }
    return report
  }

  /// For those who follow the feed.
  var name: ReportName {
    func part(_ range: Range<Int>) -> String { String(decoding: text[range], as: UTF8.self) }
    return ReportName(
      namespace: part(0..<namespaceEnd), type: part(namespaceEnd..<typeEnd),
      reportID: idEnd > typeEnd ? part(typeEnd..<idEnd) : nil)
  }
}
