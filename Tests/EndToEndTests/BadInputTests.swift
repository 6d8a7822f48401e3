import Testing

@Suite struct BadInputTests {
  struct Case: CustomTestStringConvertible {
    let line: String
    let code: String
    init(_ line: String, _ code: String) { (self.line, self.code) = (line, code) }
    var testDescription: String { "\(code): \(line.prefix(60))" }
  }

  private static let namespaces = [
    "closed": "isGather: false\nmonitorList: [{type: a}]\n",
    "others": "allow: {users: [daemon]}\nmonitorList: [{type: a}]\n",
    "small": "onFull: refuse\nmaxStoreMByte: 1\nmonitorList: [{type: a, isUploadPayload: true}]\n",
  ]
  static let deep = String(repeating: #"{"a":"#, count: 80) + "1" + String(repeating: "}", count: 80)
  static let cases = [
    Case("[1]", "bad_request"), Case("{", "bad_request"), Case(#"{"type":7,"meta":{"a":1}}"#, "bad_request"),
    Case(#"{"type":"net","type":"net","meta":{"a":1}}"#, "bad_request"),
    Case(#"{"type":"net","meta":{}}"#, "bad_request"), Case(#"{"type":"net","meta":[]}"#, "bad_request"),
    Case(#"{"type":"net","meta":\#(deep)}"#, "bad_request"),
    Case(#"{"type":"net","meta":{"a":1},"wrong":1}"#, "bad_request"),
    Case(#"{"type":"net","meta":{"a":1},"reportId":"a b"}"#, "bad_request"),
    Case(#"{"hello":{"app":{"NO_SUCH_KEY":"1"}}}"#, "bad_request"),
    Case(#"{"namespace":"nobody","type":"a","meta":{"a":1}}"#, "unknown_namespace"),
    Case(#"{"type":"nothing","meta":{"a":1}}"#, "unknown_type"),
    Case(#"{"namespace":"closed","type":"a","meta":{"a":1}}"#, "gather_off"),
    Case(#"{"namespace":"others","type":"a","meta":{"a":1}}"#, "forbidden"),
    Case(#"{"type":"net","meta":{"a":"\#(String(repeating: "x", count: 10_240))"}}"#, "meta_too_large"),
    Case(
      #"{"namespace":"small","type":"a","meta":{"a":1},"payload":"\#(String(repeating: "QUFB", count: 349_526))"}"#,
      "payload_too_large"),
  ]

  @Test("each bad input gets its code, and the next line on the same connection is served")
  func badInput() async throws {
    try await withHarness(namespaces: Self.namespaces) { harness in
      try await harness.startDaemon()
      let good = #"{"type":"net","meta":{"good":1}}"#
      for bad in Self.cases {
        let input = [good, bad.line, good, ""].joined(separator: "\n")
        let ran = try await Programs.run("nc", ["-UN", harness.ingest], input: input)
        try #require(ran.lines.count == 3, "\(bad.testDescription): \(ran.output)")
        #expect(ran.lines[0].contains(#""status":"stored""#))
        #expect(ran.lines[1].contains(#""code":"\#(bad.code)""#), "\(bad.testDescription): \(ran.lines[1])")
        #expect(ran.lines[2].contains(#""status":"stored""#), "\(bad.testDescription): \(ran.lines[2])")
      }
      let status = try await harness.status()
      #expect(Harness.rows(status, "prism", "meta", "stored") == 2 * Self.cases.count)
      Harness.expectIdentity(status)
    }
  }

  @Test("a namespace that is full and refuses says so, and others are served") func storeFull() async throws {
    try await withHarness(namespaces: Self.namespaces) { harness in
      try await harness.startDaemon()
      let payload = String(repeating: "QUFB", count: 100_000)
      let big = #"{"namespace":"small","type":"a","meta":{"a":1},"payload":"\#(payload)"}"#
      let input = (Array(repeating: big, count: 8) + [#"{"type":"net","meta":{"a":1}}"#, ""]).joined(separator: "\n")
      let ran = try await Programs.run("nc", ["-UN", harness.ingest], input: input)
      try #require(ran.lines.count == 9)
      #expect(ran.lines[0].contains(#""status":"stored""#))
      #expect(ran.lines[7].contains(#""code":"store_full""#))
      #expect(ran.lines[8].contains(#""status":"stored""#))
    }
  }
}
