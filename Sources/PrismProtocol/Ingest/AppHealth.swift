/// A session of a program: it begins, it is in use, or it ends by a crash.
public struct SessionEvent: Sendable, Equatable {
  /// The event.
  public enum What: Sendable, Equatable {
    /// One with an id counts once, however often its program connects.
    case begin(id: String?)
    /// The app was in use on this device for as long.
    case use(milliseconds: Int)
    /// A crash. Several crashes of one session end it once; one without an id ends a session of its own.
    case crash(id: String?)
  }

  /// The app, in the version that runs.
  public let app: AppVersion
  /// Of the program.
  public let userID: UInt32
  public let what: What

  public init(_ app: AppVersion, userID: UInt32, _ what: What) {
    (self.app, self.userID, self.what) = (
      AppVersion(name: Self.cut(app.name), version: Self.cut(app.version)), userID, what
    )
  }

  private static func cut(_ text: String) -> String { text.cut(atBytes: AppHealth.textBytesMax) }
}

/// The sessions of programs on this device in an hour, by app and version (docs/sessions.md). It is a note of the store.
public struct AppHealth: Sendable, Equatable {
  /// The counts of one version of an app.
  public struct Counts: Sendable, Equatable {
    /// In which at least one session was open.
    public var milliseconds = 0
    /// Sessions that began, and those that ended by a crash.
    public var sessions = 0, crashedSessions = 0
    public var crashes = 0
    /// The user who was first to use it: each user has some of the places.
    var userID: UInt32 = 0

    public var seconds: Int { milliseconds / 1000 }
  }

  /// Of the name of an app, and of its version.
  public static let textBytesMax = 64
  /// Versions of apps that are counted in an hour, of all users and of one.
  private static let appsMax = 60, userAppsMax = 20
  /// The newest ids of sessions that are remembered.
  private static let idsMax = 128, idBytesMax = 64

  public private(set) var apps: [AppVersion: Counts] = [:]
  /// Events of apps that found no place.
  public private(set) var leftOut = 0
  /// Ids of sessions that began, and of those that crashed, the newest last. They outlast the hour.
  private var begun: [String] = [], crashed: [String] = []

  public init() {}

  public var isEmpty: Bool { apps.isEmpty && leftOut == 0 }

  /// Counts what happened.
  public mutating func take(_ event: SessionEvent) {
    guard var counts = apps[event.app] ?? place(for: event.userID) else {
      leftOut += 1
      return
    }
    switch event.what {
    case .begin(let id): counts.sessions += Self.isNew(id, event.userID, among: &begun) ? 1 : 0
    case .use(let milliseconds): counts.milliseconds += max(0, milliseconds)
    case .crash(let id):
      counts.crashes += 1
      counts.crashedSessions += Self.isNew(id, event.userID, among: &crashed) ? 1 : 0
    }
    apps[event.app] = counts
  }

  private func place(for userID: UInt32) -> Counts? {
    guard apps.count < Self.appsMax, apps.values.count(where: { $0.userID == userID }) < Self.userAppsMax else {
      return nil
    }
    var counts = Counts()
    counts.userID = userID
    return counts
  }

  private static func isNew(_ id: String?, _ userID: UInt32, among known: inout [String]) -> Bool {
    guard let id else { return true }
    let mark = "\(userID) \(id.cut(atBytes: idBytesMax))"
    if known.contains(mark) { return false }
    if known.count >= idsMax { known.removeFirst() }
    known.append(mark)
    return true
  }

  /// The next hour begins. - Returns: the counts of the last one.
  public mutating func takeHour() -> AppHealth {
    defer { (apps, leftOut) = ([:], 0) }
    var hour = self
    (hour.begun, hour.crashed) = ([], [])
    return hour
  }

  // MARK: As text

  private static let counters: [(key: String, value: any WritableKeyPath<Counts, Int> & Sendable)] = [
    ("ms", \.milliseconds), ("sessions", \.sessions), ("crashedSessions", \.crashedSessions), ("crashes", \.crashes),
  ]

  /// - Parameter json: as `json` has it; what can't be read is left out.
  public init(_ json: JSONValue) {
    for entry in json["apps"]?.array ?? [] {
      guard let name = entry["name"]?.string, let version = entry["version"]?.string else { continue }
      var counts = Counts()
      for (key, path) in Self.counters { counts[keyPath: path] = entry[key]?.int ?? 0 }
      counts.userID = UInt32(exactly: entry["user"]?.int ?? 0) ?? 0
      apps[AppVersion(name: name, version: version)] = counts
    }
    leftOut = json["leftOut"]?.int ?? 0
    begun = (json["begun"]?.array ?? []).compactMap(\.string)
    crashed = (json["crashed"]?.array ?? []).compactMap(\.string)
  }

  /// An object with all of it.
  public var json: JSONValue {
    let entries = sorted.map { app, counts in
      let numbers = Self.counters.map { JSONValue.Member($0.key, .int(counts[keyPath: $0.value])) }
      return JSONValue.object(
        [.init("name", .string(app.name)), .init("version", .string(app.version))] + numbers
          + [.init("user", .int(Int(counts.userID)))])
    }
    return [
      "apps": .array(entries), "leftOut": .int(leftOut), "begun": .array(begun.map { .string($0) }),
      "crashed": .array(crashed.map { .string($0) }),
    ]
  }

  private var sorted: [(key: AppVersion, value: Counts)] {
    apps.sorted { ($0.key.name, $0.key.version) < ($1.key.name, $1.key.version) }
  }

  /// The apps as the metas of reports have them.
  fileprivate var parts: [[JSONValue]] {
    var (parts, bytes): ([[JSONValue]], Int) = ([[]], 0)
    for (app, counts) in sorted {
      let entry: JSONValue = [
        "name": .string(app.name), "version": .string(app.version), "seconds": .int(counts.seconds),
        "sessions": .int(counts.sessions), "crashedSessions": .int(counts.crashedSessions),
        "crashes": .int(counts.crashes),
      ]
      bytes += entry.bytes.count + 1
      if bytes > 7000, parts.last?.isEmpty == false {
        parts.append([])
        bytes = entry.bytes.count
      }
      parts[parts.count - 1].append(entry)
    }
    return parts
  }

  /// The key of the note that has the hour which goes on.
  public static let noteKey = "health"

  /// An hour that is over and not reported yet.
  public struct Hour: Sendable, Equatable {
    public static let noteKey = "health.ready"
    /// The database that counted it, and how many hours it has handed over: what is missing between two of them was lost.
    public let book: String, number: Int
    /// How long it was: longer than an hour if the daemon did not run, or could not report.
    public let seconds: Int
    public let health: AppHealth

    public init(book: String, number: Int, seconds: Int, health: AppHealth) {
      (self.book, self.number, self.seconds, self.health) = (book, number, seconds, health)
    }

    /// nil: there is no such hour.
    public init?(note: [UInt8]) {
      guard let json = try? JSONValue(parsing: note), let number = json["number"]?.int,
        let seconds = json["seconds"]?.int, let book = json["book"]?.string
      else { return nil }
      self.init(book: book, number: number, seconds: seconds, health: AppHealth(json))
    }

    public var note: [UInt8] {
      JSONValue.object(head + (health.json.object ?? [])).bytes
    }

    private var head: [JSONValue.Member] {
      [.init("book", .string(book)), .init("number", .int(number)), .init("seconds", .int(seconds))]
    }

    /// The metas of its reports: one, unless the names are very long.
    public var metas: [JSONValue] {
      health.parts.enumerated().map { part, apps in
        let leftOut = part == 0 ? health.leftOut : 0
        return .object(
          head + [.init("part", .int(part)), .init("apps", .array(apps)), .init("leftOut", .int(leftOut))])
      }
    }
  }
}
