import Foundation
import Glibc
import PrismTestSupport
import Testing

/// The daemon as an unprivileged user, and other users of the machine around it. The users need no account: their numbers
/// are nobody's. It takes root to become them.
enum Crowd {
  static let daemonUser: UInt32 = 64_100, goodUser: UInt32 = 64_200, firstAttacker: UInt32 = 64_300

  static let isPermitted = getuid() == 0 && access(python, X_OK) == 0
  static let why = Comment("only root can start programs as other users, and \(python) plays them")
  private static let python = "/usr/bin/python3"
  private static let script = URL(filePath: #filePath).deletingLastPathComponent().path + "/attack.py"

  /// The command before a program that starts it as another user. The program still ends with the tests.
  static func prefix(_ user: UInt32) -> [String] {
    ["setpriv", "--reuid=\(user)", "--regid=\(user)", "--clear-groups", "--no-new-privs", "--pdeathsig=KILL"]
  }

  /// A harness whose daemon is unprivileged and whose ingest socket everybody reaches.
  static func harness(_ extra: String, namespaces: [String: String], limits: [String] = []) async throws -> Harness {
    let harness = try await Harness(namespaces: namespaces, extra: extra, daemonPrefix: limits + prefix(daemonUser))
    for path in [harness.folder, "\(harness.folder)/state", "\(harness.folder)/namespaces.d"] {
      try own(path, mode: path.hasSuffix("state") ? 0o700 : 0o755)
    }
    for name in try FileManager.default.contentsOfDirectory(atPath: harness.folder) {
      var status = stat()
      let path = "\(harness.folder)/\(name)"
      if stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG { try own(path, mode: status.st_mode & 0o777) }
    }
    return harness
  }

  private static func own(_ path: String, mode: mode_t) throws {
    guard chown(path, daemonUser, daemonUser) == 0, chmod(path, mode) == 0 else {
      throw Failed("\(path): errno \(errno)")
    }
  }

  /// One that the tests can read, beside the folder's other files.
  private static func copy(in folder: String) throws -> String {
    let path = "\(folder)/attack.py"
    if !FileManager.default.fileExists(atPath: path) {
      try FileManager.default.copyItem(atPath: script, toPath: path)
      chmod(path, 0o644)
    }
    return path
  }

  /// Starts an attack; it ends by itself.
  static func attack(
    _ kind: String, by user: UInt32, on harness: Harness, port: String? = nil, seconds: Int, connections: Int
  ) throws -> Child {
    let place = port ?? harness.ingest
    let words = [python, try copy(in: harness.folder), kind, place, "\(seconds)", "\(connections)"]
    return try Child("/usr/bin/env", prefix(user) + words, log: "\(harness.folder)/attack-\(user).log")
  }

  /// Puts records of 10 KB into the table `part` of `shop`.
  static func fill(_ harness: Harness, count: Int) async throws {
    let words = [python, try copy(in: harness.folder), "fill", harness.ingest, "\(count)"]
    let ran = try await Programs.run("env", prefix(goodUser) + words)
    guard ran.exitCode == 0 else { throw Failed("the records were not taken: \(ran.error)") }
  }

  /// Open ones, connections among them.
  static func descriptors(_ process: Int32) throws -> Int {
    try FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/fd").count
  }

  static func peakBytes(_ process: Int32) throws -> Int {
    let status = try String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)
    let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") })
    return try #require(Int(line.filter(\.isNumber))) * 1024
  }

  struct Service: Decodable {
    let answers: Int, refused: Int
    let p50Ms: Double, p99Ms: Double, maxMs: Double
  }

  /// Reports one after the other as a user that does nothing else, each until it is stored.
  static func service(of harness: Harness, count: Int) async throws -> Service {
    let words = [python, try copy(in: harness.folder), "good", harness.ingest, "\(count)"]
    let ran = try await Programs.run("env", prefix(goodUser) + words)
    guard ran.exitCode == 0 else { throw Failed("the good user was not served: \(ran.error)") }
    return try JSONDecoder().decode(Service.self, from: Data(ran.output.utf8))
  }

  /// Sixteen readers ask a collector for these paths over and over.
  /// - Parameter reads: whether they read the answers.
  static func ask(
    _ paths: [String], reads: Bool, of port: UInt16, token: String, by user: UInt32, in folder: String, seconds: Int
  ) throws -> Child {
    let list = "\(folder)/paths"
    try paths.joined(separator: "\n").write(toFile: list, atomically: true, encoding: .utf8)
    chmod(list, 0o644)
    let words =
      [python, try copy(in: folder), "routes", "\(port)", "\(seconds)", "8", token, list, reads ? "read" : "unread"]
    return try Child("/usr/bin/env", prefix(user) + words, log: "\(folder)/attack-\(user).log")
  }

  /// Posts packets one after the other, each until it has its receipt.
  /// - Parameter packets: whole requests.
  static func service(of port: UInt16, _ packets: [[UInt8]], in folder: String) async throws -> Service {
    let place = "\(folder)/posts"
    try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: false)
    for (number, packet) in packets.enumerated() {
      try Data(packet).write(to: URL(filePath: "\(place)/\(number)"))
    }
    let words = [try copy(in: folder), "post", "\(port)", "\(packets.count)", place]
    let ran = try await Programs.run(python, words)
    guard ran.exitCode == 0 else { throw Failed("the device was not served: \(ran.error)") }
    return try JSONDecoder().decode(Service.self, from: Data(ran.output.utf8))
  }

  /// Reports `type-0` and so on to `shop` under these ids. - Returns: how many were answered in which way.
  static func send(_ count: Int, _ type: String, by user: UInt32, on harness: Harness) async throws -> [String: Int] {
    let words = [python, try copy(in: harness.folder), "send", harness.ingest, "\(count)", type]
    let ran = try await Programs.run("env", prefix(user) + words)
    guard ran.exitCode == 0 else { throw Failed("\(user) was not served: \(ran.error)") }
    return try JSONDecoder().decode([String: Int].self, from: Data(ran.output.utf8))
  }
}

/// A memory cgroup with the unit's `MemoryMax`: a program in it is killed beyond, what the kernel keeps for it included.
struct MemoryCage {
  /// `MemoryMax` of both units.
  private static let bytesMax = 512 << 20
  private let folder: String

  /// The words before a program that goes into it.
  var words: [String] { ["sh", "-c", "echo 0 >\(folder)/cgroup.procs && exec \"$@\"", "sh"] }

  /// nil where a test can't make it: another version of cgroups, or no root.
  init?() {
    folder = "/sys/fs/cgroup/memory/prism-test-\(UUID().uuidString)"
    guard mkdir(folder, 0o755) == 0 else { return nil }
    guard (try? Self.write(Self.bytesMax, to: "\(folder)/memory.limit_in_bytes")) != nil else {
      remove()
      return nil
    }
  }

  private static func write(_ number: Int, to path: String) throws {
    let file = try FileHandle(forUpdating: URL(filePath: path))
    try file.write(contentsOf: Data("\(number)\n".utf8))
    try file.close()
  }

  /// Its program has ended.
  func remove() { rmdir(folder) }
}
