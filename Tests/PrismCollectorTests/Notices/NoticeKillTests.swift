import Foundation
import Glibc
import PrismBase
import PrismPacket
import PrismProtocol
import PrismSQL
import PrismTestSupport
import Testing

@testable import PrismCollector

/// The program, ended at any moment.
@Suite("Notices survive the collector's end", .timeLimit(.minutes(5)))
struct NoticeKillTests {
  private static let program: String = {
    let tests = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
    return URL(filePath: tests).deletingLastPathComponent().appending(path: "prism-collector").path
  }()

  private static func start(_ folder: String, state: String? = nil, store: String? = nil) throws -> StartedProgram {
    try StartedProgram(
      program,
      [
        "--config", folder + "/collector.yaml", "--listen", "127.0.0.1:0", "--key", "main=\(folder)/key", "--state",
        state ?? folder,
      ] + (store.map { ["--store", $0] } ?? []),
      .init())
  }

  private static func configure(_ rig: StoreRig, _ server: NoticeReceiver) throws {
    try "notices: [{name: ops, url: \"\(server.url)\", secretFile: \(rig.path)/key}]\n".write(
      toFile: rig.path + "/collector.yaml", atomically: true, encoding: .utf8)
    try (String(repeating: "ab", count: 32) + "\n").write(toFile: rig.path + "/key", atomically: true, encoding: .utf8)
    chmod(rig.path + "/key", 0o600)
  }

  /// A crash of a group of its own.
  private static func crash(_ number: Int) throws -> OpenedPacket {
    let members = #""reason":"r","frames":["f\#(number) (till.c:1)"]"#
    return try StoreRig.packet([number], type: "appCrash", members: { _ in members })
  }

  /// Waits until 20 notices are delivered, and finds each once in the list.
  private static func settle(_ notices: NoticeStore, _ server: NoticeReceiver) async throws {
    while true {
      let page = try await notices.page(before: .max, id: "~", state: .delivered, limit: 1000)
      if page.reduce(0, { $0 + $1.count }) >= 20 { break }
      try await Task.sleep(for: .milliseconds(20))
    }
    let all = try await notices.page(before: .max, id: "~", state: nil, limit: 1000)
    let told = all.flatMap { $0.items.map(\.text) }
    #expect(Set(told).count == 20 && told.count == 20, "\(told.sorted())")
    #expect(all.allSatisfy { $0.state == .delivered })
    #expect(Set(server.requests.compactMap(\.id)) == Set(all.map(\.id)))
  }

  @Test("three replicas of which one dies at any moment, 20 times, store each notice once, and deliver it")
  func replicas() async throws {
    var random = SeededRandom(seed: SeededRandom.announcedSeed("notices and replicas"))
    let (rig, server, database) = (StoreRig(), try NoticeReceiver(), try await PostgreSQLRig())
    let uri = database.server.uri(database.database, user: "prism", others: [])
    try Self.configure(rig, server)
    let store = try database.store()
    let fleet = FleetDatabase.server(try PostgreSQLTarget(uri: uri))
    try fleet.prepare()
    let notices = NoticeStore(fleet)
    #expect(try await notices.move("newGroup/ops", from: nil, to: 0, adding: []))
    func start(_ place: Int) throws -> StartedProgram {
      try Self.start(rig.path, state: "\(rig.path)/replica\(place)", store: uri)
    }
    var replicas = try (0..<3).map { try start($0) }
    for number in 1...20 {
      #expect(try await store.take(Self.crash(number)) == .stored(chainIsBroken: false))
      server.answer(random.oneIn(2) ? 500 : 200)
      try await Task.sleep(for: .milliseconds(Int.random(in: 0...600, using: &random)))
      let place = Int.random(in: 0..<3, using: &random)
      replicas[place].signal(SIGKILL)
      _ = await replicas[place].end()
      replicas[place] = try start(place)
    }
    server.answer(200)
    try await Self.settle(notices, server)
    for replica in replicas {
      replica.signal(SIGTERM)
      _ = await replica.end()
    }
    await store.close()
    await server.stop()
  }

  @Test("over 20 kills each new group is once in the list, and reaches a receiver that fails now and then")
  func kills() async throws {
    var random = SeededRandom(seed: SeededRandom.announcedSeed("notices and kills"))
    let (rig, server) = (StoreRig(), try NoticeReceiver())
    try Self.configure(rig, server)
    let fleet = FleetDatabase.folder(rig.path)
    try fleet.prepare()
    let notices = NoticeStore(fleet)
    #expect(try await notices.move("newGroup/ops", from: nil, to: 0, adding: []))
    for number in 1...20 {
      let store = try rig.sqlite()
      _ = try await store.take(Self.crash(number))
      await store.close()
      for name in try FileManager.default.contentsOfDirectory(atPath: rig.path) { chmod(rig.path + "/" + name, 0o600) }
      server.answer(random.oneIn(2) ? 500 : 200)
      let running = try Self.start(rig.path)
      try await Task.sleep(for: .milliseconds(Int.random(in: 0...600, using: &random)))
      running.signal(SIGKILL)
      _ = await running.end()
    }
    server.answer(200)
    let running = try Self.start(rig.path)
    try await Self.settle(notices, server)
    running.signal(SIGTERM)
    _ = await running.end()
    let secret = Secret(Array(String(repeating: "ab", count: 32).utf8))
    for request in server.requests {
      let time = request.signature?.dropFirst(2).prefix { $0 != "," } ?? ""
      let code = try Hashing.hmacSHA256(key: secret, Array("\(time).".utf8) + request.bytes)
      #expect(request.signature == "t=\(time),v1=\(Hex.encode(code))")
    }
    await server.stop()
  }
}
