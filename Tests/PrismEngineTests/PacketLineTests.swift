import PrismProtocol
import PrismStore
import Testing

@testable import PrismEngine

@Suite("The line of packets")
struct PacketLineTests {
  static let ids = (1...4).map { PacketID("018bcfe5-6800-7000-8000-00000000000\($0)")! }

  /// Three claimed packets.
  private func line() -> PacketLine {
    var line = PacketLine()
    line.add(
      Self.ids[..<3].map {
        ClaimedPacket(
          id: $0, namespace: .prism, kind: .meta, createdTime: 0, ledgerHeader: "", metas: [], itemCount: 2,
          payloads: [])
      })
    return line
  }

  @Test("what can't have left dissolves, what may have left stays, in its place") func dissolves() {
    var line = line()
    line.began()
    line.answered(mayHaveLeft: true)
    line.isExhausted = true
    line.dissolve(now: .zero)
    #expect(line.entries.map(\.id) == [Self.ids[0]])
    #expect(line.settlements == [.dissolved(Self.ids[1]), .dissolved(Self.ids[2])])
    #expect(!line.isExhausted && !line.isDone, "their rows wait again")
  }

  @Test("a packet whose POST was not answered yet never dissolves, whatever fails meanwhile") func onItsWay() {
    var line = line()
    line.began()
    line.dissolve(now: .zero)
    #expect(line.head?.id == Self.ids[0] && line.entries.count == 1)
    line.answered(mayHaveLeft: false)
    line.dissolve(now: .zero)
    #expect(line.entries.isEmpty)
  }

  @Test("what a run before left in flight may all have left") func recovered() {
    var line = PacketLine()
    line.recover(
      [PacketInFlight(id: Self.ids[0], createdTime: 0, itemCount: 1)], lastAccepted: Self.ids[3])
    line.dissolve(now: .zero)
    #expect(line.head?.id == Self.ids[0] && line.lastAccepted == Self.ids[3] && line.settlements.isEmpty)
  }

  @Test("half of a packet does not dissolve while a packet behind it may have left: order holds")
  func halfBeforeFrozen() {
    var line = PacketLine()
    let inFlight = [Self.ids[0], Self.ids[1]].map { PacketInFlight(id: $0, createdTime: 0, itemCount: 2) }
    line.recover(inFlight, lastAccepted: nil)
    let settlement = Settlement.split(Self.ids[0], first: Self.ids[2], second: Self.ids[3])
    line.split(settlement, first: Self.ids[2], second: Self.ids[3], now: .zero)
    line.committed(1, now: .zero)
    line.dissolve(now: .zero)
    #expect(line.entries.map(\.id) == [Self.ids[2], Self.ids[3], Self.ids[1]] && line.settlements.isEmpty)
  }

  @Test("halves stand where their whole stood, and are read once that is committed") func split() {
    var line = line()
    line.began()
    line.answered(mayHaveLeft: true)
    let settlement = Settlement.split(Self.ids[0], first: Self.ids[3], second: Self.ids[0])
    line.split(settlement, first: Self.ids[3], second: Self.ids[0], now: .zero)
    #expect(line.entries.map(\.id) == [Self.ids[3], Self.ids[0], Self.ids[1], Self.ids[2]])
    #expect(line.mustCommit && line.settlements == [settlement])
    line.committed(1, now: .zero)
    #expect(!line.mustCommit && line.settlements.isEmpty)
  }

  @Test("a store that failed makes it read anew what is in flight; what was decided stays so") func lost() {
    var line = line()
    line.began()
    line.answered(mayHaveLeft: true)
    let receipt = Settlement.Receipt(unixMilliseconds: 0, attempts: 1, wasDuplicate: false)
    line.settle(.delivered(Self.ids[0], receipt: receipt), now: .zero)
    line.lose()
    #expect(line.entries.isEmpty && !line.isRecovered && !line.isDone)
    #expect(line.settlements == [.delivered(Self.ids[0], receipt: receipt)] && line.lastAccepted == Self.ids[0])
  }
}
