import Glibc
import PrismBase
public import PrismConfig
public import PrismEngine
public import PrismPacket
public import PrismProtocol
import Synchronization

/// An engine under remote configuration: files and store are real, server, cache and time are in the test's hands.
public final class RemoteRig: Sendable {
  public static let shop = "url: https://collector.test\nperiodicTimerSecond: 1\nmonitorList: [{type: order}]\n"

  public let delivery = DeliveryRig()
  public let source = ScriptedSource()
  public let cache = MemoryFile()
  private let folder: String

  /// - Parameter remote: the members under `remote` in prismd.yaml.
  /// - Parameter namespaces: name to YAML.
  public init(
    remote: String = "{url: \"https://config.test/prism\"}", namespaces: [String: String] = ["shop": RemoteRig.shop]
  ) {
    folder = TemporaryFolder.make()
    mkdir(folder + "/namespaces.d", 0o700)
    write("main.key", Hex.encode(DeliveryRig.key.bytes))
    write(remote: remote)
    for (name, text) in namespaces { write("namespaces.d/\(name).yaml", text) }
  }

  deinit {
    for place in ["namespaces.d", "."] {
      if let stream = opendir(folder + "/" + place) {
        while let entry = readdir(stream) {
          let name = withUnsafeBytes(of: &entry.pointee.d_name) {
            String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
          }
          unlink("\(folder)/\(place)/\(name)")
        }
        closedir(stream)
      }
    }
    rmdir(folder + "/namespaces.d")
    rmdir(folder)
  }

  /// The daemon's file. - Parameter extra: more lines of it.
  public func write(remote: String?, extra: String = "") {
    let lines = [
      "keys: [{id: main, file: main.key}]", "device: {id: device}", remote.map { "remote: \($0)" } ?? "", extra,
    ]
    write("prismd.yaml", lines.joined(separator: "\n") + "\n")
  }

  public func write(_ name: String, _ text: String) {
    let descriptor = open("\(folder)/\(name)", O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    let bytes = Array(text.utf8)
    precondition(Glibc.write(descriptor, bytes, bytes.count) == bytes.count, "\(name) can't be written")
    close(descriptor)
  }

  public func load() throws -> LoadedConfiguration {
    try ConfigurationLoader(path: folder + "/prismd.yaml", environment: [:], identityCheck: nil).load()
  }

  public struct Running: Sendable {
    public let engine: Engine, stack: ConfigurationStack, client: RemoteConfigurationClient

    public func namespace(_ name: String) -> NamespaceConfiguration? {
      NamespaceName(name).flatMap { engine.hub.current.namespaces[$0] }
    }

    public func stop() async {
      await client.stop()
      await engine.stop()
    }
  }

  /// Starts as the daemon does. - Parameter source: in place of the scripted one.
  public func start(source: (any Transport)? = nil, timeout: Duration = .seconds(30)) async throws -> Running {
    let start = await RemoteStart.recall(
      files: try load(), cache: cache, time: delivery.time, log: Logger(write: { _ in }))
    let engine = try await delivery.engine(start.current.snapshot)
    let stack = ConfigurationStack(engine: engine, start: start)
    let client = RemoteConfigurationClient(
      start, engine: engine, stack: stack,
      parts: .init(source: source ?? self.source, cache: cache, deviceID: "device", timeout: timeout))
    await client.start()
    return Running(engine: engine, stack: stack, client: client)
  }

  /// Moves the time until the client's status meets the condition; false if it never does.
  public func runs(_ running: Running, until condition: (JSONValue) async throws -> Bool) async rethrows -> Bool {
    try await delivery.runs(step: .seconds(5)) { try await condition(await running.client.status.controlJSON) }
  }
}

/// Answers questions for remote configuration as a test says, and remembers them.
public final class ScriptedSource: Transport {
  public typealias Script = @Sendable (TransferRequest) async -> PostAnswer.Outcome

  private let script = Mutex<Script>({ _ in .failure(.connect, detail: "scripted") })
  private let asked = Mutex<[TransferRequest]>([])

  public init() {}

  public func set(_ script: @escaping Script) { self.script.withLock { $0 = script } }
  public var requests: [TransferRequest] { asked.withLock { $0 } }
  /// The text after the `?` of each question.
  public var queries: [String] { requests.map { String($0.url.split(separator: "?", maxSplits: 1).last ?? "") } }

  public func post(_ request: TransferRequest) async -> PostAnswer {
    asked.withLock { $0.append(request) }
    let script = script.withLock { $0 }
    return PostAnswer(
      outcome: await script(request), mayHaveLeft: true, bytesSent: 0, bytesReceived: 0, duration: .zero)
  }

  /// Answers every question with this document, JSON.
  /// - Parameter isSigned: by the key whose public half is `publicKey`.
  public func answer(_ document: String, isSigned: Bool = false) {
    let envelope = Self.envelope(document, key: isSigned ? SigningKey(pem: Array(Self.pem.utf8)) : nil)
    set { _ in .response(status: 200, headers: [:], body: envelope) }
  }

  /// For `remote.publicKey`.
  public static let publicKey = "D7yl7tEEtjoPgDTaavVhc8d0T5+nAPmxxUxqn+jiGUk="
  private static let pem = """
    -----BEGIN PRIVATE KEY-----
    MC4CAQAwBQYDK2VwBCIEIIdPEyJnJPFOZ2ASk9GtuFrLltMXDhtp6B/ctP3U3ZaN
    -----END PRIVATE KEY-----

    """

  public static func envelope(_ document: String, key: SigningKey? = nil) -> [UInt8] {
    guard let bytes = try? RemoteEnvelope.seal(Array(document.utf8), key: key) else {
      preconditionFailure("the document is too large for its envelope")
    }
    return bytes
  }
}

/// Keeps the cached remote configuration in memory.
public final class MemoryFile: KeptFile {
  private let file = Mutex<[UInt8]?>(nil)
  private let damaged = Mutex<[UInt8]?>(nil)

  public init() {}

  public var bytes: [UInt8]? { file.withLock { $0 } }
  public var setAsideBytes: [UInt8]? { damaged.withLock { $0 } }
  public func set(_ bytes: [UInt8]?) { file.withLock { $0 = bytes } }

  public func read(bytesMax: Int) async throws(KeptFileFault) -> [UInt8]? { bytes }
  public func write(_ bytes: [UInt8]) async throws(KeptFileFault) { set(bytes) }
  public func setAside() async throws(KeptFileFault) -> String {
    let bytes = bytes
    damaged.withLock { $0 = bytes }
    set(nil)
    return "memory.damaged"
  }
}

/// The rig's files for a handler of control questions; a reload changes nothing.
public struct RigFiles: ConfigurationSource {
  private let rig = RemoteRig()

  public init() {}

  public func reload() async -> ReloadOutcome { .inForce(generation: 1, changes: []) }
  public func inForce() async -> LoadedConfiguration {
    guard let loaded = try? rig.load() else { preconditionFailure("the rig's files are sound") }
    return loaded
  }
  public func read(_ path: String) async throws(ConfigurationFaults) -> LoadedConfiguration { await inForce() }
}
