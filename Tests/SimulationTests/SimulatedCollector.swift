import PrismPacket
import PrismProtocol
import PrismTestSupport

/// A collector that remembers packet ids, and checks each promise on the packets that it gets (docs/delivery.md).
struct SimulatedCollector {
  struct Line: Hashable {
    let namespace: NamespaceName
    let kind: RowKind
  }

  /// A packet taken apart.
  struct Packet {
    let id: PacketID
    let line: Line
    let dependsOn: PacketID?
    /// Packets before it that its sender has no receipt for.
    let pending: Int
    let reports: [ArrivedReport]
    /// Of everything that was encrypted.
    let digest: UInt64
  }

  enum Verdict: Equatable {
    case accepted, duplicate
    case refused(Int)
    /// Its predecessor may come.
    case held
    /// Its predecessor was refused for good.
    case stranded
  }

  /// Every packet that was ever seen on its way: what was in it.
  private var seen: [PacketID: UInt64] = [:]
  private var taken: Set<PacketID> = []
  private var last: [Line: PacketID] = [:]
  private var applied: [Line: [Int: PacketID]] = [:]
  /// The newest number of each type and priority that was accepted.
  private var newest: [String: Int] = [:]
  /// Packets that were refused for good.
  private var refusedPackets: Set<PacketID> = []
  /// Reports that were stored as realtime ones: they leave before others of their type.
  var realtime: Set<Int> = []
  /// Numbers of reports that were alone in a packet that was refused, by their ids. These may be dead letters, though
  /// no client got the id.
  private(set) var refusedAlone: [String: Set<Int>] = [:]
  /// Reports that wait out of their order, because somebody put them back.
  var outOfOrder: Set<Int> = []

  func isKnown(_ id: PacketID) -> Bool { taken.contains(id) }
  func hasApplied(_ number: Int, _ line: Line) -> Bool { applied[line]?[number] != nil }
  func appliedCount(_ line: Line) -> Int { applied[line]?.count ?? 0 }

  /// A packet is on its way: it always says the same, at any place that it gets to.
  mutating func saw(_ packet: Packet) throws {
    let before = seen.updateValue(packet.digest, forKey: packet.id)
    guard before == nil || before == packet.digest else {
      throw Broken(description: "packet \(packet.id) has other contents than before")
    }
  }

  mutating func refused(_ packet: Packet) {
    if !taken.contains(packet.id) { refusedPackets.insert(packet.id) }
    if let report = packet.reports.first, packet.reports.count == 1 {
      // Two users may have given the same id.
      refusedAlone[report.reportID, default: []].insert(report.number)
    }
  }

  mutating func take(_ packet: Packet, rowsMax: Int) throws -> Verdict {
    if taken.contains(packet.id) { return .duplicate }
    if packet.reports.count > rowsMax {
      refusedPackets.insert(packet.id)
      return .refused(413)
    }
    if packet.reports.contains(where: { LifeReport.isPoison($0.number) }) {
      refused(packet)
      return .refused(422)
    }
    if packet.pending > 0, let dependsOn = packet.dependsOn, dependsOn != last[packet.line], !taken.contains(dependsOn)
    {
      return refusedPackets.contains(dependsOn) ? .stranded : .held
    }
    guard packet.dependsOn == last[packet.line] else {
      let (said, due) = (packet.dependsOn?.description ?? "nothing", last[packet.line]?.description ?? "nothing")
      throw Broken(description: "packet \(packet.id) of \(packet.line) depends on \(said), accepted last was \(due)")
    }
    for report in packet.reports { try apply(report, of: packet) }
    taken.insert(packet.id)
    refusedPackets.remove(packet.id)
    last[packet.line] = packet.id
    return .accepted
  }

  private mutating func apply(_ report: ArrivedReport, of packet: Packet) throws {
    if let other = applied[packet.line, default: [:]].updateValue(packet.id, forKey: report.number) {
      throw Broken(description: "report \(report.number) of \(packet.line) came in \(other) and again in \(packet.id)")
    }
    if outOfOrder.contains(report.number) { return }
    let queue = "\(packet.line) \(report.type) \(realtime.contains(report.number) ? "realtime" : "")"
    guard report.number > newest[queue] ?? 0 else {
      throw Broken(description: "report \(report.number) of \(queue) came after \(newest[queue] ?? 0)")
    }
    newest[queue] = report.number
  }
}

extension SimulatedCollector.Line: CustomStringConvertible {
  var description: String { "\(namespace) \(kind.name)" }
}
