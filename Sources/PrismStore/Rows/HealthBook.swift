import PrismProtocol
import PrismSQLite

/// The sessions and crashes of a namespace's apps, counted in the transaction that stores what they come with. After an hour they
/// are handed to the daemon, which reports them (docs/sessions.md).
struct HealthBook: PlainOperations {
  private static let hourMilliseconds: Int64 = 3_600_000

  let transaction: StoreTransaction

  /// Adds what sessions did. - Parameter mark: of these events; the last one is not added again.
  func add(_ events: [SessionEvent], mark: [UInt8], _ namespace: NamespaceName) throws(SQLiteError) {
    try change(namespace, mark: events.isEmpty ? nil : String(decoding: mark, as: UTF8.self)) { health in
      for event in events { health.take(event) }
    }
  }

  /// Counts the crashes of a batch that were answered: also those that were counted on an equal one, or left out by `sample`.
  func count(_ batch: ReportBatch, _ outcome: BatchOutcome) throws(SQLiteError) {
    guard batch.types.contains(where: { $0.priority == .crash }) else { return }
    let uncounted = Set(
      outcome.exceptions.lazy.filter { exception in
        switch exception.what {
        case .duplicate, .refused: true
        case .collapsed, .sampledOut: false
        }
      }.map(\.row))
    let crashes = batch.rows.indices.filter {
      batch.types[batch.rows[$0].type].priority == .crash && !uncounted.contains($0)
    }
    guard !crashes.isEmpty else { return }
    let events = crashes.map { Self.crash(batch.rows[$0], of: batch) }
    try change(batch.namespace) { health in
      for event in events { health.take(event) }
    }
  }

  /// A crash names its app, or else the program that reports it greeted with one, or else the unit counts.
  private static func crash(_ row: ReportBatch.Row, of batch: ReportBatch) -> SessionEvent {
    let body = Array(batch.arena[row.body])
    func own(_ key: String) -> String? { Enriching.value(key, in: body)?.string }
    func common(_ key: String) -> String? { Enriching.value(key, in: batch.context.members)?.string }
    let app: AppVersion
    if let name = own("APP_NAME") {
      app = AppVersion(name: name, version: own("APP_VERSION") ?? "")
    } else if let version = common("APP_VERSION") {
      app = AppVersion(name: common("APP_NAME") ?? "", version: version)
    } else {
      app = AppVersion(name: common("SYS_PEER_UNIT") ?? common("APP_NAME") ?? "", version: "")
    }
    return SessionEvent(app, userID: batch.userID, .crash(id: own("APP_SESSION_ID")))
  }

  private func change(
    _ namespace: NamespaceName, mark: String? = nil, _ body: (inout AppHealth) -> Void
  ) throws(SQLiteError) {
    let (now, note) = (transaction.heldTime, try transaction.note(namespace, AppHealth.noteKey))
    let json = note.flatMap { try? JSONValue(parsing: $0) } ?? .null
    var (health, began) = (AppHealth(json), json["began"]?.int.map { Int64($0) } ?? now)
    let book = json["book"]?.string ?? String(UInt64.random(in: 0..<1 << 40), radix: 36)
    var number = json["number"]?.int ?? 0
    let isNew = mark == nil || mark != json["mark"]?.string
    if isNew { body(&health) }
    if now - began >= Self.hourMilliseconds, try transaction.note(namespace, AppHealth.Hour.noteKey)?.isEmpty ?? true {
      // Handed over; until then this hour goes on.
      let hour = AppHealth.Hour(
        book: book, number: number + 1, seconds: Int((now - began) / 1000), health: health.takeHour())
      if !hour.health.isEmpty {
        try transaction.write(Note(namespace: namespace, key: AppHealth.Hour.noteKey, value: hour.note))
        number += 1
      }
      began = now
    }
    guard note != nil || !health.isEmpty else { return }
    let last = (isNew ? mark.map { .string($0) } : nil) ?? json["mark"] ?? .null
    let head: [JSONValue.Member] = [
      .init("book", .string(book)), .init("number", .int(number)), .init("began", .int(began)), .init("mark", last),
    ]
    let value = JSONValue.object(head + (health.json.object ?? [])).bytes
    if value != note { try transaction.write(Note(namespace: namespace, key: AppHealth.noteKey, value: value)) }
  }
}
