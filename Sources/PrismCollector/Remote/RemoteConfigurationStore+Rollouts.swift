import PrismBase
import PrismConfig

/// A step of an operator, or of a guard, in a rollout.
enum RolloutChange: Sendable, Equatable {
  case start(Rollout.Reach, RolloutGuard? = nil)
  /// - Parameter percent: nil: as it is.
  case widen(percent: Int?, Rollout.Reach)
  case pause, resume, rollBack
}

// Rollouts: a part of the fleet gets the files of `next/` in the folder before the others.
extension RemoteConfigurationStore {
  /// - Parameter who: the operator.
  /// - Throws: 409 where the rollout is in another state, 503 when the database can't be written.
  func change(_ change: RolloutChange, by who: String) throws(CollectorRefusal) -> Rollout {
    let (next, now) = (try candidate(), time.unixMilliseconds)
    let rollout: Rollout? = try update { configuration, statements in
      let (event, begun): (Rollout.Event, Rollout.Begun?)
      do throws(CollectorRefusal) {
        (event, begun) = try Self.event(of: change, by: who, in: configuration.rollouts.active, next)
      } catch { return .failure(error) }
      try configuration.add(event, begun, now: now, to: statements)
      return .success(configuration.rollouts.newest)
    }
    guard let rollout else { throw CollectorRefusal(503, "the rollout can't be read") }
    return rollout
  }

  private static func event(
    of change: RolloutChange, by who: String, in active: Rollout?,
    _ next: (entries: [RemoteNamespace], faults: [String])
  ) throws(CollectorRefusal) -> (event: Rollout.Event, begun: Rollout.Begun?) {
    if case .start(let reach, let rule) = change {
      let entries = try begin(next, active)
      return (Rollout.Event(time: 0, rollout: 0, state: .running, reach: reach.settled, who: who), (entries, rule))
    }
    guard var event = active?.event else { throw CollectorRefusal(409, "no rollout is under way; start one") }
    event.who = who
    try apply(change, to: &event)
    return (event, nil)
  }

  private static func begin(
    _ next: (entries: [RemoteNamespace], faults: [String]), _ active: Rollout?
  ) throws(CollectorRefusal) -> [RemoteNamespace] {
    guard active == nil else {
      throw CollectorRefusal(
        409, "a rollout is under way; roll it back, or move its files from next/ into the folder, which ends it")
    }
    if let fault = next.faults.first {
      throw CollectorRefusal(409, "next/ has \(next.faults.count) faults; the first: \(fault)")
    }
    guard !next.entries.isEmpty else {
      throw CollectorRefusal(409, "there is nothing to roll out: put the changed files into next/ of the folder")
    }
    guard next.entries.count <= ServedConfiguration.changesMax else {
      throw CollectorRefusal(
        409,
        "next/ changes \(next.entries.count) namespaces, at most \(ServedConfiguration.changesMax) are rolled out")
    }
    return next.entries
  }

  private static func apply(_ change: RolloutChange, to event: inout Rollout.Event) throws(CollectorRefusal) {
    switch (change, event.state) {
    case (.widen(let wanted, let reach), _):
      let percent = wanted ?? event.reach.percent
      guard percent >= event.reach.percent else {
        throw CollectorRefusal(
          409, "percent: is \(percent), must be at least \(event.reach.percent): devices that have it keep it")
      }
      (event.reach.percent, event.reach.expression) = (percent, reach.expression ?? event.reach.expression)
      event.reach = event.reach.settled
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
}
