import PrismBase
import PrismPacket

/// Lines of packets that a dictionary is made of.
struct DictionarySamples: Sendable {
  /// Of all lines, and of those of one packet: no packet is most of the dictionary.
  static let (bytesMax, packetBytesMax) = (2 * 1_048_576, 16 * 1024)

  private(set) var samples: [DictionarySample] = []
  private(set) var bytes = 0
  /// Pieces that fewer devices sent are not in the dictionary.
  private(set) var devicesMin = 1

  var isFull: Bool { bytes >= Self.bytesMax }

  /// Takes the beginning of a packet.
  /// - Parameter devicesMin: 1, if all devices have one key and can read each other's packets.
  mutating func add(_ block: MetaBlock, from device: String, devicesMin: Int) {
    self.devicesMin = max(self.devicesMin, devicesMin)
    let sender = device.hashValue
    var taken = 0
    for range in LineRanges(block.text) {
      guard !isFull, taken + range.count <= Self.packetBytesMax else { return }
      samples.append(DictionarySample(sender: sender, line: Array(block.text[range])))
      taken += range.count
      bytes += range.count
    }
  }
}

/// One line of a packet, and who sent it.
struct DictionarySample: Sendable {
  /// A number for the device, in this process.
  var sender: Int
  var line: [UInt8]
}
