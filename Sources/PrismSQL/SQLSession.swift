/// Transactions, one after the other, over a connection of its own, which the first one opens. For one queue.
public final class SQLSession {
  private let open: () throws -> any SQLDriver
  /// nil: it is opened when it is used.
  public private(set) var driver: (any SQLDriver)?

  public init(_ open: @escaping () throws -> any SQLDriver) { self.open = open }

  /// The next transaction opens another connection.
  public func close() { driver = nil }

  /// - Parameters:
  ///   - isFinal: the body asks for what is final.
  ///   - commits: false for a result: nothing of the transaction happens. Nor does it after an error.
  public func perform<Result>(
    isWriting: Bool, isFinal: Bool = false, commits: (Result) -> Bool = { _ in true },
    _ body: (SQLStatements) throws -> Result
  ) throws -> Result {
    let driver = try driver ?? open()
    self.driver = driver
    let horizon = isFinal ? try driver.horizon() : .max
    defer { driver.rollBack() }
    try driver.begin(isWriting: isWriting)
    let result = try body(SQLStatements(driver: driver, horizon: horizon))
    if commits(result) { try driver.commit() }
    return result
  }
}
