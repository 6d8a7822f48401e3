/// The body of `POST /prism/intent` (docs/packet.md, "The intent of a trigger"): may the reports of a trigger leave, or have
/// enough devices sent?
public struct IntentQuestion: ControlMessage {
  /// Of the request.
  public static let (path, contentType) = ("/prism/intent", "application/vnd.prism.intent+json")
  /// A longer body is refused.
  public static let bodyBytesMax = 4096
  /// A trigger's name at most, with `server.` ahead of it.
  public static let ruleBytesMax = 128

  /// Where the reports wait.
  public var device = "", namespace = ""
  /// The key of `Prism-Mac`, and the cipher that it is of.
  public var keyID = "", cipher = ""
  /// 32 hexadecimal digits, new for each question: an answer holds for one.
  public var nonce = ""
  /// The trigger's name.
  public var rule = ""
  /// The most devices that send for it in 24 hours.
  public var devices = 0
  /// Reports that wait for the answer, and their bytes.
  public var reports = 0, bytes = 0

  private enum CodingKeys: String, CodingKey {
    case device, namespace, cipher, nonce, rule, devices, reports, bytes
    case keyID = "keyId"
  }

  public init() {}
}

/// The collector's answer to `IntentQuestion`.
public struct IntentAnswer: ControlMessage {
  /// The reports may leave; false: enough devices have sent.
  public var leaves = false

  public init() {}
}
