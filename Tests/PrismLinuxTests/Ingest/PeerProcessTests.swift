import Foundation
import Testing

@testable import PrismLinux

/// A folder of processes as the kernel shows them, made by the test.
@Suite("The facts of a connection's process in /proc")
struct PeerProcessTests {
  private let proc = FileManager.default.temporaryDirectory.appending(path: "prism-proc-\(UUID().uuidString)")
  private var folder: URL { proc.appending(path: "4711") }
  private static let group = "0::/system.slice/shop-pos.service\n"

  private func write(_ name: String, _ text: String) throws {
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    try Data(text.utf8).write(to: folder.appending(path: name))
  }

  private func make(user: String = "1000\t1000\t1000\t1000", cgroup: String = group, start: Int = 99) throws {
    let name = "we ) ird (x"
    try write("comm", name + "\n")
    try write("status", "Name:\t\(name)\nUid:\t\(user)\n")
    try write("stat", "4711 (\(name)) S \((4...21).map(String.init).joined(separator: " ")) \(start) 1 2\n")
    try write("cgroup", cgroup)
    try? FileManager.default.removeItem(at: folder.appending(path: "exe"))
    try FileManager.default.createSymbolicLink(atPath: folder.path + "/exe", withDestinationPath: "/usr/bin/posd")
  }

  private func facts(_ isAlive: () -> Bool?) -> PeerProcess.Facts {
    PeerProcess(processID: 4711, userID: 1000, proc: proc.path).facts(isAlive: isAlive)
  }

  @Test("its name, executable and unit, on a kernel that can hold a process and on an older one")
  func found() throws {
    try make()
    defer { try? FileManager.default.removeItem(at: proc) }
    let expected = PeerProcess.Facts(name: "we ) ird (x", executable: "/usr/bin/posd", unit: "shop-pos.service")
    #expect(facts { true } == expected)
    #expect(facts { nil } == expected)
  }

  @Test("nothing of a process that ended, or whose number went to another")
  func ended() throws {
    defer { try? FileManager.default.removeItem(at: proc) }
    #expect(facts { true } == PeerProcess.Facts(), "there is no process")
    try make()
    #expect(facts { false } == PeerProcess.Facts())
    let stolen = facts {
      try? make(start: 100)  // another process, while the first one's files were read
      return nil
    }
    #expect(stolen == PeerProcess.Facts())
    try make(user: "1000\t2000\t1000\t1000")
    #expect(facts { true } == PeerProcess.Facts(), "another user's, by the effective user")
  }

  @Test("what can't be read is left out, and a file without an end is not read to it")
  func partly() throws {
    defer { try? FileManager.default.removeItem(at: proc) }
    try make(cgroup: Self.group + String(repeating: "1:cpu:/\n", count: 4096))
    try FileManager.default.removeItem(at: folder.appending(path: "exe"))
    #expect(facts { true } == PeerProcess.Facts(name: "we ) ird (x", executable: nil, unit: nil))
  }
}
