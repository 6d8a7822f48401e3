import PrismAdmission
import PrismConfig
import PrismProtocol

/// A host, a few namespaces and a peer, for the tests of admission.
enum AdmissionSupport {
  static let now: Int64 = 1_732_154_081_000
  static let epoch = "0123456789abcdefghij"
  static let shop = NamespaceName("shop")!

  static let facts = HostFacts(deviceID: "device-1", brand: "ACME", model: "Box 7", systemVersion: "Debian 12, Linux 6")
  static let peer = ReportingPeer(
    userID: 1000, groupIDs: [1000, 27], processID: 4711, processName: "posd", executable: "/usr/bin/posd",
    unit: "pos.service")

  /// `prism` as built in; `shop` with two types; `mute` gathers nothing; `vip` is for group 27, `root` for user 0 only.
  static func snapshot(
    generation: Int = 1, common: [String: String] = [:], _ change: (inout Snapshot) -> Void = { _ in }
  ) -> Snapshot {
    var prism = NamespaceConfiguration(
      name: .prism,
      monitorList: [
        MonitoredType(.appCrash, isRealtime: true, isUploadPayload: true),
        MonitoredType(ReportType("net")!, isUploadPayload: true),
      ])
    prism.maxBodyBytes = 1000
    var all = [prism]
    all.append(NamespaceConfiguration(name: shop, monitorList: ["order", "urgent"].map(type)))
    var mute = NamespaceConfiguration(name: NamespaceName("mute")!, monitorList: [type("order")])
    mute.isGather = false
    var vip = NamespaceConfiguration(name: NamespaceName("vip")!, monitorList: [type("order")])
    vip.allow = .init(userIDs: [], groupIDs: [27])
    var root = NamespaceConfiguration(name: NamespaceName("root")!, monitorList: [type("order")])
    root.allow = .init(userIDs: [0], groupIDs: [])
    var unit = NamespaceConfiguration(name: NamespaceName("unit")!, monitorList: [type("order")])
    unit.allow = .init(userIDs: [7], groupIDs: [], units: [UnitPattern("shop-*.service")!])
    all += [mute, vip, root, unit]
    var daemon = DaemonConfiguration()
    daemon.common = common
    var snapshot = Snapshot(
      generation: generation, daemon: daemon, namespaces: Dictionary(uniqueKeysWithValues: all.map { ($0.name, $0) }))
    change(&snapshot)
    return snapshot
  }

  private static func type(_ name: String) -> MonitoredType {
    MonitoredType(ReportType(name)!, isRealtime: name == "urgent", isUploadPayload: true)
  }

  static func session(_ snapshot: Snapshot = snapshot(), peer: ReportingPeer = peer) -> Session {
    Session(rules: AdmissionRules(snapshot), host: facts, peer: peer, sessionID: "session-1")
  }

  static func conversation(_ snapshot: Snapshot = snapshot(), peer: ReportingPeer = peer) -> IngestConversation {
    IngestConversation(session: session(snapshot, peer: peer), version: "9.9")
  }
}

/// Commits every batch of a conversation, and keeps it.
struct CommittingStore {
  private(set) var batches: [ReportBatch] = []
  private var sequence: Int64 = 0
  /// Client's ids that it has seen.
  private var known: Set<[UInt8]> = []

  mutating func commit(_ conversation: inout IngestConversation) {
    for batch in conversation.takeBatches() {
      conversation.settle(outcome(batch), failure: nil)
      batches.append(batch)
    }
    conversation.flushAnswers()
  }

  mutating func commit(_ batches: [ReportBatch]) { self.batches += batches }

  private mutating func outcome(_ batch: ReportBatch) -> BatchOutcome {
    var outcome = BatchOutcome(ids: [], epoch: AdmissionSupport.epoch)
    for (index, row) in batch.rows.enumerated() {
      sequence += 1
      outcome.ids.append(RowID(priority: batch.types[row.type].priority, sequence: sequence))
      if let id = row.clientReportID, !known.insert(Array(batch.arena[id])).inserted {
        outcome.exceptions.append((index, .duplicate))
      }
    }
    return outcome
  }

  /// Each report's merged meta, as the store would render it, and its payload.
  var reports: [(meta: JSONValue, payload: [UInt8]?)] {
    get throws {
      try batches.flatMap { batch in
        try batch.rows.map { row in
          let meta = Self.merged(row, of: batch)
          guard meta.count == row.metaBytes else { throw WrongSize(counted: row.metaBytes, is: meta.count) }
          return (try JSONValue(parsing: meta), row.payload.map { Array(batch.arena[$0]) })
        }
      }
    }
  }

  struct WrongSize: Error { let counted: Int, `is`: Int }

  private static func merged(_ row: ReportBatch.Row, of batch: ReportBatch) -> [UInt8] {
    var meta: [UInt8] = []
    let type = MetaSplicing.monitorType(batch.types[row.type].type, in: batch.namespace)
    let id = row.clientReportID.map { Array(batch.arena[$0]) } ?? Array(repeating: 0x78, count: RowID.reportIDBytes)
    batch.arena.withUnsafeBytes { arena in
      let splicing = MetaSplicing(
        monitorType: type.utf8, isBusiness: batch.namespace.isBusiness, context: batch.context.members)
      id.withUnsafeBytes {
        splicing.append(
          .given($0), createdTime: row.hasOwnCreateTime ? nil : row.createdTime, isSelfContained: row.isSelfContained,
          body: UnsafeRawBufferPointer(rebasing: arena[row.body]), to: &meta)
      }
    }
    return meta
  }
}

extension IngestConversation {
  mutating func consume(_ text: String, chunk size: Int = .max, unixMilliseconds now: Int64 = AdmissionSupport.now) {
    consume(Array(text.utf8), chunk: size, unixMilliseconds: now)
  }

  mutating func consume(_ bytes: [UInt8], chunk size: Int = .max, unixMilliseconds now: Int64 = AdmissionSupport.now) {
    for start in stride(from: 0, to: bytes.count, by: min(size, bytes.count)) {
      let piece = Array(bytes[start..<min(bytes.count, start + min(size, bytes.count))])
      var turn = WorkTurn.unbounded
      _ = consume(piece.span, within: &turn, unixMilliseconds: now)
    }
  }

  /// The answers since the last call, one a line.
  mutating func answers() -> [JSONValue] {
    defer { output = [] }
    return output.split(separator: 0x0A).map { (try? JSONValue(parsing: $0)) ?? .null }
  }
}
