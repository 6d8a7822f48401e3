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

  var isDraining: Bool { if case .draining = self { true } else { false } }

  /// - Returns: whether packets are to leave now.
  mutating func handle(_ event: Event, now: Duration) -> Bool {
    switch (self, event) {
    case (.idle, .wanted):
      self = .draining()
      return true
    case (.paused(let pause), .wanted):
      guard now >= pause.until else { return false }
      self = .draining()
      return true
    case (.paused(var pause), .trigger(let trigger, let tryAt)):
      if pause.reason.ends(by: trigger) { pause.until = min(pause.until, tryAt) }
      self = .paused(pause)
    case (.draining(_, let triggers), .wanted): self = .draining(isWanted: true, triggers: triggers)
    case (.draining(let isWanted, let triggers), .trigger(let trigger, _)):
      self = .draining(isWanted: isWanted, triggers: triggers.union([trigger]))
    case (.draining(let isWanted, _), .ended):
      self = isWanted ? .draining() : .idle
      return isWanted
    case (.draining(_, let triggers), .failed(var pause)):
      if triggers.contains(where: pause.reason.ends(by:)) { pause.until = min(pause.until, now) }
      self = .paused(pause)
    // Taken up again after a restart; or another packet was answered during the pause, and made it longer.
    case (.idle, .failed(let pause)), (.paused, .failed(let pause)): self = .paused(pause)
    case (.idle, .stop), (.draining, .stop), (.paused, .stop), (.stopped, _): self = .stopped
    case (.idle, .ended), (.idle, .trigger), (.paused, .ended): break  // late or merged requests are normal
    }
    return false
  }
}

extension UploadState.Pause.Reason {
  /// A pause that an answer asked for is kept, unless it is another collector now.
  func ends(by trigger: UploadState.RetryTrigger) -> Bool {
    switch self {
    case .failure: trigger != .reread
    case .held: trigger != .network
    case .asked: trigger == .newCollector
    case .store: trigger != .network && trigger != .reread
    }
  }
}
