import PrismBase
import PrismConfig
import PrismProtocol
import PrismSQLite

/// A step of an operator in a rollout.
enum RolloutChange: Sendable, Equatable {
  case start(Rollout.Reach)
  case widen(Rollout.Reach)
  case pause, resume, rollBack
}

// Rollouts: a part of the fleet gets the files of `next/` in the folder before the others.
extension RemoteConfigurationStore {
  static let nextFolder = "next"

  /// The entries of `next/` that differ from the folder's, and the faults there.
  func candidate() throws(CollectorRefusal) -> (entries: [RemoteNamespace], faults: [String]) {
    refresh()
    let next = FilePath.joined(watch.folder, Self.nextFolder)
    guard (try? Folder.names(in: next)) != nil else { return ([], []) }  // a folder that is missing has no files
    do throws(ConfigurationFaults) {
      let served = servedEntries()
      return (try RemoteFolder.read(next).filter { !Self.has($0, served) }, [])
    } catch { return ([], error.faults.map(\.description)) }
  }

  private static func has(_ entry: RemoteNamespace, _ served: [NamespaceName: RemoteNamespace]) -> Bool {
    entry.isRemoved ? served[entry.name] == nil : served[entry.name] == entry
  }

  private func servedEntries() -> [NamespaceName: RemoteNamespace] {
    let entries = (try? entries("WHERE is_removed = 0")) ?? []  // what can't be read differs
    return Dictionary(uniqueKeysWithValues: entries.map { ($0.name, $0) })
  }

  /// - Parameter who: the operator.
  /// - Throws: 409 where the rollout is in another state, 503 when the database can't be written.
  func change(_ change: RolloutChange, by who: String) throws(CollectorRefusal) -> Rollout {
    refresh()
    var begun: [RemoteNamespace]?
    var event: Rollout.Event
    if case .start(let reach) = change {
      begun = try begin()
      event = Rollout.Event(time: 0, rollout: number + 1, state: .running, reach: reach, who: who)
    } else {
      guard let active = rollouts.active else { throw CollectorRefusal(409, "no rollout is under way; start one") }
      event = active.event
      event.who = who
      try Self.apply(change, to: &event)
    }
    do throws(SQLiteError) { try add(event, begun) } catch {
      log.fault(
        "collector.rollout", "a rollout can't be changed", ["cause": error.description], level: .error)
      throw CollectorRefusal(503, "the collector's database can't be written", retryAfterSeconds: 5)
    }
    guard let rollout = rollouts.newest else { throw CollectorRefusal(503, "the rollout can't be read") }
    return rollout
  }

  private func begin() throws(CollectorRefusal) -> [RemoteNamespace] {
    guard rollouts.active == nil else {
      throw CollectorRefusal(
        409, "a rollout is under way; roll it back, or move its files from next/ into the folder, which ends it")
    }
    let (entries, faults) = try candidate()
    if let fault = faults.first { throw CollectorRefusal(409, "next/ has \(faults.count) faults; the first: \(fault)") }
    guard !entries.isEmpty else {
      throw CollectorRefusal(409, "there is nothing to roll out: put the changed files into next/ of the folder")
    }
    guard entries.count <= Self.changesMax else {
      throw CollectorRefusal(
        409, "next/ changes \(entries.count) namespaces, at most \(Self.changesMax) are rolled out")
    }
    return entries
  }

  private static func apply(_ change: RolloutChange, to event: inout Rollout.Event) throws(CollectorRefusal) {
    switch (change, event.state) {
    case (.widen(let reach), _):
      guard reach.percent >= event.reach.percent else {
        throw CollectorRefusal(
          409, "percent: is \(reach.percent), must be at least \(event.reach.percent): devices that have it keep it")
      }
      event.reach.percent = reach.percent
      event.reach.groups += reach.groups.filter { !event.reach.groups.contains($0) }
      guard event.reach.groups.count <= Rollout.Reach.groupsMax else {
        throw CollectorRefusal(409, "groups: there would be more than \(Rollout.Reach.groupsMax)")
      }
    case (.pause, .running): event.state = .paused
    case (.resume, .paused): event.state = .running
    case (.rollBack, _): event.state = .rolledBack
    case (.pause, _), (.resume, _), (.start, _):
      throw CollectorRefusal(409, "the rollout is \(event.state.rawValue) already")
    }
  }

  /// Ends the rollout once the folder has all of it.
  func finishRollout() throws(SQLiteError) {
    guard let active = rollouts.active else { return }
    let served = servedEntries()
    guard active.entries.allSatisfy({ Self.has($0, served) }) else { return }
    var event = active.event
    (event.state, event.who) = (.done, "")
    try add(event, nil)
    log.info("a rollout is done: the folder has its files", ["rollout": String(active.id)])
  }

  private func add(_ event: Rollout.Event, _ begun: [RemoteNamespace]?) throws(SQLiteError) {
    var (event, table) = (event, rollouts)
    event.time = Self.count(after: updateTime, now: time.unixMilliseconds)
    let forgotten = try connection.transaction { () throws(SQLiteError) in
      let forgotten = try table.add(event, begun, to: connection)
      var facts = ["update_time": event.time, "version": number + 1]
      if let forgotten { facts["forgotten_time"] = max(forgottenTime, forgotten + 1) }
      try Self.note(facts, to: connection)
      return forgotten
    }
    (rollouts, updateTime, number) = (table, event.time, number + 1)
    shared?.mustClaim = true
    if let forgotten { forgottenTime = max(forgottenTime, forgotten + 1) }
  }
}
