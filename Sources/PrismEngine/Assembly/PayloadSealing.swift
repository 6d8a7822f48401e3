import Dispatch
import PrismPacket
import PrismProtocol

/// Seals payloads before they are stored, for namespaces with `seal.publicKey`. Beside the store and the sockets: to pack a
/// large payload takes a while.
struct PayloadSealing: Sendable {
  private static let queue = DispatchQueue(label: "prism.sealing", qos: .userInitiated)

  /// The id under which this device's packets leave.
  let deviceID: @Sendable () -> String

  /// Calls `body` with the batches as they are to be stored: at once where there is nothing to seal.
  func prepare(_ batches: [ReportBatch], _ body: @escaping @Sendable (Result<[ReportBatch], PacketError>) -> Void) {
    guard batches.contains(where: Self.hasPayloadToSeal) else { return body(.success(batches)) }
    Self.queue.async {
      do throws(PacketError) {
        var sealed: [ReportBatch] = []
        for batch in batches { sealed.append(try self.sealed(batch)) }
        body(.success(sealed))
      } catch { body(.failure(error)) }
    }
  }

  private static func hasPayloadToSeal(_ batch: ReportBatch) -> Bool {
    batch.sealKey != nil && batch.rows.contains { $0.payload != nil }
  }

  private func sealed(_ batch: ReportBatch) throws(PacketError) -> ReportBatch {
    guard Self.hasPayloadToSeal(batch), let key = batch.sealKey.flatMap({ SealingPublicKey($0) }) else { return batch }
    let device = deviceID()
    var (result, arena): (ReportBatch, [UInt8]) = (batch, [])
    for (index, row) in batch.rows.enumerated() {
      result.rows[index].body = arena.append(copying: batch.arena[row.body])
      result.rows[index].clientReportID = row.clientReportID.map { arena.append(copying: batch.arena[$0]) }
      guard let payload = row.payload else { continue }
      guard let id = row.clientReportID else { throw .internal }
      let report = SealedReport(
        deviceID: device, namespace: batch.namespace, reportID: String(decoding: batch.arena[id], as: UTF8.self))
      let sealed = try SealedPayload.seal(Array(batch.arena[payload]), to: key, of: report)
      result.rows[index].payload = arena.append(copying: sealed[...])
    }
    result.arena = arena
    return result
  }
}

extension [UInt8] {
  fileprivate mutating func append(copying bytes: ArraySlice<UInt8>) -> Range<Int> {
    let start = count
    append(contentsOf: bytes)
    return start..<count
  }
}
