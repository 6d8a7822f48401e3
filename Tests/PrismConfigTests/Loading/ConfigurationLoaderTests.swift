import PrismBase
import PrismConfig
import PrismProtocol
import Testing

@Suite("Loading")
struct ConfigurationLoaderTests {
  static let key = "00112233445566778899aabbccddeeff"

  @Test("five faults in two files are five lines, each with its file and line")
  func fiveFaults() throws {
    let folder = try ConfigurationFolder([
      "prismd.yaml": """
      ingest:
        sokcet: /run/prism/ingest.sock
      durability: fast
      keys:
        - id: k1
          file: missing.key
      """,
      "namespaces.d/shop.yaml": """
      url: ftp://collector.example.com
      periodicTimerSecond: 31
      monitorList:
        - type: order
      """,
    ])
    #expect(
      folder.faultLines() == [
        "prismd.yaml:2: ingest.sokcet: is unknown; did you mean ingest.socket?",
        "prismd.yaml:3: durability: is fast, must be full or normal",
        "prismd.yaml:5: keys[0].file: names missing.key (looked for in .): No such file or directory",
        "namespaces.d/shop.yaml:1: url: is ftp://collector.example.com, must be http:// or https://, a host, and a path at most (no user, query or fragment)",
        "namespaces.d/shop.yaml:2: periodicTimerSecond: is 31, must be 1...30; limits.periodicTimerSecond of prismd.yaml may raise the upper end to 3600",
      ])
  }

  @Test(
    "an empty file is all defaults, with the built-in namespace and its own list",
    arguments: ["", "# all\n", "{}", "---\n"])
  func defaults(text: String) throws {
    let loaded = try ConfigurationFolder(["prismd.yaml": text]).load()
    #expect(loaded.snapshot.daemon == DaemonConfiguration())
    #expect(loaded.snapshot.namespaces.keys.sorted() == [.prism])
    let prism = try #require(loaded.snapshot.namespaces[.prism])
    let monitorList = [
      MonitoredType(.appCrash, isRealtime: true, isUploadPayload: true),
      MonitoredType(try #require(ReportType("appLag"))),
      MonitoredType(try #require(ReportType("appBoot"))), MonitoredType(try #require(ReportType("net"))),
      MonitoredType(try #require(ReportType("netError"))),
    ]
    #expect(prism == NamespaceConfiguration(name: .prism, monitorList: monitorList))
  }

  @Test("a namespace's every key is taken over, in base units")
  func namespace() throws {
    let folder = try ConfigurationFolder([
      "prismd.yaml": "keys: [{id: first, file: one.key}, {id: big, file: two.key}]",
      "one.key": Self.key, "two.key": Self.key + Self.key + "\n", "token": "t0ken\n",
      "ca.pem": FilesTests.certificate, "cert.pem": FilesTests.certificate, "key.pem": FilesTests.privateKey,
      "namespaces.d/shop.yaml": """
      url: https://collector.example.com:8443/base/
      isUpload: false
      isGather: false
      isUpdateClear: false
      appVersion: 1.10
      maxBodyMByte: 3
      periodicTimerSecond: 30
      maxItem: 1
      maxFlowMByte: 100
      expirationDay: 30
      onlyWifi: true
      monitorList:
        - {type: order, isRealtime: true}
        - {type: order:paid, onlyWifi: false, isUploadPayload: true}
      maxStoreMByte: 65536
      onFull: refuse
      cipher: aes-256-gcm
      keyId: big
      authorization: {tokenFile: token}
      tls: {caFile: ca.pem, certFile: cert.pem, keyFile: key.pem}
      allow: {users: [root, 1000], groups: [root], units: ["shop-*.service"]}
      receipt: optional
      meteredIntervalSecond: 0
      """,
    ])
    let loaded = try folder.load()
    let shop = try #require(NamespaceName("shop"))
    let order = try #require(ReportType("order"))
    let paid = try #require(ReportType("order:paid"))
    var expected = NamespaceConfiguration(
      name: shop,
      monitorList: [
        MonitoredType(order, onlyWifi: true, isRealtime: true), MonitoredType(paid, isUploadPayload: true),
      ])
    expected.url = "https://collector.example.com:8443/base"
    (expected.isUpload, expected.isGather, expected.isUpdateClear) = (false, false, false)
    expected.appVersion = "1.10"
    (expected.maxBodyBytes, expected.uploadInterval, expected.maxItem) = (3_145_728, .seconds(30), 1)
    (expected.maxFlowBytes, expected.expirationDays, expected.onlyWifi) = (104_857_600, 30, true)
    (expected.maxStoreBytes, expected.onFull, expected.cipher) = (68_719_476_736, .refuse, .aes256GCM)
    let held = { (name: String, text: String) in
      HeldFile(path: "\(folder.path)/\(name)", content: Secret(Array(text.utf8)))
    }
    (expected.keyId, expected.token) = ("big", held("token", "t0ken"))
    expected.tls = .init(
      caFile: held("ca.pem", FilesTests.certificate), certFile: held("cert.pem", FilesTests.certificate),
      keyFile: held("key.pem", FilesTests.privateKey))
    expected.allow = .init(userIDs: [0, 1000], groupIDs: [0], units: [UnitPattern("shop-*.service")!])
    (expected.receipt, expected.meteredInterval) = (.optional, .zero)
    #expect(loaded.snapshot.namespaces[shop] == expected)
    let names = [
      "prismd.yaml", "one.key", "two.key", "namespaces.d/shop.yaml", "token", "ca.pem", "cert.pem", "key.pem",
    ]
    #expect(loaded.files == names.map { "\(folder.path)/\($0)" })
  }

  @Test("the daemon's every key is taken over")
  func daemon() throws {
    let folder = try ConfigurationFolder([
      "k.key": Self.key,
      "prismd.yaml": """
      ingest: {socket: /tmp/i.sock, mode: 0660, group: root, maxConnections: 10, maxConnectionsPerUser: 5, memoryMByte: 64}
      control: {socket: c.sock, group: "0", readers: 1}
      allowPlain: true
      state: /tmp/state
      durability: normal
      limits: {maxBodyMByte: 64, periodicTimerSecond: 3600, maxItem: 10000, maxFlowMByte: 1048576, expirationDay: 3650}
      device: {id: box-7}
      common: {region: eu, build: 12}
      keys:
      - {id: k, file: k.key}
      network:
        default: metered
        interfaces: {"wlan*": metered, eth0: unmetered, "*": ignored}
      remote:
        url: http://127.0.0.1:8000/config/
        intervalSecond: 60
        allow: [url, maxItem]
        publicKey: \(String(repeating: "ab", count: 32))
      commands: {allow: [run, collect], files: [/var/log/*.log], units: [till], runSocket: /tmp/run.sock}
      metrics: {listen: 9464}
      log: {level: warning, format: json}
      """,
    ])
    var expected = DaemonConfiguration()
    (expected.ingest.socket, expected.ingest.mode, expected.ingest.group) = ("/tmp/i.sock", 0o660, "root")
    (expected.ingest.maxConnections, expected.ingest.maxConnectionsPerUser) = (10, 5)
    expected.ingest.memoryBytes = 64 << 20
    (expected.control.socket, expected.control.group, expected.control.readers) = ("\(folder.path)/c.sock", "0", "1")
    expected.allowPlain = true
    (expected.state, expected.durability) = ("/tmp/state", .normal)
    (expected.limits.maxBodyMByte, expected.limits.periodicTimerSecond, expected.limits.maxItem) = (64, 3600, 10_000)
    (expected.limits.maxFlowMByte, expected.limits.expirationDay) = (1_048_576, 3650)
    (expected.deviceId, expected.common) = ("box-7", ["region": "eu", "build": "12"])
    let digits = try #require(Hex.decode(Self.key))
    expected.keys = [.init(id: "k", file: "\(folder.path)/k.key", secret: Secret(digits))]
    expected.network.fallback = .metered
    expected.network.interfaces = [
      .init(glob: "wlan*", counts: .metered), .init(glob: "eth0", counts: .unmetered),
      .init(glob: "*", counts: .ignored),
    ]
    var remote = DaemonConfiguration.Remote(url: "http://127.0.0.1:8000/config", allow: ["url", "maxItem"])
    (remote.interval, remote.publicKey) = (.seconds(60), [UInt8](repeating: 0xAB, count: 32))
    expected.remote = remote
    (expected.commands.allow, expected.commands.files) = ([.collect, .run], ["/var/log/*.log"])
    (expected.commands.units, expected.commands.runSocket) = (["till"], "/tmp/run.sock")
    expected.commands.publicKey = remote.publicKey
    (expected.metricsListen, expected.logLevel, expected.logFormat) = ("127.0.0.1:9464", .warning, .json)
    #expect(try folder.load().snapshot.daemon == expected)
  }
}
