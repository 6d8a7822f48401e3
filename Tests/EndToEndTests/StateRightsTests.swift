import Foundation
import Glibc
import Testing

/// The state is for the daemon's user alone, or there is no start.
@Suite struct StateRightsTests {
  private static let shop = "monitorList: [{type: order}]\n"

  private func mode(_ path: String) -> mode_t {
    var facts = stat()
    return stat(path, &facts) == 0 ? facts.st_mode & 0o777 : 0
  }

  @Test("prismd and the collector make their folders, and every file in them is their user's alone")
  func made() async throws {
    try await withHarness(namespaces: ["shop": Self.shop]) { harness in
      let folders = ["\(harness.folder)/state", harness.collectorState]
      for folder in folders { try FileManager.default.removeItem(atPath: folder) }
      try await harness.startCollector()
      try await harness.startDaemon()
      for folder in folders {
        #expect(mode(folder) == 0o700)
        let names = try FileManager.default.contentsOfDirectory(atPath: folder)
        #expect(names.count >= 2)
        for name in names { #expect(mode("\(folder)/\(name)") == 0o600, "\(folder)/\(name)") }
      }
    }
  }

  @Test("an open folder or file is refused with the command that mends it, and with a code that no restart follows")
  func refused() async throws {
    try await withHarness(namespaces: ["shop": Self.shop]) { harness in
      try await harness.startCollector()
      try await harness.startDaemon()
      try await harness.endDaemon(SIGTERM)
      try await harness.endCollector(SIGTERM)
      let collector = [
        "--listen", harness.collectorAddress, "--key", "main=\(harness.folder)/main.key", "--state",
        harness.collectorState,
      ]
      let programs = [
        (Programs.prismd, ["--config", harness.config], "\(harness.folder)/state", "prism.db"),
        (Programs.collector, collector, harness.collectorState, "collector.db"),
      ]
      for (program, arguments, folder, file) in programs {
        for (path, mode) in [(folder, mode_t(0o755)), ("\(folder)/\(file)", 0o640)] {
          chmod(path, mode)
          let ran = try await Programs.run(program, arguments)
          #expect(ran.exitCode == 78, "\(path)")
          #expect((ran.output + ran.error).contains("run chmod -R go= \(folder)"), "\(ran.error)")
          let mended = try await Programs.run("chmod", ["-R", "go=", folder])
          #expect(mended.exitCode == 0)
        }
      }
      try await harness.startCollector()
      try await harness.startDaemon()
    }
  }
}
