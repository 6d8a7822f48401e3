import PrismBase
import PrismProtocol

/// The id by which a collector knows this machine.
public enum DeviceID {
  /// Whether a device may have this id: 1 to 128 visible ASCII characters, as `device.id` takes them.
  public static func isValid(_ id: String) -> Bool { (1...128).contains(id.utf8.count) && id.isVisibleASCII }

  /// Derived from this machine's id, as `device.id: auto` does. - Returns: nil if the machine has no id.
  public static func ofThisMachine() throws(PacketError) -> String? {
    for path in ["/etc/machine-id", "/var/lib/dbus/machine-id"] {
      guard let bytes = try? SmallFile.read(path) else { continue }  // the next one may be there
      let id = String(decoding: bytes.prefix { $0 > UInt8(ascii: " ") }, as: UTF8.self)
      if !id.isEmpty { return try derived(machineID: id) }
    }
    return nil
  }

  /// 32 hexadecimal digits: HMAC-SHA-256 of prism's name under the machine id, cut to 128 bits. machine-id(5) asks for
  /// this: the id itself must not leave the machine, and can't be found from the result.
  public static func derived(machineID: String) throws(PacketError) -> String {
    let code = try Hashing.hmacSHA256(key: Secret(Array(machineID.utf8)), Array("prism device id 1".utf8))
    return Hex.encode(code.prefix(16))
  }
}
