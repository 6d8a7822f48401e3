import CZstd

/// A zstd dictionary (RFC 8878, section 5): what the reports of a namespace have in common, known to both sides.
public struct CompressionDictionary: Sendable, Equatable {
  /// Larger ones gain nothing for reports.
  public static let bytesMax = 112_640
  /// Of a namespace's reports, what it is trained from.
  public static let sampleBytesMax = 8 * 1_048_576

  /// Names it in `Prism-Dictionary`; never 0. The dictionary holds it.
  public let id: UInt32
  /// The dictionary in zstd's format.
  public let bytes: [UInt8]

  /// - Returns: nil for bytes that are no dictionary, have no id, or are too many.
  public init?(_ bytes: [UInt8]) {
    let id = ZDICT_getDictID(bytes, bytes.count)
    guard id != 0, bytes.count <= Self.bytesMax, let tried = ZSTD_createDDict(bytes, bytes.count) else { return nil }
    ZSTD_freeDDict(tried)
    (self.id, self.bytes) = (id, bytes)
  }

  /// Makes a dictionary of what `samples` have in common. Takes seconds for the most that it takes.
  /// - Parameter samples: one meta each; those past `sampleBytesMax` are left out. About a hundred times `bytesMax`, if
  ///   there are as many, give a good dictionary.
  /// - Returns: nil if they are too few or too much alike.
  public static func trained(from samples: [[UInt8]], bytesMax: Int = 32 * 1024) -> CompressionDictionary? {
    var (joined, sizes): ([UInt8], [Int]) = ([], [])
    for sample in samples where joined.count + sample.count <= sampleBytesMax {
      joined += sample
      sizes.append(sample.count)
    }
    var dictionary = [UInt8](repeating: 0, count: min(bytesMax, Self.bytesMax))
    let count = ZDICT_trainFromBuffer(&dictionary, dictionary.count, joined, sizes, UInt32(sizes.count))
    guard ZDICT_isError(count) == 0 else { return nil }
    return CompressionDictionary(Array(dictionary[..<count]))
  }

  /// The size of `blocks`, each packed by zstd for itself.
  /// - Parameter dictionary: nil: without one.
  /// - Throws: `internal` without memory.
  public static func packedBytes(
    of blocks: [[UInt8]], with dictionary: CompressionDictionary?
  ) throws(PacketError) -> Int {
    let compressor = try ZstdCompressor(dictionary: dictionary)
    var bytes = 0
    for block in blocks { bytes += try compressor.pack(block).count }
    return bytes
  }
}
