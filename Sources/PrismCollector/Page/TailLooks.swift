/// The newest reports for live tails. Tails with one filter share each look at the store, so thirty of them cost as one.
actor TailLooks {
  struct Look: Sendable {
    /// The newest id of the store.
    var newest: Int64 = 0
    /// Of the filter, newest first, at most as many as one answer has.
    var reports: [StoredReport] = []
  }

  private struct Entry {
    let filter: ReportFilter
    var look = Look()
    /// Of the last look, in uptime; nil: there was no look yet.
    var time: Duration?
    var reading: Task<Result<Look, CollectorRefusal>, Never>?
  }

  /// Looks are at least this far apart.
  static let interval: Duration = .milliseconds(250)
  private static let forgottenAfter: Duration = .seconds(30)
  /// Past it the look that is the oldest is forgotten: its tail reads the last ids again.
  static let filtersMax = 64

  /// One a filter.
  private var entries: [Entry] = []

  /// - Parameter read: makes a look out of the one before.
  func look(
    _ filter: ReportFilter, now: Duration,
    _ read: @escaping @Sendable (Look) async -> Result<Look, CollectorRefusal>
  ) async throws(CollectorRefusal) -> Look {
    entries.removeAll { $0.reading == nil && now - ($0.time ?? now) > Self.forgottenAfter }
    var place = entries.firstIndex { $0.filter == filter } ?? entries.count
    if place == entries.count {
      makeRoom()
      place = entries.count
      entries.append(Entry(filter: filter))
    }
    let entry = entries[place]
    if let reading = entry.reading { return try await reading.value.get() }
    if let time = entry.time, now - time < Self.interval { return entry.look }
    let reading = Task { await read(entry.look) }
    (entries[place].reading, entries[place].time) = (reading, now)
    let result = await reading.value
    if let place = entries.firstIndex(where: { $0.filter == filter }) {
      entries[place].reading = nil
      if case .success(let look) = result { entries[place].look = look }
    }
    return try result.get()
  }

  /// Looks that are read now stay: each has a tail, and those are bounded.
  private func makeRoom() {
    guard entries.count >= Self.filtersMax else { return }
    let idle = entries.indices.filter { entries[$0].reading == nil }
    if let oldest = idle.min(by: { (entries[$0].time ?? .zero) < (entries[$1].time ?? .zero) }) {
      entries.remove(at: oldest)
    }
  }
}
