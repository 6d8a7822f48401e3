import PrismBase

/// The newest reports for live tails. Tails with one filter share each look at the store, so thirty of them cost as one.
actor TailLooks {
  struct Look: Sendable {
    /// The newest id of the store.
    var newest: Int64 = 0
    /// Of the filter, newest first, at most as many as one answer has.
    var events: [Event] = []
  }

  /// A report as each tail sends it.
  struct Event: Sendable {
    let id: Int64
    let text: [UInt8]

    init(_ report: StoredReport) {
      id = report.id
      // JSON text has no line feed of its own but between its members, and a meta may have those.
      let line = report.jsonText.map { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") ? UInt8(ascii: " ") : $0 }
      text = Array("id: \(id)\nevent: report\ndata: ".utf8) + line + Array("\n\n".utf8)
    }
  }

  private struct Entry {
    let filter: ReportFilter
    var look = Look()
    /// Of the last look, in uptime; nil: there was no look yet.
    var time: Duration?
    var reading: Reading?
  }

  /// A look that is made now, and how long it takes.
  private typealias Reading = Task<(look: Result<Look, CollectorRefusal>, lasts: Duration), Never>

  /// Looks of one filter are at least this far apart.
  static let interval: Duration = .milliseconds(250)
  /// After a look all wait for nine times as long as it took. So all tails together take a tenth of one core's time.
  static let restFactor = 9
  private static let longestRest: Duration = .seconds(10)
  private static let forgottenAfter: Duration = .seconds(30)
  /// Past it the look that is the oldest is forgotten: its tail reads the last ids again.
  static let filtersMax = 64

  private let time: any TimeSource
  /// One a filter.
  private var entries: [Entry] = []
  /// No look begins before, in uptime.
  private var restsUntil: Duration = .zero
  /// Looks are made one after the other.
  private var last: Reading?

  init(time: any TimeSource) { self.time = time }

  /// - Parameter read: makes a look out of the one before.
  /// - Returns: the one before where it is not time for another one.
  func look(
    _ filter: ReportFilter, _ read: @escaping @Sendable (Look) async -> Result<Look, CollectorRefusal>
  ) async throws(CollectorRefusal) -> Look {
    let now = time.uptime
    entries.removeAll { $0.reading == nil && now - ($0.time ?? now) > Self.forgottenAfter }
    var place = entries.firstIndex { $0.filter == filter } ?? entries.count
    if place == entries.count {
      makeRoom()
      place = entries.count
      entries.append(Entry(filter: filter))
    }
    let entry = entries[place]
    if let reading = entry.reading { return try await reading.value.look.get() }
    if let time = entry.time, now < max(restsUntil, time + Self.interval) { return entry.look }
    let reading = Task { [last, time] in
      _ = await last?.value
      let began = time.uptime
      return (look: await read(entry.look), lasts: time.uptime - began)
    }
    (entries[place].reading, entries[place].time, last) = (reading, now, reading)
    let (result, lasted) = await reading.value
    let ended = time.uptime
    restsUntil = min(max(restsUntil, ended) + lasted * Self.restFactor, ended + Self.longestRest)
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
