import PrismProtocol

/// The types of a packet's rows, read from its plaintext: every meta begins with `MONITOR_TYPE` (`MetaSplicing`).
enum MonitorTypes {
  private static let head = Array(#"{"MONITOR_TYPE":""#.utf8)

  /// Whether a row of one of `types` is among `metas`, which are joined with line feeds.
  static func contain(_ types: Set<ReportType>, metas: [UInt8], namespace: NamespaceName) -> Bool {
    if types.isEmpty { return false }
    let names = Set(types.map { Array(MetaSplicing.monitorType($0, in: namespace).utf8) })
    return metas.split(separator: UInt8(ascii: "\n")).contains { meta in
      meta.starts(with: head) && names.contains(Array(meta.dropFirst(head.count).prefix { $0 != UInt8(ascii: "\"") }))
    }
  }
}
