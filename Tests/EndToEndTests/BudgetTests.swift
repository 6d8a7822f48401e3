import Foundation
import PrismClient
import PrismProtocol
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

  @Test("50,000 pipelined reports: a system call for at most 20 of them, 900 bytes of disk each, a wake-up for 20")
  func streaming() async throws {
    try await withHarness(namespaces: ["quiet": "monitorList: [{type: sample}]\n"]) { harness in
      try await harness.startDaemon()
      let process = try #require(harness.daemonProcess)
      let before = try Used(process)
      let client = harness.client()
      for start in stride(from: 0, to: Self.reports, by: 10_000) {
        let reports = (start..<start + 10_000).map { Sample.report($0, in: "quiet", hasPayload: false) }
        for answer in try await client.report(contentsOf: reports) {
          guard case .stored = answer else { throw Failed("\(answer)") }
        }
      }
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
