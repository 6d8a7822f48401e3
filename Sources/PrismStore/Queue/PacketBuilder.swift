import PrismProtocol

/// Takes rows in their order until the packet is full.
struct PacketBuilder {
  let itemsMax: Int
  let bytesMax: Int
  let metaBytesMax: Int

  private(set) var members = IDRuns()
  private(set) var metas: [UInt8] = []
  private(set) var payloads: [[UInt8]] = []
  private(set) var bytes = 0
  private(set) var hasClientIDs = false

  init(itemsMax: Int, bytesMax: Int, metaBytesMax: Int) {
    (self.itemsMax, self.bytesMax, self.metaBytesMax) = (itemsMax, bytesMax, metaBytesMax)
  }

  /// Takes every row: for a packet whose rows were settled when it was claimed.
  static var unlimited: Self { Self(itemsMax: .max, bytesMax: .max, metaBytesMax: .max) }

  var isFull: Bool { members.count >= itemsMax }

  /// false: the packet is closed, the row is not in it. The first row is always taken.
  mutating func add(_ row: StoredRow, _ rendering: RowRendering) -> Bool {
    let start = metas.count
    guard members.isEmpty || (!isFull && Int(row.size) <= bytesMax - bytes) else { return false }
    if !members.isEmpty { metas.append(0x0A) }
    rendering.append(row, to: &metas)
    if !members.isEmpty && metas.count > metaBytesMax {
      metas.removeLast(metas.count - start)
      return false
    }
    if let payload = row.payload { payloads.append([UInt8](payload)) }
    members.append(row.id)
    bytes += Int(row.size)
    hasClientIDs = hasClientIDs || row.flags.contains(.clientID)
    return true
  }
}

/// What a row needs from outside to become the meta that leaves.
struct RowRendering {
  var epoch: [UInt8]
  var monitorType: [UInt8]
  var isBusiness: Bool
  /// The members of the row's context.
  var context: [UInt8]

  func append(_ row: StoredRow, to metas: inout [UInt8]) {
    var reportID: [UInt8]
    if let given = row.reportID {
      reportID = [UInt8](given)
    } else {
      reportID = []
      RowID(value: row.id).appendReportID(epoch: epoch, to: &reportID)
    }
    MetaSplicing.append(
      monitorType: monitorType, reportID: reportID,
      createdTime: row.flags.contains(.ownCreateTime) ? nil : row.createdTime, isBusiness: isBusiness,
      context: row.flags.contains(.selfContained) ? [] : context, body: row.body, to: &metas)
  }
}
