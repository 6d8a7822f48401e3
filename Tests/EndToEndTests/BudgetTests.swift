import Foundation
import Testing

@Suite("Budgets of the daemon") struct BudgetTests {
  private static let reports = 50_000

  /// What the kernel has counted for the daemon.
  private struct Used {
    var calls = 0, writtenBytes = 0, switches = 0

    init(_ process: Int32) throws {
      let io = try Self.fields("/proc/\(process)/io")
      calls = (io["syscr"] ?? 0) + (io["syscw"] ?? 0)
      writtenBytes = io["write_bytes"] ?? 0
      for task in try FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/task") {
        switches += (try? Self.fields("/proc/\(process)/task/\(task)/status")["voluntary_ctxt_switches"]) ?? 0
      }
    }

    private static func fields(_ path: String) throws -> [String: Int] {
      var result: [String: Int] = [:]
      for line in try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n") {
        let parts = line.split(separator: ":", maxSplits: 1)
        result[String(parts[0])] = parts.last.flatMap { Int($0.filter(\.isNumber)) }
      }
      return result
    }
  }

  @Test("of 50,000 pipelined reports 20 share a call and a wake-up, and each costs at most 900 bytes of disk")
  func streaming() async throws {
    try await withHarness(namespaces: ["quiet": "monitorList: [{type: sample}]\n"]) { harness in
      try await harness.startDaemon()
      let process = try #require(harness.daemonProcess)
      let before = try Used(process)
      let line = #"{"namespace":"quiet","type":"sample","meta":{"page":"/home","ms":12,"text":"frames were late"}}"#
      let hello = #"{"hello":{"answer":"cumulative"}}"#
      let input = hello + "\n" + String(repeating: line + "\n", count: Self.reports)
      let ran = try await Programs.run("nc", ["-UN", harness.ingest], input: input)
      try #require(ran.lines.last == #"{"acked":\#(Self.reports)}"#)
      let after = try Used(process)
      let calls = Double(after.calls - before.calls) / Double(Self.reports)
      let bytes = Double(after.writtenBytes - before.writtenBytes) / Double(Self.reports)
      let switches = Double(after.switches - before.switches) / Double(Self.reports)
      #expect(calls <= 0.05, "\(calls) reads and writes a report")
      #expect(bytes <= 900, "\(bytes) bytes of disk a report")
      #expect(switches <= 0.05, "\(switches) wake-ups a report")
    }
  }
}
