import Glibc
import Testing

@Suite(.enabled(if: getuid() == 0, "only root can take /proc away from a program"))
struct ArgumentsTests {
  @Test(
    "a program reads its command line where there is no /proc", arguments: ["prismd", "prismctl", "prism-collector"])
  func withoutProc(name: String) async throws {
    let words = [
      "--mount", "sh", "-c", #"mount -t tmpfs tmpfs /proc && exec "$0" --version"#, "\(Programs.folder)/\(name)",
    ]
    let ran = try await Programs.run("unshare", words)
    #expect(ran.exitCode == 0, "\(ran.error)")
    #expect(ran.output.hasPrefix("\(name) "))
  }
}
