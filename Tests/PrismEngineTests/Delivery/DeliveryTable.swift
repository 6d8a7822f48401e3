import PrismConfig
import PrismPacket
import PrismProtocol
import PrismStore
import PrismTestSupport

@testable import PrismEngine

/// A `Delivery` with its conditions in the test's hands, and its actions in words.
struct DeliveryTable {
  var delivery = Delivery(kind: .meta)
  var conditions = Delivery.Conditions(
    instant: Instant(uptime: .seconds(1000), unixMilliseconds: 1_700_000_000_000), random: Randomness { 0xABCD_EF01 },
    verdict: .open(.all), isMetered: false, isStopping: false, hasNotes: false,
    configuration: DeliveryRig.snapshot().namespaces[NamespaceName("shop")!], seal: Self.seal, wifiOnlyTypes: [])

  static let seal = PacketSeal(
    deviceID: "d", cipher: .aes128GCM, keyID: "main", key: DeliveryRig.key, compression: .fast)
  static let shut = Gates.Verdict.shut(ShutGate(.network, "there is no network"))

  mutating func after(_ event: Delivery.Event) -> [String] { delivery.handle(event, conditions).map(Self.words) }

  // MARK: Packets by number

  static func id(_ number: Int) -> PacketID { PacketID("018bcfe5-6800-7000-8000-00000000000\(number)")! }

  static func claimed(_ number: Int, items: Int = 2) -> ClaimedPacket {
    ClaimedPacket(
      id: id(number), namespace: NamespaceName("shop")!, kind: .meta, createdTime: 0, ledgerHeader: "",
      metas: Array("{}".utf8), itemCount: items, payloads: [])
  }

  static func built(_ number: Int, items: Int = 2, hasWifiOnlyRows: Bool = false) -> BuiltPacket {
    built(claimed(number, items: items), hasWifiOnlyRows: hasWifiOnlyRows)
  }

  static func built(_ packet: ClaimedPacket, hasWifiOnlyRows: Bool = false) -> BuiltPacket {
    BuiltPacket(
      context: PacketContext(
        deviceID: "d", namespace: NamespaceName("shop")!, packetID: packet.id, kind: .meta),
      itemCount: packet.itemCount, ledgerHeader: "", seal: seal, body: [1], mac: nil, rawBytes: 2, wifiOnlyTypes: [],
      hasWifiOnlyRows: hasWifiOnlyRows)
  }

  static func accepts(_ number: Int) -> Delivery.Event { .answered(id(number), accepts(id(number))) }
  static func accepts(_ id: PacketID) -> UploadAnswer {
    response(200, ["prism-receipt": id.description])
  }
  static func answers(_ number: Int, _ status: Int, _ origin: UploadAnswer.Origin = .newConnection) -> Delivery.Event {
    var answer = response(status)
    answer.origin = origin
    return .answered(id(number), answer)
  }
  static func fails(_ number: Int, _ failure: UploadAnswer.Failure, mayHaveLeft: Bool) -> Delivery.Event {
    .answered(id(number), ScriptedTransport.failure(failure, mayHaveLeft: mayHaveLeft))
  }
  private static func response(_ status: Int, _ headers: [String: String] = [:]) -> UploadAnswer {
    UploadAnswer(
      outcome: .response(status: status, headers: headers, body: []), mayHaveLeft: true, bytesSent: 1, bytesReceived: 1,
      duration: .zero)
  }

  // MARK: Words

  static func words(_ action: Delivery.Action) -> String {
    switch action {
    case .recover: "recover"
    case .look: "look"
    case .read(let id): "read \(number(id))"
    case .commit(let turn): words(turn)
    case .build(let packets, _, _): "build " + packets.map { number($0.id) }.joined(separator: " ")
    case .post(let packet, let predecessor, let isNew):
      "post \(number(packet.context.packetID))" + (predecessor.map { " after \(number($0))" } ?? "")
        + (isNew ? ", new connection" : "")
    case .rememberRetry(let note): note == nil ? "forget" : "remember"
    case .accepted: "accepted"
    case .circuit(let event): "circuit \(event)"
    case .log(.notDelivered(let cause)): "log not delivered: \(cause)"
    case .log(let message): "log \(message)"
    case .ended(let isOver): isOver ? "ended" : "ended, again"
    }
  }

  private static func words(_ turn: UploadTurn) -> String {
    var words = ["commit"]
    for settlement in turn.settlements {
      switch settlement {
      case .delivered(let id, _): words.append("delivered \(number(id))")
      case .dead(let id, _): words.append("dead \(number(id))")
      case .split(let id, _, _): words.append("split \(number(id))")
      case .dissolved(let id): words.append("released \(number(id))")
      }
    }
    if !turn.claims.isEmpty { words.append("claims \(turn.claims.count)") }
    return (words + turn.notes.map(\.key)).joined(separator: " ")
  }

  /// The last digit of a test's id; of another one that it is new.
  private static func number(_ id: PacketID) -> String {
    (0...9).first { Self.id($0) == id }.map(String.init) ?? "new"
  }
}
