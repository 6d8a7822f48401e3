import Foundation
import PrismProtocol
import Testing

/// `prismctl send --ndjson`: what is in a file is what is stored, or it is said.
@Suite struct SendManyTests {
  private static let shop = """
    monitorList:
      - {type: order}
      - {type: pay, isUploadPayload: true}
      - {type: some, sample: 0.5, sampleBy: n}

    """

  private static func report(_ members: String = "") -> String {
    #"{"namespace":"shop","type":"order","meta":{"n":1}\#(members)}"# + "\n"
  }

  /// A file, the options beside it, the exit code, and a part of what is printed.
  private static let cases: [(file: String, options: [String], exitCode: Int32, said: String)] = [
    (report() + "\n \t\r\n" + report(), [], 0, "stored 2 of 2"),
    (report() + #"{"namespace":"shop","type":"order","meta":{"n":1}}"#, [], 0, "stored 2 of 2"),
    (report() + "nonsense\n", [], 1, "refused 1 bad_request, first report 2"),
    (
      report() + #"{"hello":{}}"# + "\n" + report(), [], 65,
      "line 2 is no report; --ndjson sends reports only; 1 report"
    ),
    (#"{"put":{"namespace":"shop","table":"t","id":"a","fields":{}}}"# + "\n", [], 65, "line 1 is no report"),
    (report(#","payloadBytes":3"#) + "ab", [], 65, "ends within the payload of line 1"),
    (report(), ["--namespace", "shop"], 64, "--namespace is of one report"),
    (report(), ["--report-id", "x"], 64, "--report-id is of one report"),
  ]

  @Test("each report of a file is sent as it is, and what can't be is named with its line", arguments: cases.indices)
  func files(index: Int) async throws {
    let (file, options, exitCode, said) = Self.cases[index]
    try await withHarness(namespaces: ["shop": Self.shop]) { harness in
      try await harness.startDaemon()
      let path = "\(harness.folder)/some.ndjson"
      try file.write(toFile: path, atomically: true, encoding: .utf8)
      let ran = try await harness.prismctl(["send", "--ndjson", path] + options)
      #expect(ran.exitCode == exitCode && (ran.output + ran.error).contains(said), "\(ran.output)\(ran.error)")
      let folder = try await harness.prismctl("send", "--ndjson", harness.folder)
      #expect(folder.exitCode == 66 && folder.error.contains("can't be read"), "\(folder.error)")
    }
  }

  @Test("a payload of raw bytes is sent with its blank lines, and the report behind it is one of its own")
  func raw() async throws {
    try await withHarness(namespaces: ["shop": Self.shop + "url: URL\n"]) { harness in
      try await harness.startCollector()
      try await harness.startDaemon()
      let path = "\(harness.folder)/some.ndjson"
      let pay = #"{"namespace":"shop","type":"pay","meta":{"n":7},"reportId":"raw","payloadBytes":6}"#
      try "\(pay)\n\n\n{\"\n\n\(Self.report())".write(toFile: path, atomically: true, encoding: .utf8)
      let ran = try await harness.prismctl("send", "--ndjson", path)
      #expect(ran.output == "stored 2 of 2\n", "\(ran.output)\(ran.error)")
      #expect(try await harness.prismctl("flush", "--wait").exitCode == 0)
      #expect(try await harness.arrived("shop", "payload").map(\.payloadHex) == ["0a0a7b220a0a"])
    }
  }

  @Test("reports that `sample` left out are not said to be stored") func sampled() async throws {
    try await withHarness(namespaces: ["shop": Self.shop]) { harness in
      try await harness.startDaemon()
      let path = "\(harness.folder)/some.ndjson"
      let lines = (0..<200).map { #"{"namespace":"shop","type":"some","meta":{"n":\#($0)}}"# + "\n" }
      try lines.joined().write(toFile: path, atomically: true, encoding: .utf8)
      let ran = try await harness.prismctl("send", "--ndjson", path, "--json")
      let json = try JSONValue(parsing: Array(ran.output.utf8))
      let waiting = try await harness.status()["namespaces"]?["shop"]?["meta"]?["waiting"]?.int
      let (stored, left) = (json["stored"]?.int ?? 0, json["sampled"]?.int ?? 0)
      #expect(
        ran.exitCode == 0 && stored + left == 200 && left > 0 && stored == waiting, "\(json.text) \(waiting ?? -1)")
    }
  }
}
