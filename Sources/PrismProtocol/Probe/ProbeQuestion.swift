/// The body of `POST /prism/probe` (docs/packet.md, "The probe"): what a sender would send packets with. Nothing is stored.
public struct ProbeQuestion: ControlMessage {
  public static let path = "/prism/probe"
  public static let contentType = "application/vnd.prism.probe+json"
  public static let bodyBytesMax = 128 * 1024

  /// Of the packets that the sender makes.
  public var version = 0
  public var device = ""
  public var namespaces: [String] = []
  public var keyID = ""
  /// 32 hexadecimal digits, new for each probe: an answer holds for one probe.
  public var nonce = ""
  /// The sender's clock, in milliseconds since 1970.
  public var time = 0

  private enum CodingKeys: String, CodingKey {
    case version, device, namespaces, nonce, time
    case keyID = "keyId"
  }

  public init() {}
}
