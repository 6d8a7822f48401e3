/// The user whose report a row is, by the kernel's word.
///
/// A row with a context belongs to the user of its context. In a row without one the `context` column holds the user as
/// the complement of the user id, which is negative. So the owner costs ingest neither a column nor an index, and is
/// part of what the row's checksum covers.
struct RowOwner: Hashable, Comparable, Sendable {
  /// The user id; negative for the two that are no user.
  let number: Int64

  init(userID: UInt32) { number = Int64(userID) }
  private init(number: Int64) { self.number = number }

  /// - Parameter contextColumn: the `context` of a row without a context: 0 or less.
  init(contextColumn: Int64) { number = ~contextColumn }

  /// - Parameter stored: the value of a `user` column.
  init(stored: Int64) { number = stored }

  /// Reports that a version before 3 of the database stored: they count as one user's.
  static let unknown = RowOwner(number: -1)
  /// Rows that were not counted yet, see `UserShares`.
  static let uncounted = RowOwner(number: -2)

  var contextColumn: Int64 { ~number }
  /// nil if the user is not known: (uid_t)-1 is no user's id.
  var userID: UInt32? { UInt32(exactly: number).flatMap { $0 == .max ? nil : $0 } }
  static func < (a: Self, b: Self) -> Bool { a.number < b.number }
}
