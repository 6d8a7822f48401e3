import PrismBase
import PrismProtocol

/// The devices of a block, as its row has them: a JSON list, or of more devices a filter of Bloom, behind a mark, in base64.
/// A filter knows each device that it has, and one in a hundred that it does not have.
enum BlockDevices {
  /// Of a list; and of either text.
  private static let (devicesMax, textBytesMax) = (64, 8192)
  private static let filterMark: Character = "~"
  /// Bits of a filter for each device, and how many of them a device sets: about ln 2 of that.
  private static let (bitsADevice, bitsSet) = (10, 7)

  /// - Returns: nil for more devices than a text has room for, about 4,900.
  static func text(of devices: Set<String>) -> String? {
    let list = JSONValue.array(devices.sorted().map { .string($0) }).text
    if devices.count <= devicesMax, list.utf8.count <= textBytesMax { return list }
    var bits = [UInt8](repeating: 0, count: (bitsADevice * devices.count + 7) / 8)
    for device in devices { for place in places(of: device, bits.count) { bits[place / 8] |= 1 << UInt8(place % 8) } }
    let filter = "\(filterMark)\(Base64.encode(bits))"
    return filter.utf8.count <= textBytesMax ? filter : nil
  }

  /// Whether the device may be one of them. A text that is damaged excludes nothing.
  static func mayHave(_ device: String, _ text: String) -> Bool {
    guard text.first == filterMark else { return text.contains(JSONValue.string(device).text) }
    guard let bits = Base64.decode(text.utf8.dropFirst()), !bits.isEmpty else { return true }
    return places(of: device, bits.count).allSatisfy { bits[$0 / 8] & 1 << UInt8($0 % 8) != 0 }
  }

  /// The bits of a device in a filter of this size: the halves of its hash, once and again the second one added.
  private static func places(of device: String, _ bytes: Int) -> [Int] {
    let hash = StableHash.of(Array(device.utf8))
    let (first, step) = (hash >> 32, hash & 0xFFFF_FFFF | 1)
    return (0..<UInt64(bitsSet)).map { Int((first + $0 * step) % UInt64(8 * bytes)) }
  }
}

extension BlockHead {
  /// The device of all its reports; nil: there are several.
  var onlyDevice: String? {
    guard let list = devices.flatMap({ try? JSONValue(parsing: $0) })?.array, list.count == 1 else { return nil }
    return list[0].string
  }
}
