/// How much memory connections and users may hold: input that is not parsed yet, requests that are not whole, reports
/// before their commit, answers that are not read. Pure.
///
/// All hold at most `bytesMax`, and a user at most a quarter of it; while others hold some, a sixteenth but for large requests.
/// If requests that are not whole fill the share, so that no request could go on, one large request at a time may go past it. A
/// connection holds half of the quarter, but for one large request. A quarter of all is left to users that hold less than two
/// turns, and large requests leave half of that. So there is always room for one more user. Before a connection works it
/// reserves what one turn can add, or the whole of a large request. So no limit is passed, and a request that was begun can be
/// finished.
public struct PendingBudget: Sendable {
  private struct Holding {
    let user: UInt32
    let isConnection: Bool
    /// Bytes that it holds, and the part of them that is reports before their commit.
    var bytes = 0, batchBytes = 0
    /// Bytes that it may hold until its next account; never less than what the user is charged for.
    var reserved = 0
    /// The reservation is for a large request that is not whole.
    var isLarge = false
    var charged: Int { max(bytes, reserved) }
  }

  private struct User {
    var bytes = 0, batchBytes = 0, connections = 0, holdings = 0
    /// Connections with memory for a large request.
    var largeRequests = 0
    /// The connection that may use the last turn's room of the user's share, or go past the share for a large request.
    /// So requests that are not whole don't wait for each other.
    var privileged: Int?
  }

  /// More than one turn of a connection can add: see `WorkOrder.connectionTurn`.
  public static let turnBytes = 256 * 1024

  /// The most that all may hold (`ingest.memoryMByte`).
  public var bytesMax: Int
  private var holdings: [Int: Holding] = [:]
  private var users: [UInt32: User] = [:]
  /// The connection whose large request went past its user's share.
  private var pastShare: Int?
  /// Held and reserved, of all.
  public private(set) var bytes = 0

  /// Nothing is held.
  public init(bytesMax: Int) { self.bytesMax = bytesMax }

  /// The most that one user may hold.
  public var userBytesMax: Int { bytesMax / 4 }

  /// The largest request, with all that it becomes while it is parsed, that a user's share has room for.
  public static func requestBytesMax(bytesMax: Int) -> Int { bytesMax / 4 - 2 * turnBytes }

  /// - Parameter isConnection: false for a group of another input, which counts towards no limit of connections.
  public mutating func open(_ connection: Int, user: UInt32, isConnection: Bool = true) {
    holdings[connection] = Holding(user: user, isConnection: isConnection)
    users[user, default: User()].holdings += 1
    if isConnection { users[user]?.connections += 1 }
  }

  /// Gives back all that `connection` holds.
  public mutating func close(_ connection: Int) {
    guard let holding = holdings.removeValue(forKey: connection) else { return }
    bytes -= holding.charged
    users[holding.user]?.bytes -= holding.charged
    users[holding.user]?.batchBytes -= holding.batchBytes
    users[holding.user]?.holdings -= 1
    if holding.isLarge { users[holding.user]?.largeRequests -= 1 }
    if pastShare == connection { pastShare = nil }
    if holding.isConnection { users[holding.user]?.connections -= 1 }
    if users[holding.user]?.privileged == connection { users[holding.user]?.privileged = nil }
    if users[holding.user]?.holdings == 0 { users[holding.user] = nil }
  }

  /// The number of open connections of `user`.
  public func connections(of user: UInt32) -> Int { users[user]?.connections ?? 0 }

  /// Users who have a connection.
  public var usersConnected: Int { users.count }

  /// Whether reports of `connection`'s user wait for their commit, which makes room.
  public func awaitsCommit(_ connection: Int) -> Bool {
    holdings[connection].map { users[$0.user]?.batchBytes ?? 0 > 0 } ?? false
  }

  /// Sets what `connection` holds after its turn.
  /// - Parameter batchBytes: how much of it is reports before their commit.
  /// - Parameter requestBytes: what a large request that is not whole yet needs in all; what was reserved for it stays so.
  public mutating func set(_ connection: Int, bytes held: Int, batchBytes: Int, requestBytes: Int = 0) {
    guard let place = holdings.index(forKey: connection) else { return }
    let before = holdings.values[place]
    guard let owner = users.index(forKey: before.user) else { return }
    var holding = before
    (holding.bytes, holding.batchBytes) = (held, batchBytes)
    let wanted = max(holding.bytes, requestBytes) + Self.turnBytes
    // One that went past what was reserved keeps its place until it is whole.
    holding.reserved = requestBytes > 0 && before.isLarge ? min(max(before.reserved, held), wanted) : 0
    holding.isLarge = holding.reserved > 0
    holdings.values[place] = holding
    if holding.isLarge != before.isLarge { users.values[owner].largeRequests += holding.isLarge ? 1 : -1 }
    if !holding.isLarge, pastShare == connection { pastShare = nil }
    bytes += holding.charged - before.charged
    users.values[owner].bytes += holding.charged - before.charged
    users.values[owner].batchBytes += batchBytes - before.batchBytes
    if requestBytes == 0, users.values[owner].privileged == connection { users.values[owner].privileged = nil }
  }

  /// Reserves what a turn of `connection` can add, or the whole of its large request, `requestBytes`.
  /// - Returns: false where there is no room: the connection asks again after the next commit.
  public mutating func mayWork(_ connection: Int, requestBytes: Int = 0) -> Bool {
    guard let place = holdings.index(forKey: connection) else { return false }
    let holding = holdings.values[place]
    guard let owner = users.index(forKey: holding.user) else { return false }
    let user = users.values[owner]
    let wanted = max(holding.bytes, requestBytes) + Self.turnBytes
    let more = wanted - holding.charged
    // One connection leaves half of the share to the user's others.
    if requestBytes == 0, wanted > userBytesMax / 2 { return false }
    if more > room(of: user, more, isLarge: requestBytes > 0) {
      guard user.batchBytes == 0, user.privileged ?? connection == connection,
        more <= roomOfPrivileged(connection, of: user, isLarge: requestBytes > 0, isBegun: holding.isLarge)
      else { return false }
      users.values[owner].privileged = connection
      if requestBytes > 0 { pastShare = connection }
    }
    guard more > 0 else { return true }
    holdings.values[place].reserved = wanted
    if requestBytes > 0, !holding.isLarge {
      holdings.values[place].isLarge = true
      users.values[owner].largeRequests += 1
    }
    bytes += more
    users.values[owner].bytes += more
    return true
  }

  /// The bytes that the user's privileged connection may take on.
  /// - Parameter isBegun: it has memory for its large request already.
  private func roomOfPrivileged(_ connection: Int, of user: User, isLarge: Bool, isBegun: Bool) -> Int {
    guard isLarge else { return min(share(of: user) - user.bytes, bytesMax - bytes - bytesMax / 8) }
    // Room past a share is taken from others: one request of all users has it at a time.
    guard user.largeRequests == (isBegun ? 1 : 0), pastShare ?? connection == connection else { return 0 }
    return (bytesMax - bytes) / 4
  }

  /// The bytes that `user` may take on. Room for one turn is left in its share. With a large request it leaves as much free as it
  /// holds then; a user that holds something already leaves one turn more, for a new user.
  private func room(of user: User, _ more: Int, isLarge: Bool) -> Int {
    let free = bytesMax - bytes
    if isLarge {
      let kept = user.bytes > 0 ? Self.turnBytes : 0
      return min(userBytesMax - Self.turnBytes - user.bytes, (free - user.bytes) / 2 - kept, free - bytesMax / 8)
    }
    if user.bytes + more <= 2 * Self.turnBytes { return free }
    return min(share(of: user) - Self.turnBytes - user.bytes, free - bytesMax / 4)
  }

  /// The most that it may hold but for large requests: a sixteenth, at least four turns, while others hold some.
  private func share(of user: User) -> Int {
    bytes == user.bytes ? userBytesMax : max(bytesMax / 16, 4 * Self.turnBytes)
  }
}

/// Decides who may connect. Pure.
public struct ConnectionPlaces: Sendable {
  /// A user with fewer connections than this may take one of the last quarter.
  public static let fewConnections = 8

  /// Of all users.
  public var max: Int
  /// Of one user.
  public var maxPerUser: Int

  /// - Parameter max: of all users. - Parameter maxPerUser: of one.
  public init(max: Int, maxPerUser: Int) { (self.max, self.maxPerUser) = (max, maxPerUser) }

  /// Why a connection is refused; nil: it is taken.
  /// - Parameter open: connections of all users.
  /// - Parameter held: connections of the one who asks.
  public func refusal(open: Int, held: Int) -> IngestCounters.Refusal? {
    if open >= max { return .connections }
    if held >= maxPerUser { return .user }
    let isLastQuarter = open >= max - max / 4
    return isLastQuarter && held >= Self.fewConnections ? .reserved : nil
  }
}
