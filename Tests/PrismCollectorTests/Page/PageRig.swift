import Foundation
import PrismBase
import PrismConfig
import PrismHTTP
import PrismProtocol

@testable import PrismCollector

extension HTTPResponse {
  /// The body, also where it is a stream.
  var wholeBody: [UInt8] {
    guard let stream else { return body }
    var (whole, piece) = ([UInt8](), [UInt8](repeating: 0, count: 65_536))
    while let count = piece.withUnsafeMutableBytes({ stream.read($0) }) { whole += piece.prefix(count) }
    return whole
  }
}

/// A collector with tokens of each role, asked without a network.
struct PageRig {
  let rig = StoreRig()
  let collector: Collector

  /// - Parameter time: nil: the rig's.
  init(
    hasTokens: Bool = true, isTrial: Bool = false, time: (any TimeSource)? = nil, debuginfod: String? = nil
  ) throws {
    for name in ["sender", "viewer", "operator"] {
      try "\(name)-token-of-tests\n".write(toFile: rig.path + "/\(name)s", atomically: true, encoding: .utf8)
    }
    var options = CollectorOptions(state: rig.path, keys: ["main": CollectorTests.key])
    options.tokenFile = rig.path + "/senders"
    if hasTokens {
      (options.readerTokenFile, options.operatorTokenFile) = (rig.path + "/viewers", rig.path + "/operators")
    }
    (options.isTrial, options.debuginfod) = (isTrial, debuginfod)
    collector = try Collector(options, time: time ?? rig.time, log: rig.log)
  }

  static func request(
    _ path: String, _ query: [(name: String, value: String)] = [], method: HTTPRequest.Method = .get,
    headers: [(name: String, value: String)] = [], host: String? = "127.0.0.1:8081", body: String = "",
    isLocal: Bool = true, address: String = "127.0.0.1"
  ) -> HTTPRequest {
    HTTPRequest(
      method: method, path: path, query: query, headers: headers + (host.map { [("host", $0)] } ?? []),
      body: Array(body.utf8), peer: HTTPPeer(address: address, isLocal: isLocal))
  }

  /// Answers at the reader's address.
  func answer(_ request: HTTPRequest) async -> HTTPResponse { await collector.answerReader(request, isOwner: false) }

  /// Answers a path of the API to its owner.
  func ask(_ path: String, _ query: [(name: String, value: String)] = []) async -> HTTPResponse {
    await collector.answerReader(Self.request("/api/v1" + path, query), isOwner: true)
  }

  func json(_ path: String, _ query: [(name: String, value: String)] = []) async throws -> JSONValue {
    try JSONValue(parsing: await ask(path, query).body)
  }

  /// Signs in. - Returns: the cookie's pair, and the token for changes.
  func signIn(_ token: String) async throws -> (cookie: String, change: String) {
    let answer = await answer(
      Self.request(
        "/api/v1/session", method: .post, headers: [("content-type", "application/json")],
        body: #"{"token":"\#(token)"}"#))
    let cookie = answer.headers.first { $0.name == "Set-Cookie" }?.value ?? ""
    let pair = String(cookie.prefix { $0 != ";" })
    return (pair, try JSONValue(parsing: answer.body)["changeToken"]?.string ?? "")
  }
}
