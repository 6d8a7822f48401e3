import PrismConfig
import PrismProtocol
import PrismStore
import PrismTestSupport
import Testing

@testable import PrismEngine

@Suite("Whether a report may leave")
struct GatesTests {
  static let now = Instant(uptime: .seconds(1000), unixMilliseconds: 1_700_000_000_000)
  static let order = ReportType("order")!, log = ReportType("log")!, scan = ReportType("scan")!

  static func gates(
    _ kind: RowKind = .meta, network: NetworkStatus.Kind = .unmetered, used: Int = 0,
    _ change: (inout NamespaceConfiguration) -> Void = { _ in }
  ) -> Gates {
    let shop = NamespaceName("shop")!
    var flow = FlowWindow(now: now)
    flow.book(used)
    return Gates(
      settings: PipelineSettings(namespace: shop, snapshot: DeliveryRig.snapshot(change), automaticDeviceID: "d"),
      kind: kind, network: NetworkStatus(kind: network, interface: "t0", reason: "so"), flow: flow, pause: nil,
      lastFailure: nil, circuit: Circuit(), isStopping: false, now: now)
  }

  private func isOpen(_ gates: Gates) -> Bool { if case .open = gates.verdict { true } else { false } }
  private func shut(_ gates: Gates) -> Gate? { if case .shut(let gate) = gates.verdict { gate.gate } else { nil } }

  @Test("all open: every type's metas, and payloads of the types that upload them") func open() {
    #expect(Self.gates().verdict == .open(.all))
    #expect(Self.gates(.payload).verdict == .open(.only([Self.scan])))
  }

  @Test("while older reports are brought over nothing leaves, and the gate says why") func salvage() {
    var gates = Self.gates()
    gates.awaited = 12
    #expect(shut(gates) == .salvage && !gates.mayTry)
    let words = gates.shutGate(for: Self.order, due: nil, isSpaced: false)?.reason ?? ""
    #expect(words.contains("12 older reports"))
    gates.awaited = 0
    #expect(shut(gates) == .salvage)
  }

  @Test("configuration shuts: no url, upload off, an unknown key, no type with payloads, a namespace that went")
  func configuration() {
    #expect(shut(Self.gates { $0.url = nil }) == .url)
    #expect(shut(Self.gates { $0.isUpload = false }) == .isUpload)
    #expect(shut(Self.gates { $0.keyId = "lost" }) == .key)
    #expect(shut(Self.gates(.payload) { $0.monitorList = [MonitoredType(Self.order)] }) == .isUploadPayload)
    var gone = Self.gates()
    gone.settings = PipelineSettings(
      namespace: NamespaceName("gone")!, snapshot: DeliveryRig.snapshot(), automaticDeviceID: "d")
    #expect(shut(gone) == .retired)
    gone.isStopping = true
    #expect(shut(gone) == .stopping)
  }

  @Test(
    "no network shuts, but not for a collector on loopback",
    arguments: [
      ("https://collector.test", false), ("http://127.0.0.1:8080", true), ("http://[::1]:8080/x", true),
      ("http://localhost", true), ("http://127.0.0.1.example.org", false), ("http://localhost.example.org", false),
      ("http://user@127.9.9.9:1/", true), ("http://127.0.0.1@example.org/", false),
    ])
  func noNetwork(url: String, isLoopback: Bool) {
    let gates = Self.gates(network: .none) { $0.url = url }
    #expect(isOpen(gates) == isLoopback)
    let used = Self.gates(network: .metered, used: 1 << 40) { $0.url = url }
    #expect(isOpen(used) == isLoopback, "and costs no flow")
  }

  @Test(
    "metered: types with onlyWifi stay, and the window's limit shuts at its last byte",
    arguments: [
      (0, nil), (4999, nil), (5000, .flow), (1 << 40, .flow),
    ] as [(Int, Gate?)])
  func metered(used: Int, expected: Gate?) {
    let gates = Self.gates(network: .metered, used: used) { $0.maxFlowBytes = 5000 }
    #expect(shut(gates) == expected)
    if expected == nil { #expect(gates.verdict == .open(.except([Self.log]))) }
    let nextDay = Instant(uptime: Self.now.uptime + .seconds(86_400), unixMilliseconds: Self.now.unixMilliseconds)
    var later = gates
    later.now = nextDay
    #expect(isOpen(later))
  }

  @Test("a pause shuts until it is over, and says why and for how long") func backoff() {
    var gates = Self.gates()
    gates.pause = .init(until: .seconds(1030), reason: .held)
    gates.lastFailure = .init(unixMilliseconds: 0, status: 401, cause: "status 401")
    guard case .shut(let gate) = gates.verdict else {
      Issue.record("open")
      return
    }
    #expect(gate.gate == .backoff && gate.opensIn == .seconds(30))
    #expect(gate.reason.contains("a reload tries at once") && gate.reason.contains("status 401"))
    gates.pause?.until = .seconds(1000)
    #expect(isOpen(gates))
  }

  @Test("an open circuit lets only its probe through") func circuit() {
    var gates = Self.gates()
    gates.circuit = Circuit(failuresInRow: 5)
    #expect(isOpen(gates))
    gates.circuit.started(.payload)
    #expect(shut(gates) == .circuit)
    gates.kind = .payload
    #expect(isOpen(gates))
  }

  @Test("explain names the first gate that is shut for a type, of those that delivery itself asks") func explains() {
    let metered = Self.gates(network: .metered)
    #expect(metered.shutGate(for: Self.log, due: nil, isSpaced: false)?.gate == .onlyWifi)
    #expect(metered.shutGate(for: Self.order, due: nil, isSpaced: false) == nil)
    let payloads = Self.gates(.payload)
    #expect(payloads.shutGate(for: Self.order, due: nil, isSpaced: false)?.gate == .isUploadPayload)
    #expect(payloads.shutGate(for: Self.scan, due: nil, isSpaced: false) == nil)
    let waits = Self.gates().shutGate(for: Self.order, due: .seconds(1004), isSpaced: false)
    #expect(waits?.gate == .timer && waits?.opensIn == .seconds(4))
    let spaced = Self.gates().shutGate(for: Self.order, due: .seconds(1004), isSpaced: true)
    #expect(spaced?.gate == .meteredInterval && spaced?.opensIn == .seconds(4))
    #expect(Self.gates().shutGate(for: Self.order, due: .seconds(1000), isSpaced: false) == nil)
  }

  @Test(
    "where the verdict is shut for the kind, every type of it has that verdict",
    arguments: [
      NetworkStatus.Kind.none, .metered, .unmetered,
    ])
  func agrees(network: NetworkStatus.Kind) {
    for used in [0, 5000] {
      for kind in RowKind.reports {
        let gates = Self.gates(kind, network: network, used: used) { $0.maxFlowBytes = 5000 }
        for type in [Self.order, Self.log, Self.scan] {
          let mayLeave: Bool =
            switch gates.verdict {
            case .shut: false
            case .open(.all): true
            case .open(.except(let types)): !types.contains(type)
            case .open(.only(let types)): types.contains(type)
            }
          #expect((gates.shutGate(for: type, due: nil, isSpaced: false) == nil) == mayLeave, "\(kind) \(type) \(used)")
        }
      }
    }
  }
}
