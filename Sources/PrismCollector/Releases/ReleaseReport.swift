import PrismOutputs
import PrismProtocol

/// An `appHealth` report of an hour of a device (docs/sessions.md). Its figures are held to those that are possible.
struct ReleaseReport: Sendable {
  static let type = ReportType.appHealth.text
  private static let usesMax = 60
  /// An hour that is not reported goes on.
  private static let secondsMax = 31 * 86_400, countMax = 100_000, numberMax = 1 << 31

  struct Use: Sendable {
    let app: String, version: String
    let seconds: Int, sessions: Int, crashedSessions: Int, crashes: Int
  }

  let device: String, namespace: String
  /// Of the device's database, and the number of the hour there.
  let book: String, number: Int
  /// When the hour ended, by the collector's clock, and when its report came: milliseconds since 1970.
  let endTime: Int64, receivedTime: Int64
  let seconds: Int
  /// Of the parts of its hour, from 0.
  let part: Int
  let chainIsBroken: Bool
  let uses: [Use]

  var isFurther: Bool { part > 0 }
  var beginTime: Int64 { endTime - Int64(seconds) * 1000 }

  /// nil: it is damaged, or another program made it.
  init?(_ stored: StoredReport) {
    guard let meta = try? JSONValue(parsing: stored.meta), let apps = meta["apps"]?.array,
      let book = meta["book"]?.string, let number = meta["number"]?.int
    else { return nil }
    (device, namespace, receivedTime) = (stored.device, stored.namespace, stored.receivedTime)
    (self.book, chainIsBroken) = (String(book.prefix(16)), stored.chainIsBroken)
    self.number = min(max(0, number), Self.numberMax)
    endTime = stored.happenedTime
    part = max(0, meta["part"]?.int ?? 0)
    let limit = min(max(0, meta["seconds"]?.int ?? 0), Self.secondsMax)
    seconds = limit
    uses = apps.prefix(Self.usesMax).compactMap { entry in
      guard let app = entry["name"]?.string, let version = entry["version"]?.string else { return nil }
      func count(_ key: String, _ most: Int = Self.countMax) -> Int { min(max(0, entry[key]?.int ?? 0), most) }
      return Use(
        app: app.cut(atBytes: AppHealth.textBytesMax), version: version.cut(atBytes: AppHealth.textBytesMax),
        seconds: count("seconds", limit), sessions: count("sessions"), crashedSessions: count("crashedSessions"),
        crashes: count("crashes"))
    }
  }
}

extension PacketStore {
  /// Ids that one question reads at most: a day that is being written may have no index.
  private static var idsMax: Int64 { 1 << 20 }

  /// The next reports of a type behind an id, and the id up to which all are read then.
  /// - Parameter newest: up to this id.
  func reports(
    _ scope: Scope, of type: String, after cursor: Int64, upTo newest: Int64, hasPayloads: Bool = false
  ) async throws(StoreFailure) -> (reports: [StoredReport], end: Int64) {
    var filter = ReportFilter(scope: scope)
    (filter.type, filter.limit, filter.hasPayloads) = (type, 200, hasPayloads)
    let end = min(newest, cursor + Self.idsMax)
    (filter.after, filter.before) = (cursor, end + 1)
    let page = try await page(filter)
    // A page ends behind some bytes, too.
    if let last = page.last { return (page, last.id) }
    // Ids may have a hole, as behind a database that was replaced.
    let next = end == newest ? nil : try await queries.first(from: end + 1)
    return ([], min(newest, next.map { $0.id - 1 } ?? newest))
  }
}
