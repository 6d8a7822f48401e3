import PrismBase

/// The switches of a namespace by which a program decides what to collect (docs/ingest-protocol.md, "Watch").
public struct NamespaceSwitches: Sendable, Equatable {
  /// The name of the namespace.
  public var namespace: String
  /// The number of the configuration; it grows with each change, and begins at 1 with the daemon.
  public var generation: Int
  /// Whether reports of the namespace are taken.
  public var isGather: Bool
  /// The names and patterns of the monitor list; empty for a namespace that is not configured any more.
  public var types: [String]

  public init(namespace: String, generation: Int, isGather: Bool, types: [String]) {
    (self.namespace, self.generation, self.isGather, self.types) = (namespace, generation, isGather, types)
  }

  /// nil for a value of another form.
  public init?(_ value: JSONValue) {
    guard let namespace = value["namespace"]?.string, let generation = value["generation"]?.int,
      let isGather = value["isGather"]?.bool, let types = value["types"]?.array
    else { return nil }
    self.init(
      namespace: namespace, generation: generation, isGather: isGather, types: types.compactMap(\.string))
  }

  /// As a line of the protocol has it.
  public var json: JSONValue {
    [
      "namespace": .string(namespace), "configuration": true, "generation": .int(generation),
      "isGather": .bool(isGather), "types": .array(types.map { .string($0) }),
    ]
  }

  /// Whether reports of `type` are taken.
  public func takes(_ type: ReportType) -> Bool {
    isGather && types.contains { Glob.matches($0, type.text) }
  }

  /// Whether both say the same to a program; the generation does not count.
  public func says(the other: NamespaceSwitches) -> Bool {
    isGather == other.isGather && types == other.types
  }
}
