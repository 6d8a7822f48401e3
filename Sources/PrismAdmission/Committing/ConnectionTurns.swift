/// Tells which of one user's connections is next. Small batches have a line of their own, which goes first until they cost as
/// much as the large batch that waits. So a connection with one report does not wait behind one that floods, and a large batch
/// waits at most for as much as it costs itself.
struct ConnectionTurns: Sendable {
  private struct Place: Sendable {
    let connection: Int
    let cost: Int
  }

  private var small: Ring<Place> = Ring()
  private var large: Ring<Place> = Ring()
  /// The cost of small batches since the last large one.
  private var smallCost = 0

  var isEmpty: Bool { small.isEmpty && large.isEmpty }

  /// The connection whose turn it is; nil if no connection waits.
  var next: Int? { (isTurnOfSmall ? small : large).first?.connection }

  private var isTurnOfSmall: Bool {
    guard let first = small.first, let other = large.first else { return large.isEmpty }
    return smallCost + first.cost <= other.cost
  }

  /// - Parameter cost: of the batch that the connection has waiting.
  mutating func add(_ connection: Int, cost: Int, isSmall: Bool) {
    let place = Place(connection: connection, cost: cost)
    if isSmall { small.append(place) } else { large.append(place) }
  }

  mutating func takeNext() -> Int? {
    guard isTurnOfSmall else {
      smallCost = 0
      return large.removeFirst()?.connection
    }
    guard let place = small.removeFirst() else { return nil }
    smallCost += large.isEmpty ? 0 : place.cost
    return place.connection
  }
}
