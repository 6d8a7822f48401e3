/// Why PostgreSQL did not do as it was asked.
public struct PostgreSQLError: Error, Equatable, CustomStringConvertible {
  /// How it failed, and what is known of the last statement.
  public enum Kind: Equatable, Sendable {
    /// The server refused, with a SQLSTATE (PostgreSQL's manual, appendix A).
    case refused(state: String)
    /// The connection could not be made, or was lost. The last statement may have been executed.
    case lost
    /// The deadline passed; the connection is closed. The last statement may have been executed.
    case late
    /// The commit is on this server only: no standby has confirmed it.
    case unconfirmed
  }

  /// How it failed.
  public let kind: Kind
  /// PostgreSQL's own words, without a row's content.
  public let message: String
  /// A constraint of the table refused a row; false: there is no such constraint.
  public var isOfConstraint = false

  public init(kind: Kind, message: String, isOfConstraint: Bool = false) {
    (self.kind, self.message, self.isOfConstraint) = (kind, message, isOfConstraint)
  }

  /// One line for the log and `/readyz`.
  public var description: String {
    switch kind {
    case .refused(let state): "PostgreSQL \(state): \(message)"
    case .lost: "PostgreSQL is not reached: \(message)"
    case .late: "PostgreSQL did not answer in time"
    case .unconfirmed: "no standby confirmed the commit: \(message)"
    }
  }

  /// Runs what throws this error only, or fails by a database that is not as it must be.
  public static func only<Result>(_ body: () throws -> Result) throws(PostgreSQLError) -> Result {
    do { return try body() } catch let error as PostgreSQLError { throw error } catch {
      throw PostgreSQLError(kind: .lost, message: "\(error)")
    }
  }

  private var state: String? {
    if case .refused(let state) = kind { return state }
    return nil
  }

  /// Whether the connection must not be used any more.
  public var endsConnection: Bool {
    switch kind {
    case .lost, .late, .unconfirmed: true
    // Ends of the session (57P), and a server that turned into a standby.
    case .refused(let state): state.hasPrefix("57P") || state.hasPrefix("08") || state == "25006"
    }
  }

  /// A deadlock or a serialization failure: the same transaction may succeed at once.
  public var isTransient: Bool { state == "40001" || state == "40P01" }

  /// There is no partition for the row (23514 without a CHECK), or a table was dropped while it was looked for.
  public var isDayMissing: Bool { state == "23514" && !isOfConstraint || state == "42P01" }

  /// The table or its schema is missing.
  public var isTableMissing: Bool { state == "42P01" || state == "3F000" }

  /// The database can't hold what it was given: a character that no text has, or a value over one of its limits. Or a constraint
  /// of its owner refuses it, or a trigger (`RAISE EXCEPTION`).
  public var isRejection: Bool {
    guard let state, !isDayMissing else { return false }
    return state == "P0001" || ["22", "23", "44", "54"].contains(state.prefix(2))
  }
}
