import Glibc
package import PrismBase
import PrismCurl
package import PrismHTTP
package import PrismOutputs
package import PrismPacket
package import PrismProtocol

/// Asks the API for the command line: the collector that runs, or one that is opened on its store.
package final class CollectorClient {
  private enum Way {
    case running(RunningCollector)
    case own(Collector)
  }

  private let way: Way

  /// - Throws: 69 if the store can't be opened.
  package init(_ options: CollectorOptions) throws(Failure) {
    do {
      if let running = RunningCollector(state: options.state) {
        way = .running(running)
      } else {
        way = .own(try Collector(options, log: Logger()))
      }
    } catch { throw .unavailable("\(error)") }
  }

  /// Closes the store, if it was opened for this.
  package func end() async { if case .own(let collector) = way { await collector.close() } }

  /// - Parameters:
  ///   - path: below `/api/v1`, in percent-encoding, as `query` is.
  ///   - type: of the body; nil: there is no body.
  /// - Returns: the body of the answer, without a line feed at its end.
  package func ask(
    _ method: HTTPRequest.Method, _ path: String, query: String = "", type: String? = nil, _ body: [UInt8] = [],
    headers: [(name: String, value: String)] = []
  ) async throws(Failure) -> String {
    let headers = headers + (type.map { [(name: "Content-Type", value: $0)] } ?? [])
    let answer: CurlClient.Answer
    switch way {
    case .running(let collector):
      do throws(OutputFailure) {
        answer = try collector.ask(
          method, "\(PageAPI.prefix)\(path)\(query.isEmpty ? "" : "?")\(query)", headers: headers, body: body)
      } catch { throw .unavailable("\(error)") }
    case .own(let collector):
      let request = HTTPRequest(
        method: method, path: PageAPI.prefix + path.percentDecoded,
        query: query.split(separator: "&").map { pair in
          let parts = pair.split(separator: "=", maxSplits: 1).map(String.init)
          return (parts[0], parts.count > 1 ? parts[1].percentDecoded : "")
        }, headers: headers.map { ($0.name.lowercased(), $0.value) }, body: body,
        peer: HTTPPeer(address: "", isLocal: true))
      let response = await collector.answerReader(request, isOwner: true)
      answer = CurlClient.Answer(status: response.status, body: response.body)
    }
    guard 200..<300 ~= answer.status else { throw Self.fault(answer) }
    return String(
      decoding: answer.body.last == UInt8(ascii: "\n") ? answer.body.dropLast() : answer.body[...], as: UTF8.self)
  }

  /// - Parameter path: below `/api/v1`, in percent-encoding, as `query` is.
  package func get(_ path: String, query: String = "") async throws(Failure) -> JSONValue {
    let text = try await ask(.get, path, query: query)
    return (try? JSONValue(parsing: Array(text.utf8))) ?? .null
  }

  /// - Parameter body: of a change. - Returns: the answer.
  package func post(_ path: String, _ body: JSONValue) async throws(Failure) -> JSONValue {
    let text = try await ask(.post, path, type: "application/json", body.bytes)
    return (try? JSONValue(parsing: Array(text.utf8))) ?? .null
  }

  private static func fault(_ answer: CurlClient.Answer) -> Failure {
    let detail = (try? JSONValue(parsing: answer.body))?["detail"]?.string
    return Failure(
      answer.status >= 500 ? 69 : 1,
      detail ?? "the collector answers \(answer.status); are both of one version of prism-collector?")
  }

  // MARK: Lists

  /// Asks until all of the store that the answer is about is read.
  package func whole(_ path: String, query: String = "") async throws(Failure) -> JSONValue {
    var answer: JSONValue
    repeat { answer = try await get(path, query: query) } while answer["isWhole"]?.bool == false
    return answer
  }

  /// Reads page after page of a list.
  /// - Parameters:
  ///   - member: the list's name in the answer.
  ///   - take: takes a thing of it; false ends the reading.
  package func pages(
    _ path: String, query: String = "", of member: String, _ take: (JSONValue) -> Bool
  ) async throws(Failure) {
    var next: JSONValue?
    repeat {
      let after = next.map { "after=\(($0.string ?? $0.text).percentEncoded)" }
      let parts = ["limit=1000", query, after ?? ""].filter { !$0.isEmpty }
      let page = try await get(path, query: parts.joined(separator: "&"))
      for entry in page[member]?.array ?? [] { guard take(entry) else { return } }
      next = page["next"]
    } while next.map { $0 != .null } ?? false
  }

  package func devices(where expression: String, sort: String, _ take: (JSONValue) -> Bool) async throws(Failure) {
    try await pages(
      "/devices", query: "where=\(expression.percentEncoded)&sort=\(sort.percentEncoded)", of: "devices", take)
  }

  /// The devices that an expression chooses now, by their ids.
  package func devices(where expression: String) async throws(Failure) -> [String] {
    var found: [String] = []
    try await devices(where: expression, sort: "device") { device in
      found += [device["device"]?.string].compactMap(\.self)
      return true
    }
    return found
  }
}

/// The collector that runs with a state folder, asked over the socket that only the folder's owner can open.
package final class RunningCollector {
  /// A page of records has 4 MiB of fields, and little more around them.
  private static let pageBytesMax = 16 * 1_048_576
  /// More than a packet may be held for its predecessor.
  private static let timeout: Duration = .seconds(120)

  private let socket: String
  private let client = CurlClient()

  /// - Returns: nil if no collector runs there.
  package init?(state: String) {
    socket = FilePath.joined(state, "reader.sock")
    guard let address = UnixAddress(path: socket) else { return nil }
    let descriptor = address.connect()
    guard descriptor >= 0 else { return nil }
    close(descriptor)
  }

  /// - Throws: if it does not answer as a collector does.
  package func take(_ packet: CarriedPacket) throws(OutputFailure) -> CarriedAnswer {
    let answer = try ask(.post, CarriedIntake.path, headers: [], body: packet.fileBytes)
    guard answer.status == 200, let json = try? JSONValue(parsing: answer.body), let taken = CarriedAnswer(json: json)
    else {
      throw OutputFailure("\(socket): answers \(answer.status); are both of one version of prism-collector?")
    }
    return taken
  }

  /// Asks a path. - Throws: if it does not answer.
  func ask(
    _ method: HTTPRequest.Method, _ path: String, headers: [(name: String, value: String)], body: [UInt8]
  ) throws(OutputFailure) -> CurlClient.Answer {
    var request = TransferRequest(
      get: "http://localhost\(path)", headers: headers, timeout: Self.timeout, answerBytesMax: Self.pageBytesMax)
    (request.method, request.body) = (.init(rawValue: method.rawValue) ?? .get, body)
    request.unixSocket = socket
    return try client.ask(request)
  }
}
