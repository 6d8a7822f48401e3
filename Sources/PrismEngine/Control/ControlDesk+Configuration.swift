import PrismConfig
import PrismProtocol

// `reload`, `config-show` and `config-diff`. Nothing of what a key, token or certificate file holds is ever told.
extension ControlDesk {
  func reload() async throws(Refused) -> [JSONValue.Member] {
    switch await configuration.reload() {
    case .refused(let faults): throw Refused(78, faults.joined(separator: "\n"))
    case .inForce(let generation, let changes):
      let head = changes.isEmpty ? "nothing changed; generation \(generation) is" : "generation \(generation) is"
      return [
        .init("generation", .int(generation)), .init("changes", .array(changes.map { .string($0) })),
        .init("text", .string((["\(head) in force"] + changes).joined(separator: "\n"))),
      ]
    }
  }

  func showConfiguration(_ request: ControlRequest) async -> [JSONValue.Member] {
    let loaded = await configuration.inForce()
    let hasOrigins = request["origins"]?.bool == true
    return [
      .init("generation", .int(engine.hub.generation)), .init("configuration", loaded.json(origins: hasOrigins)),
      .init("text", .string(loaded.text(origins: hasOrigins))),
    ]
  }

  func diffConfiguration(_ request: ControlRequest) async throws(Refused) -> [JSONValue.Member] {
    guard let path = request["path"]?.string, path.hasPrefix("/") else {
      throw Refused(64, "config-diff: `path` of a configuration, from the root")
    }
    let new: LoadedConfiguration
    do { new = try await configuration.read(path) } catch { throw Refused(78, error.description) }
    let diff = SnapshotDiff(from: engine.hub.current, to: new.snapshot)
    let text = diff.isEmpty ? ["nothing would change"] : diff.lines
    return diff.members + [.init("text", .string(text.joined(separator: "\n")))]
  }
}

extension SnapshotDiff {
  fileprivate var members: [JSONValue.Member] {
    let changed = changed.sorted { $0.key < $1.key }.map { JSONValue.Member($0.key.text, Self.json($0.value)) }
    return [
      .init("daemon", Self.json(daemon)), .init("added", .array(added.map { .string($0.text) })),
      .init("removed", .array(removed.map { .string($0.text) })), .init("changed", .object(changed)),
      .init("needRestart", .array(needingRestart.map { .string($0.key) })),
    ]
  }

  private static func json(_ changes: [Change]) -> JSONValue {
    .array(changes.map { ["key": .string($0.key), "old": $0.old, "new": $0.new] })
  }
}
