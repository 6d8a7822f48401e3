import Glibc
import PrismBase
import PrismCollector
import PrismProtocol

/// `prism-collector device find` and `device tag`: the devices of an expression.
enum DeviceFinding {
  static func find(_ line: Invocation) async throws(Failure) -> Int32 {
    try await line.ask { client throws(Failure) in
      let listing = Listing(line, "device seenTime app version waiting lost crashTime")
      try await client.devices(where: line.operands.first ?? "", sort: line["--sort"] ?? "device") { listing.add($0) }
      return listing.end()
    }
  }

  static func tag(_ line: Invocation) async throws(Failure) -> Int32 {
    guard let namespace = NamespaceName(line["--namespace"] ?? NamespaceName.prism.text) else {
      throw .usage("--namespace must be the name of a namespace")
    }
    let patch = try patch(Array(line.operands.dropFirst()))
    return try await line.ask { client throws(Failure) in try await tag(client, line.operands[0], patch, namespace) }
  }

  /// `NAME=TEXT`. - Throws: 64 for other texts.
  static func tags(_ words: [String]) throws(Failure) -> DeviceTags {
    let pairs = words.map { $0.split(separator: "=", maxSplits: 1).map(String.init) }
    guard pairs.allSatisfy({ $0.count == 2 }), let tags = DeviceTags(Dictionary(pairs.map { ($0[0], $0[1]) }) { $1 })
    else { throw .usage("tags are NAME=TEXT: \(DeviceTags.rule)") }
    return tags
  }

  /// A JSON Merge Patch of the tags: null takes one away.
  private static func patch(_ words: [String]) throws(Failure) -> JSONValue {
    let removed = words.filter { $0.hasSuffix("-") && DeviceTags.isName(String($0.dropLast())) }
    let set = try tags(words.filter { !removed.contains($0) })
    return .object((set.fields.object ?? []) + removed.map { JSONValue.Member(String($0.dropLast()), .null) })
  }

  /// All are chosen before the first one changes: the expression may be of the tags that are given.
  private static func tag(
    _ client: CollectorClient, _ expression: String, _ patch: JSONValue, _ namespace: NamespaceName
  ) async throws(Failure) -> Int32 {
    let found = try await client.devices(where: expression)
    for device in found {
      let records = RecordTableClient(client, namespace: namespace, table: .tags, device: device)
      _ = try await records.patch(DeviceTags.Source.operator.rawValue, fields: patch.text)
      print(device)
    }
    if found.isEmpty { complain("no device is chosen by this expression") }
    return found.isEmpty ? 1 : 0
  }
}
