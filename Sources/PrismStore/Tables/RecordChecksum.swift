import CDeflate

/// The crc32 of a record's values in their order. Every record that decides what is sent, or where a report is counted,
/// carries one: SQLite itself notices about 4 % of flipped bits.
struct RecordChecksum {
  private var crc: UInt32 = 0

  init(_ numbers: Int64...) { add(numbers) }

  mutating func add(_ numbers: [Int64]) { numbers.withUnsafeBytes { add($0) } }

  /// Adds the count, then the bytes.
  mutating func add(_ bytes: [UInt8]) {
    add([Int64(bytes.count)])
    bytes.withUnsafeBytes { add($0) }
  }

  mutating func add(_ text: String) { add(Array(text.utf8)) }

  private mutating func add(_ bytes: UnsafeRawBufferPointer) {
    // A nil pointer would begin the checksum again.
    if bytes.count > 0 { crc = libdeflate_crc32(crc, bytes.baseAddress, bytes.count) }
  }

  var value: Int64 { Int64(crc) }
}
