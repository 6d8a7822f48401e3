public import PrismAdmission
public import PrismBase
public import PrismConfig
public import PrismEngine
import PrismProtocol

/// Reports conflicts of records as `recordConflict` in their namespace, if its monitor list has that type (docs/records.md,
/// "Both sides").
public actor ConflictReports {
  private static let type = "recordConflict"
  /// Bytes of both values together that are in a report; larger ones are left out.
  private static let valuesBytesMax = 8192

  private let sink: any SubmissionSink
  private let configuration: @Sendable () -> Snapshot
  private let log: Logger
  private let source = SubmissionSource.daemon("records")
  private var task: Task<Void, Never>?

  /// Nothing is reported before `start`.
  public init(sink: any SubmissionSink, configuration: @escaping @Sendable () -> Snapshot, log: Logger) {
    (self.sink, self.configuration, self.log) = (sink, configuration, log)
  }

  /// Reports each conflict that comes. - Parameter clashes: read here only.
  public func start(_ clashes: AsyncStream<RecordClashNews>) {
    guard task == nil else { return }
    task = Task { [weak self] in
      for await news in clashes { await self?.report(news) }
      await self?.end()
    }
  }

  /// The conflicts have ended, and the last one is reported.
  private(set) var isDone = false

  /// Reports nothing more.
  public func stop() async {
    task?.cancel()
    await task?.value
  }

  private func end() { isDone = true }

  private func report(_ news: RecordClashNews) async {
    guard let namespace = configuration().namespaces[news.namespace], let type = ReportType(Self.type),
      namespace.monitorList.entry(for: type) != nil
    else { return }
    let report = Submission(Self.type, in: news.namespace.text, meta: Self.meta(news).bytes, from: source)
    guard let refusal = await sink.submit(report), refusal != .stopping else { return }
    log.fault(
      "records.conflict", "a conflict of records could not be reported",
      ["namespace": news.namespace.text, "cause": refusal.message])
  }

  private static func meta(_ news: RecordClashNews) -> JSONValue {
    let clash = news.clash
    var members: [JSONValue.Member] = [
      .init("table", .string(clash.table.text)), .init("id", .string(clash.id.text)),
      .init("held", .string(clash.keptLocal ? "here" : "server")), .init("localTime", .int(clash.localTime)),
    ]
    if let time = clash.remoteTime { members.append(.init("serverTime", .int(time))) }
    let fits = (clash.local?.count ?? 0) + (clash.remote?.count ?? 0) <= valuesBytesMax
    for (key, fields) in [("local", clash.local), ("server", clash.remote)] {
      guard fits else {
        members.append(.init("\(key)Bytes", .int(fields?.count ?? 0)))
        continue
      }
      // Fields were read as JSON before they were stored.
      members.append(.init(key, fields.flatMap { try? JSONValue(parsing: $0) } ?? .null))
    }
    return .object(members)
  }
}
