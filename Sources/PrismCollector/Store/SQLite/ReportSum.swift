import PrismPacket

/// Tells whether a report is what was stored: SQLite itself notices few flipped bits. The upper half is of all but the
/// payload, with the whole meta, the lower half of the payload, so that one can be checked without the other.
struct ReportSum: Equatable {
  private let rest: UInt32
  private var payload: UInt32 = 0

  var value: Int64 { Int64(bitPattern: UInt64(rest) << 32 | UInt64(payload)) }

  /// - Parameter payloadBytes: nil without a payload.
  init(
    _ head: PacketDatabase.ReportHead, id: Int64, type: Int64, created: Int64?, reportID: UnsafeRawBufferPointer,
    meta: ReportText, payloadBytes: Int?
  ) {
    var sum = Checksum.CRC32()
    let numbers: [Int64] = [
      id, head.stream, type, head.receivedTime, created ?? .min, head.chainIsBroken ? 1 : 0, Int64(reportID.count),
      Int64(meta.count), Int64(payloadBytes ?? -1),
    ]
    numbers.withUnsafeBytes { sum.add($0) }
    head.packet.withUnsafeBytes { sum.add($0) }
    sum.add(reportID)
    meta.forEachPart { sum.add($0) }
    rest = sum.value
  }

  mutating func add(payload bytes: UnsafeRawBufferPointer) {
    var sum = Checksum.CRC32()
    sum.add(bytes)
    payload = sum.value
  }

  func isRest(of value: Int64) -> Bool { UInt64(bitPattern: value) >> 32 == UInt64(rest) }
}
