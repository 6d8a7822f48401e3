import Foundation
import PrismProtocol
import Testing

/// The keys that tools rely on: of docs/control-protocol.md, and those that were added. Keys are only ever added here.
@Suite struct StatusContractTests {
  private static let daemon = """
    version string, uptimeSeconds count, generation count, configFaults array, faults array, network.kind string,
    network.interface string?, network.reason absent, storeBytes count, memory.residentBytes count,
    memory.virtualBytes count, store.state string, store.since time, store.takesReports bool, store.cause string?,
    store.faults count, store.setAside count, store.salvagedRows count, store.lostRows count
    """
  private static let namespace = """
    state string, circuit string, lastSuccess time?, lastFailure.time time, lastFailure.status count?,
    lastFailure.cause string, nextTryInSeconds count?, flow.usedBytes count, flow.allowedBytes count,
    flow.windowEndsInSeconds count, isPlain bool
    """
  private static let queue = """
    waiting count, claimed count, dead count, bytes count, oldestAgeSeconds count, ledger.stored count,
    ledger.waiting count, ledger.claimed count, ledger.delivered count, ledger.expired count, ledger.evicted count,
    ledger.cleared count, ledger.dead count, ledger.removed count, ledger.corrupt count, ledger.kept count,
    ledger.overwritten count, keptBytes count, memoryRows count, memoryBytes count, memoryLost count, setBack count,
    bytesRaw count, bytesSent count
    """

  @Test("status --json has every key that was promised, each of its kind")
  func contract() async throws {
    try await withHarness(namespaces: ["shop": "url: URL\nmonitorList: [{type: order}]\nperiodicTimerSecond: 1\n"]) {
      harness in
      try await harness.startDaemon()
      _ = try await harness.prismctl("send", "--namespace", "shop", "--type", "order", "--meta", #"{"a":1}"#)
      try await waitUntil("it has failed") {
        try await harness.status()["namespaces"]?["shop"]?["lastFailure"]?.object != nil
      }
      try await harness.startCollector()
      #expect(try await harness.prismctl("flush", "shop", "--wait").exitCode == 0)
      let status = try await harness.status()
      check(status, Self.daemon)
      let shop = try #require(status["namespaces"]?["shop"])
      check(shop, Self.namespace)
      for kind in ["meta", "payload"] { check(try #require(shop[kind]), Self.queue) }
      #expect(shop["state"] == "active" && shop["meta"]?["ledger"]?["delivered"]?.int == 1)
      #expect(shop["lastSuccess"]?.string != nil)
    }
  }

  private func check(_ document: JSONValue, _ contract: String) {
    for line in contract.split(whereSeparator: { $0 == "," || $0.isNewline }) {
      let words = line.split(separator: " ")
      let value = words[0].split(separator: ".").reduce(JSONValue?.some(document)) { $0?[String($1)] }
      #expect(isKind(value, String(words[1])), "\(words[0]) is \(value?.text ?? "missing"), not \(words[1])")
    }
  }

  private func isKind(_ value: JSONValue?, _ kind: String) -> Bool {
    guard let value else { return kind == "absent" }
    if kind.hasSuffix("?") { return value == .null || isKind(value, String(kind.dropLast())) }
    return switch kind {
    case "string": value.string?.isEmpty == false
    case "count": value.int.map { $0 >= 0 } == true
    case "bool": value.bool != nil
    case "array": value.array != nil
    case "time": value.string?.wholeMatch(of: /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/) != nil
    default: false
    }
  }

  @Test("what takes long draws a bar on a terminal, which is gone at the end, and nothing elsewhere")
  func progress() async throws {
    try await withHarness(namespaces: ["shop": "monitorList: [{type: order}]\n"]) { harness in
      try await harness.startDaemon()
      let line = #"{"namespace":"shop","type":"order","meta":{"a":1}}"# + "\n"
      let file = "\(harness.folder)/many.ndjson"
      try String(repeating: line, count: 20_000).write(toFile: file, atomically: true, encoding: .utf8)
      let script = """
        import os, pty, sys
        child, terminal = pty.fork()
        if child == 0: os.execv(sys.argv[1], sys.argv[1:])
        seen = b""
        while True:
          try: part = os.read(terminal, 65536)
          except OSError: break
          if not part: break
          seen += part
        os.waitpid(child, 0)
        sys.stdout.buffer.write(seen)
        """
      let send = ["--ingest", harness.ingest, "send", "--ndjson", file]
      let shown = try await Programs.run("python3", ["-c", script, Programs.prismctl] + send)
      #expect(shown.output.contains("sending [##") && shown.output.contains("/20000"), "\(shown.output)")
      #expect(shown.output.contains("\u{1B}[Kstored 20000 of 20000"), "the bar is drawn over")
      let quiet = try await Programs.run(Programs.prismctl, send)
      #expect(quiet.output == "stored 20000 of 20000\n" && quiet.error.isEmpty)
      let flush = try await Programs.run(
        "python3", ["-c", script, Programs.prismctl, "--control", harness.control, "flush", "--wait"])
      #expect(flush.output.contains("flushing [---"), "\(flush.output)")
      let refused = try await harness.prismctl("flush", "--wait")
      #expect(refused.exitCode == 1 && refused.error.contains("40000 rows not sent yet"), "\(refused.error)")
    }
  }
}
