import CPostgreSQL
import Glibc

/// The answer to a statement: rows in PostgreSQL's binary form. Columns are named by their position, from 0.
public final class PostgreSQLResult {
  let pointer: OpaquePointer

  init(_ pointer: OpaquePointer) { self.pointer = pointer }
  deinit { PQclear(pointer) }

  var status: ExecStatusType { PQresultStatus(pointer) }
  /// `COMMIT`, or `ROLLBACK` for the commit of a transaction that had failed.
  var command: String { String(cString: PQcmdStatus(pointer)) }
  /// Of rows.
  public var count: Int { Int(PQntuples(pointer)) }

  var error: PostgreSQLError {
    let state = prism_pq_state(pointer).map { String(cString: $0) } ?? ""
    guard !state.isEmpty else { return PostgreSQLError(kind: .lost, message: "the connection ended") }
    // Errors of data may quote them.
    let hidesMessage = state.hasPrefix("22") || state.hasPrefix("23")
    let message = hidesMessage ? nil : prism_pq_message(pointer).map { String(cString: $0) }
    let constraint = prism_pq_constraint(pointer).map { String(cString: $0) }
    return PostgreSQLError(
      kind: .refused(state: state), message: message ?? constraint ?? "it can't hold this",
      isOfConstraint: constraint != nil)
  }

  /// Whether the value is NULL.
  public func isNull(_ row: Int, _ column: Int) -> Bool { PQgetisnull(pointer, Int32(row), Int32(column)) == 1 }

  /// - Returns: the value's bytes, which live as long as the result; empty for NULL.
  public func bytes(_ row: Int, _ column: Int) -> UnsafeRawBufferPointer {
    let count = Int(PQgetlength(pointer, Int32(row), Int32(column)))
    return UnsafeRawBufferPointer(start: PQgetvalue(pointer, Int32(row), Int32(column)), count: count)
  }

  /// Empty for NULL.
  public func text(_ row: Int, _ column: Int) -> String { String(decoding: bytes(row, column), as: UTF8.self) }

  /// Of `int4` and `int8`; 0 for NULL.
  public func int(_ row: Int, _ column: Int) -> Int64 {
    let bytes = bytes(row, column)
    let value = bytes.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    return bytes.count == 4 ? Int64(Int32(truncatingIfNeeded: value)) : Int64(bitPattern: value)
  }

  /// false for NULL.
  public func bool(_ row: Int, _ column: Int) -> Bool { bytes(row, column).first == 1 }
}
