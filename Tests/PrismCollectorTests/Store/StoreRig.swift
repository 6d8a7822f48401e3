import Foundation
import Glibc
import PrismBase
import PrismHTTP
import PrismOutputs
import PrismPacket
import PrismProtocol
import PrismSQL
import PrismTestSupport
import Synchronization

@testable import PrismCollector

/// Packets for a store, and a folder for it.
final class StoreRig: Sendable {
  enum Kind: String, CaseIterable, Sendable { case sqlite, memory, postgresql }

  let path: String
  let time = ManualTime()
  private let lines = Mutex<[String]>([])

  var log: Logger { Logger(write: { [self] line in lines.withLock { $0.append(line) } }) }
  var logged: [String] { lines.withLock { $0 } }

  init() {
    var template = Array("/dev/shm/prism-packets-XXXXXX".utf8CString)
    path = String(cString: mkdtemp(&template))
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }  // a left folder harms no test

  func sqlite(_ change: (inout SQLitePacketStore.Options) -> Void = { _ in }) throws -> SQLitePacketStore {
    var options = SQLitePacketStore.Options(folder: path, log: log)
    options.time = time
    change(&options)
    return try SQLitePacketStore(options)
  }

  func store(_ kind: Kind) async throws -> any PacketStore {
    switch kind {
    case .postgresql: try await PostgreSQLRig().store()
    case .sqlite: try sqlite()
    case .memory: MemoryPacketStore()
    }
  }

  /// Takes the fleet's tables back to those of version 0.2.0.
  static let fleetOfFirstVersion =
    "DROP TABLE device_facts; ALTER TABLE tokens DROP COLUMN tags; DROP TABLE notices; DROP TABLE notice_marks; DROP TABLE jobs; DROP TABLE job_devices; DROP TABLE trigger_windows; DROP TABLE trigger_devices;"

  /// Takes the tables of packets and records back to those of version 0.2.0.
  static let packetsOfFirstVersion = """
    ALTER TABLE records DROP COLUMN reported; ALTER TABLE records DROP COLUMN fetched_time;
    ALTER TABLE record_tables DROP COLUMN fetched_seq; ALTER TABLE output_dead DROP COLUMN is_delivered;
    """

  enum Fleet: String, CaseIterable, Sendable { case sqlite, postgresql }

  /// Where what is known of the fleet is kept: all that open it share it.
  func fleet(_ kind: Fleet) async throws -> FleetDatabase {
    guard kind == .postgresql else { return .folder(path) }
    let database = try await PostgreSQLRig()
    return .server(try PostgreSQLTarget(uri: database.server.uri(database.database, user: "prism", others: [])))
  }

  /// The time by a store's clock.
  func now(_ kind: Kind) -> Int64 { kind == .postgresql ? SystemTime().unixMilliseconds : time.unixMilliseconds }

  /// A packet of reports with these numbers.
  /// - Parameters:
  ///   - common: the common members that a row comes with.
  ///   - members: more members of its own.
  static func packet(
    _ numbers: [Int], device: String = "d", namespace: String = "prism", type: String = "t", payload: [UInt8]? = nil,
    id: PacketID? = nil, after predecessor: PacketID? = nil, pending: Int = 0, ledger: String? = nil,
    reportPrefix: String = "", common: (Int) -> String? = { _ in nil }, members: (Int) -> String? = { _ in nil }
  ) throws -> OpenedPacket {
    var random = SystemRandomNumberGenerator()
    let context = PacketContext(
      deviceID: device, namespace: NamespaceName(namespace)!,
      packetID: id ?? PacketID(unixMilliseconds: 1_700_000_000_000, using: &random),
      kind: payload == nil ? .meta : .payload)
    let metas = numbers.map {
      #"{"MONITOR_TYPE":"\#(type)","REPORT_ID":"\#(reportPrefix)r\#($0)","CREATE_TIME":\#($0),"n":\#($0)\#(members($0).map { "," + $0 } ?? "")}"#
    }
    var lines = CommonLineWriter()
    for (number, meta) in zip(numbers, metas) {
      lines.append(Array(meta.utf8), common: Array((common(number) ?? "").utf8))
    }
    let delivery = try Delivery(
      try CollectorTests.request(
        context, metas: metas, payloads: payload.map { [[UInt8]](repeating: $0, count: numbers.count) } ?? [],
        dependsOn: predecessor, ledger: ledger ?? "", pendingCount: pending), kind: context.kind,
      now: 1_700_000_000_000)
    return try OpenedPacket(
      delivery,
      ReadPacket(
        metas: MetaBlock(parsing: lines.bytes, rowsMax: numbers.count),
        payloads: payload.map { [[UInt8]](repeating: $0, count: numbers.count) } ?? []))
  }

  /// Reports 1 to 4, whose clocks were set since they came, but for that of the first.
  static func correctedPackets() throws -> [OpenedPacket] {
    let shared = #""SYS_CLOCK_STEP":"7","pad":"\#(String(repeating: "x", count: 80))""#
    return [
      try packet([1, 2], members: { $0 == 2 ? #""SYS_CLOCK_STEP":"-500""# : nil }),
      try packet([3, 4], common: { _ in shared }),
    ]
  }

  /// Of number times correction.
  static let correctedSum: Int64 = 2 * -500 + 3 * 7 + 4 * 7

  static func number(_ report: StoredReport) -> Int? {
    (try? JSONValue(parsing: report.meta))?["n"]?.int
  }
}

struct StreamState: Equatable {
  var packets: Int
  var ledger: String?
}

extension PacketStore {
  /// nil: no packet of this stream was ever stored.
  func state(of stream: StreamID) async throws -> StreamState? {
    if let memory = self as? MemoryPacketStore { return await memory.states[stream] }
    let found = try await queries.streams(.everything, of: stream.device, limit: 1000).first {
      $0.namespace == stream.namespace.text && $0.kind == stream.kind.name
    }
    return found.map { StreamState(packets: $0.packets, ledger: $0.ledger) }
  }

  func take(_ packet: OpenedPacket, isLate: Bool = false) async throws -> PacketOutcome? {
    try await take([PacketSubmission(packet: packet, isLate: isLate)]).first
  }

  /// All reports with their payloads, page by page.
  func reports() async throws -> [StoredReport] {
    var (filter, reports) = (ReportFilter(scope: .everything), [StoredReport]())
    (filter.limit, filter.hasPayloads) = (1000, true)
    while case let page = try await page(filter), let last = page.last {
      reports += page
      filter.after = last.id
    }
    return reports
  }

  /// The numbers of all reports that match, page by page.
  func numbers(_ filter: ReportFilter = ReportFilter(scope: .everything)) async throws -> [Int?] {
    var (filter, numbers) = (filter, [Int?]())
    while true {
      let page = try await page(filter)
      guard let last = page.last else { return numbers }
      numbers += page.map { StoreRig.number($0) }
      filter.after = last.id
    }
  }
}

extension OpenedPacket {
  var id: PacketID { delivery.context.packetID }
}
