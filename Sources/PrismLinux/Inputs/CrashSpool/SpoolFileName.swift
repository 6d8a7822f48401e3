import PrismProtocol

/// The name of a file in the crash spool: `NAMESPACE.TYPE.ID.json` is a report's meta, and the same name with `.payload` is
/// its payload. Pure.
struct SpoolFileName: Hashable, Sendable {
  enum Content: Hashable, Sendable { case meta, payload }

  let namespace: NamespaceName
  let type: ReportType
  let reportID: ReportID
  let content: Content

  /// A type may have dots; the other parts may not. - Returns: nil if the name is of another form.
  init?(_ name: String) {
    let parts = name.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count >= 4, let content = Self.contents[String(parts[parts.count - 1])],
      let namespace = NamespaceName(String(parts[0])), let reportID = ReportID(String(parts[parts.count - 2])),
      let type = ReportType(parts[1..<(parts.count - 2)].joined(separator: "."))
    else { return nil }
    (self.namespace, self.type, self.reportID, self.content) = (namespace, type, reportID, content)
  }

  private static let contents: [String: Content] = ["json": .meta, "payload": .payload]

  /// The name without its suffix.
  var stem: String { "\(namespace).\(type).\(reportID)" }
}
