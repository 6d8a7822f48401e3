/// A payload around the limit of 1,000 bytes, as the end of a report's line and what follows it.
struct LargePayload: Sendable {
  let rest: String
  /// The bytes that are left out; nil: it is stored.
  let leftOut: Int?

  static let all: [LargePayload] = [
    following(1001, leftOut: 1001), following(1000), base64(334, leftOut: 1002),
    base64(333, end: "AAA=", leftOut: 1001), base64(334, #"A\/AA"#, leftOut: 1002), base64(333, end: "AA=="),
  ]

  private static func following(_ bytes: Int, leftOut: Int? = nil) -> Self {
    Self(rest: #","payloadBytes":\#(bytes)}"# + "\n" + String(repeating: "p", count: bytes), leftOut: leftOut)
  }

  private static func base64(_ fours: Int, _ four: String = "AAAA", end: String = "", leftOut: Int? = nil) -> Self {
    Self(rest: #","payload":"\#(String(repeating: four, count: fours))\#(end)"}"# + "\n", leftOut: leftOut)
  }
}
