import Foundation
import Glibc
import PrismAdmission
import PrismBase
import PrismConfig
import PrismEngine
import PrismProtocol
import PrismTestSupport

@testable import PrismLinux

/// The ingest server over a real store: `shop` declares the tables `part` and `suit`.
final class RecordServerRig: Sendable {
  let delivery = DeliveryRig()
  let engine: Engine
  let server: IngestServer
  let time = ManualTime(unixMilliseconds: 1_732_154_081_000)
  let path: String
  private let folder: String

  init() async throws {
    folder = TemporaryFolder.make()
    path = folder + "/ingest.sock"
    engine = try await delivery.engine(Self.snapshot())
    let hub = engine.hub
    server = try IngestServer(
      listener: try UnixListener(path: path, mode: 0o666), sink: engine.sink, snapshot: { hub.current },
      facts: HostFacts(deviceID: "device-1", systemVersion: "Linux"), version: "9.9", time: time,
      log: Logger(level: .error))
    await engine.observeRecords { [weak server] in server?.recordsChanged($0) }
    await server.start()
  }

  static func snapshot(tables: [String] = ["part", "suit"], generation: Int = 1) -> Snapshot {
    var snapshot = DeliveryRig.snapshot { shop in
      shop.records = tables.map { RecordTable(RecordTableName($0)!, maxRecord: 3) }
      shop.isUpload = false
    }
    snapshot.generation = generation
    return snapshot
  }

  func tearDown() async {
    let done = Task { await server.stop() }
    let watch = Task { [time] in
      while !Task.isCancelled {
        time.advance(by: .seconds(60))
        await Task.yield()
      }
    }
    await done.value
    watch.cancel()
    await engine.stop()
    unlink(path)
    rmdir(folder)
  }

  /// Answers in the order of the lines, each over a connection of its own.
  func ask(_ line: String) async throws -> JSONValue {
    let client = try IngestClient(path)
    try await client.send(line + "\n")
    return try await client.lines(1)[0]
  }

  func put(_ id: String, _ fields: String, in table: String = "part") async throws -> JSONValue {
    try await ask(#"{"put":{"namespace":"shop","table":"\#(table)","id":"\#(id)","fields":\#(fields)}}"#)
  }

  struct Answer {
    var status: Int
    var headers: [String: String]
    var body: String
    var json: JSONValue? { try? JSONValue(parsing: body) }
    var etag: String? { headers["etag"] }
  }

  /// One request over a connection of its own.
  func http(
    _ method: String, _ target: String, _ headers: [String: String] = [:], body: String? = nil
  ) async throws -> Answer {
    let client = try IngestClient(path)
    try await client.send(Self.request(method, target, headers, body: body))
    return Self.answer(try await client.rest())
  }

  static func request(
    _ method: String, _ target: String, _ headers: [String: String] = [:], body: String? = nil
  ) -> String {
    var text = "\(method) \(target) HTTP/1.1\r\nHost: prism\r\nConnection: close\r\n"
    for (name, value) in headers { text += "\(name): \(value)\r\n" }
    if let body { text += "Content-Length: \(body.utf8.count)\r\n" }
    return text + "\r\n" + (body ?? "")
  }

  static func answer(_ text: String) -> Answer {
    let parts = text.components(separatedBy: "\r\n\r\n")
    let lines = parts[0].components(separatedBy: "\r\n")
    let status = Int(lines[0].dropFirst("HTTP/1.1 ".count).prefix(3)) ?? 0
    let headers = lines.dropFirst().map { $0.components(separatedBy: ": ") }
    return Answer(
      status: status,
      headers: Dictionary(uniqueKeysWithValues: headers.map { ($0[0].lowercased(), $0.dropFirst().joined()) }),
      body: parts.dropFirst().joined(separator: "\r\n\r\n"))
  }

  /// A request waits for a change.
  var isPolling: Bool {
    get async { await server.polls > 0 }
  }
}

extension IngestServer {
  fileprivate var polls: Int { connections.values.count { $0.pollWait != nil } }
}

func withRecordServer(_ body: (RecordServerRig) async throws -> Void) async throws {
  let rig = try await RecordServerRig()
  do { try await body(rig) } catch {
    await rig.tearDown()
    throw error
  }
  await rig.tearDown()
}
