/// The body of `POST /prism/probe` (docs/packet.md, "The probe"): what a sender would send packets with. Nothing is stored.
public struct ProbeQuestion: ControlMessage {
  /// Of the request.
  public static let (path, contentType) = ("/prism/probe", "application/vnd.prism.probe+json")
  /// A longer body is refused.
  public static let bodyBytesMax = 128 * 1024

  /// Of the packets that the sender makes.
  public var version = 0
  /// The sender, and the key of its packets.
  public var device = "", keyID = ""
  /// Those that it sends reports of.
  public var namespaces: [String] = []
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
