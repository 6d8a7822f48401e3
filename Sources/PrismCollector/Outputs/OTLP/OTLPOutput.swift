import PrismBase
import PrismConfig
import PrismProtocol

/// Sends reports to an OpenTelemetry collector or backend over OTLP/HTTP: what came over OTLP as it came, the others as log
/// records.
actor OTLPOutput: ReportOutput {
  struct Options: Sendable, Equatable {
    /// Without `/v1/logs`.
    var url: String
    /// Names and values, such as `Authorization`.
    var headers: [String] = []
    var encoding = CollectorConfiguration.Output.Encoding.protobuf
    var timeout: Duration = .seconds(30)
  }

  private static let reportsMax = 1000

  private let executor = DispatchQueueExecutor(label: "prism.collector.otlp")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private let options: Options
  private var handle: CurlHandle?
  /// Of metas and payloads in a request; less once something on the way took no request of this size.
  private var requestBytesMax = 4 * 1_048_576
  /// Reports in a request: one after a request that was refused in part, since its answer does not say which. Each page
  /// without refusals doubles it.
  private var requestReportsMax = reportsMax
  /// Of reports that come again because others failed: those that the other side answered for, and its refusals.
  private var answered: (ids: Set<Int64>, refused: [RefusedReport]) = ([], [])

  init(_ options: Options) { self.options = options }

  func close() { handle = nil }

  /// Sends requests of at most 4 MiB of metas and payloads, one after the other, each signal in the order of its reports.
  /// After a failure the reports come again: those that the other side took are not sent again.
  func deliver(_ reports: [StoredReport]) throws(OutputFailure) -> [RefusedReport] {
    for part in parts(of: reports.filter { !answered.ids.contains($0.id) }) {
      do throws(OutputFailure) { try send(part) } catch {
        let taken = reports.prefix { answered.ids.contains($0.id) }
        throw OutputFailure(error.description, taken: taken.count, refused: refused(of: taken))
      }
    }
    defer { answered = ([], []) }
    let refused = refused(of: reports[...])
    if refused.isEmpty { requestReportsMax = min(Self.reportsMax, requestReportsMax * 2) }
    return refused
  }

  private func refused(of reports: ArraySlice<StoredReport>) -> [RefusedReport] {
    answered.refused.filter { one in reports.contains { $0.id == one.id } }
  }

  /// The reports of one request.
  private struct Part {
    let signal: OTLPSignal
    var records: [(record: OTLPRecord, id: Int64, bytes: Int)] = []
    var bytes: Int { records.reduce(0) { $0 + $1.bytes } }
  }

  private func parts(of reports: [StoredReport]) -> [Part] {
    let all = reports.map { (record: OTLPRecord($0), id: $0.id, bytes: $0.meta.count + ($0.payload?.count ?? 0)) }
    var parts: [Part] = []
    for signal in OTLPSignal.allCases {
      var (part, bytes) = (Part(signal: signal), 0)
      for one in all where one.record.signal == signal {
        let isFull = bytes + one.bytes > requestBytesMax || part.records.count == requestReportsMax
        if isFull, !part.records.isEmpty {
          parts.append(part)
          (part, bytes) = (Part(signal: signal), 0)
        }
        part.records.append(one)
        bytes += one.bytes
      }
      if !part.records.isEmpty { parts.append(part) }
    }
    return parts
  }

  /// Sends a part until the backend answered for each of its records. A part that is refused or too large is sent in
  /// halves, so that one report costs no other.
  private func send(_ part: Part) throws(OutputFailure) {
    let handle = if let handle { handle } else { try CurlHandle() }
    self.handle = handle
    let body = OTLPRequest(part.signal, part.records.map(\.record)).body(options.encoding)
    let answer = try handle.post(
      body.bytes, to: options.url + part.signal.path, headers: ["Content-Type: \(body.mediaType)"] + options.headers,
      timeout: options.timeout)
    let (verdict, isOne) = (OTLPVerdict(answer, part.signal), part.records.count == 1)
    switch verdict {
    case .taken(let count, let cause):
      let refused = count == 0 ? [] : part.records
      if count > 0 { requestReportsMax = 1 }
      let all = isOne ? cause : "\(count) of the \(part.records.count) reports of its request: \(cause)"
      note(part, refused: refused.map { RefusedReport(id: $0.id, cause: all) })
    case .refused(let cause) where isOne: note(part, refused: [RefusedReport(id: part.records[0].id, cause: cause)])
    case .held(let cause): throw OutputFailure("\(part.signal.path) \(cause)")
    case .tooLarge(let cause) where isOne:
      throw OutputFailure("\(part.signal.path) \(cause): one report has \(part.bytes) bytes")
    case .refused, .tooLarge:
      if case .tooLarge = verdict { requestBytesMax = max(1, part.bytes / 2) }
      let middle = part.records.count / 2
      try send(Part(signal: part.signal, records: Array(part.records[..<middle])))
      try send(Part(signal: part.signal, records: Array(part.records[middle...])))
    }
  }

  private func note(_ part: Part, refused: [RefusedReport]) {
    answered.ids.formUnion(part.records.map(\.id))
    answered.refused += refused
  }
}
