import PrismBase

/// Notices that crashes which were resolved are back, or were ignored long enough: for the page, and each minute without a reader.
struct CrashWatch: Sendable {
  /// Between two looks, and between the parts of one that reads many crashes: half a second is read at a time.
  static let interval: Duration = .seconds(60), pause: Duration = .seconds(1)

  let index: CrashIndex
  let states: CrashStateStore
  let store: any PacketStore
  let counts: CollectorCounts
  let time: any TimeSource
  let log: Logger

  /// The states by the fingerprints of the groups, once what crashes changed is noted.
  func states(_ groups: [String: CrashGroup]) async throws(StoreFailure) -> [String: CrashState] {
    let now = time.unixMilliseconds
    var found: [String: CrashState] = [:]
    for var state in try await states.all() {
      let fingerprint = try await index.fingerprint(of: state, in: store)
      if let group = groups[fingerprint] {
        let condition = state.condition(versions: group.versions, count: group.count, now: now)
        if condition != state.condition {
          try await note(state, condition, now)
          (state.condition, state.regressedTime) = (condition, now)
        }
      }
      // A state of earlier rules stays under its fingerprint; what an operator said since is newer.
      if let other = found[fingerprint], other.changedTime > state.changedTime { continue }
      found[fingerprint] = state
    }
    let conditions = found.values.map(\.condition)
    counts.set(
      .init(resolved: conditions.count { $0 == .resolved }, regressed: conditions.count { $0 == .regressed }))
    return found
  }

  private func note(_ state: CrashState, _ condition: CrashState.Condition, _ now: Int64) async throws(StoreFailure) {
    guard try await states.mark(state, as: condition, at: now) else { return }
    if condition == .regressed {
      log.warning("a resolved crash is back", ["crash": state.fingerprint, "resolvedBy": state.who])
    } else {
      log.info("an ignored crash is open again", ["crash": state.fingerprint, "ignoredBy": state.who])
    }
  }

  /// Looks once. Where no group is resolved or ignored, crashes are not read. - Returns: whether there are more crashes to read.
  func look() async throws(StoreFailure) -> Bool {
    guard try await states([:]).values.contains(where: { [.resolved, .ignored].contains($0.condition) }) else {
      return false
    }
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
