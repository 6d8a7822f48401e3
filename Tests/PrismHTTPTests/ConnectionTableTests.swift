import Testing

@testable import PrismHTTP

@Suite("The table of connections")
struct ConnectionTableTests {
  private static func connection(_ number: Int) -> LibraryPointer {
    LibraryPointer(OpaquePointer(bitPattern: 0x1000 * (number + 1))!)
  }

  /// The table of a server with 16 places: unproven connections have at least 2 of them, and at most 4.
  private struct Places {
    var table = ConnectionTable(connectionsMax: 16)
    var opened = 0

    /// - Returns: which connection gave way, by its number.
    mutating func open(_ address: String, isProven: Bool = false, isIdle: Bool = true) -> Int? {
      let connection = ConnectionTableTests.connection(opened)
      let victim = table.open(connection, .init(socket: -1, address: address, deadline: .seconds(1)))
      if isProven { table.prove(connection) }
      if isIdle { table.set(idle: true, connection) }
      opened += 1
      guard let victim else { return nil }
      let number = (0..<opened).first { ConnectionTableTests.connection($0) == victim.0 }
      table.close(victim.0)
      return number
    }
  }

  @Test("strangers have a quarter of the places, and the oldest of them gives way") func quarter() {
    var places = Places()
    #expect((0..<6).map { _ in places.open("a") } == [nil, nil, nil, nil, 0, 1])
    #expect(places.open("b") == 2 && places.table.openCount == 4)
  }

  @Test("a stranger takes no place of a busy proven connection, and of idle ones only within an eighth")
  func strangers() {
    var places = Places()
    for _ in 0..<10 { _ = places.open("device", isProven: true, isIdle: false) }
    for _ in 0..<6 { _ = places.open("device", isProven: true) }
    #expect((0..<5).map { places.open("s\($0)") } == [10, 11, 16, 17, 18])
    #expect(places.table.unprovenCount == 2 && places.table.openCount == 16)
  }

  @Test("a device that is new finds a place, however many others are idle") func noneStarves() {
    var places = Places()
    let victims = (0..<100).map { places.open("d\($0)", isProven: true) }
    #expect(victims == Array(repeating: nil, count: 16) + (0..<84).map { Optional($0) })
  }

  @Test("an address that has more than the others takes a place from itself") func fairness() {
    var places = Places()
    for address in ["a", "b", "b", "c"] { _ = places.open(address) }
    #expect(places.open("b") == 1, "more than its part: the oldest of b")
    #expect(places.open("new") == 0, "the oldest of all")
  }

  @Test("a connection that waits for its answer does not give way, and then the new one does") func waiting() {
    var places = Places()
    for number in 0..<4 { _ = places.open("a\(number)") }
    for number in 0..<4 { places.table.change(Self.connection(number)) { $0.deadline = nil } }
    #expect(places.open("new") == 4)
  }

  @Test("connections that come and go leave nothing behind") func bounded() {
    var places = Places()
    for number in 0..<5000 {
      _ = places.open("a\(number % 7)", isProven: number % 3 == 0)
      for _ in 0..<4 {
        places.table.set(idle: false, Self.connection(number))
        places.table.set(idle: true, Self.connection(number))
      }
      if number % 2 == 0 { places.table.close(Self.connection(number)) }
      #expect(places.table.openCount <= 16)
    }
    for number in 0..<5000 { places.table.close(Self.connection(number)) }
    #expect(places.table.openCount == 0 && places.table.unprovenCount == 0)
  }

  @Test("the slowest body of a stranger gives way, once it had a second") func slowest() {
    var places = Places()
    for number in 0..<4 {
      _ = places.open("a")
      places.table.change(Self.connection(number)) { $0.body = (.seconds(number), 1000 * number + 1, .seconds(9)) }
    }
    #expect(places.table.slowestBody(but: Self.connection(9), now: .seconds(4)) == Self.connection(0))
    #expect(places.table.slowestBody(but: Self.connection(0), now: .seconds(4)) == Self.connection(1))
    #expect(places.table.slowestBody(but: Self.connection(0), now: .seconds(1)) == nil)
    #expect(places.table.hasLargestBody(Self.connection(3)) && !places.table.hasLargestBody(Self.connection(2)))
  }
}
