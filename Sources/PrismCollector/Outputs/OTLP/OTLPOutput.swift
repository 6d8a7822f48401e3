import PrismBase
import PrismProtocol

/// Sends reports to an OpenTelemetry collector or backend over OTLP/HTTP: what came over OTLP as it came, the others as log
/// records.
actor OTLPOutput: ReportOutput {
  struct Options: Sendable, Equatable {
    /// Without `/v1/logs`.
    var url: String
    /// Names and values, such as `Authorization`.
    var headers: [String] = []
    var timeout: Duration = .seconds(30)
  }

  private static let requestBytesMax = 4 * 1_048_576

  private let executor = DispatchQueueExecutor(label: "prism.collector.otlp")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private let options: Options
  private var handle: CurlHandle?
  /// Of reports that come again because others failed: those that the other side answered for, and how many it refused.
  private var answered: (ids: Set<Int64>, refused: Int) = ([], 0)

  init(_ options: Options) { self.options = options }

  func close() { handle = nil }

  /// Sends requests of at most 4 MiB of metas and payloads, one after the other, each signal in the order of its reports.
  /// After a failure the reports come again: those that the other side took are not sent again.
  func deliver(_ reports: [StoredReport]) throws(OutputFailure) -> Int {
    for part in Self.parts(of: reports.filter { !answered.ids.contains($0.id) }) {
      do throws(OutputFailure) { answered.refused += try send(part.records, as: part.signal) } catch {
        throw OutputFailure(error.description, taken: reports.prefix { answered.ids.contains($0.id) }.count)
      }
      answered.ids.formUnion(part.ids)
    }
    defer { answered = ([], 0) }
    return answered.refused
  }

  private typealias Part = (signal: OTLPSignal, records: [OTLPRecord], ids: [Int64])

  /// The reports of one request each.
  private static func parts(of reports: [StoredReport]) -> [Part] {
    let all = reports.map { (record: OTLPRecord($0), id: $0.id, bytes: $0.meta.count + ($0.payload?.count ?? 0)) }
    var parts: [Part] = []
    for signal in OTLPSignal.allCases {
      var (part, bytes): (Part, Int) = ((signal, [], []), 0)
      for one in all where one.record.signal == signal {
        if bytes + one.bytes > requestBytesMax, !part.ids.isEmpty {
          parts.append(part)
          (part, bytes) = ((signal, [], []), 0)
        }
        part.records.append(one.record)
        part.ids.append(one.id)
        bytes += one.bytes
      }
      if !part.ids.isEmpty { parts.append(part) }
    }
    return parts
  }

  /// - Returns: how many reports the answer refuses for good. A refused request of several is sent again one by one, so
  ///   that one report costs no other.
  private func send(_ records: [OTLPRecord], as signal: OTLPSignal) throws(OutputFailure) -> Int {
    let handle = if let handle { handle } else { try CurlHandle() }
    self.handle = handle
    let answer = try handle.post(
      OTLPRequest(signal, records).text, to: options.url + signal.path,
      headers: ["Content-Type: application/json"] + options.headers, timeout: options.timeout)
    switch answer.status {
    case 200..<300: return min(Self.refusedCount(answer.body, signal), records.count)
    // Retryable by the specification, or mended by an operator.
    case 429, 500..<600, 401, 403, 404: throw OutputFailure("\(options.url) answers \(answer.status)")
    default:
      if records.count == 1 { return 1 }
      var refused = 0
      for record in records { refused += try send([record], as: signal) }
      return refused
    }
  }

  /// The records that a 2xx refuses (`partial_success`): they may not be sent again.
  private static func refusedCount(_ body: [UInt8], _ signal: OTLPSignal) -> Int {
    let count = (try? JSONValue(parsing: body))?["partialSuccess"]?[signal.refused]
    return max(0, count?.int ?? count?.string.flatMap { Int($0) } ?? 0)
  }
}
