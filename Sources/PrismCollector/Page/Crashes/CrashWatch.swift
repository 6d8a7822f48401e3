import PrismBase

/// Notices that crashes which were resolved are back: for the page, and each minute without a reader.
struct CrashWatch: Sendable {
  /// Between two looks, and between the parts of one that reads many crashes: half a second is read at a time.
  static let interval: Duration = .seconds(60), pause: Duration = .seconds(1)

  let index: CrashIndex
  let states: CrashStateStore
  let store: any PacketStore
  let counts: CollectorCounts
  let time: any TimeSource
  let log: Logger

  /// The states by fingerprint, once those of resolved groups that came again are noted.
  func states(_ groups: [String: CrashGroup]) async throws(StoreFailure) -> [String: CrashState] {
    let now = time.unixMilliseconds
    var found: [String: CrashState] = [:]
    for var state in try await states.all() {
      if state.condition == .resolved, let group = groups[state.fingerprint], group.isBack(after: state) {
        if try await states.markRegressed(state, at: now) {
          log.warning("a resolved crash is back", ["crash": state.fingerprint, "resolvedBy": state.who])
        }
        (state.condition, state.regressedTime) = (.regressed, now)
      }
      found[state.fingerprint] = state
    }
    let conditions = found.values.map(\.condition)
    counts.set(
      .init(resolved: conditions.count { $0 == .resolved }, regressed: conditions.count { $0 == .regressed }))
    return found
  }

  /// Looks once. Where no group is resolved, crashes are not read. - Returns: whether there are more crashes to read.
  func look() async throws(StoreFailure) -> Bool {
    guard try await states([:]).values.contains(where: { $0.condition == .resolved }) else { return false }
    let isWhole = try await index.refresh(store, time: time)
    _ = try await states(await index.groups)
    return !isWhole
  }

  func run() async {
    while !Task.isCancelled {
      let isMoreDue = (try? await look()) ?? false  // the store logs its failures
      do { try await time.sleep(for: isMoreDue ? Self.pause : Self.interval) } catch { return }  // the collector stops
    }
  }
}

extension CrashWatch {
  init(_ collector: Collector) {
    (index, states) = (collector.access.page.crashes, collector.access.page.crashStates)
    (store, counts, time, log) = (collector.store, collector.counts, collector.time, collector.log)
  }
}
