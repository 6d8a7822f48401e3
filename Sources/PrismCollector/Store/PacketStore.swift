import PrismOutputs
import PrismProtocol

/// Where packets and their reports rest. Every implementation passes one conformance suite.
protocol PacketStore: RecordStore, ReportEraser {
  /// Why the last call failed; nil: it did not. Never waits.
  var failure: String? { get }
  /// Faults that an operator must mend while packets are taken, one line each. Never waits.
  var warnings: [String] { get }
  /// Counts since its start.
  var figures: StoreCounts { get }
  /// How often a packet whose predecessor is missing is offered again, because another process may have stored that one;
  /// nil: no other process stores packets here.
  var recheckInterval: Duration? { get }

  /// Takes a group of packets in one transaction. Each is held to what the store has and to those before it in the group.
  /// - Returns: an outcome a packet, once all of it is at rest.
  /// - Throws: nothing of the group is known to be at rest.
  func take(_ group: [PacketSubmission]) async throws(StoreFailure) -> [PacketOutcome]

  /// Whether a packet is stored, as far as its id is known.
  func has(_ packet: PacketID, of stream: StreamID) async throws(StoreFailure) -> Bool

  func deviceCount() async throws(StoreFailure) -> Int

  /// Whether a device of this id has ever sent a packet.
  func hasPackets(of device: String) async throws(StoreFailure) -> Bool

  /// Reports in the order in which they were stored, without their payloads.
  func page(_ filter: ReportFilter) async throws(StoreFailure) -> [StoredReport]

  /// Answers the page.
  var queries: any ReportQueries { get }

  /// To which it holds namespaces and devices.
  var quotas: Quotas { get }

  /// One report with its payload; nil if no report of the scope has this id.
  func report(_ id: Int64, _ scope: Scope) async throws(StoreFailure) -> StoredReport?

  /// Records of one table, by ascending server id.
  func records(_ filter: RecordFilter) async throws(StoreFailure) -> [CollectedRecord]

  /// Does one slice of what falls due: forgets packet ids, deletes old reports, brings over what a damaged database held.
  /// - Returns: whether more of it is due at once.
  func maintain() async throws(StoreFailure) -> Bool

  /// The source of the output of this name. An output begins with the oldest report that there is.
  func outputSource(_ name: String) -> any OutputSource

  func close() async
}

struct PacketSubmission: Sendable {
  var packet: OpenedPacket
  /// Its predecessor was waited for in vain: it is stored without, and each of its reports says so.
  var isLate = false
  /// Its predecessor was refused for good here: it is not stored without.
  var isPredecessorRefused = false

  /// It is not stored without its predecessor, whether its stream is known or not.
  var needsPredecessor: Bool { isPredecessorRefused || packet.delivery.hasPendingPredecessor }
}

enum PacketOutcome: Sendable, Equatable {
  /// - Parameter chainIsBroken: the packet before it never came.
  case stored(chainIsBroken: Bool)
  /// It was stored before.
  case duplicate
  /// Its operations on records were carried out, now or before: a packet that comes again gets the same answer.
  case applied(RecordApplied)
  /// Not stored: the packet before it is not known, though its stream is, or its sender says that it is on its way.
  case predecessorMissing
  /// Not stored: a limit of its namespace or device is used up. It may come again.
  case overQuota(Overdraft)
  /// Not stored: it is as old as packets whose ids are forgotten, so it may be one of them. Its stream has a newer one.
  case tooOld
}

/// Erases reports for good.
protocol ReportEraser: Sendable {
  /// Erases the reports of the next block that has some.
  /// - Returns: nil: behind this id there are no such reports.
  func eraseNext(_ filter: ReportFilter, after id: Int64) async throws(StoreFailure) -> ErasedBlock?

  /// Erases the records of a device, and its streams. - Returns: how many records it had.
  func erase(device: String) async throws(StoreFailure) -> Int

  /// Rewrites the files that held what was erased: no byte of it stays in them. Packets wait meanwhile.
  /// - Parameter days: since 1970, on which the erased reports were received.
  func scrub(_ days: Set<Int64>) async throws(StoreFailure)
}

/// A block that was rewritten, or deleted.
struct ErasedBlock: Sendable, Equatable {
  let ids: ClosedRange<Int64>
  let reports: Int
  /// Days since 1970.
  let days: Set<Int64>
}
