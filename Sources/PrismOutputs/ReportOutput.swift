package import PrismBase
package import PrismConfig
package import PrismCurl
package import PrismProtocol

/// Where reports are handed on to. One is fed by one task, page after page.
package protocol ReportOutput: Sendable {
  /// How many reports it gets at a time.
  var batching: ReportBatching { get }
  /// Hands reports on in their order, and returns once the other side has them.
  /// - Returns: those that the other side refuses for good, and says so.
  /// - Throws: the other side may lack those behind `taken`; they come again.
  func deliver(_ reports: [StoredReport]) async throws(OutputFailure) -> [RefusedReport]
  /// No report waits.
  func rest() async
  /// Ends what `deliver` began.
  func close() async
}

extension ReportOutput {
  /// For an output that is fastest with small pages.
  package var batching: ReportBatching { ReportBatching() }
  /// Nothing.
  package func rest() async {}
}

/// How many reports an output gets at a time.
package struct ReportBatching: Sendable, Equatable {
  /// Of one page.
  package var reportsMax = 1000
  /// How long fewer of them wait for more.
  package var wait: Duration = .zero

  /// For an output that commits page by page: the commits cost less.
  static let large = ReportBatching(reportsMax: 4000)
}

/// A report that an output's other side refuses for good.
package struct RefusedReport: Sendable, Equatable {
  /// Of the report.
  package var id: Int64
  /// In words. Never a report's content.
  package var cause: String
  /// The other side refused some of its request, and does not say which: as many of these count as refused, the others as
  /// delivered. All are kept.
  package var isDelivered: Bool

  package init(id: Int64, cause: String, isDelivered: Bool = false) {
    (self.id, self.cause, self.isDelivered) = (id, cause, isDelivered)
  }
}

/// Why an output takes nothing now. Never a report's content.
package struct OutputFailure: Error, Equatable, CustomStringConvertible {
  /// In words, for the log and `/readyz`.
  package let description: String
  /// How many reports of the page the other side answered for, from the first on: they need not come again.
  package var taken = 0
  /// Those of them that it refuses for good.
  package var refused: [RefusedReport] = []
  /// The other side's own number for it.
  package var serverCode: Int?

  package init(_ description: String, taken: Int = 0, refused: [RefusedReport] = []) {
    (self.description, self.taken, self.refused) = (description, taken, refused)
  }
}

extension CurlClient {
  /// Performs a request. - Throws: it has no answer.
  package func ask(_ request: TransferRequest) throws(OutputFailure) -> Answer {
    do throws(TransferError) { return try perform(request) } catch { throw OutputFailure(error.description) }
  }

  /// - Parameter headers: lines as a request has them.
  package func post(
    _ body: [UInt8], to url: String, headers: [String], timeout: Duration, takesHead: Bool = false
  ) throws(OutputFailure) -> Answer {
    let fields = headers.map { line in
      let name = line.prefix { $0 != ":" }
      return (name: String(name), value: String(line.dropFirst(name.count + 1)).trimmed)
    }
    var request = TransferRequest(url: url, headers: fields, body: body, timeout: timeout)
    request.takesHead = takesHead
    return try ask(request)
  }
}

extension CollectorConfiguration.Output {
  /// Makes the output that these settings describe.
  package func output(_ time: any TimeSource) -> any ReportOutput {
    switch target {
    case .ndjson(nil, _, _, _): NDJSONOutput(nil, name: name, time: time)
    case .ndjson(let folder?, let compresses, let bytesMax, let age):
      NDJSONOutput(
        .init(folder: folder, compresses: compresses, bytesMax: bytesMax, age: age), name: name, time: time)
    case .otlp(let url, let headers, let encoding, let timeout):
      OTLPOutput(.init(url: url, headers: headers, encoding: encoding, timeout: timeout))
    case .kafka(let brokers, let topic, let propertiesFile, let timeout):
      KafkaOutput(
        .init(brokers: brokers, topic: topic, propertiesFile: propertiesFile, timeout: timeout), time: time)
    case .clickHouse(let url, let database, let user, let passwordFile, let timeout):
      ClickHouseOutput(
        .init(url: url, database: database, user: user, passwordFile: passwordFile, timeout: timeout), name: name)
    case .postgreSQL(let uri, let schema, let passwordFile, let timeout):
      PostgreSQLOutput(.init(uri: uri, schema: schema, passwordFile: passwordFile, timeout: timeout))
    }
  }

  /// - Parameter path: of a file with properties of librdkafka. - Returns: what is wrong with it; nil: nothing.
  @Sendable package static func propertiesFault(_ path: String) -> String? {
    do throws(OutputFailure) { _ = try KafkaOutput.properties(.init(brokers: "", propertiesFile: path)) } catch {
      return error.description
    }
    return nil
  }
}
