/// Tells from samples whether it pays to compress payloads.
enum ShrinkProbe {
  static let sampleBytes = 16 * 1024
  /// Less is not worth the time of either side.
  private static let savedShareMin = 0.03

  /// - Parameter pack: how they would be compressed.
  /// - Returns: whether compression is likely to save at least 3 % of all `payloads`. Each one's first 16 KiB stand for
  ///   it. Always true for no more than one sample's bytes in all: then the sample would cost as much as the work.
  static func shrinks(
    _ payloads: [[UInt8]], pack: ([UInt8]) throws(PacketError) -> [UInt8]
  ) throws(PacketError) -> Bool {
    let total = payloads.reduce(0) { $0 + $1.count }
    guard total > sampleBytes else { return true }
    var saved = 0.0
    for payload in payloads where !payload.isEmpty {
      let sample = Array(payload.prefix(sampleBytes))
      let share = 1 - Double(try pack(sample).count) / Double(sample.count)
      saved += share * Double(payload.count)
    }
    return saved >= savedShareMin * Double(total)
  }
}
