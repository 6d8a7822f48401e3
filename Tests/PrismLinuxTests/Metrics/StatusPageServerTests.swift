import PrismAdmission
import PrismBase
import PrismConfig
import PrismEngine
import PrismHTTP
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismLinux

@Suite("The status page at metrics.listen")
struct StatusPageServerTests {
  private func server(_ rig: DeliveryRig) async throws -> (MetricsServer, Engine) {
    let engine = try await rig.engine()
    let sources = MetricsServer.Sources(
      engine: engine, version: "1", ingest: { IngestCounters() }, remote: { RemoteFigures() })
    let server = MetricsServer(sources, log: Logger(write: { _ in }))
    let handler = ControlHandler(engine: engine, version: "1.2.3", configuration: RigFiles()) { ProcessFigures() }
    await server.show(handler)
    return (server, engine)
  }

  private func get(_ path: String, host: String? = "127.0.0.1:9464", of server: MetricsServer) async -> HTTPResponse {
    let headers = host.map { [(name: "host", value: $0)] } ?? []
    return await server.answer(
      HTTPRequest(
        method: .get, path: path, headers: headers, peer: HTTPPeer(address: "127.0.0.1", isLocal: true)))
  }

  private func text(_ answer: HTTPResponse) -> String { String(decoding: answer.body, as: UTF8.self) }

  @Test("it shows the flow of rows, and says that a refused token holds them")
  func held() async throws {
    let rig = DeliveryRig(ScriptedTransport { ScriptedTransport.answer(401, to: $0) })
    let (server, engine) = try await server(rig)
    #expect(text(await get("/", of: server)).contains("Sending: nothing waits."))
    await rig.report(0..<3, to: engine)
    #expect(await rig.runs { text(await get("/", of: server)).contains("class=\"light held\"") })
    let page = text(await get("/", of: server))
    #expect(page.contains("Held: shop sends nothing, because"))
    #expect(page.contains("<li><b>3</b> Stored</li>") && page.contains("prismd 1.2.3"))
    await engine.stop()
  }

  @Test("only what the daemon serves is loaded or run, and no other site frames it")
  func policy() async throws {
    let (server, engine) = try await server(DeliveryRig())
    for path in ["/", "/doctor", "/status.css", "/status.js"] {
      let answer = await get(path, of: server)
      let policy = answer.headers.first { $0.name == "Content-Security-Policy" }?.value ?? ""
      #expect(answer.status == 200 && !policy.contains("unsafe"), "\(path)")
      for rule in ["default-src 'none'", "script-src 'self';", "frame-ancestors 'none'"] {
        #expect(policy.contains(rule), "\(path)")
      }
    }
    await engine.stop()
  }

  @Test(
    "a web page that lets its own name point here is refused",
    arguments: [
      ("evil.example", 403), ("evil.example:9464", 403), (nil, 403), ("", 403), ("localhost:9464", 200),
      ("[::1]:9464", 200), ("192.0.2.7", 200),
    ] as [(String?, Int)])
  func hosts(host: String?, status: Int) async throws {
    let (server, engine) = try await server(DeliveryRig())
    #expect(await get("/", host: host, of: server).status == status)
    #expect(await get("/doctor", host: host, of: server).status == status)
    #expect(await get("/metrics", host: host, of: server).status == 200)
    await engine.stop()
  }

  @Test("the checks run once in a while, however often they are asked for")
  func checks() async throws {
    let rig = DeliveryRig()
    let (server, engine) = try await server(rig)
    let first = text(await get("/doctor", of: server))
    #expect(first.contains("database: ok"))
    let probes = rig.transport.requests.count
    #expect(probes > 0)
    for _ in 0..<5 { #expect(text(await get("/doctor", of: server)) == first) }
    #expect(rig.transport.requests.count == probes)
    await engine.stop()
  }
}
