import Foundation
import Glibc

/// Prometheus' own checker.
public enum Promtool {
  /// The faults that it finds in a page of metrics; empty if it finds nothing.
  public static func faults(in page: String) async throws -> String {
    let path = "/tmp/prism-page-\(UUID().uuidString)"
    defer { for suffix in ["", ".out"] { unlink(path + suffix) } }
    try Data(page.utf8).write(to: URL(fileURLWithPath: path))
    let input = open(path, O_RDONLY | O_CLOEXEC)
    let output = open(path + ".out", O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
    defer { for descriptor in [input, output] { close(descriptor) } }
    let program = try StartedProgram(
      "promtool", ["check", "metrics"], .init(input: input, output: output, error: output))
    let code = await program.end()
    let said = try String(contentsOfFile: path + ".out", encoding: .utf8)
    return code == 0 ? said : "exit code \(code): \(said)"
  }
}
