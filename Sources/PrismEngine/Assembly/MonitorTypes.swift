import PrismProtocol

/// The types of a packet's rows, read from its plaintext: every meta begins with `MONITOR_TYPE` (`MetaSplicing`).
enum MonitorTypes {
  private static let head = Array(#"{"MONITOR_TYPE":""#.utf8)

  /// Whether a row of one of `types` is among `metas`, which are joined with line feeds.
  static func contain(_ types: TypeSet, metas: [UInt8], namespace: NamespaceName) -> Bool {
    if types.isEmpty { return false }
    let prefixBytes = namespace.isBusiness ? namespace.text.utf8.count + 1 : 0
    var known: [ArraySlice<UInt8>: Bool] = [:]
    return metas.split(separator: UInt8(ascii: "\n")).contains { meta in
      guard meta.starts(with: head) else { return false }
      let name = meta.dropFirst(head.count).prefix { $0 != UInt8(ascii: "\"") }.dropFirst(prefixBytes)
      if let isContained = known[name] { return isContained }
      let isContained = ReportType(String(decoding: name, as: UTF8.self)).map(types.contains) ?? false
      known[name] = isContained
      return isContained
    }
  }
}
