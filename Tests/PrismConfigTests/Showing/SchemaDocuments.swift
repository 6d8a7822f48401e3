import PrismProtocol

@testable import PrismConfig

/// The schemas that are shipped in `config/`.
extension Schema {
  /// The schema of prismd.yaml.
  static var daemon: JSONValue {
    document("prismd.schema.json", "prismd.yaml: the daemon's configuration", DaemonKeys.table)
  }

  /// The schema of a namespace's file.
  static var namespace: JSONValue {
    document("namespace.schema.json", "namespaces.d/NAME.yaml: a namespace's configuration", NamespaceKeys.table)
  }

  /// The schema of a collector's file.
  static var collector: JSONValue {
    document("collector.schema.json", "collector.yaml: the configuration of prism-collector", CollectorKeys.table)
  }

  private static func document<Target>(_ id: String, _ title: String, _ table: KeyTable<Target>) -> JSONValue {
    let head: [JSONValue.Member] = [
      .init("$schema", "https://json-schema.org/draft/2020-12/schema"), .init("$id", .string(id)),
      .init("title", .string(title)),
    ]
    return .object(head + (object(table).object ?? []))
  }
}
