/// The meta of a report as it is stored: its own members, and those behind them that it refers to.
struct ReportText {
  let own: UnsafeRawBufferPointer
  /// One JSON object of more members; nil: there are no more.
  let common: UnsafeRawBufferPointer?

  init(own: UnsafeRawBufferPointer, common: UnsafeRawBufferPointer? = nil) { (self.own, self.common) = (own, common) }

  private static let comma: [UInt8] = [UInt8(ascii: ",")]

  /// Of the whole meta.
  var count: Int { own.count + (common.map { $0.count - 1 } ?? 0) }

  /// Calls `body` with the parts of the whole meta.
  func forEachPart(_ body: (UnsafeRawBufferPointer) -> Void) {
    guard let common else { return body(own) }
    body(UnsafeRawBufferPointer(rebasing: own.dropLast()))
    Self.comma.withUnsafeBytes(body)
    body(UnsafeRawBufferPointer(rebasing: common.dropFirst()))
  }

  /// The whole meta.
  var whole: [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count)
    forEachPart { bytes.append(contentsOf: $0) }
    return bytes
  }
}
