import PrismSQLite

/// An enrollment token as a row of `tokens` in `enrollment.db`.
struct SQLiteTokenRow: SQLiteRecord {
  enum Column: String, SQLiteColumn {
    case hash
    case keyID = "key_id"
    case devicesMax = "devices_max"
    case devices
    case expireTime = "expire_time"
    case device
  }

  let token: EnrollmentToken

  func bind(to insert: SQLiteInsert<Column>) {
    insert.bind(.hash, token.hash)
    insert.bind(.keyID, token.keyID)
    insert.bind(.devicesMax, token.devicesMax)
    insert.bind(.devices, token.devices)
    insert.bind(.expireTime, token.expireTime)
    insert.bind(.device, token.device)
  }

  static func token(_ row: SQLiteRow<Column>) -> EnrollmentToken {
    var token = EnrollmentToken(
      hash: row.text(.hash), keyID: row.text(.keyID), devicesMax: row.int(.devicesMax),
      expireTime: row.int64(.expireTime), device: row.isNull(.device) ? nil : row.text(.device))
    token.devices = row.int(.devices)
    return token
  }
}
