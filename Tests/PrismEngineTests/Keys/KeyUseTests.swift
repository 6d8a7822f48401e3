import PrismBase
import PrismControl
import PrismPacket
import PrismProtocol
import PrismTestSupport
import Synchronization
import Testing

@testable import PrismEngine

/// The count of the blocks that a key encrypts (docs/security.md, "Keys are counted").
@Suite struct KeyUseTests {
  private static let silent = Logger(write: { _ in })
  private static func key(_ byte: UInt8, id: String = "main") throws -> CountedKey {
    try CountedKey(id: id, secret: Secret([UInt8](repeating: byte, count: 16)))
  }

  private static func keyUse(_ file: MemoryFile, blocksMax: Int = 1 << 32) async throws -> KeyUse {
    let use = KeyUse(file: file, blocksMax: blocksMax, log: silent)
    await use.load(inUse: [try key(1)])
    return use
  }

  @Test("after a kill at any moment no block that was granted is missing, and at most the rest of a portion is lost")
  func kill() async throws {
    let seed = SeededRandom.announcedSeed("key counts")
    var random = SeededRandom(seed: seed)
    let (file, key) = (MemoryFile(), try Self.key(1))
    var granted = 0
    for _ in 0..<40 {
      let use = try await Self.keyUse(file)
      #expect(use.report(of: key.fingerprint).blocks >= granted, "seed \(seed)")
      var inRun = 0
      for _ in 0..<Int.random(in: 0...60, using: &random) {
        let blocks = Int.random(in: 1...5000, using: &random)
        try await use.take(blocks, of: key)
        (granted, inRun) = (granted + blocks, inRun + blocks)
      }
      let counts = file.bytes.flatMap { KeyCountFile.counts($0) } ?? [:]
      let written = counts[key.fingerprint]?.blocks ?? 0
      #expect(written >= granted, "seed \(seed)")
      #expect(written - use.report(of: key.fingerprint).blocks <= max(inRun, KeyCounts.firstPortion), "seed \(seed)")
    }
  }

  @Test("an orderly stop writes the exact count")
  func close() async throws {
    let (file, key) = (MemoryFile(), try Self.key(1))
    let use = try await Self.keyUse(file)
    try await use.take(3, of: key)
    await use.close()
    let after = try await Self.keyUse(file)
    #expect(after.report(of: key.fingerprint).blocks == 3)
  }

  @Test("portions grow with the use: 2^22 blocks cost few writes")
  func portions() async throws {
    let (file, key) = (CountingFile(), try Self.key(1))
    let use = KeyUse(file: file, blocksMax: 1 << 32, log: Self.silent)
    for _ in 0..<4096 { try await use.take(1024, of: key) }
    #expect(file.writes <= 16)
  }

  @Test("a key is known by its bytes: a new one under an old id begins at 0, an old one under a new id goes on")
  func identity() async throws {
    let file = MemoryFile()
    let use = try await Self.keyUse(file)
    try await use.take(7, of: try Self.key(1))
    try await use.take(1, of: try Self.key(1, id: "other"))
    try await use.take(2, of: try Self.key(2))
    let (first, second) = (try Self.key(1).fingerprint, try Self.key(2).fingerprint)
    #expect(use.report(of: first).blocks == 8 && use.report(of: second).blocks == 2)
    let bytes = try #require(file.bytes)
    let text = String(decoding: bytes, as: UTF8.self)
    #expect(!text.contains(Hex.encode([UInt8](repeating: 1, count: 16))), "the file tells the key")
  }

  @Test("it warns once when half is crossed, and refuses what does not fit; a later portion is never past the limit")
  func limit() async throws {
    let lines = LogLines()
    let log = Logger(write: { lines.add($0) })
    let (file, key) = (MemoryFile(), try Self.key(1))
    let use = KeyUse(file: file, blocksMax: 100, log: log)
    try await use.take(49, of: key)
    #expect(lines.count == 0)
    try await use.take(1, of: key)
    try await use.take(49, of: key)
    #expect(lines.count == 1)
    #expect(!use.isUsedUp(key.fingerprint))
    await #expect(throws: KeyUse.Fault.usedUp(id: "main", blocksMax: 100)) { try await use.take(2, of: key) }
    #expect(use.isUsedUp(key.fingerprint) && use.report(of: key.fingerprint).blocks == 99)
    #expect(lines.count == 2)
    await #expect(throws: KeyUse.Fault.self) { try await use.take(1, of: key) }
    let bytes = try #require(file.bytes)
    #expect(KeyCountFile.counts(bytes)?[key.fingerprint]?.blocks == 100)
  }

  @Test("if the count can't be written, no block is granted; a damaged count is taken for half of the limit")
  func faults() async throws {
    let key = try Self.key(1)
    let broken = CountingFile(isBroken: true)
    let use = KeyUse(file: broken, blocksMax: 100, log: Self.silent)
    await #expect(throws: KeyUse.Fault.notWritten("full")) { try await use.take(1, of: key) }
    broken.mend()
    try await use.take(1, of: key)
    #expect(use.report(of: key.fingerprint).blocks == 1)

    let file = MemoryFile()
    try await Self.keyUse(file).take(1, of: key)
    let bytes = try #require(file.bytes)
    file.set(bytes.dropLast() + [0])
    let after = try await Self.keyUse(file, blocksMax: 100)
    #expect(after.report(of: key.fingerprint).blocks == 50 && file.setAsideBytes != nil)
    let unused = try Self.key(2).fingerprint
    #expect(after.report(of: unused).blocks == 0)
  }

  @Test("tasks that take at once are all counted, and never more than was written")
  func atOnce() async throws {
    let (file, key) = (MemoryFile(), try Self.key(1))
    let use = try await Self.keyUse(file)
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<50 { group.addTask { for _ in 0..<20 { try? await use.take(37, of: key) } } }
    }
    #expect(use.report(of: key.fingerprint).blocks == 50 * 20 * 37)
    let bytes = try #require(file.bytes)
    #expect(KeyCountFile.counts(bytes)?[key.fingerprint]?.blocks ?? 0 >= 50 * 20 * 37)
  }
}

/// Counts the writes, and fails them while it is broken.
final class CountingFile: KeptFile {
  private let state: Mutex<(writes: Int, isBroken: Bool)>

  init(isBroken: Bool = false) { state = Mutex((0, isBroken)) }

  var writes: Int { state.withLock(\.writes) }
  func mend() { state.withLock { $0.isBroken = false } }

  func read(bytesMax: Int) async throws(KeptFileFault) -> [UInt8]? { nil }
  func write(_ bytes: [UInt8]) async throws(KeptFileFault) {
    let isBroken = state.withLock { state in
      state.writes += 1
      return state.isBroken
    }
    if isBroken { throw KeptFileFault("full") }
  }
  func setAside() async throws(KeptFileFault) -> String { "" }
}

private final class LogLines: Sendable {
  private let lines = Mutex<[String]>([])
  var count: Int { lines.withLock(\.count) }
  func add(_ line: String) { lines.withLock { $0.append(line) } }
}
