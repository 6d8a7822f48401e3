import PrismBase

/// A connection with a queue of its own, opened when it is used.
actor PostgreSQLQueue {
  private let executor = DispatchQueueExecutor(label: "prism.collector.records")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private let setup: PostgreSQLSetup
  private var connection: PostgreSQLConnection?

  init(_ setup: PostgreSQLSetup) { self.setup = setup }

  func close() { connection = nil }

  /// Uses the connection, and lets go of it after an error that ends it.
  func run<Result>(
    _ body: @Sendable (PostgreSQLConnection, Deadline) throws(PostgreSQLError) -> Result
  ) throws(PostgreSQLSetup.Refusal) -> Result {
    let connection = if let connection { connection } else { try setup.connect() }
    self.connection = connection
    do throws(PostgreSQLError) { return try body(connection, Deadline(setup.deadline)) } catch {
      if error.endsConnection { self.connection = nil }
      throw .failed(error)
    }
  }
}
