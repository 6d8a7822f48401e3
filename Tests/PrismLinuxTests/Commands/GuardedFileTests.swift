import Foundation
import Glibc
import PrismTestSupport
import Testing

@testable import PrismLinux

@Suite("Files that a server asks for") struct GuardedFileTests {
  private let folder = TemporaryFolder()

  init() throws {
    for name in ["logs", "state", "elsewhere"] {
      try FileManager.default.createDirectory(atPath: folder(name), withIntermediateDirectories: true)
    }
    try folder.write("a log", to: "logs/app.log")
    try folder.write("a key", to: "elsewhere/main.key")
    try folder.write("rows", to: "state/prism.db")
  }

  private func read(_ path: String, bytesMax: Int = 100) throws(GuardedFile.Fault) -> String {
    let file = GuardedFile(secret: [folder("state"), folder("elsewhere/main.key"), folder("absent")])
    return String(decoding: try file.read(path, bytesMax: bytesMax), as: UTF8.self)
  }

  @Test("a regular file is read up to the limit") func reads() throws {
    #expect(try read(folder("logs/app.log")) == "a log")
    #expect(try read(folder("logs/app.log"), bytesMax: 5) == "a log")
    #expect(throws: GuardedFile.Fault("it has 5 bytes, and the namespace takes payloads of at most 4 bytes")) {
      try read(folder("logs/app.log"), bytesMax: 4)
    }
    #expect(throws: GuardedFile.Fault("can't be opened: No such file or directory")) { try read(folder("logs/b.log")) }
  }

  @Test(
    "no link leads elsewhere: not as the file, not as a folder, not a second name",
    arguments: [
      ("file", "a symbolic link"), ("folder", "a symbolic link"), ("hard", "hard links"), ("loop", "a symbolic link"),
    ])
  func links(kind: String, words: String) throws {
    let target = folder("elsewhere/secret.log")
    try folder.write("secret", to: "elsewhere/secret.log")
    var path = folder("logs/link.log")
    switch kind {
    case "file": #expect(symlink(target, path) == 0)
    case "folder":
      #expect(symlink(folder("elsewhere"), folder("logs/sub")) == 0)
      path = folder("logs/sub/secret.log")
    case "hard": #expect(link(target, path) == 0)
    default: #expect(symlink(path, path) == 0)
    }
    do {
      let text = try read(path)
      Issue.record("\(text) was read")
    } catch { #expect((error as GuardedFile.Fault).message.contains(words), "\(error)") }
  }

  @Test(
    "keys and the state are never read, by any path",
    arguments: [
      "state/prism.db", "elsewhere/main.key", "logs/../elsewhere/main.key",
    ])
  func secrets(path: String) throws {
    #expect(throws: GuardedFile.Fault.self) { try read(folder(path)) }
  }

  @Test("only a regular file is read, and nothing waits for a pipe", arguments: ["pipe", "folder", "device"])
  func kinds(kind: String) throws {
    var path = folder("logs/odd.log")
    switch kind {
    case "pipe": #expect(mkfifo(path, 0o600) == 0)
    case "folder": #expect(mkdir(path, 0o700) == 0)
    default: path = "/dev/zero"
    }
    #expect(throws: GuardedFile.Fault("it is not a regular file")) { try read(path) }
  }
}
