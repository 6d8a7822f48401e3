import PrismProtocol

struct CollectedTags: Sendable, Equatable {
  /// Records of one namespace that a question reads: three of each device of the list.
  static let countMax = 600_000

  let device: String
  let namespace: String
  let source: DeviceTags.Source
  let tags: DeviceTags

  /// They are said of the device itself, and not of what it sends to one namespace.
  var isOfFleet: Bool { namespace == NamespaceName.prism.text }

  /// nil: it is no record of tags.
  init?(namespace: String, _ device: String, _ id: String, _ fields: String) {
    guard let source = DeviceTags.Source(rawValue: id),
      let tags = DeviceTags(try? JSONValue(parsing: Array(fields.utf8)))
    else { return nil }
    (self.device, self.namespace, self.source, self.tags) = (device, namespace, source, tags)
  }

  /// The tags of each device: those of operators before those of its enrollment, and these before those of its own file. Of two
  /// namespaces the one whose name is later counts, and `prism`, which no team has, before all.
  static func merged(_ records: [CollectedTags]) -> [String: [String: String]] {
    let rank = { (record: CollectedTags) in
      (DeviceTags.Source.allCases.firstIndex(of: record.source) ?? 0, record.isOfFleet ? 1 : 0, record.namespace)
    }
    return records.sorted { rank($0) < rank($1) }.reduce(into: [:]) {
      $0[$1.device, default: [:]].merge($1.tags.values) { $1 }
    }
  }
}
