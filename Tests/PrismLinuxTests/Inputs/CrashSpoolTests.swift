import Foundation
import Glibc
import PrismAdmission
import PrismBase
import PrismConfig
import PrismProtocol
import PrismTestSupport
import Synchronization
import Testing

@testable import PrismLinux

@Suite("The crash spool", .timeLimit(.minutes(3))) final class CrashSpoolTests: Sendable {
  private let folder = TemporaryFolder()
  private let counts = Mutex<[Int: Int]>([:])
  private let lines = Mutex<[String]>([])

  init() { chmod(folder.path, 0o3733) }

  private var names: [String] { (try? Folder.names(in: folder.path)) ?? [] }
  private func count(of status: Int) -> Int { counts.withLock { $0[status] ?? 0 } }

  /// Writes as a crash handler does.
  private func leave(_ content: String, as name: String) throws {
    try folder.write(content, to: "\(name).tmp")
    rename(folder("\(name).tmp"), folder(name))
  }

  private func withSpool(
    userBytesMax: Int = 1_048_576, isConfigured: Bool = true, _ body: (IngestRig, CrashSpool) async throws -> Void
  ) async throws {
    try await withIngestRig { rig in
      let log = Logger(write: { [self] line in lines.withLock { $0.append(line) } })
      let spool = CrashSpool(
        sink: rig.server, log: log, standardFolder: isConfigured ? "/none" : folder.path
      ) { [self] result in
        counts.withLock { $0[result.status, default: 0] += 1 }
      }
      var settings = DaemonConfiguration.CrashSpool()
      (settings.folder, settings.userBytesMax) = (isConfigured ? folder.path : nil, userBytesMax)
      await spool.follow(settings)
      try await body(rig, spool)
      await spool.stop()
    }
  }

  @Test("reports that were left before the start and after it are taken once, as their owner's, and deleted")
  func takes() async throws {
    try leave("0123456789", as: "prism.net.early.payload")
    try leave(#"{"n":1}"#, as: "prism.net.early.json")
    utimes(
      folder("prism.net.early.json"),
      [timeval(tv_sec: 1_732_000_000, tv_usec: 0), timeval(tv_sec: 1_732_000_000, tv_usec: 0)])
    try await withSpool { rig, _ in
      try await eventually("the early one") { rig.sink.rowCount == 1 && names.isEmpty }
      try leave(#"{"n":2}"#, as: "prism.net.late.json")
      try await eventually("the late one") { rig.sink.rowCount == 2 && names.isEmpty }
      let batches = rig.sink.commits.joined()
      #expect(batches.map(\.userID) == [getuid(), getuid()])
      let first = try #require(batches.first)
      #expect(first.rows[0].createdTime == 1_732_000_000_000)
      #expect(first.rows[0].payload.map { Array(first.arena[$0]) } == Array("0123456789".utf8))
      #expect(String(decoding: first.context.members, as: UTF8.self).contains(#""SYS_PEER_UID":"\#(getuid())""#))
      try await eventually("both are counted") { count(of: 200) == 2 }
    }
  }

  @Test("without a configured folder the clients' default is read if it is the daemon's own, and no other user's")
  func standardFolder() async throws {
    try leave(#"{"n":1}"#, as: "prism.net.a.json")
    try await withSpool(isConfigured: false) { rig, _ in
      try await eventually("it is taken") { rig.sink.rowCount == 1 && names.isEmpty }
    }
    #expect(!Folder.isOwn("/none") && !Folder.isOwn("/etc/passwd"))
    #expect(Folder.isOwn(folder.path) && Folder.isOwn("/etc") == (geteuid() == 0))
  }

  @Test("a report that may be taken later stays; one that never will is set aside, with the reason in the log")
  func refusals() async throws {
    try await withSpool { rig, _ in
      rig.sink.fail(Refusal(.diskFull, "full", retryMilliseconds: 2000))
      try leave(#"{"n":1}"#, as: "prism.net.a.json")
      try await eventually("it was tried") { await rig.server.counters.tally.received >= 2 }
      #expect(names == ["prism.net.a.json"])
      rig.sink.fail(nil)
      try await eventually("it is taken") { names.isEmpty }

      symlink("/etc/passwd", folder("prism.net.b.payload"))
      try leave(#"{"n":2}"#, as: "prism.net.b.json")
      link(folder("prism.net.b.json"), folder("prism.net.c.json"))
      try await eventually("they are set aside") { names.allSatisfy { $0.hasSuffix(".refused") } }
      try await eventually("the log says why") {
        lines.withLock { $0.contains { $0.contains("are refused") && $0.contains("last_cause=") } }
      }
    }
  }

  @Test("a meta that can be mended is taken: one bad byte, no JSON, or too long, with the whole text as the payload")
  func mended() async throws {
    let long = #"{"n":"\#(String(repeating: "x", count: 20_000))"}"#
    try await withSpool { rig, _ in
      try leave("{\"n\":\"a\tb\"}", as: "prism.net.a.json")
      try leave("{", as: "prism.net.b.json")
      try leave(long, as: "prism.net.c.json")
      try leave("own", as: "prism.net.d.payload")
      try leave(long, as: "prism.net.d.json")
      try leave(#"{"n":"\#(String(repeating: "x", count: 9_900))"}"#, as: "prism.net.e.json")
      try await eventually("all are taken") { rig.sink.rowCount == 5 && names.isEmpty && count(of: 200) == 5 }
      #expect(count(of: 200) == 5 && count(of: 422) == 0)
      let payloads = rig.sink.commits.joined().flatMap { batch in
        batch.rows.map { row in row.payload.map { String(decoding: batch.arena[$0], as: UTF8.self) } ?? "" }
      }
      #expect(Set(payloads).isSuperset(of: ["", "{", long, "own"]))
    }
  }

  @Test(
    "a file may say any time: it is dated by its arrival",
    arguments: [1 << 62, -1 << 62, Int.max, 9_223_372_036_854_776])
  func anyTime(seconds: Int) throws {
    var facts = stat()
    facts.st_mtim = timespec(tv_sec: seconds, tv_nsec: 999_999_999)
    let modified = SpoolListing.File(name: "prism.net.a.json", facts).modified
    #expect(!(CreatedTime.least..<CreatedTime.greatest - 999).contains(modified))
  }

  @Test("a payload or a meta that there is no room for is left out, also one of any size without blocks")
  func noRoom() async throws {
    let sizes = [5 << 20, 63 << 20, 65 << 20, 1 << 42]
    let long = #"{"n":"\#(String(repeating: "x", count: 5 << 20))"}"#
    try await withSpool(userBytesMax: .max) { rig, _ in
      for (number, size) in sizes.enumerated() {
        try folder.write("", to: "prism.net.p\(number).payload")
        try #require(truncate(folder("prism.net.p\(number).payload"), size) == 0)
        try leave(#"{"n":1}"#, as: "prism.net.p\(number).json")
      }
      try leave(long, as: "prism.net.m.json")
      try await eventually("all are taken") { rig.sink.rowCount == 5 && names.isEmpty && count(of: 200) == 5 }
      let rows = rig.sink.commits.joined().flatMap { batch in
        batch.rows.map { (String(decoding: batch.arena[$0.body], as: UTF8.self), $0.payload) }
      }
      for size in sizes.dropLast() + [1 << 40, long.utf8.count] {
        #expect(rows.contains { $0.0.contains(#""PAYLOAD_LEFT_OUT":\#(size)"#) && $0.1 == nil }, "\(size)")
      }
    }
  }

  @Test("a report of a namespace or type that is not configured waits, and keeps no other report waiting")
  func waiting() async throws {
    // A file takes a block, and the quota counts files that wait.
    try await withSpool(userBytesMax: 8_388_608) { rig, _ in
      for number in 0..<300 { try leave(#"{"n":1}"#, as: "none.net.\(number).json") }
      try leave(#"{"n":2}"#, as: "prism.unlisted.a.json")
      try leave(#"{"n":3}"#, as: "prism.net.z.json")
      // Its file is deleted behind the commit.
      try await eventually("the other one is taken") { rig.sink.rowCount == 1 && names.count == 301 }
      #expect(names.count == 301 && count(of: 422) == 0)
      #expect(lines.withLock { $0.contains { $0.contains("wait for their namespace or type") } })
    }
  }

  @Test("a file that grew since it was listed is not read: memory was reserved for its size then") func grown() throws {
    try folder.write("0123", to: "prism.net.a.json")
    let spool = try SpoolFolder(folder.path)
    var file = try #require(try SpoolListing(folder: spool.descriptor, at: spool.path).reports[getuid()]?.first?.meta)
    #expect(try spool.read(file, bytesMax: 100) == Array("0123".utf8))
    #expect(throws: Refusal.self) { try spool.read(file, bytesMax: 3) }
    file.bytes = 3
    #expect(throws: Refusal.self) { try spool.read(file, bytesMax: 100) }
  }

  @Test("a link, a pipe or a file with two names is never read in its owner's name") func foreignFiles() async throws {
    let secret = TemporaryFolder()
    try secret.write(#"{"n":1}"#, to: "secret")
    symlink(secret("secret"), folder("prism.net.link.json"))
    mkfifo(folder("prism.net.pipe.json"), 0o600)
    link(secret("secret"), folder("prism.net.hard.json"))
    try await withSpool { rig, _ in
      try leave(#"{"n":2}"#, as: "prism.net.own.json")
      try await eventually("its own is taken") { rig.sink.rowCount == 1 }
      try await eventually("the hard link is set aside") {
        names == ["prism.net.hard.json.refused"]
      }
      #expect(rig.sink.rowCount == 1)
    }
  }

  @Test("folders, links and pipes are deleted and counted, and keep no report waiting") func foreignNames()
    async throws
  {
    for number in 0..<300 { mkdir(folder("\(number)"), 0o700) }
    symlink("/etc/passwd", folder("prism.net.link.json"))
    mkfifo(folder("pipe"), 0o600)
    mkdir(folder("full"), 0o700)
    mkdir(folder("full/inner"), 0o700)
    mkdir(folder("lost+found"), 0o700)
    try await withSpool { rig, _ in
      try leave(#"{"n":1}"#, as: "prism.net.victim.json")
      try await eventually("the report is taken") { rig.sink.rowCount == 1 }
      try await eventually("the rest is deleted") { names == ["full", "lost+found"] }
      try await eventually("each is counted") { count(of: 415) == 302 }
      #expect(lines.withLock { $0.contains { $0.contains("can't be deleted") && $0.contains("full") } })
    }
  }

  @Test(
    "each user's reports are that user's, and beyond a user's quota the newest files are deleted",
    .enabled(if: getuid() == 0, "only root can give files to others"))
  func users() async throws {
    try await withSpool(userBytesMax: 16_384) { rig, _ in
      rig.sink.fail(Refusal(.diskFull, "full", retryMilliseconds: 2000))
      for number in 0..<9 {
        let name = "prism.net.\(number).json"
        try folder.write(#"{"n":1}"#, to: "\(name).tmp")  // a block of 4,096 bytes
        chown(folder("\(name).tmp"), number == 8 ? 4243 : 4242, 4242)
        rename(folder("\(name).tmp"), folder(name))
      }
      try await eventually("four are left of the first user") { count(of: 507) == 4 && names.count == 5 }
      #expect(names == ["0", "1", "2", "3", "8"].map { "prism.net.\($0).json" })
      rig.sink.fail(nil)
      try await eventually("all are taken") { names.isEmpty }
      let users = rig.sink.commits.joined().flatMap { batch in batch.rows.map { _ in batch.userID } }
      #expect(users.sorted() == [4242, 4242, 4242, 4242, 4243])
    }
  }

  @Test("a backlog that can be taken is taken, however large it is") func backlog() async throws {
    for number in 0..<300 { try leave(#"{"n":\#(number)}"#, as: "prism.net.\(number).json") }
    try await withSpool(userBytesMax: 16_384) { rig, _ in
      try await eventually("all are taken") { names.isEmpty }
      #expect(rig.sink.rowCount == 300 && count(of: 507) == 0)
    }
  }

  @Test("a folder that is not there yet, or in which everybody may delete, is logged, and used once it is right")
  func folderFaults() async throws {
    chmod(folder.path, 0o777)
    try leave(#"{"n":1}"#, as: "prism.net.a.json")
    try await withSpool { rig, spool in
      try await eventually("it is logged") { lines.withLock { $0.contains { $0.contains("chmod 3733") } } }
      #expect(rig.sink.rowCount == 0)
      chmod(folder.path, 0o3733)  // inotify reports it
      try await eventually("it is taken") { rig.sink.rowCount == 1 && names.isEmpty }
      await spool.follow(.init())
      try leave(#"{"n":2}"#, as: "prism.net.b.json")
      #expect(names == ["prism.net.b.json"], "the spool is off")
    }
  }
}
