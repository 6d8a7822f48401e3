import PrismOutputs
import PrismPacket
import PrismProtocol

@testable import PrismCollector

/// The promises of a `PacketStore`, in arrays.
actor MemoryPacketStore: PacketStore, ReportQueries {
  nonisolated let failure: String? = nil
  nonisolated let warnings: [String] = []
  nonisolated let recheckInterval: Duration? = nil
  nonisolated let figures = StoreCounts()
  nonisolated let quotas = Quotas()
  nonisolated var queries: any ReportQueries { self }

  /// Milliseconds since 1970.
  private static let now: Int64 = 1_700_000_000_000

  private var streams: [StreamID: KnownStream] = [:]
  private(set) var states: [StreamID: StreamState] = [:]
  private var reports: [StoredReport] = []
  private var erasures: [CheckedContinuation<Void, Never>] = []
  private var isClosed = false

  func take(_ group: [PacketSubmission]) async throws(StoreFailure) -> [PacketOutcome] {
    group.map { submission in
      let delivery = submission.packet.delivery
      let stream = StreamID(delivery.context)
      var known = streams[stream] ?? KnownStream()
      let outcome = known.verdict(on: submission, idsSince: Self.now - PacketID.knownMilliseconds, in: nil)
      guard case .stored(let chainIsBroken) = outcome else { return outcome }
      known.add(delivery.context.packetID)
      streams[stream] = known
      states[stream] = StreamState(packets: Int(known.packets), ledger: delivery.ledger ?? states[stream]?.ledger)
      store(submission.packet, chainIsBroken: chainIsBroken)
      return outcome
    }
  }

  private func store(_ packet: OpenedPacket, chainIsBroken: Bool) {
    let context = packet.delivery.context
    for (index, row) in packet.rows.enumerated() {
      let text = { (range: Range<Int>) in String(decoding: packet.reports.bytes[range], as: UTF8.self) }
      reports.append(
        StoredReport(
          id: Int64(reports.count + 1), device: context.deviceID, namespace: context.namespace.text,
          kind: context.kind.name, type: text(row.type), reportID: text(row.reportID), createdTime: row.createdTime,
          receivedTime: Self.now, packetID: context.packetID.description, chainIsBroken: chainIsBroken,
          meta: Array(packet.reports.meta(row)), payloadBytes: packet.payload(index)?.count,
          payload: packet.payload(index)))
    }
  }

  func records(_ filter: RecordFilter) async throws(StoreFailure) -> [CollectedRecord] { [] }

  func has(_ packet: PacketID, of stream: StreamID) async throws(StoreFailure) -> Bool {
    streams[stream]?.ids.contains(packet) ?? false
  }

  func hasPackets(of device: String) async throws(StoreFailure) -> Bool {
    streams.keys.contains { $0.device == device }
  }
  func deviceCount() async throws(StoreFailure) -> Int { Set(streams.keys.map(\.device)).count }

  func page(_ filter: ReportFilter) async throws(StoreFailure) -> [StoredReport] {
    let ordered = filter.isNewestFirst ? reports.reversed() : reports
    let found = ordered.filter { report in
      (filter.ids?.contains(report.id) ?? false) && filter.scope.has(report.namespace)
        && [nil, report.namespace].contains(filter.namespace)
        && [nil, report.type].contains(filter.type) && [nil, report.device].contains(filter.device)
        && [nil, report.kind].contains(filter.kind) && report.receivedTime >= filter.since ?? 0
        && report.receivedTime < filter.until ?? .max && filter.metas.allSatisfy { $0.holds(for: report.meta) }
    }
    return found.prefix(filter.limit).map { report in
      var report = report
      if !filter.hasPayloads { report.payload = nil }
      return report
    }
  }

  func report(_ id: Int64, _ scope: Scope) async throws(StoreFailure) -> StoredReport? {
    reports.first { $0.id == id && scope.has($0.namespace) }
  }
  func maintain() async throws(StoreFailure) -> Bool { false }
  nonisolated func outputSource(_ name: String) -> any OutputSource { MemoryOutputSource(store: self) }
  func close() async {
    isClosed = true
    for erasure in erasures { erasure.resume() }
    erasures = []
  }

  // MARK: Questions: of the reports alone

  func windows(
    _ filter: ReportFilter, _ grouping: ReportGrouping?
  ) async throws(StoreFailure) -> [ClosedRange<Int64>] { reports.isEmpty ? [] : [1...Int64(reports.count)] }
  func newestID() async throws(StoreFailure) -> Int64 { Int64(reports.count) }
  func first(from id: Int64) async throws(StoreFailure) -> (id: Int64, receivedTime: Int64)? { (id, Self.now) }
  func counts(_ filter: ReportFilter, _ grouping: ReportGrouping) async throws(StoreFailure) -> [ReportCount] { [] }
  func numbers(
    _ filter: ReportFilter, path: [String], _ grouping: ReportGrouping, limit: Int
  ) async throws(StoreFailure) -> (numbers: [ReportNumbers], from: Int64?) { ([], nil) }
  func streams(_ scope: Scope, of device: String?, limit: Int) async throws(StoreFailure) -> [DeviceStream] { [] }
  func types(_ scope: Scope, limit: Int) async throws(StoreFailure) -> [TypeName] { [] }

  // MARK: It has no records, and its erasures last until it is closed

  func change(
    _ changes: [RecordChange], of place: RecordPlace, if condition: ChangeCondition
  ) async throws(RecordFailure) -> [RecordChanged] { throw .store(.rejected("no records")) }
  func record(_ id: RecordID, of place: RecordPlace) async throws(StoreFailure) -> CollectedRecord? { nil }
  func isDeletionPending(_ id: RecordID, of place: RecordPlace) async throws(StoreFailure) -> Bool { false }
  func commands(changedBefore time: Int64, limit: Int) async throws(StoreFailure) -> [CommandPlace] { [] }
  func tags(of namespaces: [String]) async throws(StoreFailure) -> [CollectedTags] { [] }
  func reply(to question: DownQuestion) async throws(StoreFailure) -> RecordReply { throw .rejected("no records") }
  func readAll(of place: RecordPlace, _ take: @escaping @Sendable (DownLine) throws -> Void) async throws {}
  func eraseNext(_ filter: ReportFilter, after id: Int64) async throws(StoreFailure) -> ErasedBlock? {
    if !isClosed { await withCheckedContinuation { erasures.append($0) } }
    return nil
  }
  func erase(device: String) async throws(StoreFailure) -> Int { 0 }
  func scrub(_ days: Set<Int64>) async throws(StoreFailure) {}
}

/// Reads the arrays, and keeps its place.
actor MemoryOutputSource: OutputSource {
  private let store: MemoryPacketStore
  private var last: Int64 = 0
  private var letters: [DeadReport] = []
  private var refused: Set<Int64> = []

  init(store: MemoryPacketStore) { self.store = store }

  func lead() -> Bool { true }
  func cursor() -> Int64 { last }
  func note(cursor id: Int64, refused: [RefusedReport]) {
    last = max(last, id)
    for one in refused {
      letters.removeAll { $0.id == one.id }
      if one.isDelivered { self.refused.remove(one.id) } else { self.refused.insert(one.id) }
      letters.append(DeadReport(id: one.id, cause: one.cause, time: 0, isRequeued: false))
    }
  }
  func deadCount() -> DeadCount { DeadCount(letters: letters.count, refused: refused.count) }
  func dead(after id: Int64, limit: Int, onlyRequeued: Bool) -> [DeadReport] {
    let found = letters.filter { $0.id > id && ($0.isRequeued || !onlyRequeued) }.sorted { $0.id < $1.id }
    return Array(found.prefix(limit))
  }
  func change(dead ids: ClosedRange<Int64>, _ change: DeadChange) -> Int {
    let count = letters.count { ids.contains($0.id) }
    if change == .drop {
      letters.removeAll { ids.contains($0.id) }
      refused = refused.filter { !ids.contains($0) }
    }
    for index in letters.indices where ids.contains(letters[index].id) { letters[index].isRequeued = true }
    return count
  }
  func close() {}

  func next(after id: Int64, limit: Int) async throws(StoreFailure) -> [StoredReport] {
    var filter = ReportFilter(scope: .everything)
    (filter.after, filter.limit, filter.hasPayloads) = (id, limit, true)
    return try await store.page(filter)
  }
}
