/// The state of the upload of one namespace and kind. A value that decides; `NamespacePipeline` does what it says.
enum UploadState: Sendable, Equatable {
  /// Next: draining, when rows may wait and the gates are open.
  case idle
  /// Packet after packet leaves. Next, when the last of them is dealt with and committed: idle, when nothing waits or a
  /// gate shut. Draining, when an upload was requested meanwhile, which may be for rows that this one has passed.
  /// Paused, after a failure. `triggers` came meanwhile: the failure may be of before.
  case draining(isWanted: Bool = false, triggers: Set<RetryTrigger> = [])
  /// A failure asked for a pause; the same packet goes first after it. Next: draining.
  case paused(Pause)
  /// For good: the daemon is stopping.
  case stopped

  struct Pause: Sendable, Equatable {
    enum Reason: String, Sendable, CaseIterable {
      /// The collector or the way to it failed: backoff.
      case failure
      /// A fault of configuration: backoff, until a reload.
      case held
      /// The collector said when (`Retry-After`).
      case asked
      /// The store here failed.
      case store
    }

    /// On the uptime clock.
    var until: Duration
    var reason: Reason
  }

  enum Event: Sendable, Equatable {
    /// An upload is requested, or a pause may be over.
    case wanted
    /// The drain found nothing more to send, or a gate shut.
    case ended
    case failed(Pause)
    /// Something changed that makes a new try sensible before the pause is over: at `tryAt`, on the uptime clock.
    case trigger(RetryTrigger, tryAt: Duration)
    case stop
  }

  enum RetryTrigger: Sendable, Equatable, CaseIterable {
    case network, flush, reload, newCollector
    /// A reload that says nothing new of this namespace.
    case reread
  }

  enum Action: Sendable, Equatable {
    case drain
    /// Ask again (`wanted`) then, on the uptime clock.
    case wait(until: Duration)
    case nothing
  }

  var isDraining: Bool { if case .draining = self { true } else { false } }

  mutating func handle(_ event: Event, now: Duration) -> Action {
    switch (self, event) {
    case (.idle, .wanted):
      self = .draining()
      return .drain
    case (.paused(let pause), .wanted):
      guard now >= pause.until else { return .wait(until: pause.until) }
      self = .draining()
      return .drain
    case (.paused(var pause), .trigger(let trigger, let tryAt)):
      if pause.reason.ends(by: trigger) { pause.until = min(pause.until, tryAt) }
      self = .paused(pause)
      return .wait(until: pause.until)
    case (.draining(_, let triggers), .wanted):
      self = .draining(isWanted: true, triggers: triggers)
      return .nothing
    case (.draining(let isWanted, let triggers), .trigger(let trigger, _)):
      self = .draining(isWanted: isWanted, triggers: triggers.union([trigger]))
      return .nothing
    case (.draining(let isWanted, _), .ended):
      self = isWanted ? .draining() : .idle
      return isWanted ? .drain : .nothing
    case (.draining(_, let triggers), .failed(var pause)):
      if triggers.contains(where: pause.reason.ends(by:)) { pause.until = min(pause.until, now) }
      self = .paused(pause)
      return .wait(until: pause.until)
    // Taken up again after a restart; or another packet was answered during the pause, and made it longer.
    case (.idle, .failed(let pause)), (.paused, .failed(let pause)):
      self = .paused(pause)
      return .wait(until: pause.until)
    case (.idle, .stop), (.draining, .stop), (.paused, .stop), (.stopped, _):
      self = .stopped
      return .nothing
    case (.idle, .ended), (.idle, .trigger), (.paused, .ended):
      return .nothing  // late or merged requests are normal
    }
  }
}

extension UploadState.Pause.Reason {
  /// A pause that a collector asked for is kept, unless it is another collector now.
  func ends(by trigger: UploadState.RetryTrigger) -> Bool {
    switch (self, trigger) {
    case (_, .newCollector): true
    case (.failure, .network), (.failure, .flush), (.failure, .reload): true
    case (.held, .flush), (.held, .reload), (.held, .reread): true
    case (.held, .network): false
    case (.failure, .reread), (.store, .reread): false
    case (.asked, .network), (.asked, .flush), (.asked, .reload), (.asked, .reread): false
    case (.store, .network): false
    case (.store, .flush), (.store, .reload): true
    }
  }
}
