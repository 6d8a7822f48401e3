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

extension ReadStore {
  func eraseNext(_ filter: ReportFilter, after id: Int64) async throws(StoreFailure) -> ErasedBlock? {
    while true {
      guard let found = try await readers.reports.erasure(filter, after: id) else { return nil }
      // It may be merged meanwhile.
      guard try await erasing({ try $0.erase(found) }) else { continue }
      let received = found.former.received
      return ErasedBlock(
        ids: found.former.ids, reports: found.erased.count,
        days: [received.lowerBound / 86_400_000, received.upperBound / 86_400_000])
    }
  }

  func erase(device: String) async throws(StoreFailure) -> Int { try await erasing { try $0.erase(device: device) } }

  private func erasing<Value: Sendable>(
    _ body: @Sendable (StoreTables) throws -> Value
  ) async throws(StoreFailure) -> Value {
    try await changing("reports can't be erased", "reports are erased again", body)
  }
}
