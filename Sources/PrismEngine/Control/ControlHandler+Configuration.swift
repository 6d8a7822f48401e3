import PrismAdmission
import PrismConfig
import PrismControl
import PrismProtocol
import PrismStore

// `reload`, `config-show` and `config-diff`. They never show the content of a key, token or certificate file.
extension ControlHandler {
  func reload() async throws(Refused) -> [JSONValue.Member] {
    switch await configuration.reload() {
    case .refused(let faults): throw Refused(78, faults.joined(separator: "\n"))
    case .inForce(let generation, let changes, let secondsAgo):
      let head = (changes.isEmpty ? "nothing changed; " : "") + "configuration \(generation) is"
      let since = secondsAgo > 0 ? ", since the files were seen to change \(secondsAgo) s ago" : ""
      return [
        .init("generation", .int(generation)), .init("changes", .array(changes.map { .string($0) })),
        Answers.text((["\(head) in force\(since)"] + changes).joined(separator: "\n")),
      ]
    }
  }

  func showConfiguration(_ request: ControlRequest) async -> [JSONValue.Member] {
    let loaded = await configuration.inForce()
    let hasOrigins = request["origins"]?.bool == true
    return [
      .init("generation", .int(engine.hub.generation)), Answers.path(loaded.mainFile),
      Answers.configuration(loaded.json(origins: hasOrigins)),
      Answers.text(loaded.text(origins: hasOrigins)),
    ]
  }

  func diffConfiguration(_ request: ControlRequest) async throws(Refused) -> [JSONValue.Member] {
    guard let path = request["path"]?.string, path.hasPrefix("/") else {
      throw Refused(64, "config-diff: `path` of a configuration, from the root")
    }
    let new: LoadedConfiguration
    do { new = try await configuration.read(path) } catch { throw Refused(78, error.description) }
    let diff = SnapshotDiff(from: engine.hub.current, to: new.snapshot)
    let forecast = try await forecast(diff, new.snapshot)
    let lines = diff.isEmpty ? ["nothing would change"] : forecast.lines(diff)
    let restart = diff.needingRestart.map { "prismd: \($0.key) takes a restart" }
    return diff.members + [
      .init("rows", .array(forecast.entries.map(\.json))),
      Answers.text((lines + restart).joined(separator: "\n")),
    ]
  }

  private func forecast(_ diff: SnapshotDiff, _ new: Snapshot) async throws(Refused) -> RowForecast {
    var effects: [NamespaceName: RetentionEffects] = [:]
    var rows: [NamespaceName: Int] = [:]
    var types: [NamespaceName: [RowForecast.Entry]] = [:]
    let old = engine.hub.current
    try await asking {
      // One namespace after another: what waits for the store gets in between.
      for name in diff.changed.keys.sorted() {
        guard let configuration = new.namespaces[name], let before = old.namespaces[name] else { continue }
        effects[name] = try await engine.parts.store.dryRun(
          RetentionPolicy(configuration), quota: StoreQuota(configuration), of: name)
        guard before.monitorList != configuration.monitorList else { continue }
        types[name] = TypeForecast(from: before.monitorList, to: configuration.monitorList)
          .entries(of: name, try await engine.parts.store.typeCounts(of: name))
      }
      if !diff.removed.isEmpty {
        rows = try await engine.parts.store.status().mapValues { kinds in
          kinds.values.reduce(0) { $0 + $1.ledger.unsent + $1.ledger[.dead] }
        }
      }
    }
    return RowForecast(diff, effects: effects, rows: rows, types: types)
  }
}

extension RowForecast.Entry {
  fileprivate var json: JSONValue {
    [
      "namespace": .string(namespace.text), "key": key.map { .string($0) } ?? .null, "fate": .string(fate),
      "count": .int(count), "isExact": .bool(isExact), "text": .string(words),
    ]
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
