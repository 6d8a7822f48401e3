public import PrismProtocol

/// The answer of a collector to a carried packet: a line of `receipts.ndjson`, which settles the packet at home
/// (docs/carrying.md). It repeats the packet's headers, because the receipt proves them.
public struct CarriedAnswer: Sendable, Equatable {
  /// The file in the folder of the packets.
  public static let fileName = "receipts.ndjson"

  /// The headers that the packet was written with.
  public let headers: PacketHeaders
  /// The status that a POST would have had.
  public let status: Int
  /// `Prism-Receipt`; nil where the packet was not taken.
  public let receipt: String?
  /// `Prism-Verdict`; nil where the packet was taken, or its sender is not proven.
  public let verdict: String?
  /// The body of the answer, as the proof covers it.
  public let body: String

  public init(headers: PacketHeaders, status: Int, receipt: String?, verdict: String? = nil, body: String) {
    (self.headers, self.status, self.receipt, self.verdict, self.body) = (headers, status, receipt, verdict, body)
  }

  /// The headers of the answer that prove it, names in lower case.
  public var proof: [String: String] {
    var headers: [String: String] = [:]
    if let receipt { headers["prism-receipt"] = receipt }
    if let verdict { headers["prism-verdict"] = verdict }
    return headers
  }

  /// The packet is at rest at the collector, as far as the answer says.
  public var isTaken: Bool { status == 200 && receipt != nil }

  public var json: JSONValue {
    var members: [JSONValue.Member] = [
      .init("kind", .string(headers.kind.name)),
      .init("headers", .object(headers.fields.map { .init($0.name, .string($0.value)) })),
      .init("status", .int(status)),
    ]
    if let receipt { members.append(.init("receipt", .string(receipt))) }
    if let verdict { members.append(.init("verdict", .string(verdict))) }
    return .object(members + [.init("body", .string(body))])
  }

  /// - Returns: nil for what is no such answer.
  public init?(json: JSONValue) {
    guard let kind = json["kind"]?.string.flatMap({ RowKind(named: $0) }), let members = json["headers"]?.object,
      let status = json["status"]?.int, let body = json["body"]?.string
    else { return nil }
    let fields = members.map { (name: $0.key.lowercased(), value: $0.value.string ?? "") }
    let headers = try? PacketHeaders(kind: kind) { name in fields.filter { $0.name == name }.map(\.value) }
    guard let headers else { return nil }
    self.init(
      headers: headers, status: status, receipt: json["receipt"]?.string, verdict: json["verdict"]?.string, body: body)
  }
}
