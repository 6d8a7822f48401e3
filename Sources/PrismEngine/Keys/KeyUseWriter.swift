import PrismBase
import PrismPacket
import PrismProtocol

/// Writes the file of the counts, one content after another: a later one is never replaced by an earlier one.
actor KeyUseWriter {
  struct Content: Sendable {
    var written: [KeyFingerprint: (id: String, blocks: Int)]
    /// The end of the portion that the content was made for.
    var portion: Int
  }

  private let file: (any KeptFile)?
  private var isWriting = false
  private var waiting: [CheckedContinuation<Void, Never>] = []

  init(file: (any KeptFile)?) { self.file = file }

  func read() async throws(KeptFileFault) -> [UInt8]? { try await file?.read(bytesMax: KeyCountFile.bytesMax) }
  func setAside() async throws(KeptFileFault) -> String { try await file?.setAside() ?? "" }

  /// - Parameter content: asked for when it is its turn, so that it has what was written before it.
  /// - Parameter wrote: called when the content is on the disk, before another one is asked for.
  func write(
    _ content: @escaping @Sendable () -> Content, wrote: @escaping @Sendable (Content) -> Void
  ) async throws(KeptFileFault) {
    while isWriting { await withCheckedContinuation { waiting.append($0) } }
    isWriting = true
    defer {
      isWriting = false
      for waiter in waiting { waiter.resume() }
      waiting = []
    }
    let content = content()
    if let file {
      let bytes: [UInt8]
      do throws(PacketError) { bytes = try KeyCountFile.bytes(content.written) } catch {
        throw KeptFileFault("no checksum can be made: \(error.rawValue)")
      }
      try await file.write(bytes)
    }
    wrote(content)
  }
}

/// The file of the counts: a line with the SHA-256 of the rest, and a JSON document.
enum KeyCountFile {
  static let bytesMax = 64 * 1024

  static func bytes(_ written: [KeyFingerprint: (id: String, blocks: Int)]) throws(PacketError) -> [UInt8] {
    let keys = written.sorted { $0.key.text < $1.key.text }.map { key, entry in
      JSONValue.object([
        .init("fingerprint", .string(key.text)), .init("id", .string(entry.id)), .init("blocks", .int(entry.blocks)),
      ])
    }
    let document = JSONValue.object([.init("keys", .array(keys))]).bytes
    return Array(Hex.encode(try Hashing.sha256(document)).utf8) + [UInt8(ascii: "\n")] + document
  }

  /// nil if the file is damaged.
  static func counts(_ bytes: [UInt8]) -> [KeyFingerprint: (id: String, blocks: Int)]? {
    guard let end = bytes.firstIndex(of: UInt8(ascii: "\n")), let sum = try? Hashing.sha256(Array(bytes[(end + 1)...])),
      bytes[..<end].elementsEqual(Hex.encode(sum).utf8), let document = try? JSONValue(parsing: bytes[(end + 1)...]),
      let keys = document["keys"]?.array
    else { return nil }
    var counts: [KeyFingerprint: (id: String, blocks: Int)] = [:]
    for entry in keys {
      guard let key = entry["fingerprint"]?.string.flatMap({ KeyFingerprint($0) }), let id = entry["id"]?.string,
        let blocks = entry["blocks"]?.int, blocks >= 0
      else { return nil }
      counts[key] = (id, blocks)
    }
    return counts
  }
}
