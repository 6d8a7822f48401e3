import PrismProtocol

/// The operations of a packet of the kind `records`, in their order.
struct RecordPacket: Sendable {
  let operations: [RecordOperation]

  /// nil for a packet of another kind. - Throws: 422 naming the line that is no operation.
  init?(_ packet: OpenedPacket) throws(CollectorRefusal) {
    guard !packet.delivery.context.kind.isReport else { return nil }
    var operations: [RecordOperation] = []
    operations.reserveCapacity(packet.rows.count)
    for (index, row) in packet.rows.enumerated() {
      guard var operation = RecordOperation(line: Array(packet.reports.meta(row))) else {
        throw CollectorRefusal(422, code: .metaSyntax, "line \(index) is no operation on a record")
      }
      // The device's clock is that of `Prism-Sent-Time`.
      operation.changedTime =
        operation.changedTime.addingReportingOverflow(packet.delivery.clockCorrection).partialValue
      operations.append(operation)
    }
    self.operations = operations
  }
}
