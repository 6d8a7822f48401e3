import Foundation
import PrismBase
import PrismConfig
import PrismEngine
import PrismHTTP
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismCollector

/// Two collectors of their own under one address, one after the other. The daemon's engine is in the same process.
@Suite("Remote configuration of another collector under the address")
struct OtherStoreTests {
  private static func collector(_ folder: TemporaryFolder, _ rig: RemoteRig) throws -> Collector {
    var options = CollectorOptions(state: folder.path, keys: ["main": DeliveryRig.key])
    options.remote = CollectorOptions.Remote(folder: folder.path + "/remote.d")
    return try Collector(options, time: rig.delivery.time, log: Logger(write: { _ in }))
  }

  private static func serve(_ name: String, _ line: String = "", in folder: TemporaryFolder) throws {
    let files = folder.path + "/remote.d"
    try FileManager.default.createDirectory(atPath: files, withIntermediateDirectories: true)
    let text = line.hasPrefix("retired") ? line : "url: https://collector.test\nmonitorList: [{type: order}]\n" + line
    try text.write(toFile: "\(files)/\(name).yaml", atomically: true, encoding: .utf8)
  }

  private static func answer(by collector: Collector) -> ScriptedSource.Script {
    { request in
      let query = request.url.split(separator: "?")[1].split(separator: "&").map { pair in
        let words = pair.split(separator: "=")
        return (name: String(words[0]), value: String(words[1]))
      }
      let answer = await collector.answer(
        HTTPRequest(
          method: .get, path: "/prism/config", query: query, peer: HTTPPeer(address: "127.0.0.1", isLocal: true)))
      let headers = Dictionary(answer.headers.map { ($0.name.lowercased(), $0.value) }) { first, _ in first }
      return .response(status: answer.status, headers: headers, body: answer.body)
    }
  }

  @Test("it takes no namespace away; the first one's changes are seen when it is back, and what it removes goes")
  func otherStore() async throws {
    let rig = RemoteRig(
      remote: #"{url: "https://collector.test/prism/config", allow: [url, monitorList, maxItem]}"#)
    let (folder, otherFolder) = (TemporaryFolder(), TemporaryFolder())
    for name in ["pay", "till"] { try Self.serve(name, in: folder) }
    let first = try Self.collector(folder, rig)
    rig.source.set(Self.answer(by: first))
    let running = try await rig.start()
    #expect(await rig.runs(running) { $0["namespaces"] == ["pay", "till"] })

    try Self.serve("test", in: otherFolder)
    let second = try Self.collector(otherFolder, rig)
    rig.source.set(Self.answer(by: second))
    #expect(await rig.runs(running) { $0["namespaces"] == ["pay", "test", "till"] })

    try Self.serve("pay", "maxItem: 9\n", in: folder)
    try FileManager.default.removeItem(atPath: folder.path + "/remote.d/till.yaml")
    rig.source.set(Self.answer(by: first))
    #expect(await rig.runs(running) { $0["namespaces"] == ["pay", "test"] })
    #expect(running.namespace("pay")?.maxItem == 9)

    let version = await first.remote?.store.version()
    try Self.serve("test", in: folder)
    #expect(await rig.runs(running) { _ in await first.remote?.store.version() == version.map { $0 + 1 } })
    try Self.serve("test", "retired: true\n", in: folder)
    #expect(await rig.runs(running) { $0["namespaces"] == ["pay"] })
    await running.stop()
    await first.close()
    await second.close()
  }
}
