@testable import PrismCollector

/// A store whose windows are cut.
struct CutWindows: ReportQueries {
  typealias Cut =
    @Sendable (any ReportQueries, ReportFilter, ReportGrouping?) async throws(StoreFailure) -> [ClosedRange<Int64>]

  let inner: any ReportQueries
  /// Called for each window of counts that is read.
  var inWindow: @Sendable () -> Void = {}
  let cut: Cut

  private init(_ inner: any ReportQueries, cut: @escaping Cut) { (self.inner, self.cut) = (inner, cut) }

  /// Each window is seven.
  static func small(_ inner: any ReportQueries, inWindow: @escaping @Sendable () -> Void = {}) -> CutWindows {
    var windows = CutWindows(inner) { (inner, filter, grouping) throws(StoreFailure) in
      try await inner.windows(filter, grouping).flatMap { ids in
        let step = max(1, Int64(ids.count) / 7)
        return stride(from: ids.lowerBound, through: ids.upperBound, by: Int(step)).reversed().map {
          $0...min(ids.upperBound, $0 + step - 1)
        }
      }
    }
    windows.inWindow = inWindow
    return windows
  }

  /// The newest report has a window of its own.
  static func single(_ inner: any ReportQueries) -> CutWindows {
    CutWindows(inner) { (inner, filter, grouping) throws(StoreFailure) in
      guard let newest = try await inner.windows(filter, grouping).first?.upperBound else { return [] }
      var (windows, at) = ([ClosedRange<Int64>](), newest)
      let whole = ReportGrouping(bucketMilliseconds: ReportGrouping.wholeTime)
      while windows.isEmpty, at > newest - 5000 {
        var one = ReportFilter(scope: .everything)
        (one.after, one.before) = (at - 1, newest + 1)
        if try await inner.counts(one, whole).isEmpty { at -= 1 } else { windows = [at...newest, 0...at - 1] }
      }
      return windows
    }
  }

  func windows(
    _ filter: ReportFilter, _ grouping: ReportGrouping?
  ) async throws(StoreFailure) -> [ClosedRange<Int64>] { try await cut(inner, filter, grouping) }
  func newestID() async throws(StoreFailure) -> Int64 { try await inner.newestID() }
  func first(from id: Int64) async throws(StoreFailure) -> (id: Int64, receivedTime: Int64)? {
    try await inner.first(from: id)
  }
  func counts(_ filter: ReportFilter, _ grouping: ReportGrouping) async throws(StoreFailure) -> [ReportCount] {
    inWindow()
    return try await inner.counts(filter, grouping)
  }
  func numbers(
    _ filter: ReportFilter, path: [String], _ grouping: ReportGrouping, limit: Int
  ) async throws(StoreFailure) -> (numbers: [ReportNumbers], from: Int64?) {
    try await inner.numbers(filter, path: path, grouping, limit: limit)
  }
  func streams(_: Scope, of device: String?, limit: Int) async throws(StoreFailure) -> [DeviceStream] { [] }
  func types(_: Scope, limit: Int) async throws(StoreFailure) -> [TypeName] { [] }
}
