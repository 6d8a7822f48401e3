import PrismBase
import PrismProtocol
import PrismSQL
import PrismSQLite

/// Erases what is kept of the fleet beside its reports, and what may hold bytes of them: the one list of it.
enum FleetErasure {
  /// Of `notice_marks`: counts erasures, so that each replica forgets what it read before.
  static let mark = "erasures"
  /// Dictionaries are made of reports, and notices name the reasons and frames of crashes. Devices make do without a dictionary
  /// until the next one.
  private static let ofReports = ["DELETE FROM dictionaries", "DELETE FROM notices", count]
  private static let count = """
    INSERT INTO notice_marks (name, value) VALUES ('\(mark)', 1)
    ON CONFLICT (name) DO UPDATE SET value = notice_marks.value + 1
    """
  /// All that is known of a device, but for its enrollment and revocation.
  private static let ofDevice = [
    "DELETE FROM device_facts WHERE device = $1", "DELETE FROM job_devices WHERE device = $1",
    "DELETE FROM trigger_devices WHERE device = $1", "DELETE FROM configured_devices WHERE device = $1",
  ]
  /// Of PostgreSQL, to be rewritten.
  static let tables = [
    "dictionaries", "notices", "crash_states", "device_facts", "jobs", "job_devices", "trigger_devices",
    "configured_devices",
  ]

  /// The erasure of some reports failed: replicas read again all the same.
  static func note(in fleet: FleetDatabase) throws(StoreFailure) {
    try FleetSession(fleet).write { _ = try $0.run(count, []) }
  }

  /// Call it when no report of the erasure is left in the store.
  static func run(_ erased: Erased, in fleet: FleetDatabase) throws(StoreFailure) {
    try FleetSession(fleet).write { statements in
      for statement in ofReports { try statements.run(statement, []) }
      try eraseTexts(erased, statements)
      guard case .device(let device) = erased else { return }
      for statement in ofDevice { try statements.run(statement, [device]) }
      for job in try statements.texts("SELECT id, expression FROM jobs") {
        guard (try? DeviceExpression(job[1]))?.names(device) == true else { continue }
        try statements.run("UPDATE jobs SET expression = 'erased' WHERE id = $1", [job[0]])
      }
    }
    guard case .folder(let folder) = fleet else { return }
    do {
      let connection = try SQLiteConnection(.init(path: "\(folder)/\(FleetDatabase.fileName)"))
      try connection.execute("PRAGMA busy_timeout = 5000; PRAGMA temp_store = FILE; VACUUM")
      guard try connection.firstInt("PRAGMA wal_checkpoint(TRUNCATE)") == 0 else {
        throw SQLiteError(code: 5, message: "a reader holds the log of \(FleetDatabase.fileName); erase again")
      }
    } catch { throw .unavailable("\(FleetDatabase.fileName) can't be rewritten: \(error)") }
  }

  /// Takes the id of the device, or the value, out of what operators wrote about crashes and of changes of ended jobs. A job that
  /// may go on sends the same to all of its devices.
  private static func eraseTexts(_ erased: Erased, _ statements: SQLStatements) throws {
    // Which device an expression names is another question than where a word is in it.
    let isValue = if case .field = erased { true } else { false }
    for (table, key, column, isJSON, condition) in [
      ("crash_states", "fingerprint", "facts", true, ""), ("crash_states", "fingerprint", "build", false, ""),
      ("device_facts", "device", "app", false, ""), ("device_facts", "device", "version", false, ""),
      ("jobs", "id", "expression", false, isValue ? "" : "WHERE false"),
      ("jobs", "id", "change", true, "WHERE state NOT IN (\(Job.State.thatGoOn))"),
    ] {
      for row in try statements.texts("SELECT DISTINCT \(key), \(column) FROM \(table) \(condition)") {
        let left = isJSON ? try? JSONValue(parsing: row[1]).erasing(erased).text : erased.taken(out: row[1])
        guard let left, left != row[1] else { continue }
        try statements.run(
          "UPDATE \(table) SET \(column) = $1 WHERE \(key) = $2 AND \(column) = $3", [left, row[0], row[1]])
      }
    }
  }
}

extension JSONValue {
  /// Members with words of prism, without which the others can't be read.
  private static let words = ["rule", "command", "table"]

  /// Each of its texts without the id or the value.
  fileprivate func erasing(_ erased: Erased) -> JSONValue {
    switch self {
    case .string(let text): .string(erased.taken(out: text))
    case .array(let values): .array(values.map { $0.erasing(erased) })
    case .object(let members):
      .object(members.map { Self.words.contains($0.key) ? $0 : .init($0.key, $0.value.erasing(erased)) })
    default: self
    }
  }
}

extension Erased {
  /// A text with `erased` for the id or the value, but where that is part of a longer word. Some signs are part of an id between its
  /// letters and digits.
  fileprivate func taken(out text: String) -> String {
    let (word, joining) =
      switch self {
      case .device(let device): (Array(device.utf8), Array("-_.:@".utf8))
      case .field(let condition, _): (Array(condition.value.utf8), [])
      }
    func goesOn(_ rest: some Sequence<UInt8>) -> Bool {
      rest.first { !joining.contains($0) }.map { $0.isASCIILetter || $0.isASCIIDigit || $0 >= 0x80 } ?? false
    }
    var (rest, kept) = (Array(text.utf8)[...], [UInt8]())
    for place in rest.ranges(of: word) {
      guard !goesOn(rest[place.upperBound...]), !goesOn(text.utf8.prefix(place.lowerBound).reversed()) else { continue }
      kept += rest[..<place.lowerBound] + "erased".utf8
      rest = rest[place.upperBound...]
    }
    return String(decoding: kept + rest, as: UTF8.self)
  }
}
