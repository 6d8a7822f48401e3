import PrismAdmission
import PrismBase
import PrismConfig
import PrismProtocol
import PrismStore
import PrismTestSupport

@testable import PrismEngine

extension Life {
  /// Something happens.
  func event() throws {
    switch Int.random(in: 0..<1000, using: &random) {
    case 0..<560:
      try report(count: random.oneIn(12) ? Int.random(in: 20...120, using: &random) : random.pick([1, 2, 5]))
    case 560..<620: try reportAgain()
    case 620..<700: changeNetwork()
    case 700..<800: changeMood()
    case 800..<830: stepWallClock()
    case 830..<900: reload()
    case 900..<920: flush()
    case 920..<935: try remove()
    case 935..<950: try requeueDead()
    case 950..<960: dropDead()
    case 960..<975:
      note("restart")
      try restart(after: pause())
    case 975..<985:
      note("killed")
      stage.settle(jobsMax: Int.random(in: 0...20, using: &random))
      try kill(after: pause())
      try checkFile()
    default: try checkFile()
    }
    stage.settle()
    try check()
  }

  private func pause() -> Duration { .milliseconds(random.pick([0, 200, 5_000, 600_000, 7_200_000])) }

  // MARK: Clients

  func report(count: Int) throws {
    let index = Int.random(in: 0..<LifeSettings.names.count, using: &random)
    let name = LifeSettings.names[index]
    let user = Int.random(in: LifeReport.users.indices, using: &random)
    let reports = (0..<count).map { _ in newReport(name, user) }
    try hand(in: reports, by: index)
  }

  private func newReport(_ name: NamespaceName, _ user: Int) -> LifeReport {
    let number = oracle.newNumber()
    let type = random.pick(settings[name].monitorList)
    if type.isRealtime && type.type != .appCrash { collector.realtime.insert(number) }
    return LifeReport(
      number: number, namespace: name, user: user, type: type.type.text, hasPayload: random.oneIn(2),
      // Some users' ids are those of others, too.
      clientID: random.oneIn(3) ? "client-\(number - 5 * user)" : nil)
  }

  /// A client that is not sure sends what it sent before.
  private func reportAgain() throws {
    guard !oracle.repeatable.isEmpty else { return }
    let report = random.pick(Array(oracle.repeatable.suffix(200)))
    let index = LifeSettings.names.firstIndex(of: report.namespace)!
    collector.outOfOrder.insert(report.number)
    try hand(in: [report], by: index)
  }

  private func hand(in reports: [LifeReport], by index: Int) throws {
    let user = reports.first?.user ?? 0
    let clock = ClockReading(time)
    reporters[index][user].take(AdmissionRules(engine.hub.current), clock.setting)
    let batches = reporters[index][user].batches(of: reports, unixMilliseconds: clock.unixMilliseconds)
    oracle.sends(reports, at: time.uptime)
    note("\(LifeSettings.names[index]) reports \(reports.map(\.number))")
    let sink = engine.sink
    if random.oneIn(2) { sink.noteContention() }
    let committing = stage.begin { await sink.append(batches) }
    if random.oneIn(60) {
      stage.settle(jobsMax: Int.random(in: 0...8, using: &random))
      if committing.value == nil {
        note("killed before the answer")
        return try kill(after: pause())
      }
    }
    stage.settle()
    guard let outcome = committing.value else { throw Broken(description: "a commit waits for the time") }
    try oracle.answered(reporters[index][user].answers(to: outcome, batches: batches.count), settings)
  }

  // MARK: The world

  private func changeNetwork() { set(random.pick([.none, .metered, .metered, .unmetered, .unmetered])) }

  func set(_ kind: NetworkStatus.Kind) {
    networkKind = kind
    note("network \(networkKind.rawValue)")
    incarnation.network.set(networkKind)
  }

  private func changeMood() {
    let name = random.pick(LifeSettings.names)
    moods[name] = random.oneIn(3) ? .healthy : random.pick(Mood.allCases)
    note("\(name) is \(moods[name]!)")
  }

  private func stepWallClock() {
    let seconds: Int64 = random.pick([1, 30, 3_600, 90_000, 40_000_000, 150_000_000])
    let step = (random.oneIn(2) ? 1 : -1) * Int64.random(in: 1...seconds * 1000, using: &random)
    note("the wall clock steps by \(step) ms")
    time.stepWallClock(milliseconds: step)
    // Ids are kept for 24 h of the wall clock: after a step a client's id may be new again.
    oracle.forgetRepeatable()
  }

  // MARK: Operators

  private func reload() {
    note(settings.change(using: &random))
    publish()
  }

  func publish() {
    let (engine, snapshot) = (engine, settings.snapshot)
    _ = stage.perform { await engine.publish(snapshot) }
  }

  private func flush() {
    note("flush")
    let engine = self.engine
    _ = stage.perform { await engine.flush(nil) }
  }

  private func remove() throws {
    let name = random.pick(LifeSettings.names)
    let selection: RemovalSelection = random.pick([.oldest(3), .latest(2), .olderThan(days: 1), .all])
    note("remove \(selection) of \(name)")
    let store = incarnation.store
    let count = stage.perform { () -> Int? in
      do { return try await store.remove(selection, of: name) } catch { return nil }
    }
    if count == nil { throw Broken(description: "the store removes nothing") }
  }

  private func requeueDead() throws {
    let letters = try deadLetters()
    collector.outOfOrder.formUnion(letters.flatMap { collector.refusedAlone[$0.reportID] ?? [] })
    note("requeue \(letters.count)")
    let (store, engine) = (incarnation.store, engine)
    _ = stage.perform { () -> Int? in
      do {
        let count = try await store.requeue(.all(nil))
        _ = await engine.flush(nil)
        return count
      } catch { return nil }
    }
  }

  private func dropDead() {
    note("drop the dead letters")
    let store = incarnation.store
    _ = stage.perform { () -> Int? in
      do { return try await store.drop(.all(nil)) } catch { return nil }
    }
  }

  /// All faults end: healthy collectors, a network, the configuration that lets everything leave.
  func calmDown() throws {
    note("calm")
    (moods, networkKind, settings) = ([:], .unmetered, LifeSettings())
    incarnation.network.set(.unmetered)
    publish()
    stage.settle()
    // An hour's Retry-After, and the backoff after it.
    try live(until: time.uptime + .seconds(4_500))
    try checkNothingIsLeft()
  }
}
