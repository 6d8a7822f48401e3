import PrismBase
import PrismConfig
import PrismPacket
import PrismProtocol
import PrismSQLite

// Versions that all replicas share.
extension RemoteConfigurationStore {
  /// Takes over the version that all replicas have of the configuration.
  func shareVersion() {
    guard shared?.isDue(now: time.uptime) == true else { return }
    do {
      let mine = RemoteVersions.Version(number: number, time: updateTime, digest: try digest())
      guard let version = try shared?.reconcile(mine, now: time.uptime) else {
        return log.fault(
          "collector.remote.behind", "another collector serves newer remote configuration: bring the same files here",
          ["folder": watch.folder])
      }
      log.faultEnded("collector.remote.behind", "this collector serves the newest remote configuration")
      guard version.number != number || version.time != updateTime else { return }
      // A new replica does not know which entry changed when: a device with an older time asks for everything.
      let forgotten = number > 0 ? forgottenTime : version.time
      try connection.transaction { () throws(SQLiteError) in
        try connection.execute(
          "UPDATE entries SET update_time = \(version.time) WHERE update_time > \(version.time)")
        try Self.note(
          ["update_time": version.time, "version": version.number, "forgotten_time": forgotten], to: connection)
      }
      (updateTime, number, forgottenTime) = (version.time, version.number, forgotten)
      whole = [:]
    } catch {
      log.fault(
        "collector.remote.shared", "the version of remote configuration can't be shared; tried again",
        ["cause": "\(error)"])
    }
  }

  /// Of the namespaces and of the rollout that is under way.
  private func digest() throws -> String {
    let served = try Self.entries("WHERE is_removed = 0 ORDER BY namespace", connection).map(\.json.text)
    let rollout = rollouts.active.map { ["\($0.event)"] + $0.entries.map(\.json.text) } ?? []
    return Hex.encode(try Hashing.sha256(Array((served + rollout).joined(separator: "\n").utf8)))
  }
}
