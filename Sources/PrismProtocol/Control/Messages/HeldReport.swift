/// A namespace that only an operator can get going again, in the last line of `flush` with `wait`.
public struct HeldReport: ControlMessage {
  public var namespace = "?", cause = ""

  public init() {}

  public init(namespace: String, cause: String) { (self.namespace, self.cause) = (namespace, cause) }

  public static let fields: [ControlField<HeldReport>] = [.init("namespace", \.namespace), .init("cause", \.cause)]
}
