/// The questions of the page to a store, beside whole reports. Each call reads one window of ids, so that a question over many
/// reports can end in time and say how far it came.
protocol ReportQueries: Sendable {
  /// Windows of ids, from the newest to the oldest, that hold every report of the filter. A clock of the collector that went
  /// back may leave out reports at the edges of `since` and `until`.
  /// - Parameter grouping: by which they are counted; nil: they are read.
  func windows(_ filter: ReportFilter, _ grouping: ReportGrouping?) async throws(StoreFailure) -> [ClosedRange<Int64>]

  /// Every report up to this id is at rest, or never will be; 0: there was no report yet.
  func newestID() async throws(StoreFailure) -> Int64

  /// The first report from this id on, and when it was received; nil if there is no such report.
  func first(from id: Int64) async throws(StoreFailure) -> (id: Int64, receivedTime: Int64)?

  func counts(_ filter: ReportFilter, _ grouping: ReportGrouping) async throws(StoreFailure) -> [ReportCount]

  /// The numbers of a field of the meta; reports without a number there are left out.
  /// - Parameter path: keys, from the outermost map on.
  /// - Parameter limit: of `NumberCounts.size`: soon after it the answer ends, having the newest reports.
  /// - Returns: with the first id that was read, where the limit ended it.
  func numbers(
    _ filter: ReportFilter, path: [String], _ grouping: ReportGrouping, limit: Int
  ) async throws(StoreFailure) -> (numbers: [ReportNumbers], from: Int64?)

  /// Those of one device, or of all, the ones heard of last first.
  func streams(_ scope: Scope, of device: String?, limit: Int) async throws(StoreFailure) -> [DeviceStream]

  /// By namespace and name.
  func types(_ scope: Scope, limit: Int) async throws(StoreFailure) -> [TypeName]
}

struct TypeName: Sendable, Equatable, Hashable {
  var namespace: String, type: String
}

/// The facts that a store has about one sender's stream of packets.
struct DeviceStream: Sendable, Equatable {
  var device: String, namespace: String, kind: String
  var packets: Int
  /// When its last packet came, milliseconds since 1970, of the collector's clock.
  var receivedTime: Int64
  /// The newest `Prism-Ledger`.
  var ledger: String?
}
