import PrismConfig
import PrismPacket
import PrismProtocol
import PrismTestSupport

/// The settings of the simulated operator.
struct LifeSettings {
  static let names = ["prism", "shop", "lab", "home"].map { NamespaceName($0)! }
  static let keys: [DaemonConfiguration.Key] = [
    .init(id: "short", file: "/short.key", secret: Secret((0..<16).map { UInt8($0) })),
    .init(id: "long", file: "/long.key", secret: Secret((0..<32).map { UInt8($0 * 7) })),
  ]
  static let deviceID = "device"
  static let bootID = "00112233445566778899aabbccddeeff"

  /// In the order of `names`, those that were taken out among them.
  private(set) var namespaces: [NamespaceConfiguration]
  private var absent: Set<NamespaceName> = []

  /// Everything leaves: where a life begins, and what it comes back to when the faults end.
  init() {
    func types(_ name: String) -> [MonitoredType] {
      [
        MonitoredType(.appCrash, isRealtime: true, isUploadPayload: true), MonitoredType(ReportType("order")!),
        MonitoredType(ReportType("pay")!, isRealtime: true), MonitoredType(ReportType("log")!),
        MonitoredType(ReportType("scan")!, isUploadPayload: true),
      ]
      .map { type in
        var type = type
        type.isUploadPayload = true
        return type
      }
    }
    namespaces = Self.names.map { name in
      var namespace = NamespaceConfiguration(name: name, monitorList: types(name.text))
      // A collector on this machine needs no network, and costs no flow.
      namespace.url = name.text == "home" ? "http://127.0.0.1:8080" : "https://collector.test"
      namespace.keyId = "short"
      return namespace
    }
  }

  var snapshot: Snapshot {
    var daemon = DaemonConfiguration()
    daemon.keys = Self.keys
    daemon.deviceId = Self.deviceID
    let present = namespaces.filter { !absent.contains($0.name) }
    return Snapshot(
      generation: 1, daemon: daemon, namespaces: Dictionary(uniqueKeysWithValues: present.map { ($0.name, $0) }))
  }

  func isPresent(_ name: NamespaceName) -> Bool { !absent.contains(name) }
  subscript(name: NamespaceName) -> NamespaceConfiguration { namespaces.first { $0.name == name }! }

  /// Types whose reports must not leave on a metered network.
  func wifiOnly(_ name: NamespaceName) -> Set<String> {
    Set(self[name].monitorList.filter(\.onlyWifi).map(\.type.text))
  }

  /// One change of one namespace. - Returns: what it was, for the trace.
  mutating func change(using random: inout SeededRandom) -> String {
    let index = Int.random(in: 0..<namespaces.count, using: &random)
    let name = namespaces[index].name
    if name.isBusiness, random.oneIn(8) {
      if absent.remove(name) == nil { absent.insert(name) }
      return "\(name) \(isPresent(name) ? "comes back" : "is taken out")"
    }
    return "\(name).\(Self.change(&namespaces[index], &random))"
  }

  private static func change(_ namespace: inout NamespaceConfiguration, _ random: inout SeededRandom) -> String {
    let type = Int.random(in: 0..<namespace.monitorList.count, using: &random)
    let typeName = namespace.monitorList[type].type.text
    switch Int.random(in: 0..<15, using: &random) {
    case 14:
      namespace.window = random.pick([1, 8, 16, 64])
      return "window \(namespace.window)"
    case 0:
      namespace.maxItem = random.pick([1, 3, 10, 40, 100])
      return "maxItem \(namespace.maxItem)"
    case 1:
      namespace.expirationDays = random.pick([1, 2, 15])
      return "expirationDay \(namespace.expirationDays)"
    case 2:
      namespace.maxStoreBytes = random.pick([12_000, 60_000, 1 << 30])
      namespace.onFull = random.pick(NamespaceConfiguration.OnFull.allCases)
      namespace.maxUserBytes = random.pick([nil, nil, 6000, 40_000])
      return "maxStoreByte \(namespace.maxStoreBytes) \(namespace.maxUserBytes ?? 0) \(namespace.onFull)"
    case 3:
      namespace.isUpload.toggle()
      return "isUpload \(namespace.isUpload)"
    case 4:
      namespace.isGather.toggle()
      return "isGather \(namespace.isGather)"
    case 5:
      namespace.appVersion = "4.\(Int.random(in: 0..<3, using: &random))"
      namespace.isUpdateClear = random.oneIn(3)
      return "appVersion \(namespace.appVersion ?? "") clear \(namespace.isUpdateClear)"
    case 6, 7:
      namespace.monitorList[type].onlyWifi.toggle()
      return "\(typeName).onlyWifi \(namespace.monitorList[type].onlyWifi)"
    case 8:
      namespace.monitorList[type].isUploadPayload.toggle()
      return "\(typeName).isUploadPayload \(namespace.monitorList[type].isUploadPayload)"
    case 9:
      namespace.monitorList[type].isRealtime.toggle()
      return "\(typeName).isRealtime \(namespace.monitorList[type].isRealtime)"
    case 10:
      namespace.maxFlowBytes = random.pick([8_000, 40_000, 1 << 30])
      return "maxFlowByte \(namespace.maxFlowBytes)"
    case 11:
      namespace.cipher = random.pick(Cipher.allCases)
      namespace.keyId = namespace.cipher == .aes256GCM ? "long" : "short"
      return "cipher \(namespace.cipher.rawValue)"
    case 12:
      namespace.uploadInterval = .seconds(random.pick([1, 5, 30]))
      namespace.meteredInterval = .seconds(random.pick([0, 60, 600]))
      return "periodicTimer \(namespace.uploadInterval) metered \(namespace.meteredInterval)"
    default:
      namespace.maxBodyBytes = random.pick([400, 4_000, 1_048_576])
      return "maxBodyByte \(namespace.maxBodyBytes)"
    }
  }
}
