import PrismAdmission
import PrismBase
import PrismConfig
import PrismEngine
import PrismProtocol
import PrismTestSupport
import Synchronization
import Testing

@testable import PrismLinux

@Suite("Reports of conflicts of records") struct ConflictReportTests {
  /// Keeps the metas of what is submitted.
  private final class Sink: SubmissionSink {
    let metas = Mutex<[String]>([])

    func submit(
      _ group: SubmissionGroup, room: MemoryRoom?, whenCommitted: @escaping @Sendable ([SubmissionAnswer]) -> Void
    ) async {
      metas.withLock { metas in
        metas += group.submissions.map { "{" + String(decoding: $0.members, as: UTF8.self) + "}" }
      }
      whenCommitted(group.submissions.map { _ in .refused(.stopping) })
    }

    func refuse(_ refusal: Refusal, count: Int, type: String?, namespace: String?) async {}
    func reserve(bytes: Int, userID: UInt32) async -> MemoryRoom? { nil }
    func note(_ key: String, of namespace: NamespaceName) async -> [UInt8]? { nil }
  }

  private static let shop = NamespaceName("shop")!

  private static func reports(_ types: [String], _ clashes: [RecordClash]) async -> [String] {
    let sink = Sink()
    let configuration = NamespaceConfiguration(
      name: shop, monitorList: types.map { MonitoredType(ReportType(entry: $0)!) })
    let snapshot = Snapshot(generation: 1, daemon: DaemonConfiguration(), namespaces: [shop: configuration])
    let reports = ConflictReports(sink: sink, configuration: { snapshot }, log: Logger(write: { _ in }))
    let (news, continuation) = AsyncStream.makeStream(of: RecordClashNews.self)
    for clash in clashes { continuation.yield(RecordClashNews(namespace: shop, clash: clash)) }
    continuation.finish()
    await reports.start(news)
    while await !reports.isDone { await Task.yield() }
    return sink.metas.withLock { $0 }
  }

  private static func clash(_ local: String?, _ remote: String?, time: Int64?) -> RecordClash {
    RecordClash(
      table: RecordTableName("setting")!, id: RecordID("a")!, keptLocal: local != nil,
      local: local.map { Array($0.utf8) }, remote: remote.map { Array($0.utf8) }, localTime: 5, remoteTime: time)
  }

  @Test("a conflict is a report with both values, a deleted one as null, if the type is listed") func report() async {
    let clashes = [Self.clash(#"{"n":1}"#, #"{"n":2}"#, time: 4), Self.clash(nil, "{}", time: nil)]
    let expected = [
      #"{"table":"setting","id":"a","held":"here","localTime":5,"serverTime":4,"local":{"n":1},"server":{"n":2}}"#,
      #"{"table":"setting","id":"a","held":"server","localTime":5,"local":null,"server":{}}"#,
    ]
    #expect(await Self.reports(["order", "recordConflict"], clashes) == expected)
    #expect(await Self.reports(["*"], clashes) == expected)
    #expect(await Self.reports(["order"], clashes) == [])
  }

  @Test("values that are too large for a meta are left out, with their sizes") func large() async {
    let large = #"{"x":"\#(String(repeating: "x", count: 8200))"}"#
    #expect(
      await Self.reports(["recordConflict"], [Self.clash(large, nil, time: 4)]) == [
        #"{"table":"setting","id":"a","held":"here","localTime":5,"serverTime":4,"localBytes":8208,"serverBytes":0}"#
      ])
  }
}
