import PrismBase
import PrismClient
import PrismProtocol

/// Reports whose content follows from their number, so that what arrives can be held to it byte for byte.
enum Sample {
  static func text(_ number: Int) -> String { "№ \(number) \"\\/\u{1}\u{1F600}é\n\t" }

  /// 0 to 299 bytes.
  static func payload(_ number: Int) -> [UInt8] {
    var state = UInt64(number) &* 0x9E37_79B9_7F4A_7C15
    return (0..<(number % 300)).map { _ in
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return UInt8(truncatingIfNeeded: state >> 56)
    }
  }

  /// - Parameter noiseBytes: 0 to 299, that no packet compresses.
  static func report(
    _ number: Int, in namespace: String, hasPayload: Bool = false, hasID: Bool = false, noiseBytes: Int = 0
  ) -> Report {
    let noise = Hex.encode(Array(payload(number * 300 + 299).prefix(noiseBytes)))
    return Report(
      ReportType("sample")!, in: NamespaceName(namespace)!,
      meta: noiseBytes > 0
        ? ["n": .int(number), "text": .string(text(number)), "noise": .string(noise)]
        : ["n": .int(number), "text": .string(text(number))],
      payload: hasPayload ? payload(number) : nil,
      id: hasID ? ReportID("n-\(number)") : nil)
  }

  static func textHex(_ number: Int) -> String { Hex.encode(Array(text(number).utf8)) }
  static func payloadHex(_ number: Int) -> String { Hex.encode(payload(number)) }
}
