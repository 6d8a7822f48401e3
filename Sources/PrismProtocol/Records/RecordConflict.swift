/// The change that holds if this device and the server changed one record of a `both` table.
public enum RecordConflict: String, Sendable, CaseIterable {
  /// The later one; the server's if both have one time.
  case newest
  /// This device's.
  case local
  /// The server's.
  case remote

  /// Whether this device's change holds. Times are milliseconds since 1970.
  public func keepsLocal(changedHere: Int64, changedThere: Int64) -> Bool {
    switch self {
    case .newest: changedHere > changedThere
    case .local: true
    case .remote: false
    }
  }
}
