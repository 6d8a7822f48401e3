import PrismProtocol

struct CollectedTags: Sendable, Equatable {
  /// Records of one namespace that a question reads: three of each device of the list.
  static let countMax = 600_000

  let device: String
  let namespace: String
  let source: DeviceTags.Source
  let tags: DeviceTags

  /// nil: it is no record of tags.
  init?(namespace: String, _ device: String, _ id: String, _ fields: String) {
    guard let source = DeviceTags.Source(rawValue: id),
      let tags = DeviceTags(try? JSONValue(parsing: Array(fields.utf8)))
    else { return nil }
    (self.device, self.namespace, self.source, self.tags) = (device, namespace, source, tags)
  }

  /// The tags of each device: those of operators before those of its enrollment, and these before those of its own file. Of two
  /// namespaces the one whose name is later counts.
  static func merged(_ records: [CollectedTags]) -> [String: [String: String]] {
    let rank = { (source: DeviceTags.Source) in DeviceTags.Source.allCases.firstIndex(of: source) ?? 0 }
    return records.sorted { (rank($0.source), $0.namespace) < (rank($1.source), $1.namespace) }.reduce(into: [:]) {
      $0[$1.device, default: [:]].merge($1.tags.values) { $1 }
    }
  }
}
