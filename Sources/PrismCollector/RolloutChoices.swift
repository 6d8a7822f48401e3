import PrismBase

/// The devices that an expression chose when they were last read.
struct DeviceChoice: Sendable {
  let expression: String
  let devices: Set<String>
}

/// Reads the devices of the rollout's expression at most each 10 s, while devices ask, so that a question costs no look at the fleet.
actor RolloutChoices {
  static let interval: Duration = .seconds(10)

  private var known: DeviceChoice?
  private var tried: (expression: String, at: Duration)?
  private var reading: (expression: String, task: Task<DeviceChoice?, Never>)?

  /// - Parameters:
  ///   - now: the time since the start.
  ///   - read: nil: they can't be read, so those of before stay.
  /// - Returns: nil: they were never read.
  func devices(
    of expression: String, now: Duration, _ read: @escaping @Sendable () async -> DeviceChoice?
  ) async -> DeviceChoice? {
    if reading?.expression != expression {
      if let tried, tried.expression == expression, now - tried.at < Self.interval { return known }
      let task = Task(executorPreference: BackgroundExecutor.shared) { await read() }
      (tried, reading) = ((expression, now), (expression, task))
    }
    let found = await reading?.task.value
    if reading?.expression == expression { reading = nil }
    if let found { known = found }
    return found ?? known
  }

  /// The devices of a rollout's expression; nil: it has no expression, or they can't be read. Then no further device gets it.
  func choice(for rollout: Rollout?, of collector: Collector) async -> DeviceChoice? {
    guard let text = rollout?.event.reach.expression else { return nil }
    return await devices(of: text, now: collector.time.uptime) { await Self.read(text, collector) }
  }

  private static func read(_ text: String, _ collector: Collector) async -> DeviceChoice? {
    let fault = "collector.rollout.choice"
    do {
      let wanted = try DeviceExpression(text)
      let all = try await DeviceAPI(api: PageAPI(collector)).devices(of: .everything)
      let now = collector.time.unixMilliseconds
      collector.log.faultEnded(fault, "the devices of a rollout's expression are read again")
      return DeviceChoice(
        expression: text, devices: Set(all.lazy.filter { wanted.includes($0, now: now) }.map(\.device)))
    } catch {
      collector.log.fault(
        fault, "the devices of a rollout's expression can't be read; no further device gets it", ["cause": "\(error)"])
      return nil
    }
  }
}
