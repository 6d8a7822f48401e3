import Glibc
import Testing

@Suite(.enabled(if: getuid() == 0, "only root can take /proc away from a program"))
struct ArgumentsTests {
  @Test(
    "a program reads its command line where there is no /proc", arguments: ["prismd", "prismctl", "prism-collector"])
  func withoutProc(name: String) async throws {
    // Often: libdispatch looks at its threads in /proc a moment after the first, and a quick program is faster.
    let script = #"mount -t tmpfs tmpfs /proc && for i in $(seq 100); do "$0" --version || exit; done"#
    let ran = try await Programs.run("unshare", ["--mount", "sh", "-c", script, "\(Programs.folder)/\(name)"])
    #expect(ran.exitCode == 0, "\(ran.error)")
    #expect(ran.output.split(separator: "\n").count { $0.hasPrefix("\(name) ") } == 100)
  }
}
