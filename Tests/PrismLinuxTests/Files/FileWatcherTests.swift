import Foundation
import PrismBase
import PrismTestSupport
import Synchronization
import Testing

@testable import PrismLinux

@Suite("Watching files", .timeLimit(.minutes(2)))
struct FileWatcherTests {
  private final class Count: Sendable {
    let value = Mutex(0)
    var now: Int { value.withLock { $0 } }
    func add() { value.withLock { $0 += 1 } }
  }

  private let folder = TemporaryFolder()
  private let changes = Count()
  private let watcher: FileWatcher

  init() throws {
    watcher = FileWatcher(settle: .milliseconds(50), log: Logger(level: .error)) { [changes] in changes.add() }
    try FileManager.default.createDirectory(atPath: folder("namespaces.d"), withIntermediateDirectories: false)
    try folder.write("a", to: "prismd.yaml")
  }

  private func watch(_ files: String...) async {
    await watcher.watch(files: Set(files.map { folder($0) }), folders: [folder("namespaces.d")])
  }

  private func expectChange(_ what: Comment, _ change: () throws -> Void) async throws {
    let before = changes.now
    try change()
    try await eventually(what) { [changes] in changes.now > before }
  }

  @Test("writing in place, renaming over, adding and removing are each reported")
  func kinds() async throws {
    await watch("prismd.yaml", "token")
    try await expectChange("written in place") { try folder.write("bb", to: "prismd.yaml") }
    try await expectChange("renamed over") {
      try folder.write("cc", to: "prismd.yaml.tmp")
      rename(folder("prismd.yaml.tmp"), folder("prismd.yaml"))
    }
    try await expectChange("a file that was not there") { try folder.write("t", to: "token") }
    try await expectChange("a namespace is added") { try folder.write("x", to: "namespaces.d/shop.yaml") }
    try await expectChange("a namespace is written") { try folder.write("yy", to: "namespaces.d/shop.yaml") }
    try await expectChange("a namespace is removed") { unlink(folder("namespaces.d/shop.yaml")) }
    try await expectChange("removed") { unlink(folder("prismd.yaml")) }
    await watcher.stop()
  }

  @Test("a ConfigMap's swap of its links is reported, and a change behind a link")
  func links() async throws {
    let files = FileManager.default
    for version in ["..1", "..2"] {
      try files.createDirectory(atPath: folder(version), withIntermediateDirectories: false)
      try folder.write(version, to: version + "/tls.pem")
    }
    try files.createSymbolicLink(atPath: folder("..data"), withDestinationPath: "..1")
    try files.createSymbolicLink(atPath: folder("tls.pem"), withDestinationPath: "..data/tls.pem")
    await watch("tls.pem")
    try await expectChange("the swap") {
      try files.createSymbolicLink(atPath: folder("..tmp"), withDestinationPath: "..2")
      rename(folder("..tmp"), folder("..data"))
    }
    try await expectChange("behind the link") { try folder.write("longer", to: "..2/tls.pem") }
    await watcher.stop()
  }

  @Test("a folder that comes later, or is replaced as a whole, is watched")
  func folders() async throws {
    let files = FileManager.default
    await watch("keys/one")
    try await expectChange("comes with its folder") {
      try files.createDirectory(atPath: folder("keys.new"), withIntermediateDirectories: false)
      try folder.write("k", to: "keys.new/one")
      rename(folder("keys.new"), folder("keys"))
    }
    try await expectChange("written in the new folder") { try folder.write("kk", to: "keys/one") }
    await watcher.stop()
  }

  @Test("what else happens in a folder is no change, and several writes are one")
  func quiet() async throws {
    let time = ManualTime()
    let watcher = FileWatcher(time: time, log: Logger(level: .error)) { [changes] in changes.add() }
    await watcher.watch(files: [folder("prismd.yaml")], folders: [])
    try folder.write("z", to: "other")
    try await eventually("it is noticed") { time.sleeperCount == 1 }
    // One write is several events, and each restarts the pause.
    try await eventually("it is looked at") {
      time.advance(by: .milliseconds(300))
      return await !watcher.isSettling
    }
    #expect(changes.now == 0)
    for text in ["1", "22", "333", "4444"] { try folder.write(text, to: "prismd.yaml") }
    try await eventually("the writes are noticed") { time.sleeperCount == 1 }
    time.advance(by: .seconds(3))
    try await eventually("they are reported") { [changes] in changes.now == 1 }
    await watcher.stop()
  }

  @Test("where the kernel watches nothing, files are looked at every 2 s")
  func polled() async throws {
    let time = ManualTime()
    let watcher = FileWatcher(
      time: time, settle: .milliseconds(300), log: Logger(level: .error), makeDescriptor: { -1 },
      onChange: { [changes] in changes.add() })
    await watcher.watch(files: [folder("prismd.yaml")], folders: [])
    try await eventually("it waits") { time.sleeperCount == 1 }
    try folder.write("longer", to: "prismd.yaml")
    time.advance(by: .seconds(2))
    try await eventually("the change is seen") { await watcher.isSettling }
    try await eventually("it settles") { time.sleeperCount == 2 }
    time.advance(by: .milliseconds(300))
    try await eventually("it is reported") { [changes] in changes.now == 1 }
    await watcher.stop()
  }

  @Test("a change between a report and the next watch is not lost")
  func between() async throws {
    await watch("prismd.yaml")
    try await expectChange("the first") { try folder.write("bb", to: "prismd.yaml") }
    await watcher.stop()
    try folder.write("ccc", to: "prismd.yaml")
    let before = changes.now
    await watch("prismd.yaml")
    try await eventually("the second") { [changes] in changes.now > before }
    await watcher.stop()
  }
}
