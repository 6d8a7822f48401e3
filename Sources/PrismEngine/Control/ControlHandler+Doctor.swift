import PrismProtocol

// `prismctl doctor`: the part of it that only the daemon can look at.
extension ControlHandler {
  func doctor() async -> [JSONValue.Member] {
    let findings = await Doctor(engine: engine, process: process()).findings()
    return [.init("findings", .array(findings.map(\.controlJSON)))]
  }
}
