import Foundation
import PrismHTTP
import PrismPacket
import PrismProtocol
import PrismTestSupport
import Synchronization

@testable import PrismCollector
@testable import PrismConfig

/// A receiver of notices, over a real socket.
final class NoticeReceiver: Sendable {
  struct Request: Sendable {
    let path: String
    let body: JSONValue
    let bytes: [UInt8]
    let signature: String?, id: String?
  }

  private final class State: Sendable {
    let requests = Mutex<[Request]>([])
    let status = Mutex(200)
  }

  private let state = State()
  private let server: HTTPServer

  var requests: [Request] { state.requests.withLock { $0 } }
  var url: String { "http://127.0.0.1:\(server.port)/hook" }

  init() throws {
    server = try HTTPServer(listener: ListeningSocket(address: "127.0.0.1:0")) { [state] request in
      state.requests.withLock {
        $0.append(
          Request(
            path: request.path, body: (try? JSONValue(parsing: request.body)) ?? .null, bytes: request.body,
            signature: request.header("prism-signature"), id: request.header("prism-notice-id")))
      }
      let status = state.status.withLock { $0 }
      return HTTPResponse(
        status: status, contentType: "text/plain", headers: status == 302 ? [("Location", "/other")] : [], text: "x\n")
    }
  }

  func answer(_ status: Int) { state.status.withLock { $0 = status } }
  func stop() async { await server.stop() }
}

/// A collector that has receivers, and can be started again on its state.
final class NoticeRig {
  let rig = StoreRig()
  private(set) var collector: Collector
  private let options: CollectorOptions

  init(_ receivers: [CollectorConfiguration.Notice]) throws {
    var options = CollectorOptions(state: rig.path, keys: ["main": CollectorTests.key])
    options.notices = receivers
    self.options = options
    collector = try Collector(options, time: rig.time, log: rig.log)
  }

  static func receiver(
    _ url: String = "http://127.0.0.1:9/", name: String = "ops",
    on events: [Notice.Event] = [.newGroup, .regressedGroup]
  ) -> CollectorConfiguration.Notice {
    var receiver = CollectorConfiguration.Notice()
    (receiver.name, receiver.url, receiver.events) = (name, url, events)
    return receiver
  }

  func startAgain() async throws {
    await collector.close()
    collector = try Collector(options, time: rig.time, log: rig.log)
  }

  func look() async throws { while try await NoticeWatch(collector: collector).look() {} }

  func notices(_ state: Notice.State? = nil) async throws -> [Notice] {
    try await collector.access.page.notices.page(before: .max, id: "~", state: state, limit: 1000)
  }

  func add(_ notice: Notice) async throws { try await collector.access.page.notices.add(notice) }

  func take(_ number: Int, device: String = "d", function: String? = nil, members: String? = nil) async throws {
    let members = members ?? function.map { #""reason":"SIGSEGV","frames":["\#($0) (till.c:1)"]"# }
    let packet = try StoreRig.packet(
      [number], device: device, type: members == nil ? "sale" : "appCrash", members: { _ in members })
    _ = try await collector.store.take(packet)
  }

  /// - Returns: the status, and the answer.
  func ask(
    _ method: HTTPRequest.Method, _ path: String, _ query: [(name: String, value: String)] = [], _ body: String = ""
  ) async throws -> (status: Int, json: JSONValue) {
    let answer = await collector.answerReader(
      PageRig.request(
        "/api/v1" + path, query, method: method, headers: [("content-type", "application/json")], body: body),
      isOwner: true)
    return (answer.status, try JSONValue(parsing: answer.body))
  }
}
