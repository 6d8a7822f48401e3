import Foundation
import Glibc
import PrismClient
import PrismProtocol
import Testing

/// The rights of other users of the machine over the control socket.
@Suite struct ControlRoleTests {
  @Test("a member of control.readers looks and changes nothing; each change of others is a line of the log")
  func roles() async throws {
    guard geteuid() == 0 else {
      Issue.record("SKIPPED, not root: another user can't be tried", severity: .warning)
      return
    }
    // Groups by number, which needs no entry in /etc/group.
    let extra = "$control: readers: 65533, group: 65532\n$ingest: group: 65531"
    try await withHarness(namespaces: ["shop": "monitorList: [{type: sample}]\n"], extra: extra) { harness in
      chmod(harness.folder, 0o711)
      try await harness.startDaemon()
      for number in 1...3 { _ = try await harness.client().report(Sample.report(number, in: "shop")) }
      func ask(groups: String, _ words: String...) async throws -> Ran {
        let user = ["--reuid=65534", "--regid=65534", groups.isEmpty ? "--clear-groups" : "--groups=\(groups)"]
        return try await Programs.run("setpriv", user + [Programs.prismctl, "--control", harness.control] + words)
      }
      for words in [["status"], ["network"], ["explain", "shop"], ["config", "show"], ["trace", "none"]] {
        let ran = try await Programs.run(
          "setpriv",
          ["--reuid=65534", "--regid=65534", "--groups=65533", Programs.prismctl, "--control", harness.control] + words)
        #expect(ran.exitCode == (words[0] == "trace" ? 1 : 0), "\(words): \(ran.error)")
      }
      let refused = try await ask(groups: "65533", "remove", "--namespace", "shop", "--all", "--yes")
      #expect(refused.exitCode == 77 && refused.error.contains("`remove` is for control.group"), "\(refused.error)")
      #expect(try await ask(groups: "", "status").exitCode == 77)
      #expect(!harness.daemonLog.contains("info control command"))
      let removed = try await ask(groups: "65532", "remove", "--namespace", "shop", "--oldest", "2", "--yes")
      #expect(removed.output == "removed 2\n", "\(removed.error)")
      let line = try #require(harness.daemonLog.split(separator: "\n").last { $0.contains("info control command") })
      #expect(line.contains(" uid=65534 pid="))
      #expect(line.hasSuffix(" command=remove namespace=shop oldest=2 removed=2"), "\(line)")
    }
  }
}
