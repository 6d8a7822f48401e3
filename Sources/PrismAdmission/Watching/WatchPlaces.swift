import PrismProtocol
import Synchronization

/// Shares the watches of all connections among their users, so that the cost of a change is bounded.
public final class WatchPlaces: Sendable {
  /// Watches of one user, over all connections.
  public static let perUserMax = 1024

  private let taken = Mutex<[UInt32: Int]>([:])
  private let count = Atomic<Int>(0)

  /// No watch is there.
  public init() {}

  /// Whether no connection watches anything.
  public var isEmpty: Bool { count.load(ordering: .relaxed) == 0 }

  /// Takes one of the user's places. - Throws: `busy` if the user has no place left.
  func take(userID: UInt32) throws(Refusal) -> WatchPlace {
    let isTaken = taken.withLock { taken in
      guard taken[userID, default: 0] < Self.perUserMax else { return false }
      taken[userID, default: 0] += 1
      return true
    }
    guard isTaken else {
      throw Refusal(
        .busy, "this user has \(Self.perUserMax) watches on all connections; end some, then watch again",
        retryMilliseconds: 10_000)
    }
    count.add(1, ordering: .relaxed)
    return WatchPlace(self, userID: userID)
  }

  fileprivate func give(back userID: UInt32) {
    count.subtract(1, ordering: .relaxed)
    taken.withLock { taken in
      let left = taken[userID, default: 0] - 1
      taken[userID] = left > 0 ? left : nil
    }
  }
}

/// One watch of a user; it is given back with the last reference.
final class WatchPlace: Sendable {
  private let places: WatchPlaces
  private let userID: UInt32

  fileprivate init(_ places: WatchPlaces, userID: UInt32) { (self.places, self.userID) = (places, userID) }

  deinit { places.give(back: userID) }
}
