import Glibc
import PrismBase
import PrismConfig
import PrismHTTP
import PrismOutputs
import PrismPacket
import PrismProtocol
import PrismSQL
import PrismTestSupport

@testable import PrismCollector

/// The life of a collector's store in a fault run: chains of packets of three devices, some of them sent again.
struct PacketWorkload {
  /// Numbers of reports whose packets were answered.
  private(set) var acknowledged: Set<Int> = []
  /// Packets that were answered.
  private(set) var known: [OpenedPacket] = []
  /// Packets that were sent; whether they are stored is not known of all.
  private(set) var sent: [OpenedPacket] = []
  /// A packet that was answered was not known when it was sent again.
  private(set) var forgotten = 0
  private var last: [String: PacketID] = [:]
  private var next = 0
  private let onProgress: (PacketWorkload) -> Void

  init(onProgress: @escaping (PacketWorkload) -> Void = { _ in }) { self.onProgress = onProgress }

  mutating func run(_ store: SQLitePacketStore, rounds: Int, using random: inout SeededRandom) async {
    for round in 0..<rounds {
      await send(store, packets: Int.random(in: 1...4, using: &random), using: &random)
      if round % 5 == 4 { while (try? await store.maintain()) == true {} }
    }
  }

  /// One group; one packet in it was sent before. - Returns: whether it was answered.
  @discardableResult
  mutating func send(_ store: SQLitePacketStore, packets: Int, using random: inout SeededRandom) async -> Bool {
    var group: [OpenedPacket] = []
    for _ in 0..<packets {
      let device = random.pick(["a", "b", "c"])
      let numbers = Array(next..<next + Int.random(in: 1...12, using: &random))
      next = numbers.last! + 1
      let packet = Self.packet(numbers, device: device, after: last[device], using: &random)
      last[device] = packet.delivery.context.packetID
      group.append(packet)
    }
    sent += group
    let again = known.randomElement(using: &random)
    let submissions = (group + (again.map { [$0] } ?? [])).map { PacketSubmission(packet: $0, isLate: true) }
    guard let outcomes = try? await store.take(submissions) else { return false }
    if again != nil && outcomes.last != .duplicate { forgotten += 1 }
    known += group
    acknowledged.formUnion(group.flatMap(Self.numbers))
    onProgress(self)
    return true
  }

  static func numbers(_ packet: OpenedPacket) -> [Int] {
    packet.rows.compactMap { $0.createdTime.map { Int($0) } }
  }

  static func packet(
    _ numbers: [Int], device: String, after predecessor: PacketID?, using random: inout SeededRandom
  ) -> OpenedPacket {
    let id = PacketID(unixMilliseconds: 1_700_000_000_000, using: &random)
    let metas = numbers.map { number in
      #"{"MONITOR_TYPE":"t\#(number % 3)","CREATE_TIME":\#(number),"text":"\#(text(number))"}"#
    }
    var lines = CommonLineWriter()
    for (number, meta) in zip(numbers, metas) { lines.append(Array(meta.utf8), common: Array(common(number).utf8)) }
    let headers = PacketHeaders(
      deviceID: device, namespace: .prism, packetID: id, kind: .meta, dependsOn: predecessor, itemCount: numbers.count,
      sentTime: 1_700_000_000_000, format: BlockFormat(cipher: .aes128GCM, keyID: "main", encoding: .gzip))
    let request = HTTPRequest(
      method: .post, path: "/prism/meta", headers: headers.fields.map { ($0.name.lowercased(), $0.value) },
      peer: HTTPPeer(address: "", isLocal: true))
    // Sound by construction.
    return try! OpenedPacket(
      try! Delivery(request, kind: .meta, now: 1_700_000_000_000),
      ReadPacket(metas: try! MetaBlock(parsing: lines.bytes, rowsMax: numbers.count), payloads: []))
  }

  /// Two of three runs of reports share it, a few dozen each.
  private static func common(_ number: Int) -> String {
    let session = number / 40
    return session % 3 == 0 ? "" : #""session":\#(session),"app":"\#(text(session % 7))""#
  }

  private static func text(_ number: Int) -> String { String(repeating: "x\(number % 97)", count: 20 + number % 200) }

  /// Whether a report is what was sent under its number.
  static func isWhole(_ report: StoredReport) -> Bool {
    guard !report.isDamaged, let number = report.createdTime.map({ Int($0) }),
      let meta = try? JSONValue(parsing: report.meta)
    else { return false }
    guard meta["session"]?.int == (common(number).isEmpty ? nil : number / 40),
      meta["app"]?.string == (common(number).isEmpty ? nil : text(number / 40 % 7))
    else { return false }
    return meta["text"]?.string == text(number) && meta["CREATE_TIME"]?.int == number && report.type == "t\(number % 3)"
  }
}

/// A store of packets in a folder in memory.
final class PacketStoreFolder {
  let folder = FaultFolder()
  let time = ManualTime()

  func open(vfs: String? = nil) throws -> SQLitePacketStore {
    var options = SQLitePacketStore.Options(folder: folder.path, log: Logger(write: { _ in }))
    (options.vfs, options.time) = (vfs, time)
    var limits = CollectorConfiguration.Limits()
    limits.quotas = [.init(namespace: "*", rowsMax: 1_000_000)]
    options.quotas = Quotas(limits)
    return try SQLitePacketStore(options)
  }

  /// The rows that its namespace ever took, and those that its devices took today.
  static func taken(_ store: SQLitePacketStore) async throws -> [Int64] {
    try await store.readers.reports.read { reader in
      let mask = (1 << Quotas.countBits) - 1
      return try [
        "SELECT sum(value) FROM facts WHERE name = 'quota prism'",
        "SELECT sum(value & \(mask)) FROM facts WHERE name LIKE 'day rows %'",
      ].map { try reader.statements.integer($0) ?? 0 }
    }
  }

  /// Every report that is there, when all that can be brought over was.
  static func reports(_ store: SQLitePacketStore) async throws -> [StoredReport] {
    while try await store.maintain() {}
    var (filter, reports) = (ReportFilter(scope: .everything), [StoredReport]())
    filter.limit = 1000
    while case let page = try await store.page(filter), let last = page.last {
      reports += page
      filter.after = last.id
    }
    return reports
  }
}
