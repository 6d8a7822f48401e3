import Glibc
import PrismBase
import PrismCollector
import PrismProtocol

/// `prism-collector device find` and `device tag`: the devices of an expression.
enum DeviceFinding {
  /// - Parameters:
  ///   - values: the expression, then the tags; without a `sort` they are given to the devices.
  ///   - namespace: of the tags. - Returns: the exit code.
  static func run(
    _ options: CollectorOptions, _ values: [String], sort: String?, namespace: String?
  ) async throws(Flags.Fault) -> Int32 {
    guard let namespace = NamespaceName(namespace ?? NamespaceName.prism.text) else {
      throw Flags.Fault(exitCode: 64, message: "--namespace must be the name of a namespace")
    }
    let patch = sort == nil ? try patch(Array(values.dropFirst())) : nil
    return try await CollectorDesk.open(options) { desk throws(CollectorDesk.Fault) -> Int32 in
      if let patch { return try await tag(desk, values[0], patch, namespace) }
      return try await find(desk, values.first ?? "", sort ?? "device")
    }
  }

  /// `NAME=TEXT`. - Throws: 64 for other texts.
  static func tags(_ words: [String]) throws(Flags.Fault) -> DeviceTags {
    let pairs = words.map { $0.split(separator: "=", maxSplits: 1).map(String.init) }
    guard pairs.allSatisfy({ $0.count == 2 }), let tags = DeviceTags(Dictionary(pairs.map { ($0[0], $0[1]) }) { $1 })
    else { throw Flags.Fault(exitCode: 64, message: "tags are NAME=TEXT: \(DeviceTags.rule)") }
    return tags
  }

  /// A JSON Merge Patch of the tags: null takes one away.
  private static func patch(_ words: [String]) throws(Flags.Fault) -> JSONValue {
    let removed = words.filter { $0.hasSuffix("-") && DeviceTags.isName(String($0.dropLast())) }
    let set = try tags(words.filter { !removed.contains($0) })
    return .object((set.fields.object ?? []) + removed.map { JSONValue.Member(String($0.dropLast()), .null) })
  }

  private static func find(
    _ desk: CollectorDesk, _ expression: String, _ sort: String
  ) async throws(RecordDesk.Fault) -> Int32 {
    var isWritten = true
    try await desk.devices(where: expression, sort: sort) { device in
      isWritten = StandardStreams.write(Array((device.text + "\n").utf8)[...], to: STDOUT_FILENO)
      return isWritten
    }
    return isWritten ? 0 : 74
  }

  /// All are chosen before the first one changes: the expression may be of the tags that are given.
  private static func tag(
    _ desk: CollectorDesk, _ expression: String, _ patch: JSONValue, _ namespace: NamespaceName
  ) async throws(RecordDesk.Fault) -> Int32 {
    var found: [String] = []
    try await desk.devices(where: expression, sort: "device") { device in
      found += [device["device"]?.string].compactMap(\.self)
      return true
    }
    for device in found {
      let records = RecordDesk(desk, namespace: namespace, table: .tags, device: device)
      _ = try await records.patch(DeviceTags.Source.operator.rawValue, fields: patch.text)
      print(device)
    }
    if found.isEmpty { StandardStreams.say("prism-collector: no device is chosen by this expression\n") }
    return found.isEmpty ? 1 : 0
  }
}
