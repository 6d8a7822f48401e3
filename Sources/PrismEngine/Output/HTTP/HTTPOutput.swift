import PrismBase
import PrismConfig
import PrismPacket
import PrismProtocol

/// Delivers packets to a collector by POST (docs/packet.md, "The POST"). Status codes, receipts and headers are known here
/// only.
struct HTTPOutput: Output {
  static let connectTimeout: Duration = .seconds(10)

  let transport: any Transport
  let time: any TimeSource

  /// 60 s and a second more for each 16 KiB.
  static func timeout(bodyBytes: Int) -> Duration { .seconds(60 + (bodyBytes + 16_383) / 16_384) }

  func deliver(_ packet: OutgoingPacket) async -> DeliveryOutcome {
    let answer = await transport.post(Self.request(packet))
    let check = ReceiptCheck(packet.headers, key: packet.key, packet.configuration)
    return DeliveryOutcome(answer, to: check, now: time.unixMilliseconds)
  }

  private static func request(_ packet: OutgoingPacket) -> TransferRequest {
    let (configuration, body) = (packet.configuration, packet.body)
    let address = configuration.url.map { CollectorAddress($0).endpoint(packet.headers.kind) }
    var request = TransferRequest(
      url: address ?? "", headers: headers(packet), body: body, connectTimeout: connectTimeout,
      timeout: timeout(bodyBytes: body.count))
    request.answerBytesKept = packet.headers.kind.answerBytesMax
    (request.tls, request.needsNewConnection) = (configuration.tls, packet.needsNewConnection)
    return request
  }

  private static func headers(_ packet: OutgoingPacket) -> [(name: String, value: String)] {
    var headers = packet.headers.fields
    if let mac = packet.mac { headers.append(("Prism-Mac", mac)) }
    return headers + packet.configuration.authorization
  }
}

extension DeliveryOutcome {
  /// - Parameter now: milliseconds since 1970, for a `Retry-After` that is a date.
  init(_ answer: PostAnswer, to check: ReceiptCheck, now: Int64) {
    self.init(
      ResponseClass.verdict(answer, to: check, now: now), mayHaveLeft: answer.mayHaveLeft,
      bytesSent: answer.bytesSent, bytesReceived: answer.bytesReceived, duration: answer.duration)
    guard case .accepted = verdict, case .response(_, let headers, let body) = answer.outcome else { return }
    let said = try? JSONValue(parsing: body)
    if !check.headers.kind.isReport { records = said.map { RecordReceipt($0) } }
    if let said, check.check(headers["prism-receipt"], answer: body) == .proven { store = StoreReceipt(said) }
    (receiver, line) = (ReceiverFeatures(headers), answer.line)
    recordsVersion = headers[DownHeaders.versionName.lowercased()].flatMap { Int64($0) }
    configurationVersion = headers["prism-config-version"].flatMap { Int64($0) }
  }
}

extension ReceiverFeatures {
  static let windowMax = 64

  /// - Parameter headers: of an answer; names in lower case.
  init(_ headers: [String: String]) {
    let accepted = headers["prism-accept"]?.split(separator: ",").map { String($0).trimmed }
    takesZstd = accepted?.contains(PacketEncoding.zstd.rawValue) == true
    takesColumns = accepted?.contains(PacketForm.columns.rawValue) == true
    dictionaryID = headers["prism-dictionary"].flatMap { UInt32($0) }
    window = headers["prism-window"].flatMap { Int($0) }.map { min(max($0, 1), Self.windowMax) } ?? 1
  }
}
