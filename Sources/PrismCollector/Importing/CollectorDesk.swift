import PrismBase
package import PrismHTTP
package import PrismProtocol

/// Asks the API for the command line: the collector that runs, or one that is opened on its store.
package final class CollectorDesk {
  /// The reason why nothing was answered, and the exit code.
  package struct Fault: Error {
    package let message: String
    /// 1 for a refusal, 69 for the store.
    package let exitCode: Int32

    package init(message: String, exitCode: Int32) { (self.message, self.exitCode) = (message, exitCode) }
  }

  private enum Way {
    case running(RunningCollector)
    case own(Collector)
  }

  private let way: Way

  /// - Throws: 69 if the store can't be opened.
  package init(_ options: CollectorOptions) throws(Fault) {
    do {
      if options.store == nil, let running = try RunningCollector(state: options.state) {
        way = .running(running)
      } else {
        way = .own(try Collector(options, log: Logger()))
      }
    } catch { throw Fault(message: "\(error)", exitCode: 69) }
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
  ) async throws(Fault) -> String {
    let headers = headers + (type.map { [(name: "Content-Type", value: $0)] } ?? [])
    let answer: CurlHandle.Answer
    switch way {
    case .running(let collector):
      do throws(OutputFailure) {
        answer = try collector.ask(
          method.rawValue, "\(path)\(query.isEmpty ? "" : "?")\(query)",
          headers: headers.map { "\($0.name): \($0.value)" }, body: body)
      } catch { throw Fault(message: "\(error)", exitCode: 69) }
    case .own(let collector):
      let request = HTTPRequest(
        method: method, path: PageAPI.prefix + PercentEncoding.decoded(path),
        query: query.split(separator: "&").map { pair in
          let parts = pair.split(separator: "=", maxSplits: 1).map(String.init)
          return (parts[0], parts.count > 1 ? PercentEncoding.decoded(parts[1]) : "")
        }, headers: headers.map { ($0.name.lowercased(), $0.value) }, body: body,
        peer: HTTPPeer(address: "", isLocal: true))
      let response = await collector.answerReader(request, isOwner: true)
      answer = CurlHandle.Answer(status: response.status, body: response.body)
    }
    guard 200..<300 ~= answer.status else { throw Self.fault(answer) }
    return String(
      decoding: answer.body.last == UInt8(ascii: "\n") ? answer.body.dropLast() : answer.body[...], as: UTF8.self)
  }

  /// - Parameter path: below `/api/v1`, in percent-encoding, as `query` is.
  package func get(_ path: String, query: String = "") async throws(Fault) -> JSONValue {
    let text = try await ask(.get, path, query: query)
    return (try? JSONValue(parsing: Array(text.utf8))) ?? .null
  }

  /// - Parameter body: of a change. - Returns: the answer.
  package func post(_ path: String, _ body: JSONValue) async throws(Fault) -> JSONValue {
    let text = try await ask(.post, path, type: "application/json", body.bytes)
    return (try? JSONValue(parsing: Array(text.utf8))) ?? .null
  }

  private static func fault(_ answer: CurlHandle.Answer) -> Fault {
    let detail = (try? JSONValue(parsing: answer.body))?["detail"]?.string
    return Fault(
      message: detail ?? "the collector answers \(answer.status); are both of one version of prism-collector?",
      exitCode: answer.status >= 500 ? 69 : 1)
  }

  // MARK: Devices

  /// Reads page after page of the devices of an expression. - Parameter take: takes a device; false ends the reading.
  package func devices(
    where expression: String, sort: String, _ take: (JSONValue) -> Bool
  ) async throws(Fault) {
    var after = 0
    while true {
      let text = try await ask(
        .get, "/devices",
        query: "where=\(PercentEncoding.text(expression))&sort=\(PercentEncoding.text(sort))&limit=1000&after=\(after)")
      let page = try? JSONValue(parsing: Array(text.utf8))
      for device in page?["devices"]?.array ?? [] { guard take(device) else { return } }
      guard let next = page?["next"]?.int else { return }
      after = next
    }
  }
}

/// Text in a URL (RFC 3986, section 2.1).
enum PercentEncoding {
  static func text(_ text: String) -> String {
    var encoded = ""
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
        UInt8(ascii: "~"):
        encoded.unicodeScalars.append(Unicode.Scalar(byte))
      default: encoded += "%" + Hex.encode([byte]).uppercased()
      }
    }
    return encoded
  }

  static func decoded(_ text: String) -> String {
    var (bytes, rest) = ([UInt8](), Array(text.utf8)[...])
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "%"), let decoded = Hex.decode(String(decoding: rest.prefix(2), as: UTF8.self)) {
        bytes += decoded
        rest = rest.dropFirst(2)
      } else {
        bytes.append(byte)
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
