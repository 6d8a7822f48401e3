import Testing

/// A type owns few properties and fits a few screens, so that a reader can hold it in mind.
@Suite struct TypeSizeTests {
  private static let storedPropertiesMax = 12
  private static let linesMax = 400

  /// A table grows by an entry for each thing that it lists.
  private static let tableLines = 1080

  /// Types that may be larger, each with its reason. The figures are only ever lowered.
  private static let exceptions: [(type: String, storedProperties: Int, lines: Int, reason: String)] = [
    ("PrismEngine.NamespacePipeline", 19, 507, "it carries out what one namespace's deliveries decide"),
    ("PrismEngine.Delivery", 0, 462, "one state machine; its states and its window are types of their own"),
    ("prismctl.Command", 0, tableLines, "a table: a declaration for each command"),
    ("prism-collector.Command", 0, tableLines, "a table: a declaration for each command"),
    ("PrismEngine.ControlHandler", 0, 470, "a method for each request of the control protocol"),
    ("PrismConfig.ValueForm", 0, tableLines, "a table: a form for each kind of value"),
    ("PrismCollector.PageAPI", 0, 700, "a method for each path of the API"),
    ("PrismStore.ReportStore", 0, 451, "a method for each thing that the engine asks of the store"),
    ("PrismEngine.PipelineHost", 14, 0, "a closure for each thing that a pipeline's children ask of it"),
    ("PrismStore.StoreOptions", 13, 0, "options of one call; seven are seams for tests"),
    ("PrismLinux.IngestServer", 30, 825, "one thread's state; a split must be measured with the ingest figures"),
    ("PrismLinux.IngestConnection", 28, 0, "one connection's state; a split must be measured with the ingest figures"),
  ]

  /// Types that have a property for each of something that prism's users know by name.
  private static let records: [(type: String, each: String)] = [
    ("PrismConfig.NamespaceConfiguration", "key of a namespace's file"),
    ("PrismStore.RecordRow", "column of a record"),
    ("PrismConfig.DaemonConfiguration", "key of the daemon's file"),
    ("PrismConfig.CollectorConfiguration", "key of the collector's file"),
    ("PrismConfig.OutputDraft", "key of an output"),
    ("PrismCollector.CollectorOptions", "checked setting of the collector"),
    ("PrismHTTP.HTTPServerOptions", "option of a server"),
    ("PrismProtocol.ReportTrigger", "key of a trigger"),
    ("PrismControl.TraceReport", "member of a traced report"),
    ("PrismControl.StatusReport", "member of the status"),
    ("PrismControl.RemoteReport", "member of the remote status"),
    ("PrismControl.QueueReport", "member of a queue's status"),
    ("PrismControl.NamespaceReport", "member of a namespace's status"),
    ("PrismControl.DeadLetterReport", "member of a dead letter"),
    ("PrismControl.RecordTableReport", "member of a table of records"),
    ("PrismStore.DeadLetterRecord", "column of `dead`"),
    ("PrismOutputs.StoredReport", "column of a stored report"),
    ("PrismCollector.ReportFilter", "parameter of a search"),
  ]

  private static let sizes = SourceTree.modules.reduce(into: [String: TypeSizes.Size]()) { sizes, module in
    for file in SourceTree.sources(of: module) {
      for (type, size) in TypeSizes(of: file.code).sizes {
        sizes["\(module).\(type)", default: .init()].storedProperties += size.storedProperties
        sizes["\(module).\(type)", default: .init()].lines += size.lines
      }
    }
  }

  @Test("a type stores at most 12 properties and has at most 400 lines, or a reason") func typesAreSmall() throws {
    try #require(Self.sizes.count > 500, "the types were not found")
    for (type, size) in Self.sizes {
      let exception = Self.exceptions.first { $0.type == type }
      let isRecord = Self.records.contains { $0.type == type }
      #expect(
        isRecord || size.storedProperties <= max(Self.storedPropertiesMax, exception?.storedProperties ?? 0),
        "\(type) stores \(size.storedProperties) properties")
      #expect(size.lines <= max(Self.linesMax, exception?.lines ?? 0), "\(type) has \(size.lines) lines")
    }
  }

  @Test("an exception is still needed, and has a reason") func exceptionsAreUsed() {
    for exception in Self.exceptions {
      let size = Self.sizes[exception.type] ?? .init()
      #expect(!exception.reason.isEmpty)
      #expect(
        exception.storedProperties == 0 || size.storedProperties > Self.storedPropertiesMax, "\(exception.type)")
      #expect(exception.lines == 0 || size.lines > Self.linesMax, "\(exception.type)")
    }
    for record in Self.records {
      #expect(Self.sizes[record.type]?.storedProperties ?? 0 > Self.storedPropertiesMax, "\(record.type)")
    }
  }

  @Test(
    "stored properties are counted, computed and static ones are not",
    arguments: [
      ("struct A {\n  let a: Int, b = 1\n  var c: [Int: Int] { [:] }\n  static let d = 1\n}", ["A": 2]),
      ("struct A {\n  let (a, b) = c\n  var d = 1 {\n    didSet { let e = 1 }\n  }\n}", ["A": 3]),
      ("actor A {\n  let a = Mutex<[Int: B]>([:]), b: () -> C\n  func c() { var d = 1 }\n}", ["A": 2]),
      ("final class A { let a: Int }\nextension A {\n  struct B { var a: Int\n  }\n}", ["A": 1, "A.B": 1]),
      ("struct A {\n  let a = 0..<1, b = 2 < 3\n  var c = d, e: () -> [F: G]\n}", ["A": 4]),
      ("protocol A { var a: Int { get } }\nenum B {\n  case a\n  var b: Int { 1 }\n}", [:]),
    ] as [(String, [String: Int])])
  func counts(code: String, expected: [String: Int]) {
    let found = TypeSizes(of: code).sizes.mapValues(\.storedProperties).filter { $0.value > 0 }
    #expect(found == expected)
  }
}
