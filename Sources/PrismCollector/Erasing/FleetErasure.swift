import PrismSQLite

/// Erases what is kept of the fleet beside its reports, and what may hold bytes of them: the one list of it.
enum FleetErasure {
  /// Dictionaries are made of reports, and notices name the reasons and frames of crashes. Devices make do without a dictionary
  /// until the next one.
  private static let ofReports = ["DELETE FROM dictionaries", "DELETE FROM notices"]
  /// All that is known of a device, but for its enrollment and revocation. A job keeps that it was made.
  private static let ofDevice = [
    "DELETE FROM device_facts WHERE device = $1", "DELETE FROM job_devices WHERE device = $1",
    "DELETE FROM trigger_devices WHERE device = $1", "DELETE FROM configured_devices WHERE device = $1",
    "UPDATE jobs SET expression = 'erased' WHERE replace(expression, $1, '') <> expression",
  ]
  /// Of PostgreSQL, to be rewritten.
  static let tables = [
    "dictionaries", "notices", "device_facts", "jobs", "job_devices", "trigger_devices", "configured_devices",
  ]

  static func run(_ erased: Erased, in fleet: FleetDatabase) throws(StoreFailure) {
    try FleetSession(fleet).write { statements in
      for statement in ofReports { try statements.run(statement, []) }
      guard case .device(let device) = erased else { return }
      for statement in ofDevice { try statements.run(statement, [device]) }
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
}
