import PrismBase
import PrismProtocol

/// The id by which a collector knows this machine.
public enum DeviceID {
  /// 32 hexadecimal digits: HMAC-SHA-256 of prism's name under the machine id, cut to 128 bits. machine-id(5) asks for
  /// this: the id itself must not leave the machine, and can't be found from the result.
  public static func derived(machineID: String) throws(PacketError) -> String {
    let code = try Hashing.hmacSHA256(key: Array(machineID.utf8), Array("prism device id 1".utf8))
    return Hex.encode(code.prefix(16))
  }
}
