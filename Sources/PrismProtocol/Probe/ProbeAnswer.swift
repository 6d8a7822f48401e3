/// A collector's answer to `ProbeQuestion`: its verdict on each part of a packet.
public struct ProbeAnswer: ControlMessage {
  public enum Verdict: String, Sendable, CaseIterable, ControlValue {
    case ok
    /// The collector has no key of this id.
    case unknown
    /// It has another key, or another token.
    case wrong
    /// No token came, and one is needed.
    case missing
    /// It asks for no token.
    case notAsked
    /// It tells this only a sender that has the key or a token.
    case hidden
  }

  /// The program and its version; empty: this is no answer of a collector.
  public var collector = ""
  /// Versions of packets that it takes.
  public var versions: [Int] = []
  /// Whether the collector takes the key.
  public var key = Verdict.hidden
  /// Whether it takes the token.
  public var token = Verdict.notAsked
  /// Of the namespaces that were asked about.
  public var refusedNamespaces: [String] = []
  /// The collector's clock, in milliseconds since 1970.
  public var time = 0

  public init() {}
}
