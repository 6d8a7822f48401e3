import PrismSQLite

/// A device as a row of `enrolled` in `enrollment.db`.
struct SQLiteDeviceRow: SQLiteRecord {
  enum Column: String, SQLiteColumn {
    case device
    case keyID = "key_id"
    case enrolledTime = "enrolled_time"
    case token
    case info
    case revokedTime = "revoked_time"
    case publicKey = "public_key"
    case generation
  }

  let device: EnrolledDevice

  func bind(to insert: SQLiteInsert<Column>) {
    insert.bind(.device, device.id)
    insert.bind(.keyID, device.keyID)
    insert.bind(.enrolledTime, device.enrolledTime)
    insert.bind(.token, device.token)
    insert.bind(.info, device.info)
    insert.bind(.revokedTime, device.revokedTime)
    insert.bind(.publicKey, device.publicKey)
    insert.bind(.generation, device.generation)
  }

  static func device(_ row: SQLiteRow<Column>) -> EnrolledDevice {
    func text(_ column: Column) -> String? { row.isNull(column) ? nil : row.text(column) }
    var device = EnrolledDevice(id: row.text(.device))
    (device.keyID, device.enrolledTime) = (text(.keyID), row.integer(.enrolledTime))
    (device.token, device.info, device.revokedTime) = (text(.token), text(.info), row.integer(.revokedTime))
    (device.publicKey, device.generation) = (text(.publicKey), row.int(.generation))
    return device
  }
}
