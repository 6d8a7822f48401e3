import PrismProtocol

/// The versions of the apps that reported to one namespace with `appVersion: auto`; a note of the namespace.
struct AppVersions {
  static let key = "apps"
  /// A user can name any number of apps: further ones are not followed.
  private static let appsPerUserMax = 100
  private static let usersMax = 1000

  struct App {
    var version: String
    /// Rows of other versions that came before this sequence are to be cleared; nil: they are gone.
    var clearedBefore: Int64?
  }

  /// By user, by the name of the app.
  private(set) var apps: [UInt32: [String: App]] = [:]

  /// - Parameter note: what can't be read is forgotten: its apps are taken as new.
  init(note: [UInt8]?) {
    guard let note, let value = try? JSONValue(parsing: note) else { return }
    for user in value.object ?? [] {
      guard let userID = UInt32(user.key) else { continue }
      for app in user.value.object ?? [] {
        guard let version = app.value["version"]?.string else { continue }
        let before = app.value["clearedBefore"]?.int.map(Int64.init)
        apps[userID, default: [:]][app.key] = App(version: version, clearedBefore: before)
      }
    }
  }

  var note: [UInt8] {
    let users = apps.sorted { $0.key < $1.key }.map { userID, apps in
      let members = apps.sorted { $0.key < $1.key }.map { name, app in
        var members = [JSONValue.Member("version", .string(app.version))]
        if let before = app.clearedBefore { members.append(.init("clearedBefore", .int(Int(before)))) }
        return JSONValue.Member(name, .object(members))
      }
      return JSONValue.Member(String(userID), .object(members))
    }
    return JSONValue.object(users).bytes
  }

  /// - Parameter sequence: of the next row. - Returns: whether anything changed.
  mutating func note(_ app: AppVersion, userID: UInt32, sequence: Int64) -> Bool {
    let own = apps[userID] ?? [:]
    if let known = own[app.name] {
      guard known.version != app.version else { return false }
      apps[userID]?[app.name] = App(version: app.version, clearedBefore: sequence)
      return true
    }
    guard own.count < Self.appsPerUserMax, !own.isEmpty || apps.count < Self.usersMax else { return false }
    apps[userID, default: [:]][app.name] = App(version: app.version)
    return true
  }

  /// An app with older rows that are to be cleared; nil: there is no such app.
  var next: (userID: UInt32, app: AppVersion, before: Int64)? {
    for (userID, own) in apps {
      for (name, app) in own {
        if let before = app.clearedBefore { return (userID, AppVersion(name: name, version: app.version), before) }
      }
    }
    return nil
  }

  /// Every row before `sequence` was looked at.
  mutating func cleared(_ name: String, userID: UInt32, before sequence: Int64) {
    if apps[userID]?[name]?.clearedBefore == sequence { apps[userID]?[name]?.clearedBefore = nil }
  }
}

/// A walk over the rows of a namespace, in slices, to clear those that an app stored under another version than now.
struct UpdateClearing {
  let namespace: Int
  let userID: UInt32
  let app: AppVersion
  /// Rows from this sequence on came with the version of now.
  let before: Int64
  /// Kinds and priorities that are still to be walked, the current one last.
  var walks: [(queue: QueueID, priority: Priority, after: Int64)]
  /// By context: whether its rows are to be cleared.
  var verdicts: [Int64: Bool] = [:]

  init(_ namespace: Int, _ next: (userID: UInt32, app: AppVersion, before: Int64)) {
    (self.namespace, userID, app, before) = (namespace, next.userID, next.app, next.before)
    walks = QueueID.all(of: namespace).flatMap { queue in
      Priority.leaving.map { (queue, $0, PriorityValues.bases[$0]) }
    }
  }

  /// - Parameter members: JSON members without braces. - Returns: whether another version of the app wrote them.
  func isOlder(_ members: some Collection<UInt8>) -> Bool {
    guard let value = try? JSONValue(parsingMembers: members), value["APP_NAME"]?.string == app.name else {
      return false
    }
    return value["APP_VERSION"]?.string.map { $0 != app.version } ?? false
  }
}

/// The apps of namespaces with `appVersion: auto`, in memory.
struct AppUpdateState {
  /// By namespace, as far as they were needed.
  var versions: [Int: AppVersions] = [:]
  /// nil if no app's older rows are being cleared.
  var clearing: UpdateClearing?
}
