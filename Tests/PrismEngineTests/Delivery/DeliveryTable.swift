import PrismBase
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

  static func claimed(_ number: Int, items: Int = 2, metaBytes: Int = 2) -> ClaimedPacket {
    ClaimedPacket(
      id: id(number), namespace: NamespaceName("shop")!, kind: .meta, ledgerHeader: "",
      metas: [UInt8](repeating: 0x7B, count: metaBytes), itemCount: items, payloads: [],
      clock: ClockSetting(bootTime: 0))
  }

  static func built(
    _ number: Int, items: Int = 2, encoding: PacketEncoding = .gzip, hasWifiOnlyRows: Bool = false
  ) -> BuiltPacket {
    built(claimed(number, items: items), encoding: encoding, hasWifiOnlyRows: hasWifiOnlyRows)
  }

  static func built(
    _ packet: ClaimedPacket, encoding: PacketEncoding = .gzip, hasWifiOnlyRows: Bool = false
  ) -> BuiltPacket {
    var seal = seal
    seal.encoding = encoding
    return BuiltPacket(
      context: PacketContext(
        deviceID: "d", namespace: NamespaceName("shop")!, packetID: packet.id, kind: .meta),
      itemCount: packet.itemCount, ledgerHeader: "", seal: seal, contents: contents(encoding),
      clock: packet.clock, wifiOnlyTypes: [], hasWifiOnlyRows: hasWifiOnlyRows)
  }

  private static func contents(_ encoding: PacketEncoding) -> PackedContents {
    let writer = try! PacketWriter(cipher: .aes128GCM, keyID: "main", key: DeliveryRig.key, encoding: encoding)
    return try! writer.pack(metas: Array("{}".utf8), payloads: nil)
  }

  /// - Parameter window: that the receiver announces; nil if it announces nothing.
  static func accepts(_ number: Int, window: Int? = nil, takesZstd: Bool = false) -> Delivery.Event {
    var outcome = DeliveryOutcome(.accepted(wasDuplicate: false), mayHaveLeft: true)
    if let window {
      outcome.receiver = ReceiverFeatures()
      outcome.receiver?.window = window
      outcome.receiver?.takesZstd = takesZstd
    }
    return .answered(id(number), outcome)
  }
  static func answers(_ number: Int, _ verdict: DeliveryOutcome.Verdict, mayHaveLeft: Bool = true) -> Delivery.Event {
    .answered(id(number), DeliveryOutcome(verdict, mayHaveLeft: mayHaveLeft))
  }

  static let unavailable = DeliveryOutcome.Verdict.unavailable(status: 503, cause: "status 503", retryAfter: nil)
  static let lost = DeliveryOutcome.Verdict.unavailable(status: nil, cause: "connect: scripted", retryAfter: nil)
  static let tooLarge = DeliveryOutcome.Verdict.tooLarge(status: 413, message: "")
  static let unacceptable = DeliveryOutcome.Verdict.unacceptable(status: 422, message: "")

  // MARK: Words

  static func words(_ action: Delivery.Action) -> String {
    switch action {
    case .recover: "recover"
    case .look: "look"
    case .read(let id): "read \(number(id))"
    case .commit(let turn): words(turn)
    case .build(let packets, _, _): "build " + packets.map { number($0.id) }.joined(separator: " ")
    case .post(let packet, let predecessor, _, let isNew):
      "post \(number(packet.context.packetID))" + (predecessor.map { " after \(number($0))" } ?? "")
        + (isNew ? ", new connection" : "")
    case .rememberRetry(let note): note == nil ? "forget" : "remember"
    case .accepted: "accepted"
    case .circuit(let event): "circuit \(event)"
    case .endSetBacks: "end set backs"
    case .log(.notDelivered(let cause)): "log not delivered: \(cause)"
    case .log(let message): "log \(message)"
    case .ended(let isOver): isOver ? "ended" : "ended, again"
    }
  }

  private static func words(_ turn: UploadCommit) -> String {
    var words = ["commit"]
    for disposition in turn.dispositions {
      switch disposition {
      case .delivered(let id, _): words.append("delivered \(number(id))")
      case .dead(let id, _): words.append("dead \(number(id))")
      case .split(let id, _, _): words.append("split \(number(id))")
      case .released(let id): words.append("released \(number(id))")
      case .setBack(let id): words.append("set back \(number(id))")
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
