public import PrismProtocol

/// How much each connection and user may have in memory before its commit (docs/ingest-protocol.md). Pure.
///
/// A user may hold as much as is still free for all: one user alone half of the whole, and however much some hold, there
/// is room left for another. A user whose connections hold only beginnings of requests up to its share would wait for
/// ever; one of them, the first to ask, may then read on until its request is whole.
public struct PendingBudget: Sendable {
  private struct Holding {
    var user: UInt32
    /// A request that is not whole yet, and reports that are not committed yet.
    var partialBytes = 0, batchBytes = 0
    var bytes: Int { partialBytes + batchBytes }
  }

  private struct User {
    var bytes = 0, batchBytes = 0, connections = 0
    /// The connection that may read over the share until its request is whole.
    var privileged: Int?
  }

  private let connectionBytesMax: Int, bytesMax: Int
  private var holdings: [Int: Holding] = [:]
  private var users: [UInt32: User] = [:]
  public private(set) var bytes = 0

  public init(
    connectionBytesMax: Int = Limits.pendingBytesPerConnectionMax, bytesMax: Int = Limits.pendingBytesMax
  ) {
    (self.connectionBytesMax, self.bytesMax) = (connectionBytesMax, bytesMax)
  }

  public mutating func open(_ connection: Int, user: UInt32) {
    holdings[connection] = Holding(user: user)
    users[user, default: User()].connections += 1
  }

  public mutating func close(_ connection: Int) {
    set(connection, partialBytes: 0, batchBytes: 0)
    guard let user = holdings.removeValue(forKey: connection)?.user else { return }
    users[user]?.connections -= 1
    if users[user]?.connections == 0 { users[user] = nil }
  }

  public func connections(of user: UInt32) -> Int { users[user]?.connections ?? 0 }

  /// What `connection` holds now.
  public mutating func set(_ connection: Int, partialBytes: Int, batchBytes: Int) {
    guard var holding = holdings[connection], var user = users[holding.user] else { return }
    let before = holding
    (holding.partialBytes, holding.batchBytes) = (partialBytes, batchBytes)
    bytes += holding.bytes - before.bytes
    user.bytes += holding.bytes - before.bytes
    user.batchBytes += batchBytes - before.batchBytes
    if partialBytes == 0, user.privileged == connection { user.privileged = nil }
    (holdings[connection], users[holding.user]) = (holding, user)
  }

  /// Whether `connection` may read a chunk now; otherwise it asks again after the next commit.
  public mutating func mayRead(_ connection: Int) -> Bool {
    guard let holding = holdings[connection], let user = users[holding.user] else { return false }
    if holding.bytes < connectionBytesMax && user.bytes < bytesMax - bytes { return true }
    guard user.batchBytes == 0, user.privileged == nil || user.privileged == connection else { return false }
    users[holding.user]?.privileged = connection
    return true
  }
}
