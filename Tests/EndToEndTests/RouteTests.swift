import PrismClient
import PrismProtocol
import Testing

@Suite struct RouteTests {
  @Test("a report from a shell arrives decoded, with who sent it and its payload byte for byte")
  func shellToRow() async throws {
    try await withHarness(namespaces: ["prism": "url: URL\n"]) { harness in
      try await harness.startCollector()
      try await harness.startDaemon()
      let input = #"{"type":"appCrash","meta":{"reason":"SIGSEGV"},"payloadBytes":5}"# + "\nhello"
      let ran = try await Programs.run("nc", ["-UN", harness.ingest], input: input)
      let answer = try JSONValue(parsing: Array(ran.output.utf8))
      let id = try #require(answer["reportId"]?.string, "\(ran.output)")
      #expect(try await harness.prismctl("flush", "--wait").exitCode == 0)
      let rows = try await harness.query(
        """
        SELECT kind, device, type, report_id, meta ->> 'reason', meta ->> 'APP_NAME', meta ->> 'IS_BIZ',
        meta ->> 'MONITOR_TYPE', hex(payload) FROM report ORDER BY kind
        """)
      let common = ["e2e-device", "appCrash", id, "SIGSEGV", "nc", "0", "appCrash"]
      #expect(rows == [["meta"] + common + [""], ["payload"] + common + ["68656C6C6F"]])
      Harness.expectIdentity(try await harness.status())
    }
  }

  @Test("every cipher's packets are opened: rows and columns of one stream", arguments: ["aes-128-gcm", "aes-128-cbc"])
  func ciphers(cipher: String) async throws {
    let shop = "url: URL\ncipher: \(cipher)\nmonitorList: [{type: sample, isUploadPayload: true}]\n"
    try await withHarness(namespaces: ["shop": shop]) { harness in
      try await harness.startCollector()
      try await harness.startDaemon()
      // The first answer of the collector announces columns. A packet of a few rows stays rows.
      for part in [0..<150, 150..<350, 350..<353] {
        let reports = part.map { Sample.report($0, in: "shop", hasPayload: true) }
        _ = try await harness.client().report(contentsOf: reports)
        try await harness.waitUntilSent(["shop"])
      }
      for kind in ["meta", "payload"] { try await harness.expectArrived("shop", kind, Array(0..<353)) }
    }
  }

  @Test("what was stored while the collector was away is sent when it comes, after a stop and a start too")
  func laterCollector() async throws {
    try await withHarness(namespaces: ["prism": "url: URL\n"]) { harness in
      try await harness.startDaemon()
      for number in 0..<3 {
        #expect(try await harness.prismctl("send", "--type", "net", "--meta", #"{"n":\#(number)}"#).exitCode == 0)
      }
      try await harness.endDaemon(15)
      try await harness.startCollector()
      try await harness.startDaemon()
      try await harness.waitUntilSent(["prism"])
      let rows = try await harness.query("SELECT meta ->> 'n' FROM report ORDER BY 1")
      #expect(rows == [["0"], ["1"], ["2"]])
    }
  }
}
