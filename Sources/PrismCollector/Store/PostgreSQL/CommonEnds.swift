import PrismPacket
import PrismProtocol

/// The texts with which those metas of a packet end alike that came whole, from a sender without `$common` lines. A row without
/// its end, and then the end, is the meta, byte for byte.
struct CommonEnds {
  /// Rows that follow each other and end alike.
  struct Run: Equatable {
    let rows: Range<Int>
    /// Of a digest of the text.
    let hash: Int64
    let text: ArraySlice<UInt8>
  }

  /// Shorter ends are left in their rows: the reference, and its own row, would cost as much.
  static let bytesMin = 64

  private(set) var runs: [Run] = []

  init(_ packet: OpenedPacket) {
    let (bytes, rows) = (packet.bytes, packet.rows)
    var (first, shared) = (0, 0)
    for index in rows.indices.dropFirst() where rows[index].common == nil {
      let isPair = index - first == 1
      let most = isPair ? min(rows[first].own.count, rows[index].own.count) : min(shared, rows[index].own.count)
      let isBehind = rows[index - 1].common == nil
      let found = isBehind ? Self.sharedBytes(bytes.span, rows[first].own, rows[index].own, most: most) : 0
      // Another session in the same packet ends with little of the same.
      if found >= Self.bytesMin, isPair || found >= shared / 4 * 3 {
        shared = found
      } else {
        close(first..<index, shared, bytes, rows)
        (first, shared) = (index, 0)
      }
    }
    close(first..<rows.count, shared, bytes, rows)
  }

  private static func sharedBytes(_ bytes: Span<UInt8>, _ a: Range<Int>, _ b: Range<Int>, most: Int) -> Int {
    var count = 0
    while count < most, bytes[a.upperBound - 1 - count] == bytes[b.upperBound - 1 - count] { count += 1 }
    return count
  }

  private mutating func close(_ rows: Range<Int>, _ shared: Int, _ bytes: [UInt8], _ all: [OpenedPacket.Row]) {
    guard rows.count > 1, shared > 0 else { return }
    // A comma is no part of a character of several bytes.
    let end = bytes[all[rows.lowerBound].own].suffix(shared).drop { $0 != UInt8(ascii: ",") }
    guard end.count >= Self.bytesMin, let hash = try? CommonInformation.hash(of: Array(end)) else { return }
    runs.append(Run(rows: rows, hash: hash, text: end))
  }
}
