import CDeflate

/// crc32 of a record's values in their order. Every record that decides what is sent, or where a report is counted,
/// carries one: SQLite itself notices about 4 % of flipped bits.
struct RowSum {
  private var crc: UInt32 = 0

  init(_ numbers: Int64...) { add(numbers) }

  mutating func add(_ numbers: [Int64]) { numbers.withUnsafeBytes { add($0) } }
  mutating func add(_ bytes: [UInt8]) {
    add([Int64(bytes.count)])
    bytes.withUnsafeBytes { add($0) }
  }
  mutating func add(_ text: String) { add(Array(text.utf8)) }

  private mutating func add(_ bytes: UnsafeRawBufferPointer) {
    // A nil pointer would begin the sum anew.
    if bytes.count > 0 { crc = libdeflate_crc32(crc, bytes.baseAddress, bytes.count) }
  }

  var value: Int64 { Int64(crc) }
}

extension RowSum {
  /// - Parameter table: so that a record that comes into the wrong table is seen.
  static func ofName(_ name: String, number: Int64, in table: String) -> Int64 {
    var sum = RowSum(number)
    sum.add(table)
    sum.add(name)
    return sum.value
  }

  /// - Parameter numbers: every column between the queue and `last_accepted`.
  static func ofLedger(_ queue: QueueID, _ numbers: [Int64], lastAccepted: [UInt8]?) -> Int64 {
    var sum = RowSum(Int64(queue.namespace), Int64(QueueID.number(of: queue.kind)))
    sum.add(numbers)
    if let lastAccepted { sum.add(lastAccepted) }
    return sum.value
  }

  /// Without its position, which other packets move, and its bytes, which only the quota asks for.
  static func ofPacket(
    _ id: [UInt8], _ queue: QueueID, createdTime: Int64, hasClientIDs: Bool, header: String, members: String
  ) -> Int64 {
    var sum = RowSum(Int64(queue.namespace), Int64(QueueID.number(of: queue.kind)), createdTime, hasClientIDs ? 1 : 0)
    sum.add(id)
    sum.add(header)
    sum.add(members)
    return sum.value
  }
}
