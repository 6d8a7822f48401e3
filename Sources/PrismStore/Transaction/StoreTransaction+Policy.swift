import PrismProtocol
import PrismSQLite

// Notes of the policy under which the rows of a namespace were stored.
extension StoreTransaction {
  /// The names of the notes that record the policy under which a namespace's rows were stored.
  enum NoteKey: String { case appVersion, maxBodyBytes, expirationDays, ringHours }

  /// Notes the policy under which new rows are stored from now on.
  func note(_ policy: RetentionPolicy, _ namespace: Int) throws(SQLiteError) {
    if let version = policy.appVersion, try self.version(namespace) != Array(version.utf8) {
      try write(Array(version.utf8), .appVersion, namespace)
    }
    try note(policy.maxBodyBytes, .maxBodyBytes, namespace)
    try note(policy.expirationDays, .expirationDays, namespace)
    try note(policy.ringHours, .ringHours, namespace)
  }

  func note(_ number: Int, _ key: NoteKey, _ namespace: Int) throws(SQLiteError) {
    guard try self.number(key, namespace) != number else { return }
    try write(Array(String(number).utf8), key, namespace)
  }

  private func write(_ value: [UInt8], _ key: NoteKey, _ namespace: Int) throws(SQLiteError) {
    guard let name = state.names.namespaces[namespace] else { return }
    try write(Note(namespace: name, key: key.rawValue, value: value))
  }

  func version(_ namespace: Int) throws(SQLiteError) -> [UInt8]? {
    try note(namespace, NoteKey.appVersion.rawValue)
  }

  func number(_ key: NoteKey, _ namespace: Int) throws(SQLiteError) -> Int? {
    try note(namespace, key.rawValue).flatMap { Int(String(decoding: $0, as: UTF8.self)) }
  }
}
