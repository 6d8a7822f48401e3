/// Connections in the order in which they came. One that left stays until it is looked at, or until most of the line is of such.
struct ConnectionLine: Sendable {
  enum Place {
    /// It left the line.
    case gone
    /// It is in the line, and is not meant now.
    case stays
    case found
  }

  private var places: [(connection: LibraryPointer, ticket: UInt64)] = []
  private var begin = 0
  /// Places that are looked at in vain: each goes to the end of the line.
  private static let looksMax = 32

  /// - Parameter livingMax: there are at most as many that did not leave.
  mutating func append(
    _ connection: LibraryPointer, _ ticket: UInt64, livingMax: Int, _ isLiving: (LibraryPointer, UInt64) -> Bool
  ) {
    places.append((connection, ticket))
    guard places.count > 2 * livingMax + 64 else { return }
    places = places[begin...].filter { isLiving($0.connection, $0.ticket) }
    begin = 0
  }

  /// The first that is `found`; it leaves the line.
  mutating func first(_ check: (LibraryPointer, UInt64) -> Place) -> LibraryPointer? {
    var looks = 0
    while begin < places.count, looks < Self.looksMax {
      let (connection, ticket) = places[begin]
      begin += 1
      switch check(connection, ticket) {
      case .gone: continue
      case .found: return connection
      case .stays:
        places.append((connection, ticket))
        looks += 1
      }
    }
    return nil
  }
}
