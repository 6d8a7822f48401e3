import PrismAdmission
import PrismTestSupport
import Testing

@Suite("Whose input is taken next")
struct WorkOrderTests {
  /// Serves turns that cost what `cost` says of a connection, as long as `cost` in all is less than `total`.
  /// - Returns: what each connection's turns cost.
  private func serve(
    _ order: inout WorkOrder, users: [Int: UInt32], total: Int, cost: (_ connection: Int, _ credit: Int) -> Int
  ) -> [Int: Int] {
    var (spent, sum): ([Int: Int], Int) = ([:], 0)
    while sum < total, let (connection, credit) = order.next() {
      let turn = cost(connection, credit)
      order.endTurn(connection, user: users[connection]!, cost: turn, waits: true)
      spent[connection, default: 0] += turn
      sum += turn
    }
    return spent
  }

  @Test("a user with 1,000 connections gets no more than one with a single connection")
  func users() {
    var (order, users) = (WorkOrder(), [0: UInt32(1)])
    for connection in 1...1000 { users[connection] = 2 }
    for (connection, user) in users { order.add(connection, user: user) }
    let total = 64 * WorkOrder.userTurn
    let spent = serve(&order, users: users, total: total) { min($1, 4096) }
    #expect(abs(spent[0, default: 0] - total / 2) <= 2 * WorkOrder.userTurn)
  }

  @Test("a user's connections share its turns, at any cost of each turn")
  func connections() {
    var order = WorkOrder()
    let users: [Int: UInt32] = [1: 1, 2: 1, 3: 1]
    for (connection, user) in users { order.add(connection, user: user) }
    let total = 90 * WorkOrder.connectionTurn
    let spent = serve(&order, users: users, total: total) { connection, credit in
      connection == 1 ? 2 * WorkOrder.connectionTurn : connection == 2 ? credit : min(credit, 2048)
    }
    for connection in 1...3 {
      #expect(abs(spent[connection, default: 0] - total / 3) <= 4 * WorkOrder.connectionTurn, "\(connection)")
    }
  }

  @Test("who comes waits for one turn of each other user at most")
  func newcomer() {
    var (order, users): (WorkOrder, [Int: UInt32]) = (WorkOrder(), [:])
    for connection in 1...320 { users[connection] = UInt32(connection / 20) }
    for (connection, user) in users { order.add(connection, user: user) }
    _ = serve(&order, users: users, total: 1 << 24) { $1 }
    users[1000] = 99
    order.add(1000, user: 99)
    var before = 0
    while let (connection, credit) = order.next(), connection != 1000 {
      order.endTurn(connection, user: users[connection]!, cost: credit, waits: true)
      before += credit
    }
    #expect(before <= 17 * WorkOrder.userTurn)
  }

  @Test("a turn that cost too much is paid for, also by a user that stops in between")
  func debts() {
    var order = WorkOrder()
    let users: [Int: UInt32] = [1: 1, 2: 2]
    for (connection, user) in users { order.add(connection, user: user) }
    var spent = [1: 0, 2: 0]
    for _ in 0..<4000 {
      guard let (connection, credit) = order.next() else { break }
      let cost = connection == 1 ? 10 * WorkOrder.userTurn : min(credit, 8192)
      order.endTurn(connection, user: users[connection]!, cost: cost, waits: connection != 1)
      spent[connection]! += cost
      if connection == 1 { order.add(1, user: 1) }
    }
    #expect(abs(spent[1]! - spent[2]!) <= 12 * WorkOrder.userTurn, "\(spent)")
  }

  @Test("while requests come and go, each that waits is served, and nothing is left")
  func anyOrder() {
    let seed = SeededRandom.announcedSeed("work order")
    var random = SeededRandom(seed: seed)
    var (order, waiting): (WorkOrder, Set<Int>) = (WorkOrder(), [])
    for _ in 0..<20_000 {
      let connection = Int.random(in: 0..<40, using: &random)
      if Bool.random(using: &random) {
        order.add(connection, user: UInt32(connection % 7))
        waiting.insert(connection)
      } else if let (next, credit) = order.next() {
        guard waiting.contains(next), credit > 0 else {
          Issue.record("seed \(seed): \(next) does not wait")
          return
        }
        let waits = Int.random(in: 0..<3, using: &random) == 0
        order.endTurn(next, user: UInt32(next % 7), cost: Int.random(in: 0...600_000, using: &random), waits: waits)
        if !waits { waiting.remove(next) }
      }
      #expect(order.isEmpty == waiting.isEmpty, "seed \(seed)")
    }
    for connection in waiting { order.remove(connection, user: UInt32(connection % 7)) }
    #expect(order.isEmpty)
    let last = order.next()
    #expect(last == nil)
  }
}
