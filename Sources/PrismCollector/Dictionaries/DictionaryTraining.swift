import PrismBase
import PrismPacket

/// Makes a dictionary of samples, and keeps it only if it pays. Takes seconds of a core.
actor DictionaryTraining {
  /// Lines of a small packet, which gains most.
  private static let packetLines = 10
  /// One line of 8 is not trained with: it judges.
  private static let judgeInterval = 8

  private let executor = DispatchQueueExecutor(label: "prism.collector.training")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// - Returns: nil if it would not make packets 5 % smaller than `present` does, or than they are without a dictionary.
  func dictionary(from samples: DictionarySamples, present: CompressionDictionary?) -> CompressionDictionary? {
    let indices = samples.samples.indices
    let taught = indices.filter { !$0.isMultiple(of: Self.judgeInterval) }.map { samples.samples[$0] }
    let judges = indices.filter { $0.isMultiple(of: Self.judgeInterval) }.map { samples.samples[$0].line }
    let lines =
      samples.devicesMin > 1
      ? SampleScreen(taught, devicesMin: samples.devicesMin).lines : taught.map(\.line)
    guard let made = CompressionDictionary.trained(from: lines), made.id != present?.id else { return nil }
    let packets = stride(from: 0, to: judges.count, by: Self.packetLines).map { start in
      Array(judges[start..<min(start + Self.packetLines, judges.count)].joined(separator: [UInt8(ascii: "\n")]))
    }
    guard let fresh = try? CompressionDictionary.packedBytes(of: packets, with: made),
      let now = try? CompressionDictionary.packedBytes(of: packets, with: present)
    else { return nil }
    return fresh * 100 <= now * 95 ? made : nil
  }
}
