import PrismBase
import PrismHTTP
import PrismProtocol

/// Reads and changes records for the command line: through the collector that runs, or in its store.
package final class RecordDesk {
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
  private let table: String
  private let query: String

  /// - Throws: 64 for wrong names, 69 if the store can't be opened.
  package init(
    _ options: CollectorOptions, namespace: String, table: String, device: String?
  ) throws(Fault) {
    guard let namespace = NamespaceName(namespace), let table = RecordTableName(table) else {
      throw Fault(
        message: "--namespace and --table must be names of a namespace and of a table of records", exitCode: 64)
    }
    self.table = "/records/\(namespace)/\(table)"
    query = device.map { "device=\(PercentEncoding.text($0))" } ?? ""
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

  // MARK: One record

  /// - Returns: the record, as JSON.
  package func get(_ id: String) async throws(Fault) -> String {
    try await ask(.get, "/\(PercentEncoding.text(id))", type: nil)
  }

  /// - Parameter fields: a JSON object. - Parameter isNew: a record that is there is left as it is, and refused.
  /// - Returns: the record as it is now.
  package func put(_ id: String, fields: String, isNew: Bool = false) async throws(Fault) -> String {
    try await ask(
      .put, "/\(PercentEncoding.text(id))", type: "application/json", Array(fields.utf8),
      headers: isNew ? [("If-None-Match", "*")] : [])
  }

  /// Changes fields by a JSON Merge Patch. - Returns: the record.
  package func patch(_ id: String, fields: String) async throws(Fault) -> String {
    try await ask(.patch, "/\(PercentEncoding.text(id))", type: "application/merge-patch+json", Array(fields.utf8))
  }

  package func delete(_ id: String) async throws(Fault) -> String {
    try await ask(.delete, "/\(PercentEncoding.text(id))", type: nil)
  }

  // MARK: Many

  /// Makes the changes of lines, a thousand in a transaction. - Parameter firstLine: the number of the first one, for faults.
  /// - Returns: how many were stored and deleted.
  package func change(_ lines: [UInt8], firstLine: Int) async throws(Fault) -> (stored: Int, deleted: Int) {
    let text = try await ask(.post, "", type: "application/x-ndjson", lines, query: "firstLine=\(firstLine)")
    let answer = try? JSONValue(parsing: Array(text.utf8))
    return (answer?["stored"]?.int ?? 0, answer?["deleted"]?.int ?? 0)
  }

  /// Reads page after page. - Parameter write: takes a record as JSON; false ends the reading.
  package func list(_ write: (String) -> Bool) async throws(Fault) {
    var after = 0
    while true {
      let text = try await ask(.get, "", type: nil, query: "limit=1000&after=\(after)")
      let page = try? JSONValue(parsing: Array(text.utf8))
      for record in page?["records"]?.array ?? [] { guard write(record.text) else { return } }
      guard let next = page?["next"]?.int else { return }
      after = next
    }
  }

  // MARK: Asking

  private func ask(
    _ method: HTTPRequest.Method, _ path: String, type: String?, _ body: [UInt8] = [], query more: String = "",
    headers: [(name: String, value: String)] = []
  ) async throws(Fault) -> String {
    let headers = headers + (type.map { [(name: "Content-Type", value: $0)] } ?? [])
    let query = [self.query, more].filter { !$0.isEmpty }.joined(separator: "&")
    let answer: CurlHandle.Answer
    switch way {
    case .running(let collector):
      do throws(OutputFailure) {
        answer = try collector.ask(
          method.rawValue, "\(table)\(path)\(query.isEmpty ? "" : "?")\(query)",
          headers: headers.map { "\($0.name): \($0.value)" }, body: body)
      } catch { throw Fault(message: "\(error)", exitCode: 69) }
    case .own(let collector):
      let request = HTTPRequest(
        method: method, path: PageAPI.prefix + table + PercentEncoding.decoded(path),
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

  private static func fault(_ answer: CurlHandle.Answer) -> Fault {
    let detail = (try? JSONValue(parsing: answer.body))?["detail"]?.string
    return Fault(
      message: detail ?? "the collector answers \(answer.status); are both of one version of prism-collector?",
      exitCode: answer.status >= 500 ? 69 : 1)
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
