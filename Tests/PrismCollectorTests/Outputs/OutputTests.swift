import Foundation
import Glibc
import PrismBase
import PrismConfig
import PrismHTTP
import PrismProtocol
import PrismTestSupport
import Synchronization
import Testing

@testable import PrismCollector
@testable import PrismOutputs

/// Reports that are handed on to others.
@Suite("Outputs", .timeLimit(.minutes(2)))
struct OutputTests {
  /// Takes reports, and fails as often as a test asks.
  private final class Sink: ReportOutput {
    private let state = Mutex((numbers: [Int](), failures: 0, calls: 0))
    var numbers: [Int] { state.withLock { $0.numbers } }
    var calls: Int { state.withLock { $0.calls } }
    func fail(_ times: Int) { state.withLock { $0.failures = times } }

    func deliver(_ reports: [StoredReport]) async throws(OutputFailure) -> [RefusedReport] {
      let fails = state.withLock { state in
        state.calls += 1
        guard state.failures == 0 else {
          state.failures -= 1
          return true
        }
        state.numbers += reports.compactMap { StoreRig.number($0) }
        return false
      }
      if fails { throw OutputFailure("as asked") }
      return []
    }
    func close() async {}
  }

  @Test("an output gets every report once, in order, over failures and restarts", arguments: StoreRig.Kind.allCases)
  func delivers(kind: StoreRig.Kind) async throws {
    let (rig, sink) = (StoreRig(), Sink())
    let store = try await rig.store(kind)
    for number in 0..<30 { _ = try await store.take(StoreRig.packet([number * 2, number * 2 + 1])) }
    let source = store.outputSource("test")
    let first = OutputRunner("test", from: source, to: sink, time: SystemTime(), log: rig.log)
    sink.fail(2)
    let running = Task { await first.run() }
    // The cursor follows what was delivered.
    while (try? await source.cursor()) ?? 0 < 60 { await Task.yield() }
    running.cancel()
    await running.value
    try #require(sink.numbers.count == 60)
    #expect(await first.figures.failures == 2)
    for number in 30..<40 { _ = try await store.take(StoreRig.packet([number * 2, number * 2 + 1])) }
    let again = OutputRunner(
      "test", from: kind == .memory ? source : store.outputSource("test"), to: sink, time: SystemTime(), log: rig.log)
    let second = Task { await again.run() }
    while sink.numbers.count < 80 { await Task.yield() }
    second.cancel()
    await second.value
    #expect(sink.numbers == Array(0..<80))
    #expect(rig.logged.count { $0.contains("an output takes no reports") } == 1)
    await store.close()
  }

  @Test("of two replicas one feeds an output; the other takes over when its connection ends")
  func takesOver() async throws {
    let rig = try await PostgreSQLRig()
    let store = try rig.store()
    let (one, other) = (store.outputSource("test"), store.outputSource("test"))
    #expect(try await one.lead())
    #expect(try await !other.lead())
    _ = try await store.take(StoreRig.packet([1, 2]))
    let last = try #require(try await one.next(after: 0, limit: 10).last)
    try await one.note(cursor: last.id, refused: [])
    await one.close()
    while try await !other.lead() {}
    #expect(try await other.cursor() == last.id)
    try await other.note(cursor: 1, refused: [])
    #expect(try await other.cursor() == last.id, "it only goes forward")
    await store.close()
  }

  @Test("an output never passes a transaction that is open")
  func openTransaction() async throws {
    let rig = try await PostgreSQLRig()
    let store = try rig.store()
    _ = try await store.take(StoreRig.packet([1]))
    let rollBack = try rig.openTransaction()
    _ = try await store.take(StoreRig.packet([3]))
    let source = store.outputSource("test")
    #expect(try await source.next(after: 0, limit: 10).compactMap { StoreRig.number($0) } == [1])
    try rollBack()
    #expect(try await source.next(after: 0, limit: 10).compactMap { StoreRig.number($0) } == [1, 3])
    await store.close()
  }

  @Test(
    "past retentionDay what an output has not taken stays, also past outputLagMByte, unless onLag says skip or refuse",
    arguments: [
      (Int64.max, LagPolicy.skip, [1, 2], 0, true), (.max, .refuse, [1, 2], 0, true), (0, .skip, [], 2, true),
      (0, .refuse, [1, 2], 0, false), (0, .hold, [1, 2], 0, true),
    ])
  func retention(bytes: Int64, policy: LagPolicy, left: [Int], skipped: Int, takes: Bool) async throws {
    let rig = StoreRig()
    let store = try rig.sqlite {
      ($0.retention.days, $0.retention.outputs, $0.retention.outputLagBytes, $0.retention.onLag) = (
        7, ["test"], bytes, policy
      )
    }
    _ = try await store.take(StoreRig.packet([0]))
    let source = store.outputSource("test")
    let taken = try #require(try await source.next(after: 0, limit: 10).last)
    try await source.note(cursor: taken.id, refused: [])
    _ = try await store.take(StoreRig.packet([1, 2]))
    rig.time.advance(by: .seconds(30 * 86_400))
    while try await store.maintain() {}
    #expect(try await store.numbers() == left)
    #expect(store.figures.skipped["test", default: 0] == skipped)
    #expect((store.failure == nil) == takes)
    #expect(store.warnings == (policy == .hold ? [LagPolicy.warning] : []))
    try await Self.judge(store, takes: takes)
    if let last = try await source.next(after: 0, limit: 10).last {
      try await source.note(cursor: last.id, refused: [])
    }
    while try await store.maintain() {}
    try await Self.judge(store, takes: true)
    #expect(store.failure == nil)
    await store.close()
  }

  private static func judge(_ store: any PacketStore, takes: Bool) async throws {
    let packet = try StoreRig.packet([9])
    if takes {
      #expect(try await store.take(packet) == .stored(chainIsBroken: false))
    } else {
      await #expect(throws: StoreFailure.unavailable(LagPolicy.cause)) { try await store.take(packet) }
    }
  }

  // MARK: ndjson

  private func reports(_ numbers: [Int], payload: [UInt8]? = nil) async throws -> [StoredReport] {
    let store = MemoryPacketStore()
    _ = try await store.take(StoreRig.packet(numbers, payload: payload))
    return try await store.outputSource("x").next(after: 0, limit: 100)
  }

  @Test(
    "ndjson: lines in files that are rotated by size and time; what a crash cut is set aside", arguments: [true, false])
  func ndjson(compresses: Bool) async throws {
    let (folder, time) = (TemporaryFolder(), ManualTime())
    var options = RotatingFile.Options(folder: folder("made"))
    (options.compresses, options.bytesMax, options.age) = (compresses, 2000, .seconds(60))
    let ending = compresses ? "ndjson.zst" : "ndjson"
    let output = NDJSONOutput(options, name: "out", time: time)
    for round in 0..<3 {
      _ = try await output.deliver(try await reports(Array(round * 10..<round * 10 + 10), payload: [1, 2]))
    }
    time.advance(by: .seconds(61))
    _ = try await output.deliver(try await reports([30]))
    await output.close()
    let again = NDJSONOutput(options, name: "out", time: time)
    _ = try await again.deliver(try await reports([31]))
    let names = try FileManager.default.contentsOfDirectory(atPath: options.folder).sorted()
    #expect(names.last == "out.\(ending)" && names.count >= 3, "\(names)")
    var lines: [JSONValue] = []
    for name in names {
      let text = try Self.text("\(options.folder)/\(name)", compresses: compresses)
      lines += try text.split(separator: UInt8(ascii: "\n")).map { try JSONValue(parsing: Array($0)) }
    }
    #expect(lines.compactMap { $0["meta"]?["n"]?.int }.sorted() == Array(0...31))
    #expect(lines.count { $0["payload"]?.string == "AQI=" } == 30)
  }

  @Test("a file gets its name when it is old enough, or the collector starts again, also where no further report comes")
  func quietFile() async throws {
    let (folder, time) = (TemporaryFolder(), ManualTime())
    var options = RotatingFile.Options(folder: folder.path)
    (options.compresses, options.age) = (false, .seconds(60))
    func isOpen() -> Bool { FileManager.default.fileExists(atPath: folder("out.ndjson")) }
    let output: any ReportOutput = NDJSONOutput(options, name: "out", time: time)
    _ = try await output.deliver(try await reports([0]))
    await output.rest()
    #expect(isOpen())
    time.advance(by: .seconds(61))
    await output.rest()
    #expect(!isOpen())
    _ = try await output.deliver(try await reports([1]))
    await output.close()
    #expect(isOpen())
    await NDJSONOutput(options, name: "out", time: time).rest()
    #expect(!isOpen())
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).count == 2)
  }

  @Test(
    "a file that was removed, renamed or replaced gets a new one before the next line; a missing folder holds the output",
    arguments: ["removed", "renamed", "replaced", "folder"])
  func displaced(_ change: String) async throws {
    let (folder, files) = (TemporaryFolder(), FileManager.default)
    let path = folder("out.d")
    try files.createDirectory(atPath: path, withIntermediateDirectories: false)
    var options = RotatingFile.Options(folder: path)
    options.compresses = false
    let output = NDJSONOutput(options, name: "out", time: ManualTime())
    _ = try await output.deliver(try await reports([0]))
    let file = "\(path)/out.ndjson"
    switch change {
    case "removed": try files.removeItem(atPath: file)
    case "renamed": try files.moveItem(atPath: file, toPath: file + ".1")
    case "replaced":
      try files.removeItem(atPath: file)
      try Data("theirs\n".utf8).write(to: URL(fileURLWithPath: file))
    default:
      try files.removeItem(atPath: path)
      let page = try await reports([1])
      await #expect(throws: OutputFailure.self) { _ = try await output.deliver(page) }
      try files.createDirectory(atPath: path, withIntermediateDirectories: false)
    }
    _ = try await output.deliver(try await reports([1]))
    let lines = try Self.text(file, compresses: false).split(separator: UInt8(ascii: "\n"))
    #expect(try lines.map { try JSONValue(parsing: Array($0))["meta"]?["n"]?.int } == [1])
    let names = try files.contentsOfDirectory(atPath: path)
    #expect(names.count == (["renamed", "replaced"].contains(change) ? 2 : 1), "\(names)")
  }

  private static func text(_ path: String, compresses: Bool) throws -> [UInt8] {
    guard compresses else { return Array(try Data(contentsOf: URL(fileURLWithPath: path))) }
    let pipe = Pipe()
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/python3")
    process.arguments = [
      "-c",
      "import sys,zstandard;sys.stdout.buffer.write(zstandard.ZstdDecompressor().stream_reader("
        + "open(sys.argv[1],'rb'),read_across_frames=True).read())", path,
    ]
    process.standardOutput = pipe
    try process.run()
    let bytes = pipe.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return Array(bytes)
  }

  @Test("what a crash cut of the last piece is cut off, so that every file has whole lines", arguments: [true, false])
  func cutByCrash(compresses: Bool) async throws {
    let folder = TemporaryFolder()
    var options = RotatingFile.Options(folder: folder.path)
    options.compresses = compresses
    let file = folder(compresses ? "out.ndjson.zst" : "out.ndjson")
    let output = NDJSONOutput(options, name: "out", time: ManualTime())
    _ = try await output.deliver(try await reports([0]))
    let whole = try Data(contentsOf: URL(fileURLWithPath: file))
    _ = try await output.deliver(try await reports([1]))
    await output.close()
    let both = try Data(contentsOf: URL(fileURLWithPath: file))
    for length in whole.count...both.count {
      try both.prefix(length).write(to: URL(fileURLWithPath: file))
      let again = NDJSONOutput(options, name: "out", time: ManualTime())
      _ = try await again.deliver(try await reports([2]))
      await again.close()
      let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
      let old = folder(try #require(names.first { $0.hasPrefix("out-") }))
      #expect(try Data(contentsOf: URL(fileURLWithPath: old)) == (length < both.count ? whole : both))
      try FileManager.default.removeItem(atPath: old)
    }
  }

  @Test(
    "a full disk leaves no half line, and the file goes on", .enabled(if: geteuid() == 0), arguments: [true, false])
  func fullDisk(compresses: Bool) async throws {
    let folder = TemporaryFolder.make()
    try #require(mount("prism", folder, "tmpfs", 0, "size=64k") == 0)
    defer {
      umount2(folder, Int32(MNT_DETACH))
      rmdir(folder)
    }
    var options = RotatingFile.Options(folder: folder)
    options.compresses = compresses
    let file = folder + (compresses ? "/out.ndjson.zst" : "/out.ndjson")
    let output = NDJSONOutput(options, name: "out", time: ManualTime())
    _ = try await output.deliver(try await reports([0]))
    let whole = try Data(contentsOf: URL(fileURLWithPath: file))
    var random = SeededRandom(seed: 7)
    let large = try await reports([1], payload: (0..<100_000).map { _ in .random(in: 0...255, using: &random) })
    for _ in 0..<2 {
      await #expect(throws: OutputFailure.self) { try await output.deliver(large) }
      #expect(try Data(contentsOf: URL(fileURLWithPath: file)) == whole)
    }
    try #require(mount("prism", folder, "tmpfs", UInt(MS_REMOUNT), "size=4m") == 0)
    _ = try await output.deliver(large)
    await output.close()
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder).count == 1)
    #expect(try Self.text(file, compresses: compresses).count { $0 == UInt8(ascii: "\n") } == 2)
  }

  @Test("ndjson: a folder that is not there is a failure, not a loss")
  func missingFolder() async throws {
    let output = NDJSONOutput(.init(folder: "/dev/null/out"), name: "out", time: ManualTime())
    let some = try await reports([1])
    await #expect(throws: OutputFailure.self) { try await output.deliver(some) }
  }
}
